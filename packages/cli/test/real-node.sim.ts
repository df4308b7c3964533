// shell: network namespaces, mounts and programs
/**
 * Machines for a real kubelet on this one: each has a network namespace, mounts of its own for all
 * directories that kubelets and containerd write, control groups of its own, and a containerd. An
 * image is made of busybox, so that no registry is asked.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENTRY, eventually } from './cluster.ts';

const PROGRAM_MS_MAX = 120_000;
/** What containerd 1.6 starts below each pod, and what pods run. */
const IMAGE_NAMES: readonly string[] = ['registry.k8s.io/pause:3.6', 'megaplane.test/box:1'];
export const BOX_IMAGE = 'megaplane.test/box:1';
const APPLETS = ['sh', 'sleep', 'cat', 'echo', 'mkdir', 'printf', 'nc', 'httpd'];
/** Each machine has its own of these. */
const DIRECTORIES = [
  ...['/etc/kubernetes', '/etc/containerd', '/etc/cni', '/run/containerd', '/var/lib/cni'],
  ...['/var/lib/containerd', '/var/lib/kubelet', '/var/lib/megaplane', '/var/log/pods', '/opt'],
  ...['/var/log/containers', '/run/systemd'],
];
/** As Debian has it: where plugins are. Inside of other containers nobody may lower an OOM score. */
export const CONTAINERD_CONFIG = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"`;
/** Of the machine below, on the bridge that all are on. */
export const OUTSIDE = '198.18.77.1';
const BRIDGE = 'mpreal0';
const GROUPS = '/sys/fs/cgroup';

const hasProgram = (name: string): boolean =>
  spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;

/** The kubelet that is given; '' for none. */
export const KUBELET: string = process.env['MEGAPLANE_KUBELET'] ?? '';

/** Why no real kubelet can run here, and what to do; false: one can. */
export function realNodeSkip(): string | false {
  if (process.env['MEGAPLANE_LONG'] !== '1') return 'long: MEGAPLANE_LONG=1';
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  if (!existsSync(KUBELET)) {
    return 'needs MEGAPLANE_KUBELET=path: go build k8s.io/kubernetes/cmd/kubelet (docs/network.md)';
  }
  for (const [program, from] of [
    ['containerd', 'containerd'],
    ['runc', 'runc'],
    ['busybox', 'busybox-static'],
    ['nft', 'nftables'],
  ] as const) {
    if (!hasProgram(program)) return `needs ${program}: apt-get install ${from}`;
  }
  if (!existsSync('/usr/lib/cni/bridge')) {
    return 'needs CNI plugins: apt-get install containernetworking-plugins';
  }
  return false;
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The segment that the machines are on. */
export class RealSegment {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'megaplane-real-'));
  readonly #nodes: RealNode[] = [];

  constructor() {
    spawnSync('ip', ['link', 'del', BRIDGE]);
    ip('link', 'add', BRIDGE, 'type', 'bridge', 'mcast_snooping', '0');
    ip('link', 'set', BRIDGE, 'up');
    ip('addr', 'add', `${OUTSIDE}/24`, 'dev', BRIDGE);
    ip('addr', 'add', 'fd00:77::1/64', 'dev', BRIDGE, 'nodad');
    makeImage(this.dir);
  }

  async addNode(number: number): Promise<RealNode> {
    const node = new RealNode(number, this.dir);
    this.#nodes.push(node);
    await node.start();
    return node;
  }

  async remove(): Promise<void> {
    for (const node of this.#nodes) await node.remove();
    spawnSync('ip', ['link', 'del', BRIDGE]);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args);
}

export class RealNode {
  readonly name: string;
  readonly address: string;
  readonly #namespace: string;
  readonly #dir: string;
  readonly #number: number;
  #holder: ChildProcess | undefined;
  #containerd: ChildProcess | undefined;
  #kubelet: ChildProcess | undefined;
  /** What the kubelet and its parent have said. */
  log = '';

  constructor(number: number, dir: string) {
    this.name = `real-${number}`;
    this.address = `198.18.77.${number + 1}`;
    this.#namespace = `mpreal${number}`;
    this.#dir = dir;
    this.#number = number;
  }

  async start(): Promise<void> {
    const name = this.#namespace;
    spawnSync('ip', ['netns', 'del', name]);
    ip('netns', 'add', name);
    const port = `mprp${this.#number}`;
    spawnSync('ip', ['link', 'del', port]);
    ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
    ip('link', 'set', port, 'master', BRIDGE, 'up');
    ip('-n', name, 'link', 'set', 'lo', 'up');
    ip('-n', name, 'link', 'set', 'eth0', 'up');
    ip('-n', name, 'addr', 'add', `${this.address}/24`, 'dev', 'eth0');
    ip('-n', name, 'addr', 'add', `fd00:77::${this.#number + 1}/64`, 'dev', 'eth0', 'nodad');
    ip('-n', name, 'route', 'add', 'default', 'via', OUTSIDE);
    ip('-n', name, '-6', 'route', 'add', 'default', 'via', 'fd00:77::1');
    // a kubelet ends whatever it does not know below the root of its control groups
    const groups = groupMounts();
    const enter = groups.flatMap(({ place }) => enterGroup(`${place}/${name}`));
    const again = groups.flatMap(({ place, kind, options }) => [
      `mkdir -p ${place}`,
      `mount -t ${kind} ${options === '' ? '' : `-o ${options}`} own ${place}`,
    ]);
    // /sys shows the interfaces of the namespace in which it was mounted
    const isOld = groups.every(({ place }) => place !== GROUPS);
    const system = [
      'mount -t sysfs own /sys',
      ...(isOld ? [`mount -t tmpfs own ${GROUPS}`] : []),
      ...again,
    ];
    const mounts = DIRECTORIES.map((one) => `mkdir -p ${one} && mount -t tmpfs own ${one}`);
    const script = [...system, ...mounts, 'echo up', 'exec sleep 1000000'].join(' && ');
    const inside = ['nsenter', `--net=/var/run/netns/${name}`, 'sh', '-c', `'${script}'`];
    const unshare = ['exec', 'unshare', '-m', '-C', '--propagation', 'slave', ...inside];
    const whole = [...enter, unshare.join(' ')].join(' && ');
    this.#holder = spawn('sh', ['-c', whole], { stdio: ['ignore', 'pipe', 'inherit'] });
    await firstLine(this.#holder);
    await this.startContainerd();
  }

  async startContainerd(): Promise<void> {
    const file = '/etc/containerd/config.toml';
    this.run(['sh', '-c', `echo '${CONTAINERD_CONFIG}' > ${file}`]);
    this.#containerd = this.#spawn(['containerd', '--log-level', 'warn']);
    this.#containerd.stderr?.on('data', (bytes: Buffer) => (this.log += bytes.toString()));
    await eventually('containerd', () => this.run(['ctr', 'version']).code === 0 || undefined);
    const image = join(this.#dir, 'box.tar');
    const { code, err } = this.run(['ctr', '-n', 'k8s.io', 'images', 'import', image]);
    if (code !== 0) throw new Error(err);
  }

  /** The words that run a program there. */
  #words(words: readonly string[]): string[] {
    const enter = groupMounts().map(({ place }) => `echo $$ > ${place}/cgroup.procs`);
    const shell = ['sh', '-c', [...enter, 'exec "$@"'].join(' && '), 'sh', ...words];
    return ['-t', `${this.#holder?.pid ?? 0}`, '-m', '-n', '-C', ...shell];
  }

  #spawn(words: readonly string[]): ChildProcess {
    return spawn('nsenter', this.#words(words), { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  run(words: readonly string[]): Ran {
    const options = { encoding: 'utf8', timeout: PROGRAM_MS_MAX } as const;
    const { status, stdout, stderr } = spawnSync('nsenter', this.#words(words), options);
    return { code: status, out: stdout, err: stderr };
  }

  megaplane(...words: string[]): Ran {
    return this.run([process.execPath, ENTRY, ...words]);
  }

  /** Runs `node join` in the foreground, which runs on with its kubelet. */
  join(...words: string[]): ChildProcess {
    const all = [process.execPath, ENTRY, ...words, '--foreground', '--kubelet', KUBELET];
    const child = this.#spawn([...all, '--node-name', this.name]);
    child.stdout?.on('data', (bytes: Buffer) => (this.log += bytes.toString()));
    child.stderr?.on('data', (bytes: Buffer) => (this.log += bytes.toString()));
    this.#kubelet = child;
    return child;
  }

  async stopKubelet(): Promise<void> {
    await ended(this.#kubelet, 'SIGTERM');
  }

  async remove(): Promise<void> {
    await ended(this.#kubelet, 'SIGTERM');
    for (const what of ['task', 'container']) {
      const { out } = this.run(['ctr', '-n', 'k8s.io', what, 'ls', '-q']);
      for (const id of out.split('\n').filter((line) => line !== '')) {
        this.run(['ctr', '-n', 'k8s.io', what, 'rm', ...(what === 'task' ? ['-f'] : []), id]);
      }
    }
    await ended(this.#containerd, 'SIGTERM');
    await ended(this.#holder, 'SIGKILL');
    spawnSync('ip', ['netns', 'del', this.#namespace]);
    for (const { place } of groupMounts()) {
      spawnSync('find', [`${place}/${this.#namespace}`, '-depth', '-type', 'd', '-delete']);
    }
  }
}

interface GroupMount {
  readonly place: string;
  readonly kind: string;
  /** The controller of version 1. */
  readonly options: string;
}

/** Control groups as they are mounted here, of version 2 or of version 1. */
function groupMounts(): readonly GroupMount[] {
  const found: GroupMount[] = [];
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, place = '', kind = '', all = ''] = line.split(' ');
    if (kind === 'cgroup2' && place === GROUPS) return [{ place, kind, options: '' }];
    if (kind !== 'cgroup') continue;
    const own = all.split(',').filter((one) => !['rw', 'relatime', 'xattr'].includes(one));
    const options = own.some((one) => one.startsWith('name=')) ? ['none', ...own] : own;
    found.push({ place, kind, options: options.join(',') });
  }
  return found;
}

/** Sets of processors and memory are empty in new groups, and take nobody. */
function enterGroup(dir: string): string[] {
  const fill = (file: string): string => `cat ${dir}/../${file} > ${dir}/${file}`;
  const sets = dir.includes('/cpuset/') ? [fill('cpuset.cpus'), fill('cpuset.mems')] : [];
  return [`mkdir -p ${dir}`, ...sets, `echo $$ > ${dir}/cgroup.procs`];
}

/** `nsenter` and `ip netns exec` become the program that they start: the signal is its own. */
async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await end;
}

function firstLine(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', () => resolve());
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)));
  });
}

/** An archive as `docker save` writes it. */
function makeImage(dir: string): void {
  const root = join(dir, 'root');
  for (const below of ['bin', 'tmp', 'etc']) mkdirSync(join(root, below), { recursive: true });
  const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
  cpSync(busybox, join(root, 'bin/busybox'));
  for (const name of APPLETS) symlinkSync('busybox', join(root, 'bin', name));
  const layer = join(dir, 'layer.tar');
  execFileSync('tar', ['-C', root, '-cf', layer, '.']);
  const id = createHash('sha256').update(readFileSync(layer)).digest('hex');
  const config = { Env: ['PATH=/bin'], Entrypoint: ['/bin/sleep'], Cmd: ['1000000'] };
  const image = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    ...{ os: 'linux', config, rootfs: { type: 'layers', diff_ids: [`sha256:${id}`] } },
  };
  const manifest = [{ Config: 'config.json', RepoTags: IMAGE_NAMES, Layers: ['layer.tar'] }];
  writeFileSync(join(dir, 'config.json'), JSON.stringify(image));
  writeFileSync(join(dir, 'manifest.json'), JSON.stringify(manifest));
  const files = ['manifest.json', 'config.json', 'layer.tar'];
  execFileSync('tar', ['-C', dir, '-cf', join(dir, 'box.tar'), ...files]);
}

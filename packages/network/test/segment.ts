// shell: network namespaces
/**
 * A segment in network namespaces: a switch that drops frames with foreign MAC addresses, as
 * providers do, nodes on it, and pods that real CNI plugins connect.
 */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PROGRAM_MS_MAX = 60_000;
const PLUGINS = '/usr/lib/cni';
export const MAIN: string = join(import.meta.dirname, '../../cli/src/main.ts');

/** Why this machine cannot have a segment, and what to do; false: it can. */
export function segmentSkip(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  if (!existsSync(join(PLUGINS, 'bridge'))) {
    return 'needs CNI plugins: apt-get install containernetworking-plugins';
  }
  if (spawnSync('nft', ['--version']).status !== 0) return 'needs nft: apt-get install nftables';
  const name = `mpt${process.pid}`;
  const isMade = spawnSync('ip', ['netns', 'add', name]).status === 0;
  spawnSync('ip', ['netns', 'del', name]);
  return isMade ? false : 'needs network namespaces, which the kernel does not let us have';
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export class Segment {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'megaplane-segment-'));
  readonly #names: string[] = [];
  readonly #children: ChildProcess[] = [];
  /** Told how long each plugin of a list took. */
  onPlugin: (type: string, ms: number) => void = () => {};
  readonly #id = `mp${process.pid % 10_000}`;

  constructor() {
    this.#add('sw');
    this.ip('sw', 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0');
    this.ip('sw', 'link', 'set', 'br0', 'up');
    this.ip('sw', 'addr', 'add', '2001:db8:1::ffff/64', 'dev', 'br0', 'nodad');
    this.nft('sw', 'add table netdev f');
  }

  /** The namespace's name on the machine. */
  name(short: string): string {
    return `${this.#id}-${short}`;
  }

  #add(short: string): void {
    execFileSync('ip', ['netns', 'add', this.name(short)]);
    this.#names.push(short);
    this.ip(short, 'link', 'set', 'lo', 'up');
  }

  ip(short: string, ...args: string[]): string {
    return execFileSync('ip', ['-n', this.name(short), ...args], { encoding: 'utf8' });
  }

  nft(short: string, text: string): void {
    execFileSync('ip', ['netns', 'exec', this.name(short), 'nft', text]);
  }

  /** Runs a program in a namespace to its end. */
  run(short: string, words: readonly string[], input = '', env: NodeJS.ProcessEnv = {}): Ran {
    const options = {
      ...({ encoding: 'utf8', input, timeout: PROGRAM_MS_MAX } as const),
      env: { ...process.env, ...env },
    };
    const args = ['netns', 'exec', this.name(short), ...words];
    const { status, stdout, stderr } = spawnSync('ip', args, options);
    return { code: status, out: stdout, err: stderr };
  }

  /** Starts a program in a namespace; it ends with the segment. */
  start(
    short: string,
    words: readonly string[],
    input: 'ignore' | 'pipe' = 'ignore',
  ): ChildProcess {
    const args = ['netns', 'exec', this.name(short), ...words];
    const child = spawn('ip', args, { stdio: [input, 'pipe', 'inherit'] });
    this.#children.push(child);
    return child;
  }

  /** A node with an address on the segment; the switch takes frames of its own MAC only. */
  addNode(short: string, address: string): void {
    this.#add(short);
    const port = `p-${short}`;
    this.ip(
      'sw',
      'link',
      'add',
      port,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      this.name(short),
    );
    this.ip('sw', 'link', 'set', port, 'master', 'br0', 'up');
    this.ip(short, 'link', 'set', 'eth0', 'up');
    this.ip(short, 'addr', 'add', `${address}/64`, 'dev', 'eth0', 'nodad');
    this.ip(short, '-6', 'route', 'add', 'default', 'via', '2001:db8:1::ffff');
    const [, mac = ''] = /link\/ether (\S+)/.exec(this.ip(short, 'link', 'show', 'eth0')) ?? [];
    this.nft(
      'sw',
      `add chain netdev f ${short} { type filter hook ingress device "${port}" priority 0; policy drop; }`,
    );
    this.nft('sw', `add rule netdev f ${short} ether saddr ${mac} accept`);
  }

  /** A machine behind a node, by a wire of its own. */
  addBehind(node: string, short: string, near: string, far: string): void {
    this.#add(short);
    this.ip(
      node,
      'link',
      'add',
      'eth1',
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      this.name(short),
    );
    this.ip(node, 'link', 'set', 'eth1', 'up');
    this.ip(node, 'addr', 'add', near, 'dev', 'eth1');
    this.ip(short, 'link', 'set', 'eth0', 'up');
    this.ip(short, 'addr', 'add', far, 'dev', 'eth0');
  }

  /** `megaplane network` with any words in a namespace. */
  megaplane(short: string, ...words: string[]): Ran {
    return this.run(short, [process.execPath, MAIN, 'network', ...words]);
  }

  /** `megaplane network node` in a node, with directories of its own. */
  network(short: string, ...flags: string[]): Ran {
    const dirs = ['--state-dir', this.state(short), '--cni-bin-dir', join(this.dir, 'bin')];
    const all = [...flags, ...dirs, '--cni-config-dir', this.configDir(short)];
    return this.run(short, [process.execPath, MAIN, 'network', 'node', ...all]);
  }

  state(short: string): string {
    return join(this.dir, short, 'state');
  }

  configDir(short: string): string {
    return join(this.dir, short, 'net.d');
  }

  conflist(short: string): { cniVersion: string; name: string; plugins: { type: string }[] } {
    return JSON.parse(readFileSync(join(this.configDir(short), '10-megaplane.conflist'), 'utf8'));
  }

  /** Connects a new pod as a runtime does; its addresses. */
  addPod(node: string, pod: string): readonly string[] {
    this.#add(pod);
    const result = this.cni('ADD', node, pod, undefined);
    const { ips = [] } = result as { ips?: { address: string }[] };
    return ips.map(({ address }) => address.split('/')[0] ?? '');
  }

  /** Runs the list of a node for a pod: forward to add, backward to remove. */
  cni(
    verb: 'ADD' | 'DEL' | 'CHECK',
    node: string,
    pod: string,
    previous: object | undefined,
  ): object {
    const { cniVersion, name, plugins } = this.conflist(node);
    const order = verb === 'DEL' ? plugins.toReversed() : plugins;
    let result = previous;
    for (const plugin of order) {
      const { capabilities: _, ...own } = plugin as { capabilities?: object; type: string };
      const config = {
        ...own,
        cniVersion,
        name,
        ...(result === undefined ? {} : { prevResult: result }),
      };
      const startMs = performance.now();
      const ran = this.plugin(verb, node, pod, own.type, config);
      this.onPlugin(own.type, performance.now() - startMs);
      if (ran.code !== 0) throw new Error(`${own.type} ${verb}: ${ran.out}${ran.err}`);
      if (verb === 'ADD') result = JSON.parse(ran.out) as object;
    }
    return result ?? {};
  }

  /** Runs one plugin in the namespace of a node. */
  plugin(verb: string, node: string, pod: string, type: string, config: object | string): Ran {
    const bin = join(this.dir, 'bin');
    const own = join(bin, type);
    const input = typeof config === 'string' ? config : JSON.stringify(config);
    return this.run(node, [existsSync(own) ? own : join(PLUGINS, type)], input, {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: `id-${pod}`,
      CNI_NETNS: `/var/run/netns/${this.name(pod)}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: `${bin}:${PLUGINS}`,
    });
  }

  /** Writes down so many attachments of a node as its plugin does, some addresses to each. */
  fillEntries(node: string, count: number, each: number): void {
    const dir = join(this.state(node), 'ndp');
    for (let at = 0; at < count; at += each) {
      const addresses = Array.from({ length: Math.min(each, count - at) }, (_, more) => {
        return `2001:db8:1::a:1:${(at + more).toString(16)}`;
      });
      writeFileSync(join(dir, `many-${at}.eth0`), `eth0 ${addresses.join(' ')}\n`);
    }
  }

  /** Entries of the neighbour proxy of a node. */
  proxied(node: string): readonly string[] {
    const lines = this.ip(node, '-6', 'neigh', 'show', 'proxy').trim().split('\n');
    return lines.filter((line) => line !== '').map((line) => line.split(' ')[0] ?? '');
  }

  remove(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const short of this.#names) spawnSync('ip', ['netns', 'del', this.name(short)]);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

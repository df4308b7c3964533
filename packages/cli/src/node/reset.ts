// shell: programs and directories of this machine
/** `megaplane node reset`: undoes `node join`. */
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  KUBELET_DIR,
  KUBELET_HAD,
  KUBELET_KUBECONFIG,
  KUBELET_UNIT,
  NETWORK_UNIT,
} from '@megaplane/network/join/join-files';
import { parseJson } from '@megaplane/machinery/json-text';
import { output, run, StepRecord, takeDown } from '@megaplane/network/node/node-network';

export interface ResetFlags {
  readonly force?: true;
  readonly stateDir: string;
  readonly dryRun?: true;
}

const EXIT_FAILED = 1;
/** The namespace of containerd that kubelets' containers are in. */
const CONTAINERS = ['-n', 'k8s.io'] as const;
const NAMES_SHOWN_MAX = 5;

/** The exit code; what is in the way, or was left, is on stderr. */
export function resetNode({ force, stateDir, dryRun }: ResetFlags): number {
  const record = new StepRecord(join(stateDir, 'node.json'));
  const hasNetwork = existsSync(join(stateDir, 'network.json'));
  if (record.isEmpty && !hasNetwork) {
    return fail(`this machine has not joined: there is no ${join(stateDir, 'node.json')}`);
  }
  const running = podsHere();
  if (running.length > 0 && force !== true) {
    const names = running.slice(0, NAMES_SHOWN_MAX).join(', ');
    const rest = running.length > NAMES_SHOWN_MAX ? ', ...' : '';
    const count = running.length === 1 ? 'one pod runs' : `${running.length} pods run`;
    return fail(`${count} here (${names}${rest}): drain the node first, or say --force`);
  }
  if (dryRun === true) {
    process.stdout.write(`${record.texts().join('\n')}\n`);
    return 0;
  }
  const { node = '', mode = '' } = record.facts;
  const kubelet = mode === 'systemd' ? 0 : livingKubelet();
  if (kubelet > 0) return fail(`the kubelet still runs (${kubelet}): end it first`);
  if (mode === 'systemd') run('systemctl', ['disable', '--now', KUBELET_UNIT, NETWORK_UNIT]);
  const faults = [...stopPods(), ...unmountBelow(KUBELET_DIR)];
  // certificates, pods and states that the kubelet has made for itself
  if (faults.length === 0) emptyDirectory(KUBELET_DIR, hadBefore(record));
  rmSync(KUBELET_KUBECONFIG, { force: true });
  faults.push(...takeDown(stateDir, true), ...record.undo());
  if (mode === 'systemd') run('systemctl', ['daemon-reload']);
  if (mode === 'systemd') run('systemctl', ['try-restart', 'containerd']);
  for (const fault of faults) process.stderr.write(`megaplane: ${fault}\n`);
  if (node !== '') process.stdout.write(`the cluster still has it: kubectl delete node ${node}\n`);
  return faults.length === 0 ? 0 : EXIT_FAILED;
}

/** The number of a kubelet that its user started; it would start its pods again. 0: none. */
function livingKubelet(): number {
  const own = readlinkSync('/proc/self/ns/mnt');
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // one of a container, or of another machine in a namespace, keeps other files
      if (readlinkSync(`/proc/${name}/ns/mnt`) !== own) continue;
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      if (command.includes(`\0--kubeconfig=${KUBELET_KUBECONFIG}\0`)) return Number(name);
    } catch {
      // it has ended meanwhile
    }
  }
  return 0;
}

/** Names of pods, or their uids, that the kubelet keeps here and that have tasks. */
function podsHere(): string[] {
  const tasks = output('ctr', [...CONTAINERS, 'task', 'ls', '-q']).split('\n');
  const living = tasks.filter((line) => line !== '');
  if (living.length === 0) return [];
  const dir = join(KUBELET_DIR, 'pods');
  return existsSync(dir) ? readdirSync(dir) : living;
}

function stopPods(): string[] {
  const list = (what: string): string[] =>
    output('ctr', [...CONTAINERS, what, 'ls', '-q'])
      .split('\n')
      .filter((line) => line !== '');
  for (const id of list('task')) {
    run('ctr', [...CONTAINERS, 'task', 'rm', '-f', id]);
  }
  const faults = list('task').map((id) => `the container ${id} does not end`);
  for (const id of list('container')) run('ctr', [...CONTAINERS, 'container', 'rm', id]);
  return faults;
}

/** Volumes that are mounted below a directory, the innermost first. */
function unmountBelow(dir: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[1] ?? '').replaceAll(String.raw`\040`, ' '))
    .filter((place) => place.startsWith(`${dir}/`));
  return mounts
    .toSorted((left, right) => right.length - left.length)
    .map((place) => run('umount', [place]))
    .filter((why) => why !== '');
}

/** Names that others have put there; all of them where an older version has noted none. */
function hadBefore(record: StepRecord): readonly string[] | undefined {
  const text = record.facts[KUBELET_HAD];
  if (text === undefined) return record.hasMadeDirectory(KUBELET_DIR) ? [] : undefined;
  const names: unknown = parseJson(text);
  return Array.isArray(names) ? names.filter((one) => typeof one === 'string') : undefined;
}

function emptyDirectory(dir: string, kept: readonly string[] | undefined): void {
  if (kept === undefined || !existsSync(dir)) return;
  for (const name of readdirSync(dir)) {
    const isOurs = name !== 'config.yaml' && !kept.includes(name);
    if (isOurs) rmSync(join(dir, name), { recursive: true, force: true });
  }
}

function fail(text: string): number {
  process.stderr.write(`megaplane: ${text}\n`);
  return EXIT_FAILED;
}

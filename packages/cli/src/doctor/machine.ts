// shell: reads what the machine says of itself
/** The machine as `megaplane doctor` judges it, read at once. */
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isFree } from '../up/ports.ts';
import type { Machine } from './findings.ts';

const PORTS = [6443, 8080, 2379, 10_250, 10_257, 10_259] as const;
/** A kernel's setting is a line; more is not what it says it is. */
const SETTING_CHARS_MAX = 4096;

/** Reads it all. What the system does not tell is absent, and nothing is thrown. */
export async function readMachine(dataDir: string): Promise<Machine> {
  const memory = setting('/proc/meminfo');
  const limits = setting('/proc/self/limits');
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits) ?? [];
  const taken: number[] = [];
  for (const port of PORTS) if (!(await isFree(port))) taken.push(port);
  const constrained = process.constrainedMemory();
  return {
    platform: process.platform,
    architecture: process.arch,
    runtime: process.version,
    kernel: setting('/proc/sys/kernel/osrelease').trim(),
    cores: availableParallelism(),
    memoryBytes: constrained > 0 ? Math.min(totalmem(), constrained) : totalmem(),
    availableBytes: kib(memory, 'MemAvailable'),
    filesSoft: numberOf(soft),
    filesHard: numberOf(hard),
    filesOfProcessMax: numberOf(kernel('fs/nr_open')),
    filesOfSystemMax: numberOf(kernel('fs/file-max')),
    hugePages: /\[(\w+)\]/.exec(setting('/sys/kernel/mm/transparent_hugepage/enabled'))?.[1],
    acceptQueueMax: numberOf(kernel('net/core/somaxconn')),
    synQueueMax: numberOf(kernel('net/ipv4/tcp_max_syn_backlog')),
    tcpPagesMax: numberOf(words(kernel('net/ipv4/tcp_mem'))[2]),
    tcpReadBytes: numberOf(words(kernel('net/ipv4/tcp_rmem'))[1]),
    tcpWriteBytes: numberOf(words(kernel('net/ipv4/tcp_wmem'))[1]),
    localPorts: pair(words(kernel('net/ipv4/ip_local_port_range'))),
    trackedMax: numberOf(kernel('net/netfilter/nf_conntrack_max')),
    mapsMax: numberOf(kernel('vm/max_map_count')),
    portsTaken: taken,
    data: placeOf(dataDir),
  };
}

/** The nearest directory that is there, whether it may be written to, and its room. */
function placeOf(dataDir: string): Machine['data'] {
  const asked = resolve(dataDir);
  let place = asked;
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  try {
    accessSync(place, constants.W_OK);
    const { bavail, bsize } = statfsSync(place);
    return { place: asked, isWritable: true, freeBytes: bavail * bsize };
  } catch {
    return { place: asked, isWritable: false, freeBytes: undefined };
  }
}

function kernel(name: string): string {
  return setting(`/proc/sys/${name}`);
}

function setting(path: string): string {
  try {
    return readFileSync(path, 'utf8').slice(0, SETTING_CHARS_MAX);
  } catch {
    return '';
  }
}

function kib(text: string, name: string): number | undefined {
  const found = numberOf(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]);
  return found === undefined ? undefined : found * 1024;
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

function pair([low, high]: readonly string[]): readonly [number, number] | undefined {
  const [first, last] = [numberOf(low), numberOf(high)];
  return first === undefined || last === undefined ? undefined : [first, last];
}

function numberOf(text: string | undefined): number | undefined {
  if (text?.trim() === 'unlimited') return Infinity;
  const found = text === undefined || text.trim() === '' ? NaN : Number(text);
  return Number.isNaN(found) ? undefined : found;
}

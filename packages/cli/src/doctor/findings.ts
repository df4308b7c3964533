/**
 * What `megaplane doctor` finds: facts of a machine and what is wanted of it go in, findings come
 * out. A finding is a fault where what was asked for cannot be had, advice where it can be had at a
 * price, and else fine; each says what was found, and what to do about it.
 */
import { clusterBytes } from '../up/capacity.ts';

/** What the machine says of itself; undefined is what it does not tell. */
export interface Machine {
  readonly platform: string;
  readonly architecture: string;
  readonly runtime: string;
  readonly kernel: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly availableBytes: number | undefined;
  /** Descriptors of a process: as it is, and as it may raise it. */
  readonly filesSoft: number | undefined;
  readonly filesHard: number | undefined;
  readonly filesOfProcessMax: number | undefined;
  readonly filesOfSystemMax: number | undefined;
  /** `always`, `madvise` or `never`. */
  readonly hugePages: string | undefined;
  readonly acceptQueueMax: number | undefined;
  readonly synQueueMax: number | undefined;
  /** Pages of 4 KiB that all TCP sockets together may take. */
  readonly tcpPagesMax: number | undefined;
  readonly tcpReadBytes: number | undefined;
  readonly tcpWriteBytes: number | undefined;
  readonly localPorts: readonly [low: number, high: number] | undefined;
  /** Undefined where connections are not tracked. */
  readonly trackedMax: number | undefined;
  readonly mapsMax: number | undefined;
  readonly portsTaken: readonly number[];
  readonly data: {
    readonly place: string;
    readonly isWritable: boolean;
    readonly freeBytes: number | undefined;
  };
}

/** What it is to hold. */
export interface Wanted {
  readonly nodes: number;
  readonly pods: number;
  readonly connections: number;
}

export interface Finding {
  readonly check: string;
  readonly verdict: 'ok' | 'advice' | 'fault';
  readonly found: string;
  /** What to change; empty where nothing is. */
  readonly change: string;
}

/** Two, for the server and for all the others together. */
const CORES_MIN = 2;
/** Files, logs and listeners of a process beside its connections. */
const FILES_BESIDE = 1000;
const FILES_MIN = 4096;
const ACCEPT_QUEUE_MIN = 4096;
/** What the kernel holds for a TCP connection that rests. */
const SOCKET_BYTES = 4096;
const PAGE_BYTES = 4096;
const FREE_BYTES_MIN = 2 ** 30;
const OBJECT_FILE_BYTES = 1536;
const MAPS_MIN = 65_530;
const SEPARATE_ADDRESS_PORTS = 20_000;
const RUNTIME_MAJOR = 26;
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];

/** All findings, in the order in which they are read. */
export function examine(machine: Machine, wanted: Wanted): readonly Finding[] {
  return [
    platform(machine),
    cores(machine),
    memory(machine, wanted),
    hugePages(machine),
    descriptors(machine, wanted),
    systemFiles(machine, wanted),
    acceptQueue(machine),
    synQueue(machine),
    tcpMemory(machine, wanted),
    localPorts(machine, wanted),
    tracked(machine, wanted.connections + 1, wanted.connections * 2),
    maps(machine),
    ports(machine),
    dataDirectory(machine, wanted),
  ].filter((finding) => finding !== undefined);
}

/** What an API server's machine is judged by where a crowd comes to it. */
export function examineConnections(machine: Machine, wanted: CrowdWanted): readonly Finding[] {
  const { connections, files, tracked: entries, bytes } = wanted;
  const each = { nodes: 0, pods: 0, connections };
  return [
    crowdMemory(machine, bytes),
    descriptors(machine, { ...each, connections: files - FILES_BESIDE }),
    systemFiles(machine, { ...each, connections: Math.ceil(files / 2) }),
    acceptQueue(machine),
    synQueue(machine),
    tcpMemory(machine, each),
    sourcePorts(machine, connections),
    tracked(machine, entries, entries),
  ].filter((finding) => finding !== undefined);
}

/** Of one server, the largest that it has to hold: that of a server less. */
export interface CrowdWanted {
  readonly connections: number;
  readonly files: number;
  readonly tracked: number;
  /** Of its process and of the kernel together. */
  readonly bytes: number;
}

function crowdMemory({ memoryBytes }: Machine, needed: number): Finding {
  const found = `${size(memoryBytes)}; connections and watches take ${size(needed)}`;
  if (needed <= memoryBytes) return fine('memory', found);
  return fault('memory', found, 'take more servers, or larger machines');
}

/** Nodes have addresses of their own; a proxy before the servers has one, and its ports end. */
function sourcePorts({ localPorts: range }: Machine, connections: number): Finding | undefined {
  if (range === undefined) return undefined;
  const ends = range[1] - range[0] + 1;
  const found = `one address makes ${count(ends)} connections to one port`;
  if (ends >= connections) return fine('ports of a proxy', found);
  const addresses = Math.ceil(connections / ends);
  return advice(
    'ports of a proxy',
    found,
    `no proxy before the servers, or one with ${addresses} addresses to each of them`,
  );
}

function fine(check: string, found: string): Finding {
  return { check, verdict: 'ok', found, change: '' };
}

function advice(check: string, found: string, change: string): Finding {
  return { check, verdict: 'advice', found, change };
}

function fault(check: string, found: string, change: string): Finding {
  return { check, verdict: 'fault', found, change };
}

function platform({ platform: system, architecture, runtime, kernel }: Machine): Finding {
  const found = `${system}-${architecture} ${kernel}, Node ${runtime}`.replace('  ', ' ');
  if (!PLATFORMS.includes(`${system}-${architecture}`)) {
    return fault('platform', found, `use one of ${PLATFORMS.join(', ')}`);
  }
  if (Number(/^v(\d+)/.exec(runtime)?.[1]) < RUNTIME_MAJOR) {
    return fault('platform', found, `run it with Node ${RUNTIME_MAJOR} or newer`);
  }
  return fine('platform', found);
}

function cores({ cores: count }: Machine): Finding {
  if (count >= CORES_MIN) return fine('cores', `${count}`);
  return advice('cores', `${count}`, 'give it two: server and clients wait for each other else');
}

function memory({ memoryBytes, availableBytes }: Machine, { nodes, pods }: Wanted): Finding {
  const needed = clusterBytes(nodes, pods);
  const what = `${count(nodes)} nodes and ${count(pods)} pods take about ${size(needed)}`;
  const available = availableBytes === undefined ? '' : `, ${size(availableBytes)} free`;
  const found = `${size(memoryBytes)}${available}; ${what}`;
  if (needed > memoryBytes) return fault('memory', found, 'take fewer nodes, or a larger machine');
  if (availableBytes !== undefined && needed > availableBytes) {
    return advice('memory', found, 'end what else takes memory, or it is swapped');
  }
  return fine('memory', found);
}

function hugePages({ hugePages: mode }: Machine): Finding | undefined {
  if (mode === undefined) return undefined;
  if (mode !== 'never') return fine('huge pages', mode);
  const change = 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled';
  return advice('huge pages', mode, change);
}

function descriptors(machine: Machine, { connections }: Wanted): Finding | undefined {
  const { filesSoft, filesHard, filesOfProcessMax } = machine;
  // Node raises its own limit to the hard one, so this is the one that counts.
  if (filesHard === undefined) return undefined;
  const needed = Math.max(FILES_MIN, connections + FILES_BESIDE);
  const found = `${count(filesHard)} a process (soft ${count(filesSoft ?? filesHard)})`;
  if (filesHard >= needed) return fine('file descriptors', found);
  const steps = [`LimitNOFILE=${needed} in the unit, or ulimit -Hn ${needed} as root`];
  if (filesOfProcessMax !== undefined && filesOfProcessMax < needed) {
    steps.unshift(`sysctl -w fs.nr_open=${needed}`);
  }
  const wants = `${found}; ${count(connections)} connections want ${count(needed)}`;
  return fault('file descriptors', wants, steps.join('; then '));
}

function systemFiles({ filesOfSystemMax }: Machine, { connections }: Wanted): Finding | undefined {
  if (filesOfSystemMax === undefined) return undefined;
  // Both ends may be on this machine.
  const needed = connections * 2 + FILES_BESIDE;
  const found = `fs.file-max ${count(filesOfSystemMax)}`;
  if (filesOfSystemMax >= needed) return fine('open files of all', found);
  return fault('open files of all', found, `sysctl -w fs.file-max=${needed}`);
}

function acceptQueue({ acceptQueueMax }: Machine): Finding | undefined {
  if (acceptQueueMax === undefined) return undefined;
  const found = `net.core.somaxconn ${acceptQueueMax}`;
  if (acceptQueueMax >= ACCEPT_QUEUE_MIN) return fine('accept queue', found);
  const change = `sysctl -w net.core.somaxconn=${ACCEPT_QUEUE_MIN}`;
  return advice('accept queue', found, `${change}: storms of connections are refused else`);
}

function synQueue({ synQueueMax }: Machine): Finding | undefined {
  if (synQueueMax === undefined) return undefined;
  const found = `net.ipv4.tcp_max_syn_backlog ${synQueueMax}`;
  if (synQueueMax >= ACCEPT_QUEUE_MIN) return fine('SYN queue', found);
  const change = `sysctl -w net.ipv4.tcp_max_syn_backlog=${ACCEPT_QUEUE_MIN}`;
  return advice('SYN queue', found, change);
}

function tcpMemory({ tcpPagesMax }: Machine, { connections }: Wanted): Finding | undefined {
  if (tcpPagesMax === undefined) return undefined;
  const needed = Math.ceil((connections * SOCKET_BYTES) / PAGE_BYTES);
  const found = `net.ipv4.tcp_mem ${size(tcpPagesMax * PAGE_BYTES)} for all connections`;
  if (tcpPagesMax >= needed) return fine('memory of TCP', found);
  const triple = [needed >> 1, Math.floor(needed * 0.75), needed].join(' ');
  return fault('memory of TCP', found, `sysctl -w net.ipv4.tcp_mem="${triple}"`);
}

function localPorts({ localPorts: range }: Machine, { connections }: Wanted): Finding | undefined {
  if (range === undefined) return undefined;
  const [low, high] = range;
  const found = `net.ipv4.ip_local_port_range ${low} ${high}`;
  const ends = high - low + 1;
  if (ends >= connections) return fine('ports of clients', found);
  if (ends < SEPARATE_ADDRESS_PORTS) {
    const change = 'sysctl -w net.ipv4.ip_local_port_range="1024 65535"';
    return advice('ports of clients', found, change);
  }
  const addresses = Math.ceil(connections / ends);
  const text = `${found}; one address makes ${count(ends)} connections to one port`;
  return fine('ports of clients', `${text}, so ${count(connections)} come from ${addresses}`);
}

function tracked({ trackedMax }: Machine, least: number, advised: number): Finding | undefined {
  if (trackedMax === undefined) return undefined;
  const found = `net.netfilter.nf_conntrack_max ${count(trackedMax)}`;
  if (trackedMax >= least) return fine('tracked connections', found);
  const change = `sysctl -w net.netfilter.nf_conntrack_max=${advised}`;
  return fault('tracked connections', found, change);
}

function maps({ mapsMax }: Machine): Finding | undefined {
  if (mapsMax === undefined) return undefined;
  const found = `vm.max_map_count ${count(mapsMax)}`;
  if (mapsMax >= MAPS_MIN) return fine('memory maps', found);
  return advice('memory maps', found, `sysctl -w vm.max_map_count=${MAPS_MIN}`);
}

const USERS: ReadonlyMap<number, string> = new Map([
  [6443, 'API server: up takes the next one that is free; --secure-port names another'],
  [8080, 'page: up takes the next one that is free; --page-port names another'],
  [2379, 'store as etcd: --listen-client-urls names another'],
  [10_250, 'simulated kubelets: up takes a free one; --kubelet-port names another'],
  [10_257, 'controllers: kubectl get componentstatuses asks there and hears of another program'],
  [10_259, 'scheduler: kubectl get componentstatuses asks there and hears of another program'],
]);

function ports({ portsTaken }: Machine): Finding {
  if (portsTaken.length === 0) return fine('ports', `${[...USERS.keys()].join(', ')} are free`);
  const change = portsTaken.map((port) => `${port}: ${USERS.get(port) ?? ''}`).join('; ');
  return advice('ports', `taken: ${portsTaken.join(', ')}`, change);
}

function dataDirectory({ data }: Machine, { nodes, pods }: Wanted): Finding {
  const { place, isWritable, freeBytes } = data;
  if (!isWritable) {
    return fault('data directory', `${place} cannot be written`, '--data-dir names one of yours');
  }
  const needed = FREE_BYTES_MIN + (nodes + pods) * OBJECT_FILE_BYTES;
  const found = freeBytes === undefined ? place : `${place}, ${size(freeBytes)} free`;
  if (freeBytes === undefined || freeBytes >= needed) return fine('data directory', found);
  const wants = `${found}; about ${size(needed)} are wanted`;
  return advice('data directory', wants, 'make room, or name another disk by --data-dir');
}

function count(value: number): string {
  return value === Infinity ? 'unlimited' : value.toLocaleString('en-US');
}

function size(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

const MARKS = { ok: 'ok', advice: 'ADVICE', fault: 'FAULT' } as const;
const MARK_WIDTH = 8;
const CHECK_WIDTH = 20;

/** A line each, and one below where something is to be changed. */
export function findingsText(findings: readonly Finding[]): string {
  let text = '';
  for (const { check, verdict, found, change } of findings) {
    text += `${MARKS[verdict].padEnd(MARK_WIDTH)}${check.padEnd(CHECK_WIDTH)}${found}\n`;
    if (change !== '') text += `${''.padEnd(MARK_WIDTH)}  -> ${change}\n`;
  }
  return text;
}

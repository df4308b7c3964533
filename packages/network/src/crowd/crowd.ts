/**
 * What a crowd of nodes is to its API servers: connections, descriptors, memory, and how long it
 * takes until all are back when a server is lost. Arithmetic over figures that `bench connections`
 * and `bench reconnect` have measured; nothing is looked at here.
 *
 *   connections of a server   nodes x connections of a node / servers
 *   watches of a server       nodes x watches of a node / servers
 *   memory of the process     connections x bytes of one + watches x bytes of one
 *   back after a loss         what comes to each that is left x (handshake + its watches) / cores
 */

/** What is to be held. */
export interface Crowd {
  readonly nodes: number;
  readonly servers: number;
  /** Of a node: one of its kubelet, one of its kube-proxy. */
  readonly connections: number;
  /** Of a node, over all its connections. */
  readonly watches: number;
  /** Of a server, for handshakes and watches that start. Ours answers on one. */
  readonly cores: number;
}

/** What one connection and one watch cost a server. */
export interface Measured {
  readonly processBytesPerConnection: number;
  /** The server's end: buffers and structures of the kernel for a connection at rest. */
  readonly kernelBytesPerConnection: number;
  readonly processBytesPerWatch: number;
  /** Milliseconds of processor time: TCP, a whole handshake of TLS, the start of HTTP/2. */
  readonly handshakeMs: number;
  /** The same with a ticket; NaN: not known. */
  readonly ticketMs: number;
  readonly watchStartMs: number;
}

/** Of docs/figures.md: `bench connections` with 15,000 of them, and `bench reconnect`. */
export const MEASURED: Measured = {
  processBytesPerConnection: 109_000,
  kernelBytesPerConnection: 5300,
  processBytesPerWatch: 3300,
  handshakeMs: 0.93,
  ticketMs: 0.5,
  watchStartMs: 0.1,
};

export interface CrowdLoad {
  /** Of one server, where all of them live. */
  readonly connections: number;
  readonly watches: number;
  readonly descriptors: number;
  /** Entries of the firewall's table, where it tracks. */
  readonly tracked: number;
  readonly trackedBytes: number;
  readonly processBytes: number;
  readonly kernelBytes: number;
  /** Seconds until all are back after all servers were started anew. */
  readonly returnSeconds: number;
  readonly returnTicketSeconds: number;
  /** Of one that is left when one is lost; equal to the above where there is one only. */
  readonly lost: {
    readonly connections: number;
    readonly processBytes: number;
    readonly returnSeconds: number;
    readonly returnTicketSeconds: number;
  };
}

/** Logs, listeners and files of a process beside its connections. */
const FILES_BESIDE = 1000;
/** An entry of nf_conntrack with its place in the hash. */
const TRACKED_BYTES = 336;
/** Of those that come back the entries of before are not gone yet. */
const TRACKED_TIMES = 2;
/** Node controllers take a node for lost that has not renewed its lease for so long (1.32 on). */
export const GRACE_SECONDS = 50;

/** `crowd` has one node, server and core at least. */
export function crowdLoad(crowd: Crowd, measured: Measured): CrowdLoad {
  const { nodes, servers, cores } = crowd;
  const share = (left: number): number => Math.ceil((nodes * crowd.connections) / left);
  const connections = share(servers);
  const watchesPerConnection = crowd.watches / crowd.connections;
  const bytes = (count: number): number =>
    count *
    (measured.processBytesPerConnection + watchesPerConnection * measured.processBytesPerWatch);
  const seconds = (count: number, handshakeMs: number): number =>
    (count * (handshakeMs + watchesPerConnection * measured.watchStartMs)) / 1000 / cores;
  const left = Math.max(1, servers - 1);
  const atLoss = share(left);
  const coming = servers === 1 ? connections : atLoss - connections;
  return {
    connections,
    watches: Math.ceil((nodes * crowd.watches) / servers),
    descriptors: atLoss + FILES_BESIDE,
    tracked: atLoss * TRACKED_TIMES,
    trackedBytes: atLoss * TRACKED_TIMES * TRACKED_BYTES,
    processBytes: bytes(connections),
    kernelBytes: connections * measured.kernelBytesPerConnection,
    returnSeconds: seconds(connections, measured.handshakeMs),
    returnTicketSeconds: seconds(connections, measured.ticketMs),
    lost: {
      connections: atLoss,
      processBytes: bytes(atLoss),
      returnSeconds: seconds(coming, measured.handshakeMs),
      returnTicketSeconds: seconds(coming, measured.ticketMs),
    },
  };
}

/** The least number of servers that are back within `secondsMax` when one of them is lost. */
export function serversFor(crowd: Crowd, measured: Measured, secondsMax: number): number {
  // the return shrinks with the square of the number: what was one's comes to all others
  let [low, high] = [2, 2];
  const isEnough = (servers: number): boolean =>
    crowdLoad({ ...crowd, servers }, measured).lost.returnSeconds <= secondsMax;
  while (!isEnough(high)) [low, high] = [high, high * 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isEnough(middle)) high = middle;
    else low = middle + 1;
  }
  return high;
}

/** A table for people, with the formulas' words. */
export function crowdText(crowd: Crowd, load: CrowdLoad): string {
  const { nodes, servers, watches, connections, cores } = crowd;
  const times = (whole: number, ticket: number): string => {
    const text = duration(whole);
    return Number.isNaN(ticket) ? text : `${text}, or ${duration(ticket)} where clients resume`;
  };
  const rows: (readonly [string, string])[] = [
    ['wanted', `${count(nodes)} nodes with ${connections} connections and ${watches} watches each`],
    ['servers', `${servers}, each with ${cores === 1 ? 'one core' : `${cores} cores`} for them`],
    ['connections', `${count(load.connections)} each; ${count(load.lost.connections)} without one`],
    ['watches', `${count(load.watches)} each`],
    ['descriptors', `${count(load.descriptors)} each`],
    ['process', `${size(load.processBytes)} each; ${size(load.lost.processBytes)} without one`],
    ['kernel', `${size(load.kernelBytes)} each, of connections at rest`],
    ['tracking', `${count(load.tracked)} entries, ${size(load.trackedBytes)}, unless it is off`],
    ['all return', times(load.returnSeconds, load.returnTicketSeconds)],
    ["one's return", times(load.lost.returnSeconds, load.lost.returnTicketSeconds)],
  ];
  return rows.map(([name, text]) => `${name.padEnd(14)}${text}\n`).join('');
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function size(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}

function duration(seconds: number): string {
  return seconds >= 120 ? `${(seconds / 60).toFixed(1)} min` : `${seconds.toFixed(1)} s`;
}

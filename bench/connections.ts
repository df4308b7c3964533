/**
 * A crowd that stays: what real connections with watches cost an API server, and what follows for
 * a million nodes.
 *
 *     node bench/connections.ts --connections 15000 --watches 6
 *
 * Each connection is one of TLS with a certificate, speaks HTTP/2 and starts the watches of a
 * kubelet one after the other: its node, its pods, services, runtime classes, drivers, one map.
 * At the end nodes are created, and exactly the connections that watch them hear of it. Figures are
 * of the server's process; of the kernel's memory, which holds both ends here, a half is counted.
 * `megaplane doctor network` computes with these figures.
 */
import { readFileSync, rmSync, mkdtempSync } from 'node:fs';
import type { TcpNetConnectOpts } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createSecureContext } from 'node:tls';
import type { ConnectionOptions, SecureContext, TLSSocket } from 'node:tls';
import { createKubeClient } from '@megaplane/client/kube-client';
import { crowdLoad, crowdText, type Measured } from '@megaplane/network/crowd';
import { PREFACE } from '@megaplane/wire/frames';
import { parse } from 'yaml';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  connections: { type: 'string', default: '15000' },
  watches: { type: 'string', default: '6' },
  /** Connections that are made at a time. */
  crowd: { type: 'string', default: '64' },
  output: { type: 'string' },
});
const flags = wholeNumbers(values, { connections: 100, watches: 1, crowd: 1 });

/** Of one source address; 28,000 ports lead from one to one. */
const PER_SOURCE = 5000;
const SETTLE_MS = 4000;
const IDLE_MS = 10_000;
const CREATED = 50;
const WARM = 50;
const [DATA, HEADERS, SETTINGS] = [0, 1, 4] as const;
const HEAD_BYTES = 9;
const SETTINGS_FRAME: Buffer = Buffer.from([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]);
const SETTINGS_ACK: Buffer = Buffer.from([0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]);

/** Paths of a kubelet's watches. */
const WATCHES: readonly ((at: number) => string)[] = [
  (at) => `/api/v1/nodes?fieldSelector=metadata.name%3Dcrowd-${at}&`,
  (at) => `/api/v1/pods?fieldSelector=spec.nodeName%3Dcrowd-${at}&`,
  () => '/api/v1/services?',
  () => '/apis/node.k8s.io/v1/runtimeclasses?',
  () => '/apis/storage.k8s.io/v1/csidrivers?',
  () => '/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dkube-root-ca.crt&',
];

/** As HPACK writes it (RFC 7541 5.1); paths here are shorter than two octets tell. */
function lengthOf({ length }: string): readonly number[] {
  return length < 127 ? [length] : [127, length - 127];
}

/** One client of HTTP/2 that asks and counts; it is small, for there are many. */
class Member {
  readonly socket: TLSSocket;
  /** Streams whose answer has begun. */
  begun = 0;
  /** Octets of bodies. */
  heard = 0;
  #rest: Buffer = Buffer.alloc(0);
  #streams = 0;
  onBegun: () => void = () => {};

  constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
  }

  /** Asks for a path; the block has plain literals only (RFC 7541 6.2.2). */
  ask(path: string): void {
    const fields = [':method', 'GET', ':scheme', 'https', ':authority', 'crowd', ':path', path];
    const block = Buffer.concat(
      fields.map((text, at) => {
        const name = at % 2 === 0 ? [0] : [];
        return Buffer.from([...name, ...lengthOf(text), ...Buffer.from(text)]);
      }),
    );
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUIntBE(block.length, 0, 3);
    // ends the stream, and the fields
    head.set([HEADERS, 5], 3);
    head.writeUInt32BE(this.#streams++ * 2 + 1, 5);
    this.socket.write(Buffer.concat([head, block]));
  }

  #take(bytes: Buffer): void {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (rest.length >= HEAD_BYTES) {
      const size = rest.readUIntBE(0, 3) + HEAD_BYTES;
      if (rest.length < size) break;
      const kind = rest[3];
      if (kind === DATA) this.heard += size - HEAD_BYTES;
      if (kind === HEADERS) {
        this.begun++;
        this.onBegun();
      }
      if (kind === SETTINGS && rest[4] === 0) this.socket.write(SETTINGS_ACK);
      rest = rest.subarray(size);
    }
    this.#rest = Buffer.from(rest);
  }
}

function comeIn(port: number, context: SecureContext, at: number): Promise<Member> {
  return new Promise((resolve, reject) => {
    const options: ConnectionOptions & Pick<TcpNetConnectOpts, 'localAddress'> = {
      ...{ host: '127.0.0.1', port, secureContext: context, ALPNProtocols: ['h2'] },
      localAddress: `127.0.0.${2 + Math.floor(at / PER_SOURCE)}`,
      rejectUnauthorized: false,
    };
    const socket = connect(options);
    socket.on('error', reject);
    socket.on('secureConnect', () => socket.write(Buffer.concat([PREFACE, SETTINGS_FRAME])));
    socket.once('data', () => resolve(member));
    const member = new Member(socket);
  });
}

interface Level {
  readonly rssBytes: number;
  readonly kernelBytes: number;
  readonly cpuSeconds: number;
}

function level(pid: number): Level {
  const pages = Number(/^TCP: .* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1]);
  const slabKib = Number(/^Slab:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);
  return {
    rssBytes: harness.rssMib(pid) * 2 ** 20,
    kernelBytes: pages * 4096 + slabKib * 1024,
    cpuSeconds: harness.cpuSecondsExact(pid),
  };
}

/** Does `one` for each of so many, some at a time. */
async function forAll(count: number, one: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const walk = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) await one(at);
  };
  await Promise.all(Array.from({ length: flags.crowd }, walk));
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

function contextOf(kubeconfig: string): { readonly context: SecureContext; readonly port: number } {
  const config = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
  const pem = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString();
  const { cluster = {} } = config.clusters[0] ?? {};
  const { user = {} } = config.users[0] ?? {};
  const cert = pem(user['client-certificate-data']);
  const context = createSecureContext({ cert, key: pem(user['client-key-data']) });
  return { context, port: Number(new URL(cluster['server'] ?? '').port) };
}

/** Starts one watch more on each connection, and waits until all have begun. */
function watchAll(members: readonly Member[], path: (at: number) => string): Promise<void> {
  return forAll(members.length, async (at) => {
    const member = members[at];
    if (member === undefined) return;
    const begun = new Promise<void>((resolve) => (member.onBegun = resolve));
    member.ask(`${path(at)}watch=1&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=3600`);
    await begun;
  });
}

/** How many connections hear of nodes that come: each of one, and nobody else of it. */
async function told(kubeconfig: string, members: readonly Member[]): Promise<number> {
  const before = members.map(({ heard }) => heard);
  const client = await createKubeClient({ kubeconfig });
  for (let at = 0; at < CREATED; at++) {
    const metadata = { name: `crowd-${at}` };
    const body = { apiVersion: 'v1', kind: 'Node', metadata };
    const answer = await client.request({ method: 'POST', path: '/api/v1/nodes', body });
    if (!answer.ok) throw new Error(answer.status.message);
  }
  client.close();
  await sleep(1000);
  return members.filter(({ heard }, at) => heard > (before[at] ?? 0)).length;
}

const directory = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
harness.pinSelf(1);
const place = ['--secure-port', '0', '--data-dir', directory];
const server = await harness.startMegaplane(['apiserver', ...place], 0);
const { connections, watches } = flags;
const members: Member[] = [];
try {
  const kubeconfig = join(directory, 'kubeconfig');
  const { context, port } = contextOf(kubeconfig);
  const levels: Level[] = [];
  const settle = async (): Promise<void> => {
    await sleep(SETTLE_MS);
    levels.push(level(server.pid));
  };
  process.stdout.write(`${harness.machine()}\n`);
  // the first ones make the server warm
  await forAll(WARM, async (at) => {
    const { socket } = await comeIn(port, context, at);
    socket.destroy();
  });
  await settle();
  await forAll(connections, async (at) => {
    members[at] = await comeIn(port, context, at);
  });
  await settle();
  for (let at = 0; at < watches; at++) {
    const path = WATCHES[at % WATCHES.length];
    if (path !== undefined) await watchAll(members, path);
  }
  await settle();
  const idleBefore = harness.cpuSecondsExact(server.pid);
  await sleep(IDLE_MS);
  const idle = (harness.cpuSecondsExact(server.pid) - idleBefore) / (IDLE_MS / 1000);
  const heard = await told(kubeconfig, members);
  if (heard !== CREATED) throw new Error(`${heard} connections heard of ${CREATED} nodes`);
  const [start, open] = levels;
  const end = levels.at(-1);
  if (start === undefined || open === undefined || end === undefined) throw new Error('no levels');
  const measured: Omit<Measured, 'ticketMs'> = {
    processBytesPerConnection: (open.rssBytes - start.rssBytes) / connections,
    kernelBytesPerConnection: (end.kernelBytes - start.kernelBytes) / connections / 2,
    processBytesPerWatch: (end.rssBytes - open.rssBytes) / connections / watches,
    handshakeMs: ((open.cpuSeconds - start.cpuSeconds) * 1000) / connections,
    watchStartMs: ((end.cpuSeconds - open.cpuSeconds) * 1000) / connections / watches,
  };
  const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;
  harness.printTable(
    ['of one', 'memory', 'of the kernel', 'processor time to begin'],
    [
      [
        'connection',
        kib(measured.processBytesPerConnection),
        kib(measured.kernelBytesPerConnection),
        `${measured.handshakeMs.toFixed(2)} ms`,
      ],
      ['watch', kib(measured.processBytesPerWatch), '', `${measured.watchStartMs.toFixed(3)} ms`],
    ],
  );
  const share = ((idle * 1e6) / connections).toFixed(0);
  process.stdout.write(`\nat rest: ${(idle * 100).toFixed(1)} % of a core, ${share} us/s each\n\n`);
  const wanted = { nodes: 1_000_000, servers: 8, watches: 9, connections: 2, cores: 1 };
  process.stdout.write(crowdText(wanted, crowdLoad(wanted, { ...measured, ticketMs: NaN })));
  harness.writeResults(values.output, { connections, watches, idle, levels, measured });
} finally {
  for (const member of members) member?.socket.destroy();
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
}

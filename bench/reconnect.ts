/**
 * A crowd that comes back: what a server of TLS spends on clients that go on with their sessions,
 * beside clients that do not.
 *
 *     node bench/reconnect.ts --clients 10000 --runs 3
 *
 * Each client has a certificate, as kubelets have, opens a connection of HTTP/2 and waits for the
 * server's SETTINGS. First all come for the first time, with whole handshakes; then all are gone;
 * then all come again with the tickets that they were given, in turns. Its key is of P-256,
 * as ours is, and of RSA with 2048 bits, as kubeadm's; a connection without TLS, to a server of the
 * same HTTP/2, is what is left where TLS costs nothing. Figures are milliseconds of the server's
 * processor time for a connection. Goal: with tickets a fifth.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { PREFACE } from '@megaplane/wire/frames';
import { parse } from 'yaml';
import { adopt } from './children.ts';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  clients: { type: 'string', default: '10000' },
  /** Handshakes at a time. */
  crowd: { type: 'string', default: '64' },
  runs: { type: 'string', default: '3' },
  output: { type: 'string' },
});
const { clients, crowd, runs } = wholeNumbers(values, { clients: 1, crowd: 1, runs: 1 });

/** As kubelets greet: the preface, and SETTINGS without any. */
const HELLO: Buffer = Buffer.concat([PREFACE, Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])]);
/** The server has work to do after the last client has left. */
const REST_MS = 500;

/** Connects, and leaves when it is served; `at` is the client's number. True: it was resumed. */
type Visit = (at: number) => Promise<boolean>;

function plainVisit(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connectPlain(port, '127.0.0.1', () => socket.write(HELLO));
    socket.on('error', reject);
    socket.once('data', () => {
      socket.destroy();
      resolve(false);
    });
  });
}

const sessions: (Buffer | undefined)[] = Array.from({ length: clients });

function secureVisit(
  port: number,
  context: SecureContext,
  at: number,
  isAgain: boolean,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const session = isAgain ? sessions[at] : undefined;
    let given: Buffer | undefined;
    let isServed = false;
    const socket: TLSSocket = connect({
      ...{ host: '127.0.0.1', port, secureContext: context, ALPNProtocols: ['h2'] },
      rejectUnauthorized: false,
      ...(session === undefined ? {} : { session }),
    });
    const look = (): void => {
      const isReused = socket.isSessionReused();
      // who goes on with a session is given no other ticket: it stays the one of before
      if (!isServed || (given === undefined && !isReused)) return;
      sessions[at] = given ?? session;
      socket.removeAllListeners('session');
      socket.destroy();
      resolve(isReused);
    };
    socket.on('error', reject);
    socket.on('session', (one: Buffer) => {
      given = one;
      look();
    });
    socket.on('secureConnect', () => socket.write(HELLO));
    socket.once('data', () => {
      isServed = true;
      look();
    });
  });
}

interface Round {
  readonly eachMs: number;
  readonly perSecond: number;
  readonly resumed: number;
}

/** All clients once. */
async function round(pid: number, visit: Visit): Promise<Round> {
  let next = 0;
  let resumed = 0;
  const before = harness.cpuSecondsExact(pid);
  const startMs = performance.now();
  const walk = async (): Promise<void> => {
    for (let at = next++; at < clients; at = next++) if (await visit(at)) resumed++;
  };
  await Promise.all(Array.from({ length: crowd }, walk));
  const elapsedMs = performance.now() - startMs;
  await sleep(REST_MS);
  const eachMs = ((harness.cpuSecondsExact(pid) - before) * 1000) / clients;
  return { eachMs, perSecond: (clients * 1000) / elapsedMs, resumed };
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

const directory = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));

function rsaFlags(): readonly string[] {
  const [key, cert] = [join(directory, 'rsa.key'), join(directory, 'rsa.crt')];
  const kind = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost'];
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return ['--tls-private-key-file', key, '--tls-cert-file', cert];
}

type Kind = 'whole' | 'tickets';

/** Both kinds of rounds in turns, after one that makes the server warm. */
async function measure(name: string, flags: readonly string[]): Promise<Record<Kind, Round[]>> {
  const data = join(directory, name);
  const all = ['apiserver', '--secure-port', '0', '--data-dir', data, ...flags];
  const server = await harness.startMegaplane(all, 0);
  const found: Record<Kind, Round[]> = { whole: [], tickets: [] };
  try {
    const { context, port } = contextOf(join(data, 'kubeconfig'));
    const visit = (isAgain: boolean): Visit => {
      return (at) => secureVisit(port, context, at, isAgain);
    };
    await round(server.pid, visit(false));
    for (let at = 0; at < runs; at++) {
      found.whole.push(await round(server.pid, visit(false)));
      found.tickets.push(await round(server.pid, visit(true)));
    }
  } finally {
    await server.stop();
  }
  return found;
}

/** What a connection of HTTP/2 costs without TLS. */
async function measurePlain(): Promise<Round[]> {
  const entry = join(import.meta.dirname, 'wire-server.ts');
  const words = ['-c', '0', process.execPath, entry, 'ours', 'plain'];
  const child = adopt(spawn('taskset', words, { stdio: ['ignore', 'pipe', 'inherit'] }));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(/listening (\d+)/.exec(line.toString())?.[1]);
  const found: Round[] = [];
  for (let at = 0; at <= runs; at++) {
    found.push(await round(child.pid ?? 0, () => plainVisit(port)));
  }
  child.kill('SIGTERM');
  return found.slice(1);
}

function row(name: string, rounds: readonly Round[], wholeMs: number): string[] {
  const middle = (of: keyof Round): number => harness.median(rounds.map((one) => one[of]));
  const share = Number.isNaN(wholeMs) ? '' : (middle('eachMs') / wholeMs).toFixed(2);
  const perSecond = `${Math.round(middle('perSecond'))}`;
  return [name, middle('eachMs').toFixed(3), perSecond, `${middle('resumed')}`, share];
}

harness.pinSelf(1);
try {
  process.stdout.write(`${harness.machine()}\n`);
  process.stdout.write(`${clients} clients with certificates, ${crowd} at a time\n\n`);
  const keys = { 'P-256': await measure('ec', []), RSA: await measure('rsa', rsaFlags()) };
  const plain = await measurePlain();
  const rows: string[][] = [];
  for (const [key, { whole, tickets }] of Object.entries(keys)) {
    const wholeMs = harness.median(whole.map(({ eachMs }) => eachMs));
    rows.push(row(`${key}, whole handshakes`, whole, wholeMs));
    rows.push(row(`${key}, tickets`, tickets, wholeMs));
  }
  rows.push(row('without TLS', plain, NaN));
  const head = ['clients come with', 'server ms each', 'a second', 'resumed', 'share'];
  harness.printTable(head, rows);
  harness.writeResults(values.output, { clients, crowd, keys, plain });
} finally {
  rmSync(directory, { recursive: true, force: true });
}

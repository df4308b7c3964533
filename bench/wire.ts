/**
 * Unary gRPC of 100-byte messages: this repository's server beside `node:http2`, by h2load and by
 * our own client, over plain TCP and TLS; and what an idle connection costs.
 *
 *   flock /tmp/megaplane-bench.lock node bench/wire.ts [--rounds 3] [--calls 300000] [--output F]
 *
 * The server is pinned to core 0, the load to core 1. `per CPU second` divides the calls by the
 * server's own processor time, so it does not depend on how fast the load generator is.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { connect } from '@megaplane/wire/connect';
import { PREFACE } from '@megaplane/wire/frames';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClient, GrpcSink } from '@megaplane/wire/grpc';
import {
  cpuSeconds,
  machine,
  median,
  pinSelf,
  printTable,
  rssMib,
  writeResults,
} from './harness.ts';
import { flagsOf } from './flags.ts';
import { adopt } from './children.ts';

const values = flagsOf({
  rounds: { type: 'string', default: '3' },
  calls: { type: 'string', default: '300000' },
  output: { type: 'string' },
});
const ROUNDS = Number(values.rounds);
const CALLS = Number(values.calls);
const SIDES = ['ours', 'node'] as const;
const CONNECTIONS = 10;
const STREAMS = 100;
const IDLE_CONNECTIONS = 3000;

const directory = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
const [key, cert, body] = ['key.pem', 'cert.pem', 'body'].map((name) => join(directory, name));
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const files = ['-keyout', key ?? '', '-out', cert ?? '', '-subj', '/CN=localhost'];
execFileSync('openssl', ['req', '-x509', ...curve, ...files], { stdio: 'ignore' });
const message = Buffer.alloc(100, 'm');
writeFileSync(body ?? '', Buffer.concat([Buffer.from([0, 0, 0, 0, 100]), message]));

interface Child {
  readonly pid: number;
  readonly port: number;
  stop(): void;
}

function start(side: string, security: string): Promise<Child> {
  const entry = join(import.meta.dirname, 'wire-server.ts');
  const words = ['-c', '0', process.execPath, entry, side, security, key ?? '', cert ?? ''];
  const child = adopt(spawn('taskset', words, { stdio: ['ignore', 'pipe', 'inherit'] }));
  return new Promise((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const port = Number(/listening (\d+)/.exec(String(chunk))?.[1]);
      resolve({ pid: child.pid ?? 0, port, stop: () => child.kill('SIGTERM') });
    });
  });
}

function h2load(port: number, security: string, calls: number): number {
  const scheme = security === 'tls' ? 'https' : 'http';
  const heads = ['-H', 'content-type: application/grpc', '-H', 'te: trailers', '-d', body ?? ''];
  const size = ['-c', String(CONNECTIONS), '-m', String(STREAMS), '-n', String(calls)];
  const url = `${scheme}://127.0.0.1:${port}/bench.Echo/Put`;
  const text = String(execFileSync('taskset', ['-c', '1', 'h2load', ...size, ...heads, url]));
  if (!text.includes(` ${calls} succeeded`)) throw new Error(`h2load: ${text}`);
  return Number(/finished in [^,]+, ([\d.]+) req/.exec(text)?.[1]);
}

/** The same load by our own client; resolves to calls per second. */
async function ownLoad(port: number, security: string, calls: number): Promise<number> {
  const tls = security === 'tls' ? { tls: { insecure: true } } : {};
  const connections = Array.from({ length: CONNECTIONS }, () => connect({ port, ...tls }));
  const clients = connections.map((connection) => grpcClient(connection));
  const startMs = performance.now();
  await new Promise<void>((resolve, reject) => {
    let begun = 0;
    let ended = 0;
    const call = (client: GrpcClient, sink: GrpcSink): void => {
      if (begun >= calls) return;
      begun++;
      client.unary('/bench.Echo/Put', message, sink);
    };
    for (const client of clients) {
      const sink: GrpcSink = {
        onMessage: () => undefined,
        onStatus(_call, status) {
          if (status.code !== 0) reject(new Error(status.message));
          if (++ended === calls) resolve();
          call(client, sink);
        },
      };
      for (let i = 0; i < STREAMS; i++) call(client, sink);
    }
  });
  const perSecond = calls / ((performance.now() - startMs) / 1000);
  for (const connection of connections) connection.destroy();
  return perSecond;
}

const LOADS = { h2load, own: ownLoad } as const;

async function measure(
  side: string,
  security: string,
  load: keyof typeof LOADS,
): Promise<number[]> {
  const server = await start(side, security);
  const calls = side === 'ours' ? CALLS : CALLS / 5;
  await LOADS[load](server.port, security, calls / 4);
  const before = cpuSeconds(server.pid);
  const own = process.cpuUsage();
  const perSecond = await LOADS[load](server.port, security, calls);
  const used = process.cpuUsage(own);
  const cpu = cpuSeconds(server.pid) - before;
  server.stop();
  return [perSecond, calls / cpu, calls / ((used.user + used.system) / 1e6)];
}

/** KiB of the server per connection that said hello and then nothing. */
async function idle(side: string, security: string): Promise<number> {
  const server = await start(side, security);
  const hello = Buffer.concat([PREFACE, Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])]);
  const open = (): Promise<Socket> =>
    new Promise((resolve) => {
      const { port } = server;
      const ready = (): void => {
        socket.write(hello);
        socket.once('data', () => {
          socket.write(Buffer.from([0, 0, 0, 4, 1, 0, 0, 0, 0]));
          resolve(socket);
        });
      };
      const insecure = { port, rejectUnauthorized: false, ALPNProtocols: ['h2'] };
      const socket: Socket =
        security === 'tls' ? connectTls(insecure, ready) : connectSocket(port, '127.0.0.1', ready);
    });
  const sockets: Socket[] = [];
  const openMany = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 100) {
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, open))));
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  };
  await openMany(500);
  const before = rssMib(server.pid);
  await openMany(IDLE_CONNECTIONS);
  const kib = ((rssMib(server.pid) - before) * 1024) / IDLE_CONNECTIONS;
  for (const socket of sockets) socket.destroy();
  server.stop();
  return kib;
}

pinSelf(1);
process.stdout.write(`${machine()}\n`);
process.stdout.write(`${CONNECTIONS} connections x ${STREAMS} streams, medians of ${ROUNDS}\n\n`);
const rows: string[][] = [];
const results: Record<string, number> = {};
for (const security of ['plain', 'tls']) {
  for (const load of ['h2load', 'own'] as const) {
    const perCpu = new Map<string, number>();
    for (const side of SIDES) {
      const rounds: number[][] = [];
      for (let i = 0; i < ROUNDS; i++) rounds.push(await measure(side, security, load));
      const [wall = 0, cpu = 0, client = 0] = [0, 1, 2].map((column) =>
        median(rounds.map((round) => round[column] ?? NaN)),
      );
      perCpu.set(side, cpu);
      results[`${security} ${load} ${side} per CPU second`] = cpu;
      const ratio = side === 'ours' ? '' : `${((perCpu.get('ours') ?? 0) / cpu).toFixed(1)} x`;
      const clientText = load === 'own' ? client.toFixed(0) : '';
      rows.push([security, load, side, wall.toFixed(0), cpu.toFixed(0), ratio, clientText]);
    }
  }
}
const head = ['transport', 'load', 'server', 'calls/s', 'per CPU second', 'ratio'];
printTable([...head, 'per CPU second of our client'], rows);
process.stdout.write('\n');
const idleRows: string[][] = [];
for (const security of ['plain', 'tls']) {
  for (const side of SIDES) {
    const kib = await idle(side, security);
    results[`idle ${security} ${side} KiB`] = kib;
    idleRows.push([security, side, kib.toFixed(1)]);
  }
}
printTable(['transport', 'server', 'KiB per idle connection'], idleRows);
writeResults(values.output, results);
rmSync(directory, { recursive: true, force: true });
process.exit(0);

// shell
/** For tests: requests as bytes, calls as promises, a real etcd beside ours. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@megaplane/base/free-port.sim';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import type { GrpcClient } from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';

/** A message: field numbers with a number, text, or messages, which may be encoded already. */
export type Fields = readonly (readonly [number, number | bigint | string | Buffer | Fields])[];

/** Encodes a message; numbers as varints (negative ones as ten bytes), zero included. */
export function encode(fields: Fields): Buffer {
  const parts: Buffer[] = [];
  for (const [field, value] of fields) {
    if (typeof value === 'number' || typeof value === 'bigint') {
      parts.push(varint(field * 8), varint(value));
      continue;
    }
    const content = typeof value === 'string' ? Buffer.from(value, 'latin1') : bytesOf(value);
    parts.push(varint(field * 8 + 2), varint(content.length), content);
  }
  return Buffer.concat(parts);
}

function bytesOf(value: Buffer | Fields): Buffer {
  return Buffer.isBuffer(value) ? value : encode(value);
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

/**
 * A response as text, without what differs from server to server: the header's ids and term.
 * Nested messages are shown as bytes.
 */
export function show(bytes: Buffer): string {
  const rows: string[] = [];
  const reader = new ProtobufReader().reset(bytes, 0, bytes.length);
  while (reader.next()) {
    const { field } = reader;
    if (reader.wireType === 0) {
      rows.push(`${field}:${reader.int64()}`);
      continue;
    }
    reader.chunk();
    const content = bytes.subarray(reader.chunkStart, reader.chunkEnd);
    rows.push(
      field === 1 ? `revision ${revisionOf(content)}` : `${field}:${content.toString('latin1')}`,
    );
  }
  return rows.join(' | ');
}

function revisionOf(header: Buffer): number {
  const reader = new ProtobufReader().reset(header, 0, header.length);
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 3) revision = reader.int64();
    else reader.skip();
  }
  return revision;
}

export class Peer {
  readonly client: GrpcClient;

  /** With a token the caller is the user who logged in for it; or with other metadata. */
  constructor(port: number, token: string | readonly string[] = []) {
    const metadata = typeof token === 'string' ? ['token', token] : token;
    this.client = grpcClient(connect({ port }), metadata[1] === '' ? {} : { metadata });
  }

  /** Response bytes, or the error as `code text`. A path of another package begins with a slash. */
  async call(path: string, fields: Fields | Buffer): Promise<Buffer | string> {
    return await new Promise((resolve) => {
      let response = Buffer.alloc(0);
      const whole = path.startsWith('/') ? path : `/etcdserverpb.${path}`;
      const request = Buffer.isBuffer(fields) ? fields : encode(fields);
      this.client.unary(whole, request, {
        onMessage: (_call, bytes, start, end) => {
          response = Buffer.from(bytes.subarray(start, end));
        },
        onStatus: (_call, status) => {
          resolve(status.code === 0 ? response : `${status.code} ${status.message}`);
        },
      });
    });
  }

  async show(path: string, fields: Fields | Buffer): Promise<string> {
    const response = await this.call(path, fields);
    return typeof response === 'string' ? response : show(response);
  }

  close(): void {
    this.client.connection.drain();
  }
}

/** Is a program here? */
export function has(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
}

export interface RealEtcd {
  readonly port: number;
  readonly dir: string;
  /** Ends it; the directory stays when `keepsDir`. */
  stop(keepsDir?: boolean, signal?: NodeJS.Signals): Promise<void>;
}

const START_MS_MAX = 90_000;
const STARTS_MAX = 5;

/** A real etcd in a directory of its own, or in one that is there. */
export async function startEtcd(
  program: string = 'etcd',
  dir: string = mkdtempSync(join(tmpdir(), 'megaplane-etcd-')),
  flags: readonly string[] = [],
  isRestored: boolean = false,
  user: readonly string[] = [],
): Promise<RealEtcd> {
  // Somebody may take a port before etcd does: then it ends at once.
  for (let tries = 0; tries < STARTS_MAX; tries++) {
    const port = await freePort();
    const client = `http://127.0.0.1:${port}`;
    const args = argumentsOf(dir, client, `http://127.0.0.1:${await freePort()}`, isRestored);
    const child = spawn(program, [...args, ...flags], { stdio: 'ignore' });
    if (!(await answers(child, client, user))) continue;
    const stop: RealEtcd['stop'] = async (keepsDir = false, signal = 'SIGKILL') => {
      const closed = once(child, 'close');
      child.kill(signal);
      await closed;
      if (!keepsDir) rmSync(dir, { recursive: true, force: true });
    };
    return { port, dir, stop };
  }
  throw new Error('etcd did not start');
}

function argumentsOf(dir: string, client: string, peers: string, isRestored: boolean): string[] {
  // A restored directory knows its member by the address that restoring gave it.
  const advertised = isRestored ? 'http://localhost:2380' : peers;
  return [
    ...['--data-dir', dir],
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', advertised],
    ...['--initial-cluster', `default=${advertised}`, '--unsafe-no-fsync'],
    ...['--max-txn-ops', '128'],
  ];
}

/** Waits for the first answer; false when there was none and the process has ended. */
async function answers(
  child: ChildProcess,
  client: string,
  user: readonly string[],
): Promise<boolean> {
  const env = { ...process.env, ETCDCTL_API: '3' };
  const endMs = performance.now() + START_MS_MAX;
  while (child.exitCode === null && performance.now() < endMs) {
    const args = ['--endpoints', client, ...user, 'get', 'x'];
    if (spawnSync('etcdctl', args, { env, stdio: 'ignore' }).status === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  child.kill('SIGKILL');
  return false;
}

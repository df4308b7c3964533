/** Requests of the store's benchmarks, written into one reused message. */
import type { GrpcClient, GrpcClientCall, GrpcSink, GrpcStatus } from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import { writeBytesField, writeBytesHead, writeInt64 } from '@megaplane/wire/protobuf-write';

const KEY_SIZE = 48;
export const PATHS = {
  put: '/etcdserverpb.KV/Put',
  txn: '/etcdserverpb.KV/Txn',
  range: '/etcdserverpb.KV/Range',
  compact: '/etcdserverpb.KV/Compact',
  watch: '/etcdserverpb.Watch/Watch',
  grant: '/etcdserverpb.Lease/LeaseGrant',
  keepAlive: '/etcdserverpb.Lease/LeaseKeepAlive',
} as const;

const PODS = '/registry/pods/';
const LEASES = '/registry/leases/';
const key = Buffer.alloc(KEY_SIZE);
const compare = Buffer.alloc(96);

function setKey(prefix: string, index: number): void {
  key.write(`${prefix}${String(index).padStart(KEY_SIZE - prefix.length, '0')}`, 'latin1');
}

export function writePut(out: Buffer, index: number, value: Buffer): number {
  setKey(PODS, index);
  const at = writeBytesField(out, 0, 1, key, 0, KEY_SIZE);
  return writeBytesField(out, at, 2, value, 0, value.length);
}

export function writeGet(out: Buffer, index: number): number {
  setKey(PODS, index);
  return writeBytesField(out, 0, 1, key, 0, KEY_SIZE);
}

/** Kubernetes' update: if the revision is `revision` then put, else tell what is there. */
export function writeUpdate(out: Buffer, index: number, revision: number, value: Buffer): number {
  setKey(LEASES, index);
  let size = 0;
  compare[size++] = 0x10;
  compare[size++] = 2;
  size = writeBytesField(compare, size, 3, key, 0, KEY_SIZE);
  compare[size++] = 0x30;
  size = writeInt64(compare, size, revision);
  let at = writeBytesField(out, 0, 1, compare, 0, size);
  const valueHead = value.length < 128 ? 2 : 3;
  const putSize = 2 + KEY_SIZE + valueHead + value.length;
  at = writeBytesHead(out, at, 2, putSize + (putSize < 128 ? 2 : 3));
  at = writeBytesHead(out, at, 2, putSize);
  at = writeBytesField(out, at, 1, key, 0, KEY_SIZE);
  at = writeBytesField(out, at, 2, value, 0, value.length);
  at = writeBytesHead(out, at, 3, KEY_SIZE + 4);
  at = writeBytesHead(out, at, 1, KEY_SIZE + 2);
  return writeBytesField(out, at, 1, key, 0, KEY_SIZE);
}

/** A page from a key on, to the end of the pods, at a revision (0: now). */
export function writePage(out: Buffer, index: number, limit: number, revision: number): number {
  setKey(PODS, index);
  const end = Buffer.from('/registry/pods0', 'latin1');
  let at = writeBytesField(out, 0, 1, key, 0, KEY_SIZE);
  at = writeBytesField(out, at, 2, end, 0, end.length);
  out[at++] = 0x18;
  at = writeInt64(out, at, limit);
  if (revision === 0) return at;
  out[at++] = 0x20;
  return writeInt64(out, at, revision);
}

export function writeCompact(out: Buffer, revision: number): number {
  out[0] = 0x08;
  const at = writeInt64(out, 1, revision);
  out[at] = 0x10;
  out[at + 1] = 1;
  return at + 2;
}

/** A watch of one key, or of all pods when `index` is -1. */
export function writeWatch(out: Buffer, index: number): number {
  const body = Buffer.alloc(128);
  let size = 0;
  if (index < 0) {
    const from = Buffer.from(PODS, 'latin1');
    const end = Buffer.from('/registry/pods0', 'latin1');
    size = writeBytesField(body, 0, 1, from, 0, from.length);
    size = writeBytesField(body, size, 2, end, 0, end.length);
  } else {
    setKey(PODS, index);
    size = writeBytesField(body, 0, 1, key, 0, KEY_SIZE);
  }
  return writeBytesField(out, 0, 1, body, 0, size);
}

export function writeGrant(out: Buffer, id: number): number {
  out[0] = 0x08;
  let at = writeInt64(out, 1, 3600);
  out[at++] = 0x10;
  return writeInt64(out, at, id);
}

export function writeKeepAlive(out: Buffer, id: number): number {
  out[0] = 0x08;
  return writeInt64(out, 1, id);
}

const outer = new ProtobufReader();
const inner = new ProtobufReader();

/** The revision in a response's header. */
export function revisionOf(bytes: Buffer, start: number, end: number): number {
  outer.reset(bytes, start, end);
  while (outer.next()) {
    outer.skip();
    if (outer.field !== 1) continue;
    inner.reset(bytes, outer.chunkStart, outer.chunkEnd);
    while (inner.next()) {
      if (inner.field === 3) return inner.int64();
      inner.skip();
    }
  }
  return 0;
}

/** How often a field stands in a message: key-values of a page (2), events of a watch (11). */
export function countOf(bytes: Buffer, start: number, end: number, field: number): number {
  let count = 0;
  outer.reset(bytes, start, end);
  while (outer.next()) {
    outer.skip();
    if (outer.field === field) count++;
  }
  return count;
}

/** One call after the other; `message` is where the next request is written. */
export class Calls implements GrpcSink {
  readonly message: Buffer = Buffer.alloc(8192);
  #onMessage: (bytes: Buffer, start: number, end: number) => void = () => {};
  #onStatus: (code: number) => void = () => {};

  /** Resolves with the status code. */
  once(
    client: GrpcClient,
    path: string,
    size: number,
    onMessage: (bytes: Buffer, start: number, end: number) => void = () => {},
  ): Promise<number> {
    this.#onMessage = onMessage;
    return new Promise((resolve) => {
      this.#onStatus = resolve;
      client.unary(path, this.message.subarray(0, size), this);
    });
  }

  onMessage(_call: GrpcClientCall, bytes: Buffer, start: number, end: number): void {
    this.#onMessage(bytes, start, end);
  }

  onStatus(_call: GrpcClientCall, status: GrpcStatus): void {
    this.#onStatus(status.code);
  }
}

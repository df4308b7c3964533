/**
 * The messages of etcd's API that a client of keys needs, both ways (rpc.proto of etcd 3.4 to 3.6).
 * Requests are made in one Buffer each; what an answer holds is copied out of the transport's
 * bytes.
 */
import { ProtobufReader } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeBoolField,
  writeBytesField,
  writeInt64,
  writeInt64Field,
  writeTag,
  writeVarint64Field,
  writeVarintField,
} from '@megaplane/wire/protobuf-write';

/** Bytes that tags, lengths and numbers of one request take at most. */
const OVERHEAD_BYTES = 256;
const WIRE_VARINT = 0;

/** One key at one revision. */
export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
}

/** A lease's id: a 64-bit number in halves. */
export interface LeaseId {
  readonly high: number;
  readonly low: number;
}

export interface RangeRequest {
  readonly key: Buffer;
  /** Exclusive; absent: that one key. */
  readonly end?: Buffer;
  /** 0 or absent: no limit. */
  readonly limit?: number;
  /** 0 or absent: the newest, by agreement of the members. */
  readonly revision?: number;
  readonly keysOnly?: boolean;
  readonly countOnly?: boolean;
  /** By key; only with `limit` it makes a difference. */
  readonly isDescending?: boolean;
}

export interface RangeAnswer {
  /** Revision of the whole store when it answered. */
  readonly revision: number;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: number;
}

/**
 * If `key` is at `expected` (a mod revision; 0: absent; -1: whatever) then put `value`, or delete
 * where it is null; else read the key.
 */
export interface ConditionalWrite {
  readonly key: Buffer;
  readonly expected: number;
  readonly value: Buffer | null;
  readonly lease?: LeaseId | undefined;
  /** Also asked for: that this key is the one that was created at this revision. */
  readonly guard?: { readonly key: Buffer; readonly createRevision: number } | undefined;
}

export interface WriteAnswer {
  readonly revision: number;
  readonly succeeded: boolean;
  /** Where it did not succeed: what is there. */
  readonly found: KeyValue | null;
}

export interface WatchAnswer {
  readonly revision: number;
  readonly isCreated: boolean;
  readonly isCanceled: boolean;
  /** It answers a request for progress, and belongs to no watch. */
  readonly isRequested: boolean;
  /** Above 0: the start lies before what etcd keeps. */
  readonly compactRevision: number;
  readonly reason: string;
  readonly events: readonly { readonly isDelete: boolean; readonly kv: KeyValue }[];
}

const SORT_DESCEND = 2;
const reader = new ProtobufReader();

export function encodeRange(request: RangeRequest): Buffer {
  const out = Buffer.allocUnsafe(request.key.length + (request.end?.length ?? 0) + OVERHEAD_BYTES);
  return out.subarray(0, writeRange(out, 0, request));
}

function writeRange(out: Buffer, start: number, request: RangeRequest): number {
  let at = writeBytesField(out, start, 1, request.key, 0, request.key.length);
  const { end } = request;
  if (end !== undefined) at = writeBytesField(out, at, 2, end, 0, end.length);
  at = writeInt64Field(out, at, 3, request.limit ?? 0);
  at = writeInt64Field(out, at, 4, request.revision ?? 0);
  if (request.isDescending === true) at = writeVarintField(out, at, 5, SORT_DESCEND);
  at = writeBoolField(out, at, 8, request.keysOnly ?? false);
  return writeBoolField(out, at, 9, request.countOnly ?? false);
}

/** As Kubernetes writes: one compare, one operation, and a read where the compare fails. */
export function encodeWrite(write: ConditionalWrite): Buffer {
  const { key, value, lease, guard } = write;
  const size = key.length * 3 + (value?.length ?? 0) + (guard?.key.length ?? 0) + OVERHEAD_BYTES;
  const out = Buffer.allocUnsafe(size);
  let at = guard === undefined ? 0 : writeGuard(out, guard);
  if (write.expected >= 0) {
    const compare = openMessage(out, at, 1);
    at = writeVarintField(out, compare, 2, 2);
    at = writeBytesField(out, at, 3, key, 0, key.length);
    // a field of a oneof is written even where it is 0
    at = writeInt64(out, writeTag(out, at, 6, WIRE_VARINT), write.expected);
    at = closeMessage(out, compare, at);
  }
  const success = openMessage(out, at, 2);
  const operation = openMessage(out, success, value === null ? 3 : 2);
  at = writeBytesField(out, operation, 1, key, 0, key.length);
  if (value !== null) {
    at = writeBytesField(out, at, 2, value, 0, value.length);
    if (lease !== undefined) at = writeVarint64Field(out, at, 3, lease.low, lease.high);
  }
  at = closeMessage(out, success, closeMessage(out, operation, at));
  if (write.expected >= 0 || guard !== undefined) {
    const failure = openMessage(out, at, 3);
    const range = openMessage(out, failure, 1);
    at = closeMessage(out, range, writeRange(out, range, { key }));
    at = closeMessage(out, failure, at);
  }
  return out.subarray(0, at);
}

function writeGuard(out: Buffer, guard: NonNullable<ConditionalWrite['guard']>): number {
  const compare = openMessage(out, 0, 1);
  let at = writeVarintField(out, compare, 2, 1);
  at = writeBytesField(out, at, 3, guard.key, 0, guard.key.length);
  at = writeInt64(out, writeTag(out, at, 5, WIRE_VARINT), guard.createRevision);
  return closeMessage(out, compare, at);
}

/** Puts `value` if `key` has been written `version` times, else reads it: turns among peers. */
export function encodeTurn(key: Buffer, version: number, value: Buffer): Buffer {
  const out = Buffer.allocUnsafe(key.length * 3 + value.length + OVERHEAD_BYTES);
  const compare = openMessage(out, 0, 1);
  let at = writeBytesField(out, compare, 3, key, 0, key.length);
  at = writeInt64(out, writeTag(out, at, 4, WIRE_VARINT), version);
  at = closeMessage(out, compare, at);
  const success = openMessage(out, at, 2);
  const put = openMessage(out, success, 2);
  at = writeBytesField(out, put, 1, key, 0, key.length);
  at = writeBytesField(out, at, 2, value, 0, value.length);
  at = closeMessage(out, success, closeMessage(out, put, at));
  const failure = openMessage(out, at, 3);
  const range = openMessage(out, failure, 1);
  at = closeMessage(out, range, writeRange(out, range, { key }));
  return out.subarray(0, closeMessage(out, failure, at));
}

export function encodePut(key: Buffer, value: Buffer): Buffer {
  const out = Buffer.allocUnsafe(key.length + value.length + OVERHEAD_BYTES);
  const at = writeBytesField(out, 0, 1, key, 0, key.length);
  return out.subarray(0, writeBytesField(out, at, 2, value, 0, value.length));
}

export function encodeLeaseGrant(ttlSeconds: number): Buffer {
  const out = Buffer.allocUnsafe(OVERHEAD_BYTES);
  return out.subarray(0, writeInt64Field(out, 0, 1, ttlSeconds));
}

export function encodeLease(lease: LeaseId): Buffer {
  const out = Buffer.allocUnsafe(OVERHEAD_BYTES);
  return out.subarray(0, writeVarint64Field(out, 0, 1, lease.low, lease.high));
}

export function encodeCompaction(revision: number): Buffer {
  const out = Buffer.allocUnsafe(OVERHEAD_BYTES);
  return out.subarray(0, writeInt64Field(out, 0, 1, revision));
}

export function encodeWatch(key: Buffer, end: Buffer, startRevision: number): Buffer {
  const out = Buffer.allocUnsafe(key.length + end.length + OVERHEAD_BYTES);
  const create = openMessage(out, 0, 1);
  let at = writeBytesField(out, create, 1, key, 0, key.length);
  at = writeBytesField(out, at, 2, end, 0, end.length);
  at = writeInt64Field(out, at, 3, startRevision);
  at = writeBoolField(out, at, 4, true);
  return out.subarray(0, closeMessage(out, create, at));
}

/** Asks how far the watches of a stream are. */
export function encodeProgressRequest(): Buffer {
  const out = Buffer.allocUnsafe(8);
  const at = openMessage(out, 0, 3);
  return out.subarray(0, closeMessage(out, at, at));
}

/** What a cut or foreign message gives. */
const BROKEN = 'the message cannot be read';

export function decodeRange(bytes: Buffer, start: number, end: number): RangeAnswer {
  const own = new ProtobufReader().reset(bytes, start, end);
  let revision = 0;
  let more = false;
  let count = 0;
  const kvs: KeyValue[] = [];
  while (own.next()) {
    if (own.field === 1) revision = headerAt(bytes, own);
    else if (own.field === 2) kvs.push(keyValueAt(bytes, own));
    else if (own.field === 3) more = own.bool();
    else if (own.field === 4) count = own.int64();
    else own.skip();
  }
  assertRead(own);
  return { revision, kvs, more, count };
}

export function decodeWrite(bytes: Buffer, start: number, end: number): WriteAnswer {
  const own = new ProtobufReader().reset(bytes, start, end);
  let revision = 0;
  let succeeded = false;
  let found: KeyValue | null = null;
  while (own.next()) {
    if (own.field === 1) revision = headerAt(bytes, own);
    else if (own.field === 2) succeeded = own.bool();
    else if (own.field === 3) {
      own.chunk();
      found ??= foundAt(bytes, own.chunkStart, own.chunkEnd);
    } else own.skip();
  }
  assertRead(own);
  return { revision, succeeded, found: succeeded ? null : found };
}

/** The key in the range answer of a ResponseOp. */
function foundAt(bytes: Buffer, start: number, end: number): KeyValue | null {
  const own = new ProtobufReader().reset(bytes, start, end);
  let found: KeyValue | null = null;
  while (own.next()) {
    if (own.field === 1) {
      own.chunk();
      found = decodeRange(bytes, own.chunkStart, own.chunkEnd).kvs[0] ?? null;
    } else own.skip();
  }
  assertRead(own);
  return found;
}

export function decodeWatch(bytes: Buffer, start: number, end: number): WatchAnswer {
  const own = new ProtobufReader().reset(bytes, start, end);
  const answer = {
    revision: 0,
    isCreated: false,
    isCanceled: false,
    isRequested: false,
    compactRevision: 0,
    reason: '',
    events: [] as { isDelete: boolean; kv: KeyValue }[],
  };
  while (own.next()) {
    if (own.field === 1) answer.revision = headerAt(bytes, own);
    else if (own.field === 2) answer.isRequested = own.int64() < 0;
    else if (own.field === 3) answer.isCreated = own.bool();
    else if (own.field === 4) answer.isCanceled = own.bool();
    else if (own.field === 5) answer.compactRevision = own.int64();
    else if (own.field === 6) answer.reason = own.text();
    else if (own.field === 11) {
      own.chunk();
      answer.events.push(eventAt(bytes, own.chunkStart, own.chunkEnd));
    } else own.skip();
  }
  assertRead(own);
  return answer;
}

function eventAt(bytes: Buffer, start: number, end: number) {
  const own = new ProtobufReader().reset(bytes, start, end);
  let isDelete = false;
  let kv: KeyValue | null = null;
  while (own.next()) {
    if (own.field === 1) isDelete = own.uint32() === 1;
    else if (own.field === 2) kv = keyValueAt(bytes, own);
    else own.skip();
  }
  assertRead(own);
  if (kv === null) throw new Error(`${BROKEN}: an event without a key`);
  return { isDelete, kv };
}

/** The revision in the header of any answer. */
export function decodeHeader(bytes: Buffer, start: number, end: number): number {
  const own = new ProtobufReader().reset(bytes, start, end);
  let revision = 0;
  while (own.next()) {
    if (own.field === 1) revision = headerAt(bytes, own);
    else own.skip();
  }
  assertRead(own);
  return revision;
}

export function decodeLeaseGrant(bytes: Buffer, start: number, end: number): LeaseId {
  const own = new ProtobufReader().reset(bytes, start, end);
  let id: LeaseId = { high: 0, low: 0 };
  while (own.next()) {
    if (own.field === 2) {
      own.varint();
      id = { high: own.high, low: own.low };
    } else own.skip();
  }
  assertRead(own);
  return id;
}

/** Seconds that a renewed lease has left; 0: there is none any more. */
export function decodeLeaseKeep(bytes: Buffer, start: number, end: number): number {
  const own = new ProtobufReader().reset(bytes, start, end);
  let ttlSeconds = 0;
  while (own.next()) {
    if (own.field === 3) ttlSeconds = own.int64();
    else own.skip();
  }
  assertRead(own);
  return ttlSeconds;
}

/** The version in the answer of Maintenance.Status. */
export function decodeVersion(bytes: Buffer, start: number, end: number): string {
  const own = new ProtobufReader().reset(bytes, start, end);
  let version = '';
  while (own.next()) {
    if (own.field === 2) version = own.text();
    else own.skip();
  }
  assertRead(own);
  return version;
}

function headerAt(bytes: Buffer, outer: ProtobufReader): number {
  outer.chunk();
  reader.reset(bytes, outer.chunkStart, outer.chunkEnd);
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 3) revision = reader.int64();
    else reader.skip();
  }
  assertRead(reader);
  return revision;
}

function keyValueAt(bytes: Buffer, outer: ProtobufReader): KeyValue {
  outer.chunk();
  reader.reset(bytes, outer.chunkStart, outer.chunkEnd);
  let key = EMPTY;
  let value = EMPTY;
  let createRevision = 0;
  let modRevision = 0;
  let version = 0;
  while (reader.next()) {
    if (reader.field === 1) key = copied(bytes);
    else if (reader.field === 2) createRevision = reader.int64();
    else if (reader.field === 3) modRevision = reader.int64();
    else if (reader.field === 4) version = reader.int64();
    else if (reader.field === 5) value = copied(bytes);
    else reader.skip();
  }
  assertRead(reader);
  return { key, value, createRevision, modRevision, version };
}

const EMPTY: Buffer = Buffer.alloc(0);

function copied(bytes: Buffer): Buffer {
  reader.chunk();
  return Buffer.from(bytes.subarray(reader.chunkStart, reader.chunkEnd));
}

function assertRead(one: ProtobufReader): void {
  if (one.failure !== 0) throw new Error(`${BROKEN} (${one.failure})`);
}

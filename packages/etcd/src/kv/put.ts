// data plane: PutRequest, DeleteRangeRequest, CompactionRequest and their responses
import type { Page } from '@megaplane/store/contract';
import { newPage } from '@megaplane/store/ranges';
import type { InPlaceCall, InPlaceHandler } from '@megaplane/wire/grpc';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { sizeVarint, writeInt64 } from '@megaplane/wire/protobuf-write';
import { admission, isOverQuota, raiseNoSpace } from '../call/alarms.ts';
import { APPLIED_DELETE, APPLIED_PUT } from '../call/call-measures.ts';
import { ANSWER_BYTES_MAX, type EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import { keyValueSize, writeKeyValue } from '../codec/key-value.ts';

/** What a put costs of the quota beyond its key and value, as in etcd. */
const PUT_COST_BYTES = 256;

/** One decoded PutRequest, reused. */
export class PutRequest {
  bytes: Buffer = Buffer.alloc(0);
  keyAt = 0;
  keyTo = 0;
  valueAt = 0;
  valueTo = 0;
  leaseLow = 0;
  leaseHigh = 0;
  prevKv = false;
  ignoreValue = false;
  ignoreLease = false;
  /** After `apply`: the record before, 0 for none. */
  previous = 0;
  readonly #reader = new ProtobufReader();

  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader.reset(bytes, start, end);
    this.bytes = bytes;
    this.keyAt = this.keyTo = this.valueAt = this.valueTo = start;
    this.leaseLow = this.leaseHigh = 0;
    this.prevKv = this.ignoreValue = this.ignoreLease = false;
    while (reader.next()) {
      const { field } = reader;
      if (reader.wireType === WIRE_BYTES) {
        reader.chunk();
        if (field === 1) {
          this.keyAt = reader.chunkStart;
          this.keyTo = reader.chunkEnd;
        } else if (field === 2) {
          this.valueAt = reader.chunkStart;
          this.valueTo = reader.chunkEnd;
        }
      } else if (reader.wireType === 0 && field >= 3 && field <= 6) {
        reader.varint();
        const isTrue = reader.low !== 0 || reader.high !== 0;
        if (field === 3) {
          this.leaseLow = reader.low;
          this.leaseHigh = reader.high;
        } else if (field === 4) this.prevKv = isTrue;
        else if (field === 5) this.ignoreValue = isTrue;
        else this.ignoreLease = isTrue;
      } else reader.skip();
    }
    return reader.failure === FAILURE_NONE;
  }

  get #hasLease(): boolean {
    return this.leaseLow !== 0 || this.leaseHigh !== 0;
  }

  /** What is wrong with the request whatever the store holds. */
  invalid(): EtcdFailure | null {
    if (this.keyAt === this.keyTo) return ETCD.emptyKey;
    if (this.ignoreValue && this.valueTo > this.valueAt) return ETCD.valueProvided;
    if (this.ignoreLease && this.#hasLease) return ETCD.leaseProvided;
    return null;
  }

  /** What is wrong with it as the store stands, looked at in the order of a plain Put. */
  check(context: EtcdContext): EtcdFailure | null {
    return this.#checkLease(context) ?? this.#checkKey(context);
  }

  /** The same within a transaction, where etcd looks at the key first. */
  checkInTxn(context: EtcdContext): EtcdFailure | null {
    return this.#checkKey(context) ?? this.#checkLease(context);
  }

  #checkLease(context: EtcdContext): EtcdFailure | null {
    if (!this.#hasLease) return null;
    const lease = context.store.leases.find(this.leaseHigh, this.leaseLow);
    return lease === 0 ? ETCD.leaseNotFound : null;
  }

  #checkKey(context: EtcdContext): EtcdFailure | null {
    if (!this.ignoreValue && !this.ignoreLease) return null;
    const ref = context.store.get(this.bytes, this.keyAt, this.keyTo);
    return ref === 0 ? ETCD.keyNotFound : null;
  }

  /** Does it replace a value by a smaller one? That goes on when space has run out. */
  shrinks(context: EtcdContext): boolean {
    const { store } = context;
    if (this.ignoreValue) return false;
    const old = store.get(this.bytes, this.keyAt, this.keyTo);
    return old !== 0 && this.valueTo - this.valueAt < store.valueTo(old) - store.valueAt(old);
  }

  /** Bytes that count against the quota. */
  get cost(): number {
    return this.keyTo - this.keyAt + this.valueTo - this.valueAt + PUT_COST_BYTES;
  }

  /** Puts, between begin and commit of the store; `previous` tells what was there. */
  apply(context: EtcdContext): void {
    const { store } = context;
    const { bytes, keyAt, keyTo } = this;
    let lease = this.#hasLease ? store.leases.find(this.leaseHigh, this.leaseLow) : 0;
    let source = bytes;
    let { valueAt, valueTo } = this;
    if (this.ignoreValue || this.ignoreLease) {
      const old = store.get(bytes, keyAt, keyTo);
      if (this.ignoreLease) lease = store.lease(old);
      if (this.ignoreValue) {
        source = store.record(old);
        valueAt = store.valueAt(old);
        valueTo = store.valueTo(old);
      }
    }
    const ref = store.put(bytes, keyAt, keyTo, source, valueAt, valueTo, lease);
    this.previous = this.prevKv ? store.previous(ref) : 0;
  }
}

/** KV.Put, in place. */
export function putHandler(context: EtcdContext): InPlaceHandler {
  const request = new PutRequest();
  const { store } = context;
  const times = context.measures.applied[APPLIED_PUT]!;
  return (bytes, start, end, out, offset, call) => {
    if (!request.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    const { cost } = request;
    const refused =
      admission(context, cost) ??
      (isOverQuota(context, cost) && !request.shrinks(context) ? raiseNoSpace(context) : null) ??
      request.invalid() ??
      (context.isTooLarge(end - start) ? ETCD.tooLarge : null) ??
      (store.alarms.isCorrupt ? ETCD.corrupt : null) ??
      (store.alarms.isNoSpace && !request.shrinks(context) ? ETCD.noSpace : null);
    if (refused !== null) return context.fail(call, refused);
    const startMs = times.begin();
    const failure = request.check(context);
    if (failure !== null) {
      times.end(startMs, false);
      return context.fail(call, failure);
    }
    store.begin();
    request.apply(context);
    const revision = store.commit();
    times.end(startMs, true);
    context.guard(call.connection);
    const { previous } = request;
    if (previous === 0) return context.writeHeader(out, offset, revision);
    const size = keyValueSize(store, previous, false) + context.headerRoom + 16;
    return answer(call, out, offset, size, (target, at) =>
      writeKeyValue(store, previous, false, target, context.writeHeader(target, at, revision), 2),
    );
  };
}

/** Writes in place what fits, else into memory of its own. */
export function answer(
  call: InPlaceCall,
  out: Buffer,
  offset: number,
  size: number,
  write: (target: Buffer, at: number) => number,
): number {
  if (size <= IN_PLACE_ROOM_BYTES) return write(out, offset);
  const large = Buffer.allocUnsafeSlow(size);
  return call.reply(large.subarray(0, write(large, 0)));
}

/** One decoded DeleteRangeRequest, reused. */
export class DeleteRequest {
  bytes: Buffer = Buffer.alloc(0);
  keyAt = 0;
  keyTo = 0;
  endAt = 0;
  endTo = 0;
  prevKv = false;
  /** After `apply`: the records that were deleted, in key order. */
  readonly deleted: Page = newPage();
  readonly #reader = new ProtobufReader();

  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader.reset(bytes, start, end);
    this.bytes = bytes;
    this.keyAt = this.keyTo = this.endAt = this.endTo = start;
    this.prevKv = false;
    while (reader.next()) {
      const { field } = reader;
      if (reader.wireType === WIRE_BYTES) {
        reader.chunk();
        if (field === 1) {
          this.keyAt = reader.chunkStart;
          this.keyTo = reader.chunkEnd;
        } else if (field === 2) {
          this.endAt = reader.chunkStart;
          this.endTo = reader.chunkEnd;
        }
      } else if (reader.wireType === 0 && field === 3) this.prevKv = reader.bool();
      else reader.skip();
    }
    return reader.failure === FAILURE_NONE;
  }

  /** Deletes, between begin and commit of the store. */
  apply(context: EtcdContext): void {
    const { store } = context;
    const { deleted } = this;
    store.range(this.bytes, this.keyAt, this.keyTo, this.endAt, this.endTo, 0, 0, deleted);
    for (let i = 0; i < deleted.length; i++) {
      const ref = deleted.refs[i]!;
      store.delete(store.record(ref), store.keyAt(ref), store.keyTo(ref));
    }
  }

  /** Bytes of the response's fields after the header. */
  bodySize(context: EtcdContext): number {
    let size = 11;
    if (!this.prevKv) return size;
    for (let i = 0; i < this.deleted.length; i++) {
      const kvSize = keyValueSize(context.store, this.deleted.refs[i]!, false);
      size += 1 + sizeVarint(kvSize) + kvSize;
    }
    return size;
  }

  writeBody(context: EtcdContext, out: Buffer, start: number): number {
    let at = start;
    if (this.deleted.length > 0) {
      out[at++] = 0x10;
      at = writeInt64(out, at, this.deleted.length);
    }
    if (!this.prevKv) return at;
    for (let i = 0; i < this.deleted.length; i++) {
      at = writeKeyValue(context.store, this.deleted.refs[i]!, false, out, at, 3);
    }
    return at;
  }
}

/** KV.DeleteRange, in place. */
export function deleteHandler(context: EtcdContext): InPlaceHandler {
  const request = new DeleteRequest();
  const { store } = context;
  const times = context.measures.applied[APPLIED_DELETE]!;
  return (bytes, start, end, out, offset, call) => {
    if (!request.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    if (request.keyAt === request.keyTo) return context.fail(call, ETCD.emptyKey);
    if (context.isTooLarge(end - start)) return context.fail(call, ETCD.tooLarge);
    if (store.alarms.isCorrupt) return context.fail(call, ETCD.corrupt);
    const startMs = times.begin();
    store.begin();
    request.apply(context);
    const revision = store.commit();
    times.end(startMs, true);
    context.guard(call.connection);
    const size = context.headerRoom + request.bodySize(context);
    if (size > ANSWER_BYTES_MAX) return context.failOverlong(call, size);
    return answer(call, out, offset, size, (target, at) =>
      request.writeBody(context, target, context.writeHeader(target, at, revision)),
    );
  };
}

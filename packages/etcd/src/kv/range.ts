// data plane: RangeRequest and RangeResponse
import type { Page } from '@megaplane/store/contract';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import { sizeInt64, sizeVarint, writeInt64 } from '@megaplane/wire/protobuf-write';
import type { InPlaceCall } from '@megaplane/wire/grpc';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import { ANSWER_BYTES_MAX, type EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure, storeFailure } from '../codec/failures.ts';
import { keyValueSize, writeKeyValue } from '../codec/key-value.ts';

/** Answers up to this size are written into memory that serves again. */
const SCRATCH_BYTES_MAX: number = 8 * 1024 * 1024;
const ORDER_NONE = 0;
const ORDER_DESCEND = 2;
const TARGET_KEY = 0;
const TARGET_VERSION = 1;
const TARGET_CREATE = 2;
const TARGET_VALUE = 4;

/** One decoded RangeRequest, reused; offsets into the message's bytes. */
export class RangeRequest {
  bytes: Buffer = Buffer.alloc(0);
  keyAt = 0;
  keyTo = 0;
  endAt = 0;
  endTo = 0;
  limit = 0;
  revision = 0;
  order = 0;
  target = 0;
  keysOnly = false;
  countOnly = false;
  minMod = 0;
  maxMod = 0;
  minCreate = 0;
  maxCreate = 0;
  readonly #reader = new ProtobufReader();

  /** False when the bytes are no message. */
  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader.reset(bytes, start, end);
    this.bytes = bytes;
    this.keyAt = this.keyTo = this.endAt = this.endTo = start;
    this.limit = this.revision = this.order = this.target = 0;
    this.keysOnly = this.countOnly = false;
    this.minMod = this.maxMod = this.minCreate = this.maxCreate = 0;
    while (reader.next()) {
      if (reader.wireType === WIRE_BYTES) this.#chunk(reader);
      else if (reader.wireType === 0) this.#number(reader);
      else reader.skip();
    }
    return reader.failure === FAILURE_NONE;
  }

  #chunk(reader: ProtobufReader): void {
    reader.chunk();
    if (reader.field === 1) {
      this.keyAt = reader.chunkStart;
      this.keyTo = reader.chunkEnd;
    } else if (reader.field === 2) {
      this.endAt = reader.chunkStart;
      this.endTo = reader.chunkEnd;
    }
  }

  #number(reader: ProtobufReader): void {
    const { field } = reader;
    const value = reader.int64();
    if (field === 3) this.limit = value;
    else if (field === 4) this.revision = value;
    else if (field === 5) this.order = reader.low | 0;
    else if (field === 6) this.target = reader.low | 0;
    else if (field === 8) this.keysOnly = value !== 0;
    else if (field === 9) this.countOnly = value !== 0;
    else if (field === 10) this.minMod = value;
    else if (field === 11) this.maxMod = value;
    else if (field === 12) this.minCreate = value;
    else if (field === 13) this.maxCreate = value;
  }

  /** What is wrong with the request whatever the store holds. */
  invalid(): EtcdFailure | null {
    if (this.keyAt === this.keyTo) return ETCD.emptyKey;
    const isKnown = this.order >= 0 && this.order <= 2 && this.target >= 0 && this.target <= 4;
    return isKnown ? null : ETCD.invalidSort;
  }

  /** Bounds on revisions of keys are asked for. */
  get isFiltered(): boolean {
    return this.minMod !== 0 || this.maxMod !== 0 || this.minCreate !== 0 || this.maxCreate !== 0;
  }

  /** Reads the range into `page`, filtered, sorted and limited. 0 or the store's failure. */
  read(context: EtcdContext, page: Page): number {
    const { store } = context;
    const { bytes, keyAt, keyTo, endAt, endTo, revision } = this;
    if (this.countOnly) {
      page.length = 0;
      page.more = false;
      const count = store.count(bytes, keyAt, keyTo, endAt, endTo, revision);
      page.count = Math.max(0, count);
      return Math.min(0, count);
    }
    const isPlain = this.order === ORDER_NONE && !this.isFiltered;
    if (isPlain && this.target === TARGET_KEY) {
      return store.range(bytes, keyAt, keyTo, endAt, endTo, revision, this.limit, page);
    }
    // etcd cuts to limit + 1 before it sorts when only a target is given.
    const early = isPlain && this.limit > 0 ? this.limit + 1 : 0;
    const failure = store.range(bytes, keyAt, keyTo, endAt, endTo, revision, early, page);
    if (failure !== 0) return failure;
    if (this.isFiltered) this.#filter(context, page);
    this.#sort(context, page);
    page.more = this.limit > 0 && page.length > this.limit;
    if (page.more) page.length = this.limit;
    return 0;
  }

  #filter(context: EtcdContext, page: Page): void {
    const { arenas } = context.store;
    let kept = 0;
    for (let i = 0; i < page.length; i++) {
      const ref = page.refs[i]!;
      const mod = arenas.modRevision(ref);
      const create = arenas.createRevision(ref);
      if (this.minMod !== 0 && mod < this.minMod) continue;
      if (this.maxMod !== 0 && mod > this.maxMod) continue;
      if (this.minCreate !== 0 && create < this.minCreate) continue;
      if (this.maxCreate !== 0 && create > this.maxCreate) continue;
      page.refs[kept++] = ref;
    }
    page.length = kept;
  }

  #sort(context: EtcdContext, page: Page): void {
    const refs = [...page.refs.subarray(0, page.length)];
    const { arenas } = context.store;
    const sign = this.order === ORDER_DESCEND ? -1 : 1;
    if (this.target === TARGET_KEY) {
      if (sign < 0) refs.reverse();
    } else {
      const by = (ref: number): number =>
        this.target === TARGET_VERSION
          ? arenas.version(ref)
          : this.target === TARGET_CREATE
            ? arenas.createRevision(ref)
            : arenas.modRevision(ref);
      refs.sort((a, b) =>
        this.target === TARGET_VALUE ? sign * compareValues(context, a, b) : sign * (by(a) - by(b)),
      );
    }
    for (let i = 0; i < refs.length; i++) page.refs[i] = refs[i]!;
  }
}

function compareValues(context: EtcdContext, a: number, b: number): number {
  const { store } = context;
  const atA = store.valueAt(a);
  const atB = store.valueAt(b);
  return store.record(a).compare(store.record(b), atB, store.valueTo(b), atA, store.valueTo(a));
}

/** Bytes of a RangeResponse's fields after the header. */
export function rangeBodySize(context: EtcdContext, page: Page, keysOnly: boolean): number {
  let size = (page.more ? 2 : 0) + (page.count > 0 ? 1 + sizeInt64(page.count) : 0);
  for (let i = 0; i < page.length; i++) {
    const kvSize = keyValueSize(context.store, page.refs[i]!, keysOnly);
    size += 1 + sizeVarint(kvSize) + kvSize;
  }
  return size;
}

/** Writes a RangeResponse's fields after the header. */
export function writeRangeBody(
  context: EtcdContext,
  page: Page,
  keysOnly: boolean,
  out: Buffer,
  start: number,
): number {
  let at = start;
  for (let i = 0; i < page.length; i++) {
    at = writeKeyValue(context.store, page.refs[i]!, keysOnly, out, at, 2);
  }
  if (page.more) {
    out[at++] = 0x18;
    out[at++] = 1;
  }
  if (page.count > 0) {
    out[at++] = 0x20;
    at = writeInt64(out, at, page.count);
  }
  return at;
}

/** KV.Range, in place. */
export function rangeHandler(
  context: EtcdContext,
): (
  bytes: Buffer,
  start: number,
  end: number,
  out: Buffer,
  offset: number,
  call: InPlaceCall,
) => number {
  const request = new RangeRequest();
  const { page } = context;
  const times = context.measures.ranges;
  let scratch = Buffer.alloc(0);
  return (bytes, start, end, out, offset, call) => {
    if (!request.decode(bytes, start, end)) return context.fail(call, ETCD.malformed);
    const invalid = request.invalid();
    if (invalid !== null) return context.fail(call, invalid);
    const startMs = times.begin();
    const failure = request.read(context, page);
    times.end(startMs, failure === 0);
    if (failure !== 0) return context.fail(call, storeFailure(failure));
    context.guard(call.connection);
    const revision = context.store.appliedRevision;
    const size = context.headerRoom + rangeBodySize(context, page, request.keysOnly);
    if (size <= IN_PLACE_ROOM_BYTES) {
      const at = context.writeHeader(out, offset, revision);
      return writeRangeBody(context, page, request.keysOnly, out, at);
    }
    if (size > ANSWER_BYTES_MAX) return context.failOverlong(call, size);
    // What the wire cannot send at once it copies: the memory is free again after the call.
    if (size <= SCRATCH_BYTES_MAX && scratch.length < size) scratch = Buffer.allocUnsafeSlow(size);
    const large = size <= SCRATCH_BYTES_MAX ? scratch : Buffer.allocUnsafeSlow(size);
    const at = context.writeHeader(large, 0, revision);
    return call.reply(
      large.subarray(0, writeRangeBody(context, page, request.keysOnly, large, at)),
    );
  };
}

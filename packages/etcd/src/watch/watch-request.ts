// data plane: WatchRequest
import { mergedMessage } from '../codec/merged-message.ts';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';

export const WATCH_NONE = 0;
export const WATCH_CREATE = 1;
export const WATCH_CANCEL = 2;
export const WATCH_PROGRESS = 3;
const FILTER_NOPUT = 0;
const FILTER_NODELETE = 1;

const packed = new ProtobufReader();

/** Clients may choose any 64-bit id: a bigint where a number would not hold it. */
export type WatchId = number | bigint;

function exactId(reader: ProtobufReader, value: number): WatchId {
  if (Number.isSafeInteger(value)) return value;
  const bits = (BigInt(reader.high >>> 0) << 32n) | BigInt(reader.low >>> 0);
  return BigInt.asIntN(64, bits);
}

/** One decoded WatchRequest, reused. */
export class WatchRequest {
  kind: number = WATCH_NONE;
  bytes: Buffer = Buffer.alloc(0);
  keyAt = 0;
  keyTo = 0;
  endAt = 0;
  endTo = 0;
  startRevision = 0;
  progressNotify = false;
  noPut = false;
  noDelete = false;
  prevKv = false;
  watchId: WatchId = 0;
  fragment = false;
  readonly #outer = new ProtobufReader();
  readonly #inner = new ProtobufReader();

  /** False when the bytes are no message. */
  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#outer.reset(bytes, start, end);
    this.kind = WATCH_NONE;
    this.bytes = bytes;
    let isParted = false;
    while (reader.next()) {
      if (reader.wireType !== WIRE_BYTES) {
        reader.skip();
        continue;
      }
      reader.chunk();
      if (reader.field > WATCH_PROGRESS) continue;
      isParted ||= this.kind === reader.field;
      this.kind = reader.field;
      if (!this.#decodeMember(reader.chunkStart, reader.chunkEnd)) return false;
    }
    if (reader.failure !== FAILURE_NONE || !isParted) return reader.failure === FAILURE_NONE;
    const whole = mergedMessage(bytes.subarray(start, end), 'WatchRequest');
    return this.decode(whole, 0, whole.length);
  }

  #decodeMember(start: number, end: number): boolean {
    const reader = this.#inner.reset(this.bytes, start, end);
    this.keyAt = this.keyTo = this.endAt = this.endTo = start;
    this.startRevision = 0;
    this.watchId = 0;
    this.progressNotify = this.noPut = this.noDelete = this.prevKv = this.fragment = false;
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
    } else if (reader.field === 5) {
      packed.reset(this.bytes, reader.chunkStart, reader.chunkEnd);
      while (packed.offset < packed.end) this.#filter(packed.int32());
      if (packed.failure !== FAILURE_NONE) reader.fail(packed.failure);
    }
  }

  #number(reader: ProtobufReader): void {
    const { field } = reader;
    const value = reader.int64();
    if (this.kind === WATCH_CANCEL) {
      if (field === 1) this.watchId = exactId(reader, value);
      return;
    }
    if (field === 3) this.startRevision = value;
    else if (field === 4) this.progressNotify = value !== 0;
    else if (field === 5) this.#filter(reader.low | 0);
    else if (field === 6) this.prevKv = value !== 0;
    else if (field === 7) this.watchId = exactId(reader, value);
    else if (field === 8) this.fragment = value !== 0;
  }

  #filter(value: number): void {
    if (value === FILTER_NOPUT) this.noPut = true;
    if (value === FILTER_NODELETE) this.noDelete = true;
  }
}

// data plane: Compare, the condition of a transaction
import { newPage } from '@megaplane/store/ranges';
import { FAILURE_NONE, ProtobufReader, WIRE_BYTES } from '@megaplane/wire/protobuf';
import type { EtcdContext } from '../call/context.ts';

const RESULT_EQUAL = 0;
const RESULT_GREATER = 1;
const RESULT_LESS = 2;
const RESULT_NOT_EQUAL = 3;
const TARGET_VERSION = 0;
const TARGET_CREATE = 1;
const TARGET_MOD = 2;
const TARGET_VALUE = 3;
const TARGET_LEASE = 4;

/** One decoded Compare, reused. */
export class Compare {
  bytes: Buffer = Buffer.alloc(0);
  keyAt = 0;
  keyTo = 0;
  endAt = 0;
  endTo = 0;
  #result = 0;
  #target = 0;
  /** Field number of the union's member that was sent last. */
  #member = 0;
  #number = 0;
  #low = 0;
  #high = 0;
  #valueAt = 0;
  #valueTo = 0;
  readonly #reader = new ProtobufReader();
  readonly #page = newPage();

  decode(bytes: Buffer, start: number, end: number): boolean {
    const reader = this.#reader.reset(bytes, start, end);
    this.bytes = bytes;
    this.keyAt = this.keyTo = this.endAt = this.endTo = start;
    this.#valueAt = this.#valueTo = start;
    this.#result = this.#target = this.#member = this.#number = this.#low = this.#high = 0;
    while (reader.next()) {
      if (reader.wireType === WIRE_BYTES) this.#chunk(reader);
      else if (reader.wireType === 0) this.#varint(reader);
      else reader.skip();
    }
    return reader.failure === FAILURE_NONE;
  }

  #chunk(reader: ProtobufReader): void {
    reader.chunk();
    if (reader.field === 3) {
      this.keyAt = reader.chunkStart;
      this.keyTo = reader.chunkEnd;
    } else if (reader.field === 7) {
      this.#member = 7;
      this.#valueAt = reader.chunkStart;
      this.#valueTo = reader.chunkEnd;
    } else if (reader.field === 64) {
      this.endAt = reader.chunkStart;
      this.endTo = reader.chunkEnd;
    }
  }

  #varint(reader: ProtobufReader): void {
    const { field } = reader;
    const value = reader.int64();
    if (field === 1) this.#result = reader.low | 0;
    else if (field === 2) this.#target = reader.low | 0;
    else if (field >= 4 && field <= 8) {
      this.#member = field;
      this.#number = value;
      this.#low = reader.low;
      this.#high = reader.high;
    }
  }

  /** Does it hold, as the store stands? */
  holds(context: EtcdContext): boolean {
    const { store } = context;
    if (this.endAt === this.endTo) {
      return this.#holdsFor(context, store.get(this.bytes, this.keyAt, this.keyTo));
    }
    const page = this.#page;
    store.range(this.bytes, this.keyAt, this.keyTo, this.endAt, this.endTo, 0, 0, page);
    if (page.length === 0) return this.#holdsFor(context, 0);
    for (let i = 0; i < page.length; i++) {
      if (!this.#holdsFor(context, page.refs[i]!)) return false;
    }
    return true;
  }

  #holdsFor(context: EtcdContext, ref: number): boolean {
    // A key that is not there has no value: no relation to one holds.
    if (ref === 0 && this.#target === TARGET_VALUE) return false;
    const order = this.#order(context, ref);
    if (this.#result === RESULT_EQUAL) return order === 0;
    if (this.#result === RESULT_GREATER) return order > 0;
    if (this.#result === RESULT_LESS) return order < 0;
    if (this.#result === RESULT_NOT_EQUAL) return order !== 0;
    return true;
  }

  /** How what is there relates to what is expected. */
  #order(context: EtcdContext, ref: number): number {
    const { store } = context;
    const { arenas } = store;
    const target = this.#target;
    if (target === TARGET_VERSION) {
      return (ref === 0 ? 0 : arenas.version(ref)) - (this.#member === 4 ? this.#number : 0);
    }
    if (target === TARGET_CREATE) {
      return (ref === 0 ? 0 : arenas.createRevision(ref)) - (this.#member === 5 ? this.#number : 0);
    }
    if (target === TARGET_MOD) {
      return (ref === 0 ? 0 : arenas.modRevision(ref)) - (this.#member === 6 ? this.#number : 0);
    }
    if (target === TARGET_LEASE) {
      const isGiven = this.#member === 8;
      const high = (ref === 0 ? 0 : arenas.leaseHigh(ref)) | 0;
      const difference = high - (isGiven ? this.#high | 0 : 0);
      if (difference !== 0) return difference;
      return (ref === 0 ? 0 : arenas.leaseLow(ref)) - (isGiven ? this.#low : 0);
    }
    if (target !== TARGET_VALUE) return 0;
    const isGiven = this.#member === 7;
    const at = isGiven ? this.#valueAt : 0;
    const to = isGiven ? this.#valueTo : 0;
    return store.record(ref).compare(this.bytes, at, to, store.valueAt(ref), store.valueTo(ref));
  }
}

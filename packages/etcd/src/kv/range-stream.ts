// shell: KV.RangeStream (etcd 3.7): a range in pieces, all of them at one revision
/**
 * Pieces carry keys only; the last one has header, `more` and `count` too, so that all messages
 * merged are what Range would have answered. The first piece has ten keys; pieces double while they
 * are below half of the largest request's size, and halve above twice of it. The client sets the
 * pace: nothing is made before it can be sent.
 */
import { nextTurn } from '@megaplane/base/deferred';
import { newPage } from '@megaplane/store/ranges';
import type { GrpcCall, GrpcCallFactory, GrpcCallHandler } from '@megaplane/wire/grpc';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import { sizeInt64, writeVarint } from '@megaplane/wire/protobuf-write';
import { ANSWER_BYTES_MAX, type EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure, storeFailure } from '../codec/failures.ts';
import { RangeRequest, rangeBodySize, writeRangeBody } from './range.ts';

const KEYS_FIRST = 10;
const NO_SORTS: EtcdFailure = {
  code: GRPC_CODES.unimplemented,
  text: 'RangeStream does not support custom sort orders',
};
const NO_FILTERS: EtcdFailure = {
  code: GRPC_CODES.unimplemented,
  text: 'RangeStream does not support revision filters',
};
const ORDER_ASCEND = 1;
const TARGET_KEY = 0;
const ZERO = Buffer.from([0]);

/** What the stream reads next. */
interface Cursor {
  /** The next key, then the range's end, one behind the other. */
  bytes: Buffer;
  keyTo: number;
  readonly end: Buffer;
  /** All pieces are read at this revision. */
  readonly revision: number;
  /** The store's revision when the stream began. */
  readonly headerRevision: number;
  readonly keysOnly: boolean;
  /** Keys that may still be sent. */
  left: number;
  more: boolean;
  /** -1 until the first piece is read. */
  count: number;
  keys: number;
}

class RangeStream implements GrpcCallHandler {
  readonly #context: EtcdContext;
  readonly #call: GrpcCall;
  readonly #page = newPage();
  #cursor: Cursor | null = null;
  #isWaiting = false;

  constructor(context: EtcdContext, call: GrpcCall) {
    this.#context = context;
    this.#call = call;
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    const request = new RangeRequest();
    const failure = request.decode(bytes, start, end)
      ? this.#refusal(request)
      : ETCD.malformedStream;
    if (failure !== null) {
      this.#context.guard(this.#call.connection);
      this.#call.finish(failure.code, failure.text);
      return;
    }
    this.#context.guard(this.#call.connection);
    if (request.countOnly) this.#sendCount(request);
    else if (request.target !== TARGET_KEY) this.#sendSorted(request);
    else this.#begin(request);
  }

  onHalfClose(): void {}

  onCancel(): void {
    this.#cursor = null;
  }

  onWritable(): void {
    this.#pump();
  }

  #refusal(request: RangeRequest): EtcdFailure | null {
    const invalid = request.invalid();
    if (invalid !== null) return invalid;
    // Before the revision is looked at, as in 3.7.
    const isSorted = request.order === ORDER_ASCEND && request.target !== TARGET_KEY;
    if (request.order > ORDER_ASCEND || isSorted) return NO_SORTS;
    if (request.isFiltered) return NO_FILTERS;
    const { bytes, keyAt, keyTo, endAt, endTo, revision } = request;
    const checked = this.#context.store.count(bytes, keyAt, keyTo, endAt, endTo, revision);
    return checked < 0 ? storeFailure(checked) : null;
  }

  #sendCount(request: RangeRequest): void {
    const { page } = this.#context;
    request.read(this.#context, page);
    this.#send(page.count, false, this.#context.store.appliedRevision, false);
    this.#call.finish(GRPC_CODES.ok);
  }

  /**
   * With a target and no order Range sorts ascending. etcd's stream does so piece by piece and
   * loses keys on the way; here it is sent whole.
   */
  #sendSorted(request: RangeRequest): void {
    const context = this.#context;
    const { page } = context;
    request.read(context, page);
    const size = rangeBodySize(context, page, request.keysOnly);
    if (size > ANSWER_BYTES_MAX) {
      this.#call.finish(GRPC_CODES.resourceExhausted, 'the sorted answer is too large');
      return;
    }
    this.#send(page.count, page.more, context.store.appliedRevision, request.keysOnly);
    this.#call.finish(GRPC_CODES.ok);
  }

  #begin(request: RangeRequest): void {
    const current = this.#context.store.appliedRevision;
    const key = request.bytes.subarray(request.keyAt, request.keyTo);
    const end = Buffer.from(request.bytes.subarray(request.endAt, request.endTo));
    this.#cursor = {
      bytes: Buffer.concat([key, end]),
      keyTo: key.length,
      end,
      revision: request.revision > 0 ? request.revision : current,
      headerRevision: current,
      keysOnly: request.keysOnly,
      left: request.limit > 0 ? request.limit : Infinity,
      more: false,
      count: -1,
      keys: KEYS_FIRST,
    };
    this.#pump();
  }

  /** One piece per turn, while the client has room. */
  #pump(): void {
    if (this.#isWaiting || this.#cursor === null || this.#call.closed) return;
    if (this.#call.writable() <= 0) return;
    if (!this.#sendPiece(this.#cursor)) {
      this.#cursor = null;
      return;
    }
    this.#isWaiting = true;
    nextTurn(() => {
      this.#isWaiting = false;
      this.#pump();
    });
  }

  /** False when it was the last one, or failed. */
  #sendPiece(cursor: Cursor): boolean {
    const { store, limits } = this.#context;
    const page = this.#page;
    const { bytes, keyTo, revision } = cursor;
    const limit = Math.min(cursor.keys, cursor.left);
    const failed = store.range(bytes, 0, keyTo, keyTo, bytes.length, revision, limit, page);
    if (failed !== 0) {
      const { code, text } = storeFailure(failed);
      this.#call.finish(code, text);
      return false;
    }
    if (cursor.count < 0) cursor.count = page.count;
    cursor.left -= page.length;
    const isLast = !page.more || cursor.left <= 0;
    cursor.more = isLast && page.more;
    const last = page.length === 0 ? 0 : (page.refs[page.length - 1] ?? 0);
    const next =
      last === 0 ? null : store.record(last).subarray(store.keyAt(last), store.keyTo(last));
    if (next !== null) cursor.bytes = Buffer.concat([next, ZERO, cursor.end]);
    cursor.keyTo = next === null ? keyTo : next.length + 1;
    const size = this.#send(
      isLast ? cursor.count : 0,
      cursor.more,
      isLast ? cursor.headerRevision : 0,
      cursor.keysOnly,
    );
    if (size < limits.requestBytesMax / 2) cursor.keys *= 2;
    else if (size > limits.requestBytesMax * 2) cursor.keys = Math.ceil(cursor.keys / 2);
    if (isLast) this.#call.finish(GRPC_CODES.ok);
    return !isLast;
  }

  /** Sends the page with this count and, unless 0, a header. Returns the bytes. */
  #send(count: number, more: boolean, headerRevision: number, keysOnly: boolean): number {
    const context = this.#context;
    const page = headerRevision > 0 && this.#cursor === null ? context.page : this.#page;
    page.count = count;
    page.more = more;
    const header = headerRevision > 0 ? context.headerSizeOf(headerRevision) : 0;
    const size = header + rangeBodySize(context, page, keysOnly);
    const out = Buffer.allocUnsafe(size + 1 + sizeInt64(size));
    out[0] = 0x0a;
    let at = writeVarint(out, 1, size);
    if (headerRevision > 0) at = context.writeHeader(out, at, headerRevision);
    at = writeRangeBody(context, page, keysOnly, out, at);
    this.#call.send(out, 0, at);
    return at;
  }
}

/** The streams of one server. */
export function rangeStreamFactory(context: EtcdContext): GrpcCallFactory {
  return (call) => new RangeStream(context, call);
}

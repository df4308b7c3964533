// data plane
/** Streams of one HTTP/2 connection: their numbers, and a table from identifier to stream. */
import type { CloseReason, BodyShare } from '../http/exchange.ts';
import type { RequestHead } from './http2-head.ts';
import type { FieldList } from '../fields.ts';

/** Whom a stream belongs to: an exchange, a gRPC call, a client's request. */
export interface StreamOwner {
  /** A piece of the body; `isLast`: the stream ends with it. */
  onData(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The peer's side is complete. */
  onEnd(trailers: FieldList): void;
  /** Both sides are complete and everything was handed over; the stream is not the owner's any
   *  more. Streams are reused: its owner must forget it here and in `onLost`. */
  onDone(): void;
  /** The stream is gone before both sides were complete. */
  onLost(reason: CloseReason, code: number): void;
  /** `writable` is above 0 again. */
  onReady(): void;
  /** The stream's `deadlineMs` passed; called once a second from then on. */
  onExpired(): void;
}

export class H2Stream {
  id = 0;
  /** What the peer lets us send; below 0 after it lowered its initial window. */
  sendWindow = 0;
  /** What we let the peer send, and what of it we have not given back yet. */
  receiveWindow = 0;
  consumed = 0;
  endReceived = false;
  endSent = false;
  /** The peer's final head has come (client: 1xx do not count). */
  headReceived = false;
  /** Body octets announced by content-length, -1 if not; and arrived. */
  bodyExpected = -1;
  bodyReceived = 0;
  /** The collected body. */
  body: Buffer | null = null;
  bodyLength = 0;
  /** Whose the collected body is; null: nobody has asked yet. */
  share: BodyShare | null = null;
  /** A server's stream: what was asked. */
  head: RequestHead | null = null;
  owner: StreamOwner | null = null;
  paused = false;
  /** A server's: the body is collected for the handler. */
  collects = false;
  /** Monotonic milliseconds: last piece of a body or of an answer, and when the owner expires. */
  touchedMs = 0;
  bornMs = 0;
  /** Since when a gRPC message is incomplete. */
  cutSinceMs: number = Infinity;
  deadlineMs: number = Infinity;

  /** Bytes that wait for windows, the first from `queueAt` on. */
  queue: Buffer[] | null = null;
  queueIndex = 0;
  queueAt = 0;
  queuedBytes = 0;
  /** After the queue: a block of trailers, or END_STREAM on its own. */
  endQueued = false;
  trailers: Buffer | null = null;
  /** The owner asked and got 0. */
  wantsReady = false;
  /** Octets that this round of the pump lets it write. */
  grant = 0;
  /** More of it may leave with a turn than of others. */
  hastens = false;
  /** Links of the round. */
  inRound = false;
  next: H2Stream | null = null;

  clear(): void {
    this.id = 0;
    this.consumed = 0;
    this.endReceived = false;
    this.endSent = false;
    this.headReceived = false;
    this.bodyExpected = -1;
    this.bodyReceived = 0;
    this.body = null;
    this.bodyLength = 0;
    this.share = null;
    this.head = null;
    this.owner = null;
    this.paused = false;
    this.collects = false;
    this.cutSinceMs = Infinity;
    this.deadlineMs = Infinity;
    this.queue = null;
    this.queueIndex = 0;
    this.queueAt = 0;
    this.queuedBytes = 0;
    this.endQueued = false;
    this.trailers = null;
    this.wantsReady = false;
    this.grant = 0;
    this.hastens = false;
  }
}

/**
 *   ids      Int32Array  hash(id) -> identifier, 0 = empty, linear probing
 *   streams  the stream beside it
 *
 * Open streams have neighbouring identifiers. Left in order they would form one long run, which a
 * deletion must walk to its end; the multiplication scatters them. Deletion shifts back, so there
 * are no tombstones.
 */
export class StreamTable {
  count = 0;
  #ids = new Int32Array(8);
  #streams: (H2Stream | null)[] = [null, null, null, null, null, null, null, null];
  #mask = 7;
  #shift = 29;

  #home(id: number): number {
    return Math.imul(id, 0x9e37_79b1) >>> this.#shift;
  }

  get(id: number): H2Stream | null {
    const ids = this.#ids;
    let slot = this.#home(id);
    for (;;) {
      const found = ids[slot]!;
      if (found === id) return this.#streams[slot]!;
      if (found === 0) return null;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** `id` is not in the table. */
  add(stream: H2Stream): void {
    if (this.count * 2 > this.#mask) this.#grow();
    this.#place(stream);
    this.count++;
  }

  remove(id: number): void {
    const ids = this.#ids;
    const mask = this.#mask;
    let slot = this.#home(id);
    while (ids[slot] !== id) {
      if (ids[slot] === 0) return;
      slot = (slot + 1) & mask;
    }
    this.count--;
    let hole = slot;
    for (;;) {
      slot = (slot + 1) & mask;
      const other = ids[slot]!;
      if (other === 0) break;
      const home = this.#home(other);
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      ids[hole] = other;
      this.#streams[hole] = this.#streams[slot]!;
      hole = slot;
    }
    ids[hole] = 0;
    this.#streams[hole] = null;
  }

  /** All streams at this moment, as an array that later changes do not touch. */
  list(): H2Stream[] {
    const found: H2Stream[] = [];
    for (const stream of this.#streams) if (stream !== null) found.push(stream);
    return found.sort((a, b) => a.id - b.id);
  }

  #place(stream: H2Stream): void {
    let slot = this.#home(stream.id);
    while (this.#ids[slot] !== 0) slot = (slot + 1) & this.#mask;
    this.#ids[slot] = stream.id;
    this.#streams[slot] = stream;
  }

  #grow(): void {
    const old = this.#streams;
    const length = old.length * 2;
    this.#mask = length - 1;
    this.#shift--;
    this.#ids = new Int32Array(length);
    this.#streams = Array.from({ length }, () => null);
    for (const stream of old) if (stream !== null) this.#place(stream);
  }
}

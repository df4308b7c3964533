/**
 * The body of an answer of unknown length, compressed where the client asks for it and it is worth
 * it: more than 128 KiB, as upstream decides. It is one gzip member that is made piece by piece, so
 * that a list still streams in constant memory.
 */
import type { Call } from './call.ts';
import { asksForGzip, GzipMember, PACKED_FIELDS, PLAIN_BYTES_MAX } from './gzip-member.ts';

export class AnswerBody implements Outlet {
  readonly #call: Call;
  readonly #contentType: string;
  /** What was written before the head had to be sent; null afterwards. */
  #pending: Buffer[] | null;
  #pendingBytes = 0;
  readonly #headers: readonly string[];
  #member: GzipMember | null = null;
  #sentBytes = 0;
  /** Upstream counts how long the client takes to take it, too. */
  readonly #serialized: () => void;

  constructor(call: Call, contentType: string) {
    this.#headers = call.headers();
    this.#call = call;
    this.#serialized = call.timed('serialize-response-object', () => {});
    this.#contentType = contentType;
    const asked = asksForGzip(call.exchange);
    this.#pending = asked ? [] : null;
    call.isLasting = true;
    call.exchange.onClose = () => call.done();
    call.code = 200;
    if (!asked) call.exchange.open(200, contentType, this.#headers);
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.#call.record !== null) this.#call.keepAnswer(bytes.slice(start, end));
    if (this.#pending === null) {
      this.#send(bytes, start, end);
      return;
    }
    this.#pending.push(Buffer.from(bytes.subarray(start, end)));
    this.#pendingBytes += end - start;
    if (this.#pendingBytes > PLAIN_BYTES_MAX) this.#decide(new GzipMember());
  }

  writable(): number {
    return this.#pending === null ? this.#call.exchange.writable() : PLAIN_BYTES_MAX;
  }

  end(): void {
    if (this.#pending !== null) this.#decide(null);
    if (this.#member !== null) this.#put(this.#member.tail());
    this.#call.sizes?.addSize(this.#sentBytes);
    this.#call.exchange.end();
    this.#serialized();
    this.#call.done();
  }

  #decide(member: GzipMember | null): void {
    const pieces = this.#pending ?? [];
    this.#pending = null;
    this.#member = member;
    const more = member === null ? [] : PACKED_FIELDS;
    this.#call.exchange.open(200, this.#contentType, [...this.#headers, ...more]);
    if (member === null) {
      for (const piece of pieces) this.#put(piece);
    } else {
      this.#put(member.head());
      this.#put(member.piece(Buffer.concat(pieces)));
    }
  }

  #send(bytes: Uint8Array, start: number, end: number): void {
    if (this.#member === null) this.#put(bytes, start, end);
    else if (start < end) this.#put(this.#member.piece(bytes.subarray(start, end)));
  }

  #put(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.#sentBytes += end - start;
    this.#call.exchange.write(bytes, start, end);
  }
}

/** What takes the bytes: an exchange, or a test. */
export interface Outlet {
  write(bytes: Uint8Array, start?: number, end?: number): void;
  writable(): number;
}

/**
 * `end`: all objects were handed over. `full`: the peer takes no more for now. `yield`: the turn
 * is used up. `compacted`: the revision is no longer kept.
 */
export type Pulled = 'end' | 'full' | 'yield' | 'compacted';

/** Bytes that are pulled as the peer takes them. */
export interface Pullable {
  /** Encodes into `outlet` until it is full, the turn is used up, or there is nothing left. */
  pull(outlet: Outlet): Pulled;
}

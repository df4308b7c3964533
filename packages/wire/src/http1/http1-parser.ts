// data plane
/**
 * One direction of an HTTP/1.1 connection as a pull parser: give it a chunk, then take steps.
 *
 *     parser.push(bytes, start, end);
 *     for (let step = parser.step(); ; step = parser.step()) {
 *       STEP_HEAD    parser.head holds the message's head
 *       STEP_DATA    bytes[dataStart..dataEnd) of parser.input belong to the body
 *       STEP_END     the message is complete
 *       STEP_MORE    the chunk is used up: call keep() and wait for the next one
 *       STEP_FAILED  parser.failure says why; the stream of bytes is of no use any more
 *     }
 *
 * Stepping may stop at any point (too many requests wait for answers): `keep()` then saves what is
 * left, and later steps go on from it without a new chunk.
 *
 * A message that lies within one chunk is parsed where it is. A head cut by the end of a chunk is
 * carried over into memory of the parser's own, which is given back as soon as it is used up, so
 * that an idle connection holds none.
 */
import { HEAD_DONE, HEAD_FAILED, Http1Head, type Http1Failure } from './http1-head.ts';

export const STEP_MORE = 0;
export const STEP_HEAD = 1;
export const STEP_DATA = 2;
export const STEP_END = 3;
export const STEP_FAILED = 4;

/** Octets of the line that gives a chunk's size, extensions included; more are refused. */
export const CHUNK_LINE_BYTES_MAX = 1024;
/** Empty lines skipped before a request (RFC 9112 2.2); more are refused. */
export const EMPTY_LINES_MAX = 2;

const PHASE_HEAD = 0;
const PHASE_COUNTED = 1;
const PHASE_CHUNK_SIZE = 2;
const PHASE_CHUNK_DATA = 3;
const PHASE_CHUNK_END = 4;
const PHASE_TRAILERS = 5;
const PHASE_UNTIL_CLOSE = 6;
const PHASE_END = 7;
const PHASE_FAILED = 8;

const CR = 13;
const LF = 10;
const EMPTY = Buffer.alloc(0);
const HEAD_END = Buffer.from('\n\r\n');
const CHUNK_SIZE_DIGITS_MAX = 12;

/** Heads are read one at a time and used at once, so all parsers share the two rooms for them. */
const sharedHead = new Http1Head();
const sharedTrailers = new Http1Head();

/** See the head of the file. */
export class Http1Parser {
  input: Buffer = EMPTY;
  dataStart = 0;
  dataEnd = 0;
  failure: Http1Failure = 'startLine';
  /** The head of the current message: valid from STEP_HEAD to the next `step` or `push`. */
  readonly head: Http1Head = sharedHead;
  /** Trailers of the message, valid at its STEP_END if `hasTrailers`. */
  readonly trailers: Http1Head = sharedTrailers;
  hasTrailers = false;
  readonly #isResponse: boolean;
  readonly #headBytesMax: number;
  #phase = PHASE_HEAD;
  #offset = 0;
  #end = 0;
  /** What was cut off by the end of a chunk; `input` when it is being parsed. */
  #carry: Buffer | null = null;
  /** Octets of the current, incomplete head known not to hold its end, and when to look again. */
  #searched = 0;
  #retryAt = 0;
  #emptyLines = 0;
  /** Octets left of a counted body or of a chunk. */
  #left = 0;

  constructor(isResponse: boolean, headBytesMax: number) {
    this.#isResponse = isResponse;
    this.#headBytesMax = headBytesMax;
  }

  /** Adds a chunk. All earlier ones must have been stepped through or kept. */
  push(bytes: Buffer, start: number, end: number): void {
    if (this.#carry === null) {
      this.input = bytes;
      this.#offset = start;
      this.#end = end;
      return;
    }
    const kept = this.#end - this.#offset;
    const size = kept + end - start;
    let carry = this.#carry;
    if (size > carry.length) carry = Buffer.allocUnsafeSlow(Math.max(size, 2 * carry.length, 1024));
    if (this.#offset > 0 || carry !== this.#carry) {
      this.#carry.copy(carry, 0, this.#offset, this.#end);
    }
    bytes.copy(carry, kept, start, end);
    this.#carry = carry;
    this.input = carry;
    this.#offset = 0;
    this.#end = size;
  }

  /** Saves what has not been stepped through; the chunk may be reused afterwards. */
  keep(): void {
    if (this.#offset === this.#end || this.#phase === PHASE_FAILED) {
      this.#carry = null;
      this.input = EMPTY;
      this.#offset = 0;
      this.#end = 0;
      return;
    }
    if (this.#carry === this.input) return;
    const size = this.#end - this.#offset;
    const carry = Buffer.allocUnsafeSlow(Math.max(size, 1024));
    this.input.copy(carry, 0, this.#offset, this.#end);
    this.#carry = carry;
    this.input = carry;
    this.#offset = 0;
    this.#end = size;
  }

  /** Octets not stepped through yet. */
  get rest(): number {
    return this.#end - this.#offset;
  }

  /** Where the unread octets start in `input`; for what follows an upgrade. */
  get offset(): number {
    return this.#offset;
  }

  /** True between messages, when nothing of the next one has come. */
  get isIdle(): boolean {
    return this.#phase === PHASE_HEAD && this.#offset === this.#end;
  }

  /** True while the body of a message is being read. */
  get isInBody(): boolean {
    return this.#phase > PHASE_HEAD && this.#phase < PHASE_FAILED;
  }

  /** At STEP_HEAD of a response: it has no body, whatever its fields say (HEAD, CONNECT). */
  skipBody(): void {
    this.#phase = PHASE_END;
  }

  /** The peer ended. True if that was a legal end: between messages or of an uncounted body. */
  finish(): boolean {
    if (this.#phase === PHASE_UNTIL_CLOSE) {
      this.#phase = PHASE_END;
      return true;
    }
    return this.isIdle;
  }

  step(): number {
    switch (this.#phase) {
      case PHASE_HEAD:
        return this.#stepHead();
      case PHASE_COUNTED:
      case PHASE_CHUNK_DATA:
        return this.#stepData();
      case PHASE_CHUNK_END:
        return this.#stepChunkEnd();
      case PHASE_CHUNK_SIZE:
        return this.#stepChunkSize();
      case PHASE_TRAILERS:
        return this.#stepTrailers();
      case PHASE_UNTIL_CLOSE:
        return this.#take(this.#end - this.#offset);
      case PHASE_END:
        this.#phase = PHASE_HEAD;
        return STEP_END;
      default:
        return STEP_FAILED;
    }
  }

  #fail(failure: Http1Failure): number {
    this.failure = failure;
    this.#phase = PHASE_FAILED;
    return STEP_FAILED;
  }

  #stepHead(): number {
    if (!this.#isResponse && !this.#skipEmptyLines()) return STEP_MORE;
    const size = this.#end - this.#offset;
    if (size === 0 || !this.#isWorthParsing(size)) return STEP_MORE;
    const head = this.head;
    const result = head.parse(this.input, this.#offset, this.#end, this.#isResponse);
    if (result === HEAD_FAILED) return this.#fail(head.failure);
    if (result !== HEAD_DONE) return this.#more(size);
    if (head.length > this.#headBytesMax) return this.#fail('headSize');
    this.#searched = 0;
    this.#retryAt = 0;
    this.#emptyLines = 0;
    this.#offset += head.length;
    this.hasTrailers = false;
    this.#phase = this.#framing(head);
    return STEP_HEAD;
  }

  /** What follows a head (RFC 9112 6.3). */
  #framing(head: Http1Head): number {
    if (this.#isResponse) {
      const status = head.status;
      if (status < 200 || status === 204 || status === 304) return PHASE_END;
    }
    if (head.isChunked) return PHASE_CHUNK_SIZE;
    if (head.contentLength > 0) {
      this.#left = head.contentLength;
      return PHASE_COUNTED;
    }
    return head.contentLength < 0 && this.#isResponse ? PHASE_UNTIL_CLOSE : PHASE_END;
  }

  /** Skips empty lines before a request; false if the head can begin only in the next chunk. */
  #skipEmptyLines(): boolean {
    const bytes = this.input;
    while (this.#offset < this.#end && bytes[this.#offset] === CR) {
      if (this.#offset + 1 === this.#end) return false;
      // More than a few, or a bare CR: what parses the head refuses it.
      if (bytes[this.#offset + 1] !== LF || this.#emptyLines === EMPTY_LINES_MAX) return true;
      this.#emptyLines++;
      this.#offset += 2;
    }
    return true;
  }

  /**
   * A head that came in pieces is parsed again only when its end is there or it has doubled, so
   * that the work stays linear when it comes byte by byte.
   */
  #isWorthParsing(size: number): boolean {
    if (this.#searched === 0) return true;
    const from = this.#offset + Math.max(0, this.#searched - 2);
    const found = this.input.indexOf(HEAD_END, from);
    if (found >= 0 && found < this.#end) return true;
    this.#searched = size;
    return size >= this.#retryAt;
  }

  #more(size: number): number {
    if (size > this.#headBytesMax) return this.#fail('headSize');
    this.#searched = size;
    this.#retryAt = Math.min(2 * size, this.#headBytesMax + 1);
    return STEP_MORE;
  }

  #take(length: number): number {
    if (length === 0) return STEP_MORE;
    this.dataStart = this.#offset;
    this.#offset += length;
    this.dataEnd = this.#offset;
    return STEP_DATA;
  }

  #stepData(): number {
    const length = Math.min(this.#left, this.#end - this.#offset);
    this.#left -= length;
    if (this.#left === 0) {
      this.#phase = this.#phase === PHASE_COUNTED ? PHASE_END : PHASE_CHUNK_END;
    }
    return this.#take(length);
  }

  #stepChunkEnd(): number {
    const at = this.#offset;
    if (at < this.#end && this.input[at] !== CR) return this.#fail('chunkEnd');
    if (at + 1 >= this.#end) return STEP_MORE;
    if (this.input[at + 1] !== LF) return this.#fail('chunkEnd');
    this.#offset += 2;
    this.#phase = PHASE_CHUNK_SIZE;
    return this.#stepChunkSize();
  }

  #stepChunkSize(): number {
    const bytes = this.input;
    const start = this.#offset;
    const end = Math.min(this.#end, start + CHUNK_LINE_BYTES_MAX);
    let size = 0;
    let at = start;
    for (; at < end; at++) {
      const digit = hexDigit(bytes[at]!);
      if (digit < 0) break;
      if (at - start === CHUNK_SIZE_DIGITS_MAX) return this.#fail('chunkSize');
      size = size * 16 + digit;
    }
    if (at === this.#end) return STEP_MORE;
    if (at === start) return this.#fail('chunkSize');
    // Extensions (`;name=value`) are allowed and mean nothing here.
    if (bytes[at] === 59) while (at < end && isPlain(bytes[at]!)) at++;
    if (at === this.#end) return STEP_MORE;
    if (at === end) return this.#fail('chunkLine');
    if (bytes[at] !== CR) return this.#fail('chunkSize');
    if (at + 1 === this.#end) return STEP_MORE;
    if (bytes[at + 1] !== LF) return this.#fail('chunkSize');
    this.#offset = at + 2;
    if (size === 0) {
      this.#phase = PHASE_TRAILERS;
      return this.#stepTrailers();
    }
    this.#left = size;
    this.#phase = PHASE_CHUNK_DATA;
    return this.#stepData();
  }

  #stepTrailers(): number {
    const size = this.#end - this.#offset;
    if (size === 0 || !this.#isWorthParsing(size)) return STEP_MORE;
    const result = this.trailers.parseTrailers(this.input, this.#offset, this.#end);
    if (result === HEAD_FAILED) return this.#fail(this.trailers.failure);
    if (result !== HEAD_DONE) return this.#more(size);
    if (this.trailers.length > this.#headBytesMax) return this.#fail('headSize');
    this.#searched = 0;
    this.#retryAt = 0;
    this.#offset += this.trailers.length;
    this.hasTrailers = this.trailers.fieldCount > 0;
    this.#phase = PHASE_HEAD;
    return STEP_END;
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

function isPlain(byte: number): boolean {
  return byte === 9 || (byte >= 32 && byte !== 127);
}

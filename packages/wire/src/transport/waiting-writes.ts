// data plane
/**
 * Bytes that wait until a socket has taken what it was given before.
 *
 * Large pieces wait where they lie, their memory lent until they leave. Small ones are copied: else
 * peers that read slowly would pin a whole block each. What leaves is one piece, or neighbours put
 * together.
 */
import { COPY_BYTES_MAX, TURN_BYTES } from '../limits.ts';

/**
 * Octets that leave in one write. A socket takes a write or two in each turn of the event loop:
 * where turns are long that is all it gets, and copying costs a tenth of what encrypting does.
 */
const JOINED_BYTES: number = TURN_BYTES;
/** The first memory for small pieces. */
const SMALL_BYTES = 1024;

/** Pieces that have left and still stand in the list. */
const PASSED_MAX = 64;

/** Bytes to be written now, and what to call when they may change again. */
export interface LeavingWrite {
  readonly bytes: Buffer;
  readonly done: () => void;
}

interface Piece {
  bytes: Buffer;
  readonly start: number;
  end: number;
  /** Null: the memory is ours, and may be appended to. */
  readonly done: (() => void) | null;
}

/** Where neighbours are put together; sockets encrypt it before anybody else writes there. */
const joined: Buffer = Buffer.allocUnsafeSlow(JOINED_BYTES);

export class WaitingWrites {
  #pieces: Piece[] = [];
  /** The first that has not left. */
  #first = 0;
  size = 0;

  /** Takes `bytes[start..end)`; true where it was copied, else `done` comes when it has left. */
  add(bytes: Buffer, start: number, end: number, done: () => void): boolean {
    const length = end - start;
    this.size += length;
    if (length > COPY_BYTES_MAX) {
      this.#pieces.push({ bytes, start, end, done });
      return false;
    }
    const last = this.#pieces.at(-1);
    if (last === undefined || last.done !== null || last.end + length > COPY_BYTES_MAX) {
      const own = Buffer.allocUnsafe(Math.max(SMALL_BYTES, length));
      bytes.copy(own, 0, start, end);
      this.#pieces.push({ bytes: own, start: 0, end: length, done: null });
      return true;
    }
    if (last.end + length > last.bytes.length) {
      const size = Math.min(COPY_BYTES_MAX, 2 * (last.end + length));
      const grown = Buffer.allocUnsafe(size);
      last.bytes.copy(grown, 0, 0, last.end);
      last.bytes = grown;
    }
    bytes.copy(last.bytes, last.end, start, end);
    last.end += length;
    return true;
  }

  /** What is to leave next, or null. Its bytes must be read before anything else is taken. */
  take(): LeavingWrite | null {
    const first = this.#pieces[this.#first];
    if (first === undefined) return null;
    const isOnly = this.#first + 1 === this.#pieces.length;
    if (isOnly) {
      this.#pass(first);
      return { bytes: first.bytes.subarray(first.start, first.end), done: first.done ?? nothing };
    }
    let length = 0;
    const left: (() => void)[] = [];
    for (let next: Piece | undefined = first; next !== undefined;) {
      if (length + next.end - next.start > JOINED_BYTES) break;
      length += next.bytes.copy(joined, length, next.start, next.end);
      if (next.done !== null) left.push(next.done);
      this.#pass(next);
      next = this.#pieces[this.#first];
    }
    return { bytes: joined.subarray(0, length), done: () => left.forEach((done) => done()) };
  }

  #pass(piece: Piece): void {
    this.size -= piece.end - piece.start;
    this.#first++;
    if (this.#first < this.#pieces.length && this.#first < PASSED_MAX) return;
    this.#pieces.splice(0, this.#first);
    this.#first = 0;
  }

  /** Gives back all memory that was lent: nothing leaves any more. */
  clear(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#first = 0;
    this.size = 0;
    for (const { done } of pieces) done?.();
  }
}

function nothing(): void {
  // the memory is ours, and is not used again
}

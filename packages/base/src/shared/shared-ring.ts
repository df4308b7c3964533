// data plane: messages from one thread to one other, in memory that both see
/**
 * A ring of bytes with one writer and one reader, each on a thread of its own.
 *
 *   words   HEAD      octets written, modulo 2^32      stored by the writer, after the message
 *           TAIL      octets given back, modulo 2^32   stored by the reader, after its last look
 *           ASLEEP    1: the reader waits for a bell   set by the reader, taken by the writer
 *           WANTS     1: the writer waits for room     set by the writer, taken by the reader
 *   data    [size][kind][slot][length] bytes, padded to 8 octets; none lies across the end
 *
 * Everything in `words` is read and written by `Atomics`, which are sequentially consistent: who
 * has seen a HEAD sees the message before it, who has seen a TAIL may write over what lies before.
 * A message itself is plain memory: between the two stores it belongs to one thread only.
 *
 * Nobody sleeps through a message: the writer stores HEAD and then looks at ASLEEP, the reader
 * stores ASLEEP and then looks at HEAD. One of the two looks is the later one, and sees the other's
 * store. The same holds of TAIL and WANTS. `exchange` lets one of several that saw the word ring.
 */
import { assert } from '../assert.ts';

/** The words, each in a cache line of its own. */
const HEAD = 0;
const TAIL = 16;
const ASLEEP = 32;
const WANTS = 48;
const WORDS_BYTES = 256;

const HEAD_BYTES = 16;
/** A message of this kind stands for the rest of the data: go on at its start. */
const SKIP = -1;

/** Memory for a ring of `dataBytes`, a power of two. */
export function ringMemory(dataBytes: number): SharedArrayBuffer {
  assert((dataBytes & (dataBytes - 1)) === 0 && dataBytes >= 64, 'a ring has a power of two');
  return new SharedArrayBuffer(WORDS_BYTES + dataBytes);
}

/** The longest message of a ring: so that three of them always find room. */
export function messageBytesMax(memory: SharedArrayBuffer): number {
  return ((memory.byteLength - WORDS_BYTES) >> 2) - HEAD_BYTES;
}

export class RingWriter {
  readonly #words: Int32Array;
  readonly #heads: Int32Array;
  readonly #bytes: Buffer;
  readonly #size: number;
  #head = 0;
  /** As it was seen last; the true one may be further. */
  #tail = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, WORDS_BYTES / 4);
    this.#heads = new Int32Array(memory, WORDS_BYTES);
    this.#bytes = Buffer.from(memory, WORDS_BYTES);
    this.#size = this.#bytes.length;
  }

  /** Appends a message with `bytes[start..end)`; false: there is no room, and nothing was done. */
  put(kind: number, slot: number, bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    const size = HEAD_BYTES + ((length + 7) & ~7);
    assert(size <= this.#size >> 2, 'a message is longer than its ring takes');
    let at = this.#head & (this.#size - 1);
    const toEnd = this.#size - at;
    const skipped = size > toEnd ? toEnd : 0;
    if (!this.#hasRoom(skipped + size)) return false;
    if (skipped > 0) {
      this.#heads[at >> 2] = skipped;
      this.#heads[(at >> 2) + 1] = SKIP;
      at = 0;
    }
    const word = at >> 2;
    this.#heads[word] = size;
    this.#heads[word + 1] = kind;
    this.#heads[word + 2] = slot;
    this.#heads[word + 3] = length;
    if (length > 0) bytes.copy(this.#bytes, at + HEAD_BYTES, start, end);
    this.#head = (this.#head + skipped + size) >>> 0;
    Atomics.store(this.#words, HEAD, this.#head | 0);
    return true;
  }

  #hasRoom(size: number): boolean {
    if (this.#size - ((this.#head - this.#tail) >>> 0) >= size) return true;
    this.#tail = Atomics.load(this.#words, TAIL) >>> 0;
    return this.#size - ((this.#head - this.#tail) >>> 0) >= size;
  }

  /** After messages: whether the reader sleeps, and this call is the one to wake it. */
  mustRing(): boolean {
    return (
      Atomics.load(this.#words, ASLEEP) === 1 && Atomics.exchange(this.#words, ASLEEP, 0) === 1
    );
  }

  /**
   * After a `put` that found no room: true, and the reader rings when there is more; false: it has
   * given some back meanwhile.
   */
  waitsForRoom(): boolean {
    Atomics.store(this.#words, WANTS, 1);
    if (Atomics.load(this.#words, TAIL) >>> 0 === this.#tail) return true;
    // taken by the reader already, then it rings for nothing
    Atomics.store(this.#words, WANTS, 0);
    return false;
  }
}

export class RingReader {
  readonly #words: Int32Array;
  readonly #heads: Int32Array;
  readonly #size: number;
  /** The data; a message's octets are `bytes[start..end)` until `done`. */
  readonly bytes: Buffer;
  kind = 0;
  slot = 0;
  start = 0;
  end = 0;
  #tail = 0;
  #next = 0;
  /** As it was seen last. */
  #head = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, WORDS_BYTES / 4);
    this.#heads = new Int32Array(memory, WORDS_BYTES);
    this.bytes = Buffer.from(memory, WORDS_BYTES);
    this.#size = this.bytes.length;
  }

  /** Looks at the next message; false: there is none. */
  next(): boolean {
    if (this.#tail === this.#head) {
      this.#head = Atomics.load(this.#words, HEAD) >>> 0;
      if (this.#tail === this.#head) return false;
    }
    let at = this.#tail & (this.#size - 1);
    this.#next = this.#tail;
    if (this.#heads[(at >> 2) + 1]! === SKIP) {
      this.#next = (this.#next + this.#heads[at >> 2]!) >>> 0;
      at = 0;
    }
    const word = at >> 2;
    this.#next = (this.#next + this.#heads[word]!) >>> 0;
    this.kind = this.#heads[word + 1]!;
    this.slot = this.#heads[word + 2]!;
    this.start = at + HEAD_BYTES;
    this.end = this.start + this.#heads[word + 3]!;
    return true;
  }

  /** Gives the message's memory back: the writer may write there. */
  done(): void {
    this.#tail = this.#next;
    Atomics.store(this.#words, TAIL, this.#tail | 0);
  }

  /** After `done`: whether the writer waits for room, and this call is the one to wake it. */
  mustRing(): boolean {
    return Atomics.load(this.#words, WANTS) === 1 && Atomics.exchange(this.#words, WANTS, 0) === 1;
  }

  /** From now on the writer rings; false: a message has come meanwhile, and it need not. */
  sleeps(): boolean {
    Atomics.store(this.#words, ASLEEP, 1);
    if (Atomics.load(this.#words, HEAD) >>> 0 === this.#tail) return true;
    Atomics.store(this.#words, ASLEEP, 0);
    return false;
  }

  /** Awake: bells are not needed. */
  wakes(): void {
    Atomics.store(this.#words, ASLEEP, 0);
  }
}

/** Collects one request body. A body that comes in one piece is not copied. */
import type { BodyBudget } from '../transport/body-budget.ts';
import type { BodyShare } from '../http/exchange.ts';

const EMPTY = Buffer.alloc(0);
/** First room for a body that comes in pieces; what the peer announces is not trusted further. */
const BODY_ROOM_BYTES: number = 64 * 1024;

export class Http1Body {
  readonly #announced: number;
  readonly #bytesMax: number;
  readonly #budget: BodyBudget;
  /** When it was begun: monotonic milliseconds. */
  readonly sinceMs: number;
  /** Whose it is; null: nobody has asked yet. */
  share: BodyShare | null = null;
  #taken = 0;
  #bytes: Buffer = EMPTY;
  #length = 0;

  /** `announced` is the content-length, or -1. */
  constructor(announced: number, bytesMax: number, budget: BodyBudget, sinceMs: number) {
    this.#announced = announced;
    this.#bytesMax = bytesMax;
    this.#budget = budget;
    this.sinceMs = sinceMs;
  }

  /** Whether a piece of so many octets is all of it, which takes no memory. */
  isWhole(bytes: number): boolean {
    return this.#length === 0 && bytes === this.#announced;
  }

  /**
   * What is wrong when it cannot be kept: the body, or all of them, would be too large. A piece
   * that is not whole needs a share.
   */
  add(bytes: Buffer, start: number, end: number): 'added' | 'tooLarge' | 'noRoom' {
    const length = this.#length + end - start;
    if (length > this.#bytesMax) return 'tooLarge';
    if (this.isWhole(end - start)) {
      this.#bytes = bytes.subarray(start, end);
      this.#length = length;
      return 'added';
    }
    if (length > this.#bytes.length) {
      const wanted = Math.max(length, 2 * this.#bytes.length, BODY_ROOM_BYTES);
      const most = this.#announced >= 0 ? this.#announced : this.#bytesMax;
      const size = Math.max(length, Math.min(wanted, most));
      if (this.share === null) return 'noRoom';
      if (!this.#budget.take(this.share, size - this.#taken)) return 'noRoom';
      this.#taken = size;
      const grown = Buffer.allocUnsafeSlow(size);
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
    return 'added';
  }

  /** What was collected; valid until the handler returns. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Nobody waits for the rest of it. Once. */
  release(): void {
    if (this.share !== null) this.#budget.give(this.share, this.#taken);
    this.#taken = 0;
  }
}

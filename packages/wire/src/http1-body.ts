/** Collects one request body. A body that comes in one piece is not copied. */

const EMPTY = Buffer.alloc(0);
/** First room for a body that comes in pieces; what the peer announces is not trusted further. */
const BODY_ROOM_BYTES: number = 64 * 1024;

export class Http1Body {
  readonly #announced: number;
  readonly #bytesMax: number;
  #bytes: Buffer = EMPTY;
  #length = 0;

  /** `announced` is the content-length, or -1. */
  constructor(announced: number, bytesMax: number) {
    this.#announced = announced;
    this.#bytesMax = bytesMax;
  }

  /** False when the body would grow over its limit. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const length = this.#length + end - start;
    if (length > this.#bytesMax) return false;
    if (this.#length === 0 && end - start === this.#announced) {
      this.#bytes = bytes.subarray(start, end);
      this.#length = length;
      return true;
    }
    if (length > this.#bytes.length) {
      const wanted = Math.max(length, 2 * this.#bytes.length, BODY_ROOM_BYTES);
      const most = this.#announced >= 0 ? this.#announced : this.#bytesMax;
      const grown = Buffer.allocUnsafeSlow(Math.max(length, Math.min(wanted, most)));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
    return true;
  }

  /** What was collected; valid until the handler returns. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}

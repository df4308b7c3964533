// data plane
/**
 * The hash that shards are cut by: 64-bit FNV-1a of a field's UTF-8 bytes, in two halves.
 *
 * The prime is 2^40 + 435: the low half is multiplied by 435 (below 2^41, exact in a double), and
 * what 2^40 adds is the low half moved up by 8 bits into the high one.
 */

const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
const PRIME_LOW = 435;
const WORD: number = 2 ** 32;

/** The last hash that was computed; reuse it. */
export class ShardHash {
  high = 0;
  low = 0;

  /** Hashes `bytes[start, end)`; an empty range is the hash of the empty text. */
  of(bytes: Uint8Array, start: number, end: number): void {
    let high = OFFSET_HIGH;
    let low = OFFSET_LOW;
    for (let at = start; at < end; at++) {
      low = (low ^ bytes[at]!) >>> 0;
      const product = low * PRIME_LOW;
      high = (Math.imul(high, PRIME_LOW) + (low << 8) + Math.floor(product / WORD)) >>> 0;
      low = product >>> 0;
    }
    this.high = high;
    this.low = low;
  }
}

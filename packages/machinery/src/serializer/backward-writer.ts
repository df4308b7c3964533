// data plane
/**
 * Writes protobuf from the end of a scratch buffer towards its start, so that each length is known
 * when it is written and nothing is measured first:
 *
 *     [ ......... free ......... | tag len field 1 | tag len field 2 ]
 *                                ^ at
 *
 * Within a message, fields are written last first, and each value before its tag.
 */

const BYTES = 2;
const TWO_32 = 4294967296;
const SCRATCH_BYTES = 1 << 20;
/** Characters up to which text is written in script; beyond, the native encoder is faster. */
const SHORT_TEXT = 64;

/** One message at a time; reuse it. */
export class BackwardWriter {
  bytes: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  /** Offset of what was written last; everything from here to the end is the message. */
  at: number = SCRATCH_BYTES;

  /** Starts anew; what was written before is gone. */
  reset(): void {
    this.at = this.bytes.length;
  }

  /** What was written, in a Buffer of its own. */
  take(): Buffer {
    return Buffer.from(this.bytes.subarray(this.at));
  }

  /** What was written where it lies: good until the next `reset`. */
  view(): Buffer {
    return this.bytes.subarray(this.at);
  }

  string(number: number, text: string): void {
    const end = this.mark();
    const length = text.length;
    this.room(length * 3);
    const bytes = this.bytes;
    let at = this.at;
    let index = length - 1;
    if (length <= SHORT_TEXT) {
      for (; index >= 0; index--) {
        const code = text.charCodeAt(index);
        if (code >= 0x80) break;
        bytes[--at] = code;
      }
    }
    if (index >= 0) {
      at = this.at - Buffer.byteLength(text);
      bytes.write(text, at);
    }
    this.at = at;
    this.length(number, end);
  }

  base64(number: number, text: string): void {
    const end = this.mark();
    this.copy(Buffer.from(text, 'base64'));
    this.length(number, end);
  }

  copy(source: Uint8Array): void {
    this.room(source.length);
    this.at -= source.length;
    this.bytes.set(source, this.at);
  }

  /** A few bytes: cheaper than `copy` for those. */
  copyShort(source: Uint8Array): void {
    const length = source.length;
    if (length === 0) return;
    this.room(length);
    const at = this.at - length;
    for (let index = 0; index < length; index++) this.bytes[at + index] = source[index]!;
    this.at = at;
  }

  copyRange(source: Buffer, start: number, end: number): void {
    this.room(end - start);
    this.at -= end - start;
    source.copy(this.bytes, this.at, start, end);
  }

  /** How much is written: a place that stays right when the scratch buffer grows. */
  mark(): number {
    return this.bytes.length - this.at;
  }

  /** Writes the length of what has been written since the mark `end`, and the tag before it. */
  length(number: number, end: number): void {
    this.varint(this.mark() - end);
    this.varint(number * 8 + BYTES);
  }

  int(value: number | bigint): void {
    if (typeof value === 'bigint') return this.#long(value);
    if (value >= 0) return this.varint(value);
    const low = value >>> 0;
    const high = Math.floor(value / TWO_32) >>> 0;
    this.room(10);
    let at = this.at - 10;
    this.at = at;
    let rest = low;
    for (let index = 0; index < 4; index++) {
      this.bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[at++] = rest | ((high & 7) << 4) | 0x80;
    rest = high >>> 3;
    for (let index = 0; index < 4; index++) {
      this.bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[at] = 1;
  }

  /** One that no plain number holds exactly. */
  #long(value: bigint): void {
    const groups: number[] = [];
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 0x80n; rest >>= 7n) groups.push(Number(rest & 0x7fn) | 0x80);
    groups.push(Number(rest));
    this.copy(Uint8Array.from(groups));
  }

  /** A whole number from 0 to 2^53. */
  varint(value: number): void {
    this.room(10);
    const bytes = this.bytes;
    if (value < 0x80) {
      bytes[--this.at] = value;
      return;
    }
    let size = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) size++;
    let at = this.at - size;
    this.at = at;
    let rest = value;
    while (rest >= 0x80) {
      bytes[at++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    bytes[at] = rest;
  }

  /**
   * Makes sure that `size` bytes are free before `#at`; what is written keeps its distance from the
   * end.
   */
  room(size: number): void {
    if (size <= this.at) return;
    const written = this.bytes.length - this.at;
    const length = Math.max(this.bytes.length * 2, written + size);
    const grown = Buffer.allocUnsafeSlow(length);
    grown.set(this.bytes.subarray(this.at), length - written);
    this.bytes = grown;
    this.at = length - written;
  }

  /** Eight bytes, least significant first. */
  double(value: number): void {
    this.room(8);
    this.at -= 8;
    this.bytes.writeDoubleLE(value, this.at);
  }

  /** Four bytes, most significant first. */
  uint32(value: number): void {
    this.room(4);
    this.at -= 4;
    this.bytes.writeUInt32BE(value, this.at);
  }
}

// data plane
/** A growing buffer that answers are assembled in before they are handed to the wire. */

const FIRST_BYTES = 64 * 1024;
/** Up to here a loop is faster than a call. */
const SHORT_COPY = 16;

/** Bytes `[0, length)` of `bytes` are what was written so far. */
export class Sink {
  bytes: Buffer;
  length = 0;

  constructor(firstBytes: number = FIRST_BYTES) {
    this.bytes = Buffer.allocUnsafeSlow(firstBytes);
  }

  /** Makes room for `count` more bytes. */
  ensure(count: number): void {
    const wanted = this.length + count;
    if (wanted <= this.bytes.length) return;
    let size = this.bytes.length;
    while (size < wanted) size *= 2;
    const grown = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** Appends text of ASCII characters only. */
  ascii(text: string): void {
    const count = text.length;
    this.ensure(count);
    if (count > SHORT_COPY) this.bytes.latin1Write(text, this.length, count);
    else {
      const { bytes: out, length } = this;
      for (let at = 0; at < count; at++) out[length + at] = text.charCodeAt(at);
    }
    this.length += count;
  }

  /** Appends any text as UTF-8. */
  utf8(text: string): void {
    this.ensure(text.length * 3);
    this.length += this.bytes.write(text, this.length);
  }

  append(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const count = end - start;
    this.ensure(count);
    if (count > SHORT_COPY) {
      if (Buffer.isBuffer(bytes)) bytes.copy(this.bytes, this.length, start, end);
      else this.bytes.set(bytes.subarray(start, end), this.length);
    } else {
      const { bytes: out, length } = this;
      for (let at = 0; at < count; at++) out[length + at] = bytes[start + at]!;
    }
    this.length += count;
  }

  /** A copy that stays. */
  take(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.length));
  }
}

// data plane: ranges of bytes, always (bytes, start, end) with `end` exclusive

/** Order of two byte ranges as etcd and memcmp have it: negative, zero or positive. */
export function compareBytes(
  left: Uint8Array,
  leftStart: number,
  leftEnd: number,
  right: Uint8Array,
  rightStart: number,
  rightEnd: number,
): number {
  const leftLength = leftEnd - leftStart;
  const rightLength = rightEnd - rightStart;
  const length = leftLength < rightLength ? leftLength : rightLength;
  for (let i = 0; i < length; i++) {
    const difference = left[leftStart + i]! - right[rightStart + i]!;
    if (difference !== 0) return difference;
  }
  return leftLength - rightLength;
}

/** Whether two byte ranges hold the same bytes. */
export function equalBytes(
  left: Uint8Array,
  leftStart: number,
  leftEnd: number,
  right: Uint8Array,
  rightStart: number,
  rightEnd: number,
): boolean {
  const length = leftEnd - leftStart;
  if (length !== rightEnd - rightStart) return false;
  // From the end: keys of one kind differ in their last bytes and agree in their first ones.
  for (let i = length - 1; i >= 0; i--) {
    if (left[leftStart + i] !== right[rightStart + i]) return false;
  }
  return true;
}

/** How many leading bytes two ranges have in common. */
export function commonPrefix(
  left: Uint8Array,
  leftStart: number,
  leftEnd: number,
  right: Uint8Array,
  rightStart: number,
  rightEnd: number,
): number {
  const leftLength = leftEnd - leftStart;
  const rightLength = rightEnd - rightStart;
  const length = leftLength < rightLength ? leftLength : rightLength;
  let i = 0;
  while (i < length && left[leftStart + i] === right[rightStart + i]) i++;
  return i;
}

const nativeCopy = Buffer.prototype.copy;

/** Copies a range to `target` at `offset`. The ranges do not overlap. */
export function copyBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  offset: number,
): void {
  if (end - start < 24) for (let i = start; i < end; i++) target[offset + i - start] = bytes[i]!;
  // Unlike `set`, it needs no view of the range, which would be an object. Any array will do.
  else nativeCopy.call(bytes, target, offset, start, end);
}

/**
 * A copy in memory of its own, for what is kept long. `Buffer.from` cuts copies of up to 32 KiB
 * from pools of 64 KiB, and each of them keeps its whole pool.
 */
export function ownBytes(bytes: Uint8Array, start: number, end: number): Buffer {
  const own = Buffer.allocUnsafeSlow(end - start);
  nativeCopy.call(bytes, own, 0, start, end);
  return own;
}

/** The same of a text. */
export function ownText(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): Buffer {
  const own = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding));
  own.write(text, encoding);
  return own;
}

/** Whether a range begins with the bytes of `prefix`. */
export function startsWith(
  bytes: Uint8Array,
  start: number,
  end: number,
  prefix: Uint8Array,
): boolean {
  if (end - start < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[start + i] !== prefix[i]) return false;
  return true;
}

/**
 * Reads a range as little-endian words, the last one filled up with zeros, and returns how many
 * there are: always one more than length / 4 rounded down. `words` has room for them.
 */
export function loadWords(
  bytes: Uint8Array,
  start: number,
  end: number,
  words: Int32Array,
): number {
  const wordsEnd = end - ((end - start) & 3);
  let count = 0;
  let at = start;
  for (; at < wordsEnd; at += 4) {
    words[count++] =
      bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  }
  let word = at < end ? bytes[at]! : 0;
  if (at + 1 < end) word |= bytes[at + 1]! << 8;
  if (at + 2 < end) word |= bytes[at + 2]! << 16;
  words[count] = word;
  return count + 1;
}

/**
 * A 32-bit hash, under a 64-bit secret, of `length` bytes that `loadWords` read; signed.
 *
 * HalfSipHash-1-3 (Aumasson and Bernstein; the variant that Linux uses for its hash tables): names
 * come from users, and without a secret anybody could choose a million that collide. A secret
 * that only starts a plain multiply-and-shift hash does not help: differences can be chosen that
 * cancel whatever it is.
 */
export function hashWords(
  seedLow: number,
  seedHigh: number,
  words: Int32Array,
  length: number,
): number {
  let v0 = seedLow | 0;
  let v1 = seedHigh | 0;
  let v2 = seedLow ^ 0x6c796765;
  let v3 = seedHigh ^ 0x74656462;
  const last = length >>> 2;
  // A round for each word, the length in the top byte of the last one, then three more.
  for (let index = 0; index < last + 4; index++) {
    let word = 0;
    if (index < last) word = words[index]!;
    else if (index === last) word = words[index]! | (length << 24);
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
    if (index === last) v2 ^= 0xff;
  }
  return v1 ^ v3;
}

/**
 * Writes a string as UTF-8 at `offset` and returns the offset after it.
 * The caller guarantees room: three bytes for each UTF-16 unit always suffice.
 */
export function writeText(target: Buffer, offset: number, text: string): number {
  const length = text.length;
  // Crossing into native code costs more than a short ASCII loop.
  if (length > 64) return offset + target.write(text, offset);
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return offset + target.write(text, offset);
    target[offset + i] = unit;
  }
  return offset + length;
}

/** Reads a range as a string: Latin-1 where all is ASCII (the fast path), UTF-8 otherwise. */
export function readText(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i++) {
    if (bytes[i]! > 0x7f) return bytes.toString('utf8', start, end);
  }
  return bytes.toString('latin1', start, end);
}

/** A view of the same memory as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const HEX_DIGITS = '0123456789abcdef';

/** Lower-case hexadecimal digits of a range, two for each byte. */
export function toHex(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) {
    text += HEX_DIGITS[bytes[i]! >>> 4]! + HEX_DIGITS[bytes[i]! & 15]!;
  }
  return text;
}

/** The bytes that a string of hexadecimal digits spells; undefined where it spells none. */
export function fromHex(text: string): Buffer | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  return Buffer.from(text, 'hex');
}

// data plane: UUIDs in 16 bytes
/** UIDs of objects as columns: sixteen bytes instead of a string of 36 characters. */
import { Uint32Column } from '@megaplane/base/column';

const WORDS = 4;
const DASH = 0x2d;
const TEXT_LENGTH = 36;
const HEX: Uint8Array = new TextEncoder().encode('0123456789abcdef');
/** Two bytes as four digits. */
const DIGITS: readonly string[] = Array.from({ length: 65_536 }, (_, value) =>
  value.toString(16).padStart(4, '0'),
);

export class UidColumn {
  readonly #words: readonly Uint32Column[] = Array.from(
    { length: WORDS },
    () => new Uint32Column(),
  );
  /** UIDs of another form, which an API server may give out: kept as they are. */
  readonly #odd: Map<number, string> = new Map();

  /** Takes the UID in `bytes[start..end)`. */
  set(id: number, bytes: Uint8Array, start: number, end: number): void {
    this.#odd.delete(id);
    if (end - start !== TEXT_LENGTH || !this.#pack(id, bytes, start)) {
      this.#odd.set(id, start < 0 ? '' : Buffer.from(bytes.subarray(start, end)).toString('utf8'));
    }
  }

  /** The UID as text. */
  text(id: number): string {
    const odd = this.#odd.get(id);
    if (odd !== undefined) return odd;
    const words = this.#words;
    const a = words[0]!.get(id);
    const b = words[1]!.get(id);
    const c = words[2]!.get(id);
    const d = words[3]!.get(id);
    return (
      `${DIGITS[a >>> 16]}${DIGITS[a & 0xffff]}-${DIGITS[b >>> 16]}-${DIGITS[b & 0xffff]}-` +
      `${DIGITS[c >>> 16]}-${DIGITS[c & 0xffff]}${DIGITS[d >>> 16]}${DIGITS[d & 0xffff]}`
    );
  }

  /** Writes the UID's 36 characters at `at`; false where it is of another form. */
  write(id: number, bytes: Uint8Array, at: number): boolean {
    if (this.#odd.size > 0 && this.#odd.has(id)) return false;
    const words = this.#words;
    const b = words[1]!.get(id);
    const c = words[2]!.get(id);
    const d = words[3]!.get(id);
    const end = writeHalf(bytes, writeWord(bytes, at, words[0]!.get(id)) + 1, b >>> 16);
    const last = writeHalf(bytes, writeHalf(bytes, end + 1, b & 0xffff) + 1, c >>> 16) + 1;
    writeWord(bytes, writeHalf(bytes, last, c & 0xffff), d);
    bytes[at + 8] = DASH;
    bytes[at + 13] = DASH;
    bytes[at + 18] = DASH;
    bytes[at + 23] = DASH;
    return true;
  }

  #pack(id: number, bytes: Uint8Array, start: number): boolean {
    let digits = 0;
    let word = 0;
    for (let at = 0; at < TEXT_LENGTH; at++) {
      const byte = bytes[start + at]!;
      if (at === 8 || at === 13 || at === 18 || at === 23) {
        if (byte !== DASH) return false;
        continue;
      }
      const digit = hexDigit(byte);
      if (digit < 0) return false;
      word = ((word << 4) | digit) >>> 0;
      if ((++digits & 7) === 0) this.#words[(digits >>> 3) - 1]!.set(id, word);
    }
    return true;
  }
}

/** Returns where it ends. */
function writeWord(bytes: Uint8Array, at: number, word: number): number {
  return writeHalf(bytes, writeHalf(bytes, at, word >>> 16), word & 0xffff);
}

function writeHalf(bytes: Uint8Array, at: number, half: number): number {
  bytes[at] = HEX[half >>> 12]!;
  bytes[at + 1] = HEX[(half >>> 8) & 15]!;
  bytes[at + 2] = HEX[(half >>> 4) & 15]!;
  bytes[at + 3] = HEX[half & 15]!;
  return at + 4;
}

/** Lower case only: what the API server writes, and what `text` gives back. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
}

// data plane
/**
 * The Huffman code of RFC 7541 appendix B.
 *
 * The code is canonical: codes of one length are consecutive and ordered by symbol, so the lengths
 * alone define it. Decoding looks up the next ten bits, which settles every printable character
 * but a dozen; longer codes go bit by bit through the canonical tables.
 */

/** Lengths in bits of symbols 0..255 and EOS, in base 36. */
const LENGTHS: string =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6cad677777777777777777777' +
  '77878djde6f56565666577666567655677777fbedskmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmo' +
  'lmnnllmlnmnnkmmmnmmnqqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrqu';
const EOS = 256;
const LOOKUP_BITS = 10;
const CODE_BITS_MAX = 30;

/** Symbol -> code, right-aligned, and its length. */
const codes = new Uint32Array(257);
const lengths = new Uint8Array(257);
/** Per length: first code, number of codes, index of its first symbol in `ordered`. */
const firstCode = new Uint32Array(CODE_BITS_MAX + 2);
const codeCount = new Uint32Array(CODE_BITS_MAX + 2);
const firstIndex = new Uint32Array(CODE_BITS_MAX + 2);
const ordered = new Uint16Array(257);
/** Next ten bits -> symbol << 4 | length; 0 where the code is longer. */
const lookup = new Uint16Array(1 << LOOKUP_BITS);

buildTables();

function buildTables(): void {
  for (let symbol = 0; symbol <= EOS; symbol++) {
    lengths[symbol] = Number.parseInt(LENGTHS.charAt(symbol), 36);
  }
  let code = 0;
  let index = 0;
  for (let length = 1; length <= CODE_BITS_MAX; length++) {
    code = (code * 2) >>> 0;
    firstCode[length] = code;
    firstIndex[length] = index;
    for (let symbol = 0; symbol <= EOS; symbol++) {
      if (lengths[symbol] !== length) continue;
      codes[symbol] = code;
      ordered[index++] = symbol;
      if (length <= LOOKUP_BITS) {
        const spread = LOOKUP_BITS - length;
        const entry = (symbol << 4) | length;
        lookup.fill(entry, code << spread, (code + 1) << spread);
      }
      code++;
    }
    codeCount[length] = index - firstIndex[length]!;
  }
}

/**
 * Decodes `bytes[start..end)` into `out` from `at` on; returns the offset after the last octet, or
 * -1 where RFC 7541 5.2 demands an error: EOS inside, padding of 8 bits or more, padding that is
 * not a prefix of EOS. `out` must have room for 8/5 of the input.
 */
export function huffmanDecode(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
): number {
  let bits = 0;
  let count = 0;
  let next = start;
  for (;;) {
    while (count <= 16 && next < end) {
      bits = (bits << 8) | bytes[next++]!;
      count += 8;
    }
    if (count < 8 && next === end) {
      // What is left is padding if it is all ones: no symbol of 7 bits or fewer is.
      const ones = (1 << count) - 1;
      if ((bits & ones) === ones) return at;
    }
    const index =
      count >= LOOKUP_BITS
        ? (bits >>> (count - LOOKUP_BITS)) & 1023
        : ((bits << (LOOKUP_BITS - count)) | ((1 << (LOOKUP_BITS - count)) - 1)) & 1023;
    const entry = lookup[index]!;
    const length = entry & 15;
    if (entry !== 0) {
      if (length > count) return -1;
      out[at++] = entry >>> 4;
      count -= length;
      continue;
    }
    const position = next * 8 - count;
    const found = decodeLong(bytes, position, end * 8);
    if (found < 0) return -1;
    out[at++] = found & 0xff;
    const after = position + (found >>> 8);
    next = (after + 7) >>> 3;
    count = next * 8 - after;
    bits = count === 0 ? 0 : bytes[next - 1]!;
  }
}

/** One symbol from the bit `position` on, as length << 8 | symbol, or -1. */
function decodeLong(bytes: Uint8Array, position: number, endBit: number): number {
  let code = 0;
  for (let length = 1; length <= CODE_BITS_MAX && position < endBit; length++, position++) {
    code = ((code << 1) | ((bytes[position >>> 3]! >>> (7 - (position & 7))) & 1)) >>> 0;
    const rank = code - firstCode[length]!;
    if (rank >= 0 && rank < codeCount[length]!) {
      const symbol = ordered[firstIndex[length]! + rank]!;
      return symbol === EOS ? -1 : (length << 8) | symbol;
    }
  }
  return -1;
}

/** Octets that `bytes[start..end)` takes when encoded. */
export function huffmanLength(bytes: Uint8Array, start: number, end: number): number {
  let bits = 0;
  for (let i = start; i < end; i++) bits += lengths[bytes[i]!]!;
  return (bits + 7) >>> 3;
}

/** Encodes `bytes[start..end)` into `out` from `at` on; returns the offset after it. */
export function huffmanEncode(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
): number {
  let bits = 0;
  let count = 0;
  for (let i = start; i < end; i++) {
    const symbol = bytes[i]!;
    let length = lengths[symbol]!;
    const code = codes[symbol]!;
    // Codes have up to 30 bits and `bits` 32: give long ones in two parts.
    if (length > 16) {
      length -= 16;
      bits = (bits << length) | (code >>> 16);
      count += length;
      while (count >= 8) out[at++] = bits >>> (count -= 8);
      length = 16;
    }
    bits = (bits << length) | (code & 0xffff);
    count += length;
    while (count >= 8) out[at++] = bits >>> (count -= 8);
  }
  if (count > 0) out[at++] = (bits << (8 - count)) | ((1 << (8 - count)) - 1);
  return at;
}

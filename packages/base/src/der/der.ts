/**
 * DER (X.690) as far as a certificate needs it: a value is a tag, a length and its content, and
 * each function here returns one finished value.
 */

const ENCODER = new TextEncoder();

/** One tag-length-value. Lengths up to 2^24 are written, which no certificate reaches. */
export function tlv(tag: number, ...content: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of content) length += part.length;
  const head = lengthBytes(length);
  const out = new Uint8Array(1 + head.length + length);
  out[0] = tag;
  out.set(head, 1);
  let offset = 1 + head.length;
  for (const part of content) {
    out.set(part, offset);
    offset += part.length;
  }
  return out;
}

function lengthBytes(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  if (length < 0x100) return Uint8Array.of(0x81, length);
  if (length < 0x10000) return Uint8Array.of(0x82, length >>> 8, length & 0xff);
  return Uint8Array.of(0x83, length >>> 16, (length >>> 8) & 0xff, length & 0xff);
}

/** SEQUENCE. */
export function sequence(...items: readonly Uint8Array[]): Uint8Array {
  return tlv(0x30, ...items);
}

/** SET; the caller gives the members in DER order (one member needs none). */
export function set(...items: readonly Uint8Array[]): Uint8Array {
  return tlv(0x31, ...items);
}

/** INTEGER from big-endian magnitude bytes, kept positive by a leading zero where needed. */
export function unsigned(magnitude: Uint8Array): Uint8Array {
  let start = 0;
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++;
  const body = magnitude.subarray(start);
  const first = body[0] ?? 0;
  return first >= 0x80 ? tlv(0x02, Uint8Array.of(0), body) : tlv(0x02, body);
}

/** BOOLEAN TRUE; DER never writes a FALSE that is the default. */
export function truth(): Uint8Array {
  return Uint8Array.of(0x01, 0x01, 0xff);
}

/** OBJECT IDENTIFIER from its dotted form. */
export function objectId(dotted: string): Uint8Array {
  const numbers = dotted.split('.').map(Number);
  const [first = 0, second = 0, ...rest] = numbers;
  const bytes: number[] = [first * 40 + second];
  for (const number of rest) {
    const groups = [number & 0x7f];
    for (let left = number >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Uint8Array.from(bytes));
}

/** UTF8String. */
export function utf8(text: string): Uint8Array {
  return tlv(0x0c, ENCODER.encode(text));
}

/** OCTET STRING. */
export function octets(content: Uint8Array): Uint8Array {
  return tlv(0x04, content);
}

/** BIT STRING with `unusedBits` bits of padding at its end. */
export function bits(content: Uint8Array, unusedBits = 0): Uint8Array {
  return tlv(0x03, Uint8Array.of(unusedBits), content);
}

/** Context-specific tag `[n]`, constructed. */
export function tagged(n: number, ...content: readonly Uint8Array[]): Uint8Array {
  return tlv(0xa0 | n, ...content);
}

/** Context-specific tag `[n]`, primitive: an implicit type's bare content. */
export function implicit(n: number, content: Uint8Array): Uint8Array {
  return tlv(0x80 | n, content);
}

/**
 * A time of a certificate: UTCTime up to 2049, GeneralizedTime from 2050 (RFC 5280, 4.1.2.5).
 */
export function time(ms: number): Uint8Array {
  const iso = new Date(ms).toISOString();
  const year = Number(iso.slice(0, 4));
  const digits = iso.slice(0, 19).replaceAll(/[-:T]/g, '');
  return year < 2050
    ? tlv(0x17, ENCODER.encode(`${digits.slice(2)}Z`))
    : tlv(0x18, ENCODER.encode(`${digits}Z`));
}

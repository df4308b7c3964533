/** Reads DER (X.690) that somebody else wrote: every length is checked before it is believed. */

/** One value: its tag, where its content lies, and where the value as a whole begins and ends. */
export interface DerValue {
  readonly tag: number;
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

/** Values nest as deep as certificates do; what is deeper is refused. */
const DEPTH_MAX = 32;

/** The value at an offset within `limit`, or undefined where there is none that fits. */
export function derAt(bytes: Uint8Array, at: number, limit: number): DerValue | undefined {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined || at + 2 > limit) return undefined;
  // Tags beyond 30 are written in several bytes, and stand in nothing that is read here.
  if ((tag & 0x1f) === 0x1f) return undefined;
  if (first < 0x80) return whole(tag, at, at + 2, first, limit);
  const count = first & 0x7f;
  if (count === 0 || count > 3 || at + 2 + count > limit) return undefined;
  let length = 0;
  for (let i = 0; i < count; i++) length = length * 256 + (bytes[at + 2 + i] ?? 0);
  // DER writes each length in the shortest way.
  if (length < 0x80 || length < 256 ** (count - 1)) return undefined;
  return whole(tag, at, at + 2 + count, length, limit);
}

function whole(
  tag: number,
  at: number,
  start: number,
  length: number,
  limit: number,
): DerValue | undefined {
  return start + length <= limit ? { tag, at, start, end: start + length } : undefined;
}

/** The values inside a constructed one; undefined where its content is not made of values. */
export function derChildren(bytes: Uint8Array, value: DerValue): DerValue[] | undefined {
  const found: DerValue[] = [];
  for (let at = value.start; at < value.end;) {
    const next = derAt(bytes, at, value.end);
    if (next === undefined) return undefined;
    found.push(next);
    at = next.end;
  }
  return found;
}

/** True where the bytes are one value, and every constructed value in it is sound. */
export function isDer(bytes: Uint8Array): boolean {
  const value = derAt(bytes, 0, bytes.length);
  return value !== undefined && value.end === bytes.length && isSound(bytes, value, 0);
}

function isSound(bytes: Uint8Array, value: DerValue, depth: number): boolean {
  if ((value.tag & 0x20) === 0) return true;
  if (depth >= DEPTH_MAX) return false;
  return derChildren(bytes, value)?.every((one) => isSound(bytes, one, depth + 1)) === true;
}

/** The dotted form of an OBJECT IDENTIFIER; '' where it is none. */
export function objectIdAt(bytes: Uint8Array, { tag, start, end }: DerValue): string {
  if (tag !== 0x06 || end === start) return '';
  const numbers: number[] = [];
  let number = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    number = number * 128 + (byte & 0x7f);
    if ((byte & 0x80) !== 0) continue;
    if (numbers.length === 0) {
      const first = Math.min(2, Math.floor(number / 40));
      numbers.push(first, number - first * 40);
    } else numbers.push(number);
    number = 0;
  }
  return numbers.join('.');
}

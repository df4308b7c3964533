// data plane: values at rest, written as what they do not share with others in their arena
/**
 * Objects of one make differ in a name, an id and some times. A value that rests is written as
 * copies from values that lie before it in the same arena, and literals in between:
 *
 * ```
 *   u32  size of the value
 *        then, as often as needed: varint count of literals, the literals,
 *        varint count of bytes to copy, u24 where they lie in the arena
 * ```
 *
 * A copy comes from a value that lies whole in the arena, or from literals of a packed one: bytes
 * that stay until the arena is given back, whoever is garbage by then. So there is no dictionary
 * to keep, no count of who needs what, and what a client makes up costs what it did before.
 *
 * To find copies, each 16th place of such bytes is remembered by the hash of its next 8 bytes; a
 * place of the value that begins the same 8 bytes is followed as far as both agree, both ways.
 */

/** Larger values stay as they are: to read them in one go costs more than they would save. */
export const PACKED_VALUE_BYTES_MAX: number = 64 * 1024;
/** Smaller ones, too: a head and a key are most of such a record. */
const VALUE_BYTES_MIN = 128;
/** Bytes at the beginning that tell the size. */
const SIZE_BYTES = 4;
/** A shorter copy saves little and costs a step at each reading. */
const COPY_BYTES_MIN = 24;
/** A value that packs to less than one part in so many has a like of its own make. */
const WELL_PACKED_PARTS = 5;
/**
 * Bytes of an arena for values that are laid whole though they pack to some part: they are the
 * first of their make, of which the others are copies.
 */
const FIRSTS_BYTES_MAX: number = 1024 * 1024;
/** Copies and literals of one value: bounds what a reading takes. */
const STEPS_MAX = 64;
/** Shorter literals are ids and times, which nobody else has. */
const NOTED_LITERAL_BYTES_MIN = 96;
const NOTE_EVERY = 16;
const SLOT_BITS = 16;
/** Below, a loop is quicker than a call. */
const LOOP_BYTES_MAX = 24;
/** Places without a match after which fewer are looked at, as in what is encrypted. */
const PATIENCE_BITS = 7;

export class Packer {
  /** What `pack` wrote. */
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(PACKED_VALUE_BYTES_MAX);
  /** By hash: a place in the arena, and where the bytes around it begin and end. */
  readonly #places: Uint32Array = new Uint32Array(1 << SLOT_BITS);
  readonly #starts: Uint32Array = new Uint32Array(1 << SLOT_BITS);
  readonly #ends: Uint32Array = new Uint32Array(1 << SLOT_BITS);
  /** Pairs of (place in `bytes`, count): literals of the last value that others may copy. */
  readonly #literals: number[] = [];
  #size = 0;
  /** Of values that lie whole. */
  #firstsBytes = 0;

  /** From now on for another arena, of which nothing is known. */
  reset(): void {
    this.#places.fill(0);
    this.#firstsBytes = 0;
  }

  /**
   * Packs source[from, to) for the arena whose bytes are given. Returns the bytes that it takes,
   * which lie in `bytes`; 0 where the value is better laid whole: packing saves less than a
   * quarter, or it is the first of its make.
   */
  pack(source: Buffer, from: number, to: number, arena: Buffer): number {
    const size = to - from;
    if (size < VALUE_BYTES_MIN || size > PACKED_VALUE_BYTES_MAX) return 0;
    const places = this.#places;
    const hasRoom = this.#firstsBytes + size <= FIRSTS_BYTES_MAX;
    const sizeMax = hasRoom ? size / WELL_PACKED_PARTS : size - (size >> 2);
    this.#literals.length = 0;
    this.bytes.writeUInt32LE(size, 0);
    this.#size = SIZE_BYTES;
    let literalAt = from;
    let at = from;
    let misses = 0;
    let steps = 0;
    const last = to - 8;
    while (at <= last) {
      const slot = slotOf(source, at);
      const place = places[slot]!;
      const count = place === 0 ? 0 : alike(source, at, to, arena, place, this.#ends[slot]!);
      if (count >= 8) {
        const back = alikeBefore(source, at, literalAt, arena, place, this.#starts[slot]!);
        if (back + count >= COPY_BYTES_MIN) {
          const literals = at - back - literalAt;
          if (this.#size + literals + 8 > sizeMax || ++steps > STEPS_MAX) return 0;
          this.#write(source, literalAt, literals, back + count, place - back);
          at += count;
          literalAt = at;
          misses = 0;
          continue;
        }
      }
      at += 1 + (++misses >> PATIENCE_BITS);
    }
    if (this.#size + to - literalAt + 3 > sizeMax) return 0;
    if (to > literalAt) this.#write(source, literalAt, to - literalAt, 0, 0);
    return this.#size;
  }

  /** Literals and a copy; count 0: that was all. */
  #write(source: Buffer, at: number, literals: number, count: number, place: number): void {
    const out = this.bytes;
    let put = writeCount(out, this.#size, literals);
    if (literals >= NOTED_LITERAL_BYTES_MIN) this.#literals.push(put, literals);
    source.copy(out, put, at, at + literals);
    put += literals;
    if (count > 0) {
      put = writeCount(out, put, count);
      out[put++] = place & 0xff;
      out[put++] = (place >>> 8) & 0xff;
      out[put++] = place >>> 16;
    }
    this.#size = put;
  }

  /** The last value lies packed at a place of its arena: others may copy its literals. */
  noteLiterals(arena: Buffer, at: number): void {
    const literals = this.#literals;
    for (let i = 0; i < literals.length; i += 2) {
      this.#note(arena, at + literals[i]!, at + literals[i]! + literals[i + 1]!);
    }
  }

  /** A value lies whole in the arena. */
  noteWhole(arena: Buffer, from: number, to: number): void {
    this.#firstsBytes += to - from;
    if (to - from <= PACKED_VALUE_BYTES_MAX) this.#note(arena, from, to);
  }

  /** Bytes of the arena that stay as they are as long as it is used may be copied from. */
  #note(arena: Buffer, from: number, to: number): void {
    for (let at = from; at <= to - 8; at += NOTE_EVERY) {
      const slot = slotOf(arena, at);
      // Of what repeats itself the first place is the one with the longest copies.
      if (this.#places[slot] !== 0 && this.#starts[slot] === from) continue;
      this.#places[slot] = at;
      this.#starts[slot] = from;
      this.#ends[slot] = to;
    }
  }
}

/** The slot of the 8 bytes at a place. */
function slotOf(bytes: Buffer, at: number): number {
  const low = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  const high =
    bytes[at + 4]! | (bytes[at + 5]! << 8) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 24);
  return (Math.imul(low, 0x9e3779b1) ^ Math.imul(high, 0x85ebca77)) >>> (32 - SLOT_BITS);
}

/** How many bytes agree from two places on. */
function alike(
  source: Buffer,
  at: number,
  to: number,
  arena: Buffer,
  place: number,
  end: number,
): number {
  const most = Math.min(to - at, end - place);
  let count = 0;
  while (count < most && source[at + count] === arena[place + count]) count++;
  return count;
}

/** How many bytes agree before two places. */
function alikeBefore(
  source: Buffer,
  at: number,
  from: number,
  arena: Buffer,
  place: number,
  start: number,
): number {
  const most = Math.min(at - from, place - start);
  let count = 0;
  while (count < most && source[at - 1 - count] === arena[place - 1 - count]) count++;
  return count;
}

function writeCount(out: Buffer, at: number, count: number): number {
  let put = at;
  let rest = count;
  for (; rest >= 0x80; rest >>>= 7) out[put++] = (rest & 0x7f) | 0x80;
  out[put++] = rest;
  return put;
}

/** Where the count ended that was read last. */
let countEnd = 0;

function readCount(bytes: Buffer, from: number): number {
  let at = from;
  let byte = bytes[at++]!;
  let count = byte & 0x7f;
  for (let shift = 7; byte >= 0x80; shift += 7) {
    byte = bytes[at++]!;
    count |= (byte & 0x7f) << shift;
  }
  countEnd = at;
  return count;
}

/**
 * Writes the value that is packed in arena[from, to) into `out`, which has room for it. Returns
 * where it ends there.
 */
export function unpackValue(
  arena: Buffer,
  from: number,
  to: number,
  out: Buffer,
  outAt: number,
): number {
  let at = from + SIZE_BYTES;
  let put = outAt;
  while (at < to) {
    const literals = readCount(arena, at);
    at = countEnd;
    put = copyBytes(arena, at, literals, out, put);
    at += literals;
    if (at >= to) break;
    const count = readCount(arena, at);
    at = countEnd;
    const place = arena[at]! | (arena[at + 1]! << 8) | (arena[at + 2]! << 16);
    at += 3;
    put = copyBytes(arena, place, count, out, put);
  }
  return put;
}

function copyBytes(bytes: Buffer, at: number, count: number, out: Buffer, put: number): number {
  if (count > LOOP_BYTES_MAX) bytes.copy(out, put, at, at + count);
  else for (let i = 0; i < count; i++) out[put + i] = bytes[at + i]!;
  return put + count;
}

// data plane
/**
 * HPACK decoding (RFC 7541) of one whole header block into `[name, value, ...]`.
 *
 * A block must always be decoded to its end, whatever is wrong with the message, because the
 * dynamic table is shared with all later blocks; only a coding error is fatal to the connection.
 */
import { DynamicTable, STATIC_LENGTH, STATIC_NAMES, STATIC_VALUES } from './hpack-table.ts';
import { huffmanDecode } from './huffman.ts';
import { latin1Read } from '../latin1.ts';

const INTEGER_MAX = 0x0fff_ffff;

const IN_NAME = 1;
const IN_VALUE = 2;
const IN_TARGET = 4;
const TARGET = ':path';

/** 1: may stand in a field name (lower-case token); 2: in a value; 4: in a request's target. */
const CHARACTERS: Uint8Array = buildCharacters();
function buildCharacters(): Uint8Array {
  const table = new Uint8Array(256);
  // as Go's servers: no control character but the tab
  for (let c = 0; c < 256; c++) if (c === 9 || (c >= 32 && c !== 127)) table[c] = IN_VALUE;
  for (let c = 33; c < 256; c++) if (c !== 127) table[c]! |= IN_TARGET;
  for (const c of "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") {
    table[c.charCodeAt(0)]! |= IN_NAME;
  }
  return table;
}

/** Shared by all decoders: a block is decoded in one go. */
let scratch: Buffer = Buffer.allocUnsafeSlow(16_384);

export class HpackDecoder {
  readonly table: DynamicTable;
  /** The block's fields; a fresh array for each block. */
  fields: string[] = [];
  /** Octets of the fields as RFC 9113 6.5.2 counts them. */
  size = 0;
  /** A name or value was not valid in HTTP: the message is malformed (RFC 9113 8.2.1). */
  malformed = false;
  /** `size` passed the limit; the rest was decoded and dropped. */
  overflow = false;
  /** The block changed the dynamic table: the same octets would mean something else now. */
  changed = false;
  /**
   * Where the octets of the value of the varying field stand, if it is a literal; -1 if it comes
   * twice, 0 without it.
   */
  varyingAt = 0;
  varyingTo = 0;
  /** Name of the field that is expected to have another value in each block. */
  varying = '';
  /** Octets that SETTINGS_HEADER_TABLE_SIZE allows: as announced and acknowledged. */
  #tableBytesMax: number;
  /** A reduction was acknowledged: the next block must start with a size update. */
  #updateDue = false;
  readonly #headBytesMax: number;
  #at = 0;
  #integer = 0;
  #flawed = false;

  constructor(tableBytesMax: number, headBytesMax: number) {
    this.table = new DynamicTable(tableBytesMax);
    this.#tableBytesMax = tableBytesMax;
    this.#headBytesMax = headBytesMax;
  }

  /** The peer acknowledged our SETTINGS_HEADER_TABLE_SIZE. */
  acknowledgeTableSize(bytes: number): void {
    this.#tableBytesMax = bytes;
    this.#updateDue = this.table.sizeMax > bytes;
    // A block that was right before is wrong now without an update before it.
    if (this.#updateDue) this.table.epoch++;
  }

  /** Decodes the block `bytes[start..end)`. False: COMPRESSION_ERROR, the connection is lost. */
  decode(bytes: Buffer, start: number, end: number): boolean {
    this.fields = [];
    this.size = 0;
    this.malformed = false;
    this.overflow = false;
    this.changed = false;
    this.varyingAt = 0;
    this.#at = start;
    let updatesAllowed = true;
    while (this.#at < end) {
      const first = bytes[this.#at]!;
      if ((first & 0xe0) === 0x20) {
        if (!updatesAllowed || !this.#integerAt(bytes, end, 5)) return false;
        if (this.#integer > this.#tableBytesMax) return false;
        this.table.resize(this.#integer);
        this.changed = true;
        this.#updateDue = false;
        continue;
      }
      if (this.#updateDue) return false;
      updatesAllowed = false;
      if (first >= 0x80) {
        if (!this.#indexed(bytes, end)) return false;
      } else if (!this.#literal(bytes, end, first)) {
        return false;
      }
    }
    return true;
  }

  /**
   * The value whose octets are all of `bytes[start..end)`, of a block whose other fields have
   * `otherBytes`; null where it is none, may not stand in a message, or makes the head too large.
   */
  wholeValue(bytes: Buffer, start: number, end: number, otherBytes: number): string | null {
    this.#at = start;
    this.#flawed = false;
    const value = this.#stringAt(bytes, end, this.varying === TARGET ? IN_TARGET : IN_VALUE);
    if (value === null || this.#at !== end || this.#flawed) return null;
    return otherBytes + value.length > this.#headBytesMax ? null : value;
  }

  /** The same where nobody wants to know the value: whether there is one. */
  hasWholeValue(bytes: Buffer, start: number, end: number, otherBytes: number): boolean {
    if (bytes[start]! >= 128) return this.wholeValue(bytes, start, end, otherBytes) !== null;
    this.#at = start;
    this.#flawed = false;
    if (!this.#integerAt(bytes, end, 7) || this.#at + this.#integer !== end) return false;
    this.#check(bytes, this.#at, end, this.varying === TARGET ? IN_TARGET : IN_VALUE);
    return !this.#flawed && otherBytes + this.#integer <= this.#headBytesMax;
  }

  #indexed(bytes: Buffer, end: number): boolean {
    if (!this.#integerAt(bytes, end, 7)) return false;
    const index = this.#integer;
    if (index <= STATIC_LENGTH) {
      if (index === 0) return false;
      this.#push(STATIC_NAMES[index]!, STATIC_VALUES[index]!, false);
      return true;
    }
    const dynamic = index - STATIC_LENGTH;
    if (dynamic > this.table.count) return false;
    const table = this.table;
    this.#push(table.name(dynamic), table.value(dynamic), table.flawed(dynamic));
    return true;
  }

  #literal(bytes: Buffer, end: number, first: number): boolean {
    const indexing = (first & 0x40) !== 0;
    if (!this.#integerAt(bytes, end, indexing ? 6 : 4)) return false;
    const index = this.#integer;
    this.#flawed = false;
    let name: string | null;
    if (index === 0) {
      name = this.#stringAt(bytes, end, IN_NAME);
      if (name === null) return false;
    } else if (index <= STATIC_LENGTH) {
      name = STATIC_NAMES[index]!;
    } else {
      if (index - STATIC_LENGTH > this.table.count) return false;
      name = this.table.name(index - STATIC_LENGTH);
      this.#flawed = this.table.flawed(index - STATIC_LENGTH);
    }
    const valueAt = this.#at;
    const value = this.#stringAt(bytes, end, name === TARGET ? IN_TARGET : IN_VALUE);
    if (value === null) return false;
    if (name === this.varying) {
      this.varyingAt = this.varyingAt === 0 ? valueAt : -1;
      this.varyingTo = this.#at;
    }
    if (indexing) {
      this.changed = true;
      this.table.insert(name, value, this.#flawed);
    }
    this.#push(name, value, this.#flawed);
    return true;
  }

  #push(name: string, value: string, flawed: boolean): void {
    this.size += name.length + value.length + 32;
    if (flawed) this.malformed = true;
    if (this.size > this.#headBytesMax) this.overflow = true;
    else this.fields.push(name, value);
  }

  /** Reads an integer with a prefix of `bits` into `#integer` (RFC 7541 5.1). */
  #integerAt(bytes: Buffer, end: number, bits: number): boolean {
    const mask = (1 << bits) - 1;
    let value = bytes[this.#at++]! & mask;
    if (value === mask) {
      let shift = 0;
      let octet: number;
      do {
        if (this.#at >= end || shift > 28) return false;
        octet = bytes[this.#at++]!;
        value += (octet & 127) * 2 ** shift;
        shift += 7;
      } while (octet >= 128);
      if (value > INTEGER_MAX) return false;
    }
    this.#integer = value;
    return true;
  }

  #stringAt(bytes: Buffer, end: number, kind: number): string | null {
    if (this.#at >= end) return null;
    const huffman = bytes[this.#at]! >= 128;
    if (!this.#integerAt(bytes, end, 7)) return null;
    const start = this.#at;
    const stop = start + this.#integer;
    if (stop > end) return null;
    this.#at = stop;
    if (!huffman) {
      this.#check(bytes, start, stop, kind);
      return latin1Read(bytes, start, stop);
    }
    if ((stop - start) * 1.6 > scratch.length) {
      scratch = Buffer.allocUnsafeSlow(Math.ceil((stop - start) * 2));
    }
    const length = huffmanDecode(bytes, start, stop, scratch, 0);
    if (length < 0) return null;
    this.#check(scratch, 0, length, kind);
    return latin1Read(scratch, 0, length);
  }

  /** Marks the entry as flawed if RFC 9113 8.2.1 forbids it. */
  #check(bytes: Buffer, start: number, end: number, kind: number): void {
    let all = kind;
    // A pseudo-field's colon may only lead; which ones are known is decided where they are used.
    const from = kind === IN_NAME && bytes[start] === 58 ? start + 1 : start;
    for (let i = from; i < end; i++) all &= CHARACTERS[bytes[i]!]!;
    if (all === 0 || (kind === IN_NAME && from === end)) this.#flawed = true;
    if (kind === IN_VALUE && end > start) {
      const first = bytes[start]!;
      const last = bytes[end - 1]!;
      if (first === 32 || first === 9 || last === 32 || last === 9) this.#flawed = true;
    }
  }
}

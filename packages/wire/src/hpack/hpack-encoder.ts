// data plane
/**
 * HPACK encoding (RFC 7541), in two ways.
 *
 * Servers write blocks that never touch the dynamic table (`writeField`, `writeStatus`): their
 * answers may then be produced in any order, and constant ones are prepared once. Clients send the
 * same fields again and again: `HpackEncoder` indexes them.
 */
import { DynamicTable, STATIC_BY_FIELD, STATIC_BY_NAME, STATIC_LENGTH } from './hpack-table.ts';
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { latin1Write } from '../latin1.ts';
import type { FieldList } from '../fields.ts';

/** Writes an integer with a prefix of `bits` under the pattern `head` (RFC 7541 5.1). */
export function writeInteger(
  out: Uint8Array,
  at: number,
  head: number,
  bits: number,
  value: number,
): number {
  const mask = (1 << bits) - 1;
  if (value < mask) {
    out[at++] = head | value;
    return at;
  }
  out[at++] = head | mask;
  let rest = value - mask;
  while (rest >= 128) {
    out[at++] = (rest & 127) | 128;
    rest = Math.floor(rest / 128);
  }
  out[at++] = rest;
  return at;
}

/** Octets that a literal of `name` and `value` takes at most. */
export function fieldBytesMax(name: string, value: string): number {
  return name.length + value.length + 16;
}

/** Writes a literal without indexing and without Huffman; latin1, as HTTP has it. */
export function writeField(out: Buffer, at: number, name: string, value: string): number {
  const index = STATIC_BY_NAME.get(name);
  if (index === undefined) {
    out[at++] = 0;
    at = writeText(out, at, name);
  } else {
    at = writeInteger(out, at, 0, 4, index);
  }
  return writeText(out, at, value);
}

function writeText(out: Buffer, at: number, text: string): number {
  at = writeInteger(out, at, 0, 7, text.length);
  return latin1Write(out, at, sendable(text));
}

/** What no field holds (RFC 9113, 8.2.1): its low byte alone could be the end of a line. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;
const ALL_UNSENDABLE = new RegExp(UNSENDABLE.source, 'g');

/** The text, of the same length, with a question mark for each character that may not be sent. */
function sendable(text: string): string {
  return UNSENDABLE.test(text) ? text.replaceAll(ALL_UNSENDABLE, '?') : text;
}

/** Writes `:status`. */
export function writeStatus(out: Buffer, at: number, status: number): number {
  switch (status) {
    case 200:
      out[at] = 0x88;
      return at + 1;
    case 204:
      out[at] = 0x89;
      return at + 1;
    case 304:
      out[at] = 0x8b;
      return at + 1;
    case 400:
      out[at] = 0x8c;
      return at + 1;
    case 404:
      out[at] = 0x8d;
      return at + 1;
    case 500:
      out[at] = 0x8e;
      return at + 1;
    default:
      out[at] = 0x08;
      out[at + 1] = 3;
      out[at + 2] = 48 + Math.floor(status / 100);
      out[at + 3] = 48 + (Math.floor(status / 10) % 10);
      out[at + 4] = 48 + (status % 10);
      return at + 5;
  }
}

let scratch: Buffer = Buffer.allocUnsafeSlow(4096);

/** An encoder with a dynamic table; its blocks must be sent in the order they were made. */
export class HpackEncoder {
  readonly table: DynamicTable;
  /** Field -> `inserted` number of its entry, counted from 1. */
  readonly #entries = new Map<string, number>();
  readonly #sizeMax: number;
  #updateDue = false;
  /** Least size since the last block: a shrink must be told even if it grew again (4.2). */
  #sizeLeast: number;

  /** `sizeMax` is the most octets that this side will use, whatever the peer allows. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
    this.#sizeLeast = Math.min(sizeMax, 4096);
    this.table = new DynamicTable(this.#sizeLeast);
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  setPeerMax(bytes: number): void {
    const size = Math.min(bytes, this.#sizeMax);
    if (size === this.table.sizeMax) return;
    this.#sizeLeast = Math.min(this.#sizeLeast, size);
    this.#updateDue = true;
    this.table.resize(size);
  }

  /** Must be called first in every block. */
  begin(out: Buffer, at: number): number {
    if (!this.#updateDue) return at;
    this.#updateDue = false;
    if (this.#sizeLeast < this.table.sizeMax) {
      at = writeInteger(out, at, 0x20, 5, this.#sizeLeast);
    }
    this.#sizeLeast = this.table.sizeMax;
    return writeInteger(out, at, 0x20, 5, this.table.sizeMax);
  }

  /** Writes a field: indexed if the table has it, else as a literal that enters it. */
  write(out: Buffer, at: number, name: string, value: string): number {
    const key = `${name}\0${value}`;
    const fixed = STATIC_BY_FIELD.get(key);
    if (fixed !== undefined) return writeInteger(out, at, 0x80, 7, fixed);
    const number = this.#entries.get(key);
    if (number !== undefined) {
      const index = this.table.inserted - number + 1;
      if (index <= this.table.count) return writeInteger(out, at, 0x80, 7, STATIC_LENGTH + index);
    }
    const fits = name.length + value.length + 32 <= this.table.sizeMax;
    at = this.#name(out, at, name, fits ? 0x40 : 0, fits ? 6 : 4);
    at = writeCoded(out, at, value);
    if (!fits) return at;
    this.table.insert(name, value, false);
    this.#entries.set(key, this.table.inserted);
    if (this.#entries.size > 1024) this.#forgetEvicted();
    return at;
  }

  /**
   * Writes a field that will not come again (`:path`), or must not be indexed (`never`). Without
   * Huffman: coding and decoding take both ends longer than the octets it saves take to travel.
   */
  writeOnce(out: Buffer, at: number, name: string, value: string, never: boolean): number {
    return writeText(out, this.#name(out, at, name, never ? 0x10 : 0, 4), value);
  }

  #name(out: Buffer, at: number, name: string, head: number, bits: number): number {
    const index = STATIC_BY_NAME.get(name);
    if (index !== undefined) return writeInteger(out, at, head, bits, index);
    out[at++] = head;
    return writeCoded(out, at, name);
  }

  #forgetEvicted(): void {
    const oldest = this.table.inserted - this.table.count;
    for (const [key, number] of this.#entries) if (number <= oldest) this.#entries.delete(key);
  }
}

/** Writes a string, Huffman coded where that is shorter. */
function writeCoded(out: Buffer, at: number, text: string): number {
  const length = text.length;
  if (length > scratch.length) scratch = Buffer.allocUnsafeSlow(length * 2);
  latin1Write(scratch, 0, sendable(text));
  const coded = huffmanLength(scratch, 0, length);
  if (coded < length) {
    at = writeInteger(out, at, 0x80, 7, coded);
    return huffmanEncode(scratch, 0, length, out, at);
  }
  at = writeInteger(out, at, 0, 7, length);
  scratch.copy(out, at, 0, length);
  return at + length;
}

/** Fields as a block of literals. */
export function fieldBlock(fields: FieldList): Buffer {
  let bytesMax = 0;
  for (let i = 0; i < fields.length; i += 2) bytesMax += fieldBytesMax(fields[i]!, fields[i + 1]!);
  const block = Buffer.allocUnsafe(bytesMax);
  let at = 0;
  for (let i = 0; i < fields.length; i += 2) at = writeField(block, at, fields[i]!, fields[i + 1]!);
  return block.subarray(0, at);
}

// data plane
/**
 * A protobuf message to JSON text without a JavaScript object between: `transcode.ts` the other
 * way round, for bodies that are compared with what is stored rather than looked into.
 *
 * Each message is read into a row, which tells where its fields' values lie; then the fields are
 * written in the order of JSON, messages inside by the same way. Items are chains, first one first:
 *
 *     row      [ start, end ] x fields         of lists and maps: [ first item, last item ]
 *     item     next, start, end
 *
 * 0 is none: a value begins behind its tag. Only what encoders write is known here; anything else
 * (fields that the type does not have, text beyond ASCII, a field twice) is given up, and the slow
 * way decides what to make of it.
 */

import { skipValue } from '../json/scan.ts';
import {
  TEXT_AROUND,
  TEXT_BOOL,
  TEXT_INT,
  TEXT_INT_OR_STRING,
  TEXT_LIST,
  TEXT_MAP,
  TEXT_MICRO_TIME,
  TEXT_OBJECT,
  TEXT_ONE,
  TEXT_QUANTITY,
  TEXT_RAW,
  TEXT_STRING,
  type TextField,
  type TextNumbers,
  type TextPlan,
} from './message-plans.ts';
import { formatMicroTime, formatTime } from '../meta/times.ts';

const BYTES = 2;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
/** Longer messages go the slow way, which is not slow for what it does to them. */
const MESSAGE_BYTES_MAX = 16 * 1024;
/** A byte of a message is a field of no more text than this, its name included. */
const TEXT_BYTES_MAX: number = MESSAGE_BYTES_MAX * 8;
const TAPE_NUMBERS = 1 << 13;
const DEPTH_MAX = 20;

/** What stands behind a backslash for such a byte; 0: more than a letter. */
const ESCAPES = new Uint8Array(0x5d);
for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
] as const) {
  ESCAPES[byte] = letter.charCodeAt(0);
}

/** One message at a time; reuse it. */
export class MessageText {
  /** `[0, length)` is what was written. */
  readonly text: Buffer = Buffer.allocUnsafeSlow(TEXT_BYTES_MAX);
  length = 0;
  readonly #tape: Int32Array = new Int32Array(TAPE_NUMBERS);
  #top = 1;
  #bytes: Uint8Array = EMPTY;
  #at = 0;
  #isBad = false;

  /** Writes `head`, then all fields as members behind it, and a brace. False if it gave up. */
  write(plan: TextPlan, head: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
    this.length = 0;
    if (end - start > MESSAGE_BYTES_MAX) return false;
    this.#top = 1;
    this.#bytes = bytes;
    this.#isBad = false;
    this.#append(head);
    this.#members(plan, start, end, 0);
    this.text[this.length++] = BRACE_CLOSE;
    return !this.#isBad;
  }

  #bad(): number {
    this.#isBad = true;
    return 0;
  }

  #append(part: Uint8Array): void {
    const { text } = this;
    let at = this.length;
    if (at + part.length + 64 > TEXT_BYTES_MAX) return void this.#bad();
    for (let index = 0; index < part.length; index++) text[at++] = part[index]!;
    this.length = at;
  }

  #ascii(part: string): void {
    const { text } = this;
    let at = this.length;
    for (let index = 0; index < part.length; index++) text[at++] = part.charCodeAt(index);
    this.length = at;
  }

  /** Room for `count` more numbers, zeroed; gives their first index. */
  #take(count: number): number {
    const first = this.#top;
    if (first + count > TAPE_NUMBERS) return this.#bad();
    this.#top += count;
    for (let at = first; at < this.#top; at++) this.#tape[at] = 0;
    return first;
  }

  /** Members of a message, each with a comma before it. */
  #members(plan: TextPlan, start: number, end: number, depth: number): void {
    const top = this.#top;
    const row = this.#take(2 * plan.fields.length);
    if (depth > DEPTH_MAX) this.#isBad = true;
    if (!this.#isBad) this.#read(plan.byNumber, row, start, end);
    for (let index = 0; index < plan.fields.length && !this.#isBad; index++) {
      const field = plan.fields[index]!;
      const first = this.#tape[row + 2 * index]!;
      if (first === 0) {
        if (field.absent.length > 0) this.#append(field.absent);
      } else this.#field(field, first, this.#tape[row + 2 * index + 1]!, depth);
    }
    this.#top = top;
  }

  /** Notes in `row` where the fields' values lie. */
  #read(byNumber: TextNumbers, row: number, start: number, end: number): void {
    const bytes = this.#bytes;
    this.#at = start;
    while (this.#at < end) {
      // nearly all tags and lengths are a byte each
      const byte = bytes[this.#at]!;
      const tag = byte < 0x80 ? byte : this.#varint(end);
      if (byte < 0x80) this.#at++;
      const field = byNumber[tag >>> 3];
      if (field === undefined || (tag & 7) !== field.wireType) return void this.#bad();
      let from = this.#at;
      const size = this.#varint(end);
      if (field.wireType === BYTES) {
        from = this.#at;
        this.#at += size;
      }
      if (this.#isBad || this.#at > end) return void this.#bad();
      if (field.form === TEXT_ONE) this.#noteOne(row + 2 * field.slot, from);
      else if (field.form === TEXT_AROUND) this.#read(field.inside, row, from, this.#at);
      else this.#noteItem(row + 2 * field.slot, from);
    }
  }

  #noteOne(place: number, from: number): void {
    if (this.#tape[place] !== 0) return void this.#bad();
    this.#tape[place] = from;
    this.#tape[place + 1] = this.#at;
  }

  #noteItem(place: number, from: number): void {
    const tape = this.#tape;
    const item = this.#take(3);
    tape[item + 1] = from;
    tape[item + 2] = this.#at;
    if (tape[place] === 0) tape[place] = item;
    else tape[tape[place + 1]!] = item;
    tape[place + 1] = item;
  }

  /** A number below 2^53: nothing that stands here is greater, or negative. */
  #varint(end: number): number {
    const bytes = this.#bytes;
    if (this.#at < end && bytes[this.#at]! < 0x80) return bytes[this.#at++]!;
    let value = 0;
    let unit = 1;
    for (let count = 0; count < 7; count++) {
      if (this.#at >= end) return this.#bad();
      const byte = bytes[this.#at++]!;
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
      unit *= 128;
    }
    return this.#bad();
  }

  #field(field: TextField, first: number, last: number, depth: number): void {
    const before = this.length;
    this.#append(field.open);
    if (field.form === TEXT_LIST) this.#list(field, first, depth);
    else if (field.form === TEXT_MAP) this.#map(field, first);
    else if (!this.#value(field, first, last, depth)) this.length = before;
  }

  #list(field: TextField, first: number, depth: number): void {
    const { text } = this;
    const tape = this.#tape;
    text[this.length++] = BRACKET_OPEN;
    for (let item = first; item !== 0; item = tape[item]!) {
      if (item !== first) text[this.length++] = COMMA;
      this.#value(field, tape[item + 1]!, tape[item + 2]!, depth);
    }
    text[this.length++] = BRACKET_CLOSE;
  }

  #map(field: TextField, first: number): void {
    const { text } = this;
    const tape = this.#tape;
    text[this.length++] = BRACE_OPEN;
    for (let item = first; item !== 0; item = tape[item]!) {
      if (item !== first) text[this.length++] = COMMA;
      const end = tape[item + 2]!;
      this.#at = tape[item + 1]!;
      this.#part(0x0a, end, false);
      text[this.length++] = COLON;
      this.#part(0x12, end, field.op === TEXT_QUANTITY);
      if (this.#at !== end) return void this.#bad();
    }
    text[this.length++] = BRACE_CLOSE;
  }

  /** Key or value of a map's entry. */
  #part(tag: number, end: number, isQuantity: boolean): void {
    if (this.#varint(end) !== tag) return void this.#bad();
    const size = this.#varint(end);
    const from = this.#at;
    if (from + size > end) return void this.#bad();
    this.#at += size;
    const to = this.#at;
    if (isQuantity) this.#quantity(from, to);
    else this.#string(from, to);
    this.#at = to;
  }

  /** A message of one field, which is a text. */
  #quantity(start: number, end: number): void {
    this.#at = start;
    if (this.#varint(end) !== 0x0a) return void this.#bad();
    const size = this.#varint(end);
    const from = this.#at;
    // none at all is zero
    if (size === 0 || from + size !== end) return void this.#bad();
    this.#string(from, end);
  }

  /** A message of three fields: which of the two others counts, a number, a text. */
  #intOrString(start: number, end: number): void {
    this.#at = start;
    if (this.#varint(end) !== 0x08) return void this.#bad();
    const type = this.#varint(end);
    if (type > 1 || this.#varint(end) !== 0x10) return void this.#bad();
    const value = this.#varint(end);
    if (this.#varint(end) !== 0x1a) return void this.#bad();
    const size = this.#varint(end);
    const from = this.#at;
    if (from + size !== end) return void this.#bad();
    if (type === 0) this.#ascii(String(value));
    else this.#string(from, end);
  }

  /** False for a value that is left out where it stands for a field. */
  #value(field: TextField, start: number, end: number, depth: number): boolean {
    const { op } = field;
    const isZeroOut = field.omission === 'zero' && field.form === TEXT_ONE;
    if (op === TEXT_STRING) {
      this.#string(start, end);
      return end > start || !isZeroOut;
    }
    if (op === TEXT_INT || op === TEXT_BOOL) {
      this.#at = start;
      const value = this.#varint(end);
      this.#ascii(op === TEXT_INT ? String(value) : value === 0 ? 'false' : 'true');
      return value !== 0 || !isZeroOut;
    }
    if (op === TEXT_OBJECT) return this.#object(field, start, end, depth);
    if (op === TEXT_RAW) this.#raw(start, end);
    else if (op === TEXT_QUANTITY) this.#quantity(start, end);
    else if (op === TEXT_INT_OR_STRING) this.#intOrString(start, end);
    else if (start < end) this.#time(op === TEXT_MICRO_TIME, start, end);
    else {
      this.#ascii('null');
      return field.omission === 'kept';
    }
    return true;
  }

  #object(field: TextField, start: number, end: number, depth: number): boolean {
    const from = this.length;
    this.#members(field.plan!, start, end, depth + 1);
    const isEmpty = this.length === from;
    // the first member's comma is where the brace goes
    if (isEmpty) this.length++;
    this.text[from] = BRACE_OPEN;
    this.text[this.length++] = BRACE_CLOSE;
    return !isEmpty || field.omission !== 'void' || field.form !== TEXT_ONE;
  }

  #string(start: number, end: number): void {
    const { text } = this;
    const bytes = this.#bytes;
    let at = this.length;
    if (at + end - start + 64 > TEXT_BYTES_MAX) return void this.#bad();
    text[at++] = QUOTE;
    for (let from = start; from < end; from++) {
      const byte = bytes[from]!;
      if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) {
        const letter = ESCAPES[byte]!;
        if (letter === 0 || at + 2 * (end - from) + 64 > TEXT_BYTES_MAX) return void this.#bad();
        text[at++] = BACKSLASH;
        text[at++] = letter;
      } else if (byte > 0x7e) return void this.#bad();
      else text[at++] = byte;
    }
    text[at++] = QUOTE;
    this.length = at;
  }

  /** A message of two numbers: seconds and nanoseconds. */
  #time(isMicro: boolean, start: number, end: number): void {
    this.#at = start;
    let seconds = 0;
    let nanos = 0;
    while (this.#at < end && !this.#isBad) {
      const tag = this.#varint(end);
      const value = this.#varint(end);
      if (tag === 0x08) seconds = value;
      else if (tag === 0x10) nanos = value;
      else this.#bad();
    }
    this.text[this.length++] = QUOTE;
    this.#ascii(isMicro ? formatMicroTime(seconds, nanos) : formatTime(seconds));
    this.text[this.length++] = QUOTE;
  }

  /** A message of one field, which is JSON; if it is any, its readers have to find out. */
  #raw(start: number, end: number): void {
    const bytes = this.#bytes;
    this.#at = start;
    if (this.#varint(end) !== 0x0a) return void this.#bad();
    const size = this.#varint(end);
    const from = this.#at;
    if (from + size !== end || size === 0 || bytes[from] !== BRACE_OPEN) return void this.#bad();
    // one object and nothing behind it: it must not end the object around it
    if (skipValue(bytes, from, end) !== end) return void this.#bad();
    const { text } = this;
    let at = this.length;
    if (at + size + 64 > TEXT_BYTES_MAX) return void this.#bad();
    for (let index = from; index < end; index++) {
      const byte = bytes[index]!;
      if (byte < 0x20 || byte > 0x7e) return void this.#bad();
      text[at++] = byte;
    }
    this.length = at;
  }
}

const EMPTY = new Uint8Array(0);

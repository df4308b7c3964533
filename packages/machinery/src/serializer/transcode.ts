// data plane
/**
 * Stored JSON bytes to a protobuf message without a JavaScript object between.
 *
 * One pass over the JSON notes on a tape where each field's value lies; then the message is written
 * backwards from the tape. An object is a row of two numbers per field; lists and maps are chains,
 * last entry first:
 *
 *     object   [ value, end ] x slots
 *     list     previous, value, end
 *     map      previous, value, end, key, keyEnd
 *
 * A value is an offset in the JSON, or the index of an inner row or chain on the tape; 0 is none,
 * below 0 is a value of a cache (`encoded-value-cache.ts`). Of rows and chains that are to be in
 * one the second number says where on the tape their range in the JSON stands.
 *
 * Bytes that do not fit their type (which stored bytes never do) are given up: `false`, and the
 * slow way decides.
 */

import { BackwardWriter } from './backward-writer.ts';
import { parseJson } from '../json/json-text.ts';
import type { EncodedValueCache, Part } from './encoded-value-cache.ts';
import { skipValue, stringValue } from '../json/scan.ts';
import { parseTime, type Instant } from '../meta/times.ts';
import {
  FORM_LIST,
  FORM_MAP,
  hashOf,
  OBJECT_META,
  OP_BOOL,
  OP_BYTES,
  OP_INT,
  OP_INT_OR_STRING,
  OP_MICRO_TIME,
  OP_OBJECT,
  OP_QUANTITY,
  OP_RAW,
  OP_STRING,
  OP_TIME,
  type FieldPlan,
  type KeyPlace,
  type StepPlan,
  type TypePlan,
} from './transcode-programs.ts';
import { exactNumber } from '../json/json-reader.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const MINUS = 0x2d;

const TAPE_NUMBERS = 1 << 14;
/** A tape that one huge object has blown up is let go afterwards. */
const TAPE_KEPT_NUMBERS = 1 << 20;
/** Digits that a double holds whatever they are. */
const DIGITS_EXACT = 15;
/** Strings up to this are copied in script; beyond, the native copy is faster. */
const SHORT_COPY = 48;
/** `meta.v1.ObjectMeta.resourceVersion`. */
const RESOURCE_VERSION_NUMBER = 6;

/** Texts of raw fields that are known again, and how long they may be. */
const RAWS_MAX = 4;
const RAW_BYTES_MAX = 16 * 1024;

/** One object at a time; reuse it. */
export class Transcoder {
  readonly out: BackwardWriter = new BackwardWriter();
  #bytes: Buffer = EMPTY;
  #at = 0;
  #end = 0;
  #tape: Int32Array = new Int32Array(TAPE_NUMBERS);
  #top = 1;
  #isBad = false;
  #metadata = 0;
  #resourceVersion = '';
  #lastTime: Buffer = EMPTY;
  /** Parts of this object that are known. */
  readonly #parts: Part[] = [];
  readonly #raws: Buffer[] = [];
  #nextRaw = 0;
  #lastInstant: Instant | undefined = undefined;

  /**
   * Writes the message of the object to `out`, in front of what is there.
   * `metadata.resourceVersion` is written as given, '' as the bytes have it. False if the bytes do
   * not fit the type; `out` is as before then. /
   */
  write(
    plan: TypePlan,
    bytes: Buffer,
    start: number,
    end: number,
    resourceVersion: string,
  ): boolean {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#top = 1;
    this.#parts.length = 0;
    this.#isBad = !plan.isKnown;
    this.#resourceVersion = resourceVersion;
    if (this.#isBad) return false;
    const row = this.#object(plan);
    if (this.#isBad) return false;
    this.#metadata = this.#metadataRow(plan, row);
    this.#message(plan, row);
    if (this.#tape.length > TAPE_KEPT_NUMBERS) this.#tape = new Int32Array(TAPE_NUMBERS);
    return true;
  }

  #metadataRow(plan: TypePlan, row: number): number {
    for (const field of plan.fields) {
      if (field.plan?.type.name === OBJECT_META) return this.#tape[row + 2 * field.slot]!;
    }
    return 0;
  }

  /** Room for `count` more numbers, zeroed; gives their first index. */
  #take(count: number): number {
    const first = this.#top;
    this.#top += count;
    if (this.#top > this.#tape.length) {
      const grown = new Int32Array(Math.max(this.#tape.length * 2, this.#top));
      grown.set(this.#tape.subarray(0, first));
      this.#tape = grown;
    } else {
      // Rows are short: a loop is cheaper than a call of `fill`.
      const tape = this.#tape;
      for (let at = first; at < this.#top; at++) tape[at] = 0;
    }
    return first;
  }

  #bad(): number {
    this.#isBad = true;
    return 0;
  }

  /** The byte at the next place that is no white space. */
  #peek(): number {
    const bytes = this.#bytes;
    while (this.#at < this.#end && bytes[this.#at]! <= 0x20) this.#at++;
    return this.#at < this.#end ? bytes[this.#at]! : 0;
  }

  /** Notes an object, whose `{` is next; gives its row. */
  #object(plan: TypePlan): number {
    const row = this.#take(2 * plan.slots + 1);
    if (this.#peek() !== BRACE_OPEN) return this.#bad();
    this.#at++;
    if (this.#peek() === BRACE_CLOSE) {
      this.#at++;
      return row;
    }
    let before = plan.start;
    for (;;) {
      const field = this.#key(plan, before);
      if (this.#isBad) return 0;
      if (field === undefined) this.#skip();
      else {
        this.#value(field, row + 2 * field.slot);
        before = field;
      }
      const next = this.#peek();
      if (next !== COMMA && next !== BRACE_CLOSE) return this.#bad();
      this.#at++;
      if (this.#isBad) return 0;
      if (next === BRACE_CLOSE) return row;
    }
  }

  /**
   * Reads `"key":`; undefined for keys that the type does not have. Objects of a make have the
   * same keys in the same order: what came behind the key `before` last is tried first.
   */
  #key(plan: TypePlan, before: KeyPlace): FieldPlan | undefined {
    const bytes = this.#bytes;
    const likely = before.next;
    if (likely !== undefined && isKey(bytes, this.#at, likely.opening.length, likely.opening)) {
      this.#at += likely.opening.length;
      return likely;
    }
    const found = this.#knownKey(plan);
    if (found !== undefined) before.next = found;
    return found;
  }

  #knownKey(plan: TypePlan): FieldPlan | undefined {
    if (this.#peek() !== QUOTE) {
      this.#isBad = true;
      return undefined;
    }
    const bytes = this.#bytes;
    const start = this.#at + 1;
    let at = start;
    while (at < this.#end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    this.#at = at + 1;
    if (this.#peek() !== COLON) {
      this.#isBad = true;
      return undefined;
    }
    this.#at++;
    const length = at - start;
    const mask = plan.table.length - 1;
    const hash = hashOf(length, bytes[start]!, bytes[start + (length >> 1)]!, bytes[at - 1]!);
    for (let slot = hash & mask; plan.table[slot] !== 0; slot = (slot + 1) & mask) {
      const field = plan.fields[plan.table[slot]! - 1]!;
      if (isKey(bytes, start, length, field.key)) return field;
    }
    return undefined;
  }

  #skip(): void {
    this.#peek();
    const after = skipValue(this.#bytes, this.#at, this.#end);
    if (after < 0) this.#isBad = true;
    else this.#at = after;
  }

  #value(field: FieldPlan, place: number): void {
    const first = this.#peek();
    if (first === LOWER_N) {
      this.#tape[place] = 0;
      return this.#skip();
    }
    if (field.known !== null) return this.#large(field, field.known, place);
    if (field.op === OP_OBJECT) return this.#compound(field, place);
    const start = this.#at;
    if (field.op === OP_RAW) this.#skipRaw();
    else this.#skip();
    this.#tape[place] = start;
    this.#tape[place + 1] = this.#at;
  }

  /** A value that has others in it. */
  #large(field: FieldPlan, known: EncodedValueCache, place: number): void {
    const start = this.#at;
    const part = known.find(this.#bytes, start, this.#end);
    if (part !== null) {
      this.#at = start + part.json.length;
      this.#tape[place] = -this.#parts.push(part);
      return;
    }
    this.#compound(field, place);
    // a name that is there twice may have left one
    this.#tape[place + 1] = 0;
    if (this.#isBad || !known.wants(this.#at - start)) return;
    const range = this.#take(2);
    this.#tape[range] = start;
    this.#tape[range + 1] = this.#at;
    this.#tape[place + 1] = range;
  }

  #compound(field: FieldPlan, place: number): void {
    if (field.form === FORM_LIST) this.#list(field, place);
    else if (field.form === FORM_MAP) this.#map(field, place);
    else {
      const row = this.#object(field.plan!);
      this.#tape[place] = row;
    }
  }

  /**
   * Objects of a make have the same owners of the same fields, long texts all of them: those that
   * were met lately are found again as a whole.
   */
  #skipRaw(): void {
    const start = this.#at;
    const raws = this.#raws;
    for (let tries = 0; tries < raws.length; tries++) {
      const raw = raws[this.#nextRaw]!;
      this.#nextRaw = (this.#nextRaw + 1) % raws.length;
      const end = start + raw.length;
      if (end <= this.#end && this.#bytes.compare(raw, 0, raw.length, start, end) === 0) {
        this.#at = end;
        return;
      }
    }
    this.#skip();
    // an object ends where its text ends, whatever comes behind it
    if (this.#isBad || this.#bytes[start] !== BRACE_OPEN) return;
    if (this.#at - start > RAW_BYTES_MAX) return;
    const raw = Buffer.from(this.#bytes.subarray(start, this.#at));
    if (raws.length < RAWS_MAX) raws.push(raw);
    else raws[this.#nextRaw] = raw;
    this.#nextRaw = (this.#nextRaw + 1) % raws.length;
  }

  #list(field: FieldPlan, place: number): void {
    if (this.#peek() !== BRACKET_OPEN) return void this.#bad();
    this.#at++;
    let last = 0;
    while (this.#peek() !== BRACKET_CLOSE) {
      const entry = this.#take(3);
      this.#tape[entry] = last;
      this.#item(field, entry + 1);
      last = entry;
      if (this.#peek() === COMMA) this.#at++;
      else if (this.#peek() !== BRACKET_CLOSE) return void this.#bad();
      if (this.#isBad) return;
    }
    this.#at++;
    this.#tape[place] = last;
  }

  #map(field: FieldPlan, place: number): void {
    if (this.#peek() !== BRACE_OPEN) return void this.#bad();
    this.#at++;
    let last = 0;
    while (this.#peek() === QUOTE) {
      const entry = this.#take(5);
      const keyStart = this.#at + 1;
      this.#skip();
      this.#tape[entry + 3] = keyStart;
      this.#tape[entry + 4] = this.#at - 1;
      if (this.#peek() !== COLON) return void this.#bad();
      this.#at++;
      this.#item(field, entry + 1);
      last = this.#insert(last, entry);
      if (this.#peek() === COMMA) this.#at++;
      if (this.#isBad) return;
    }
    if (this.#peek() !== BRACE_CLOSE) return void this.#bad();
    this.#at++;
    this.#tape[place] = last;
  }

  #item(field: FieldPlan, place: number): void {
    if (this.#peek() === LOWER_N) return this.#skip();
    if (field.op === OP_OBJECT) {
      const row = this.#object(field.plan!);
      this.#tape[place] = row;
      return;
    }
    const start = this.#at;
    this.#skip();
    this.#tape[place] = start;
    this.#tape[place + 1] = this.#at;
  }

  /** Keeps a map's chain in order of keys, greatest first; of equal keys the later one stays. */
  #insert(last: number, entry: number): number {
    const tape = this.#tape;
    let after = 0;
    let at = last;
    while (at !== 0) {
      const order = this.#compareKeys(entry, at);
      if (order > 0) break;
      if (order === 0) {
        at = tape[at]!;
        break;
      }
      after = at;
      at = tape[at]!;
    }
    tape[entry] = at;
    if (after === 0) return entry;
    tape[after] = entry;
    return last;
  }

  #compareKeys(left: number, right: number): number {
    const bytes = this.#bytes;
    const tape = this.#tape;
    let one = tape[left + 3]!;
    let other = tape[right + 3]!;
    const oneEnd = tape[left + 4]!;
    const otherEnd = tape[right + 4]!;
    while (one < oneEnd && other < otherEnd) {
      const byte = bytes[one++]!;
      const difference = byte - bytes[other++]!;
      if (byte === BACKSLASH || byte - difference === BACKSLASH) {
        return this.#compareTexts(left, right);
      }
      if (difference !== 0) return difference;
    }
    return oneEnd - one - (otherEnd - other);
  }

  /** Of keys with escapes in them: what they stand for, not how it is written. */
  #compareTexts(left: number, right: number): number {
    const [one, other] = [left, right].map((entry) => {
      const [start, end] = [this.#tape[entry + 3]!, this.#tape[entry + 4]!];
      return Buffer.from(stringValue(this.#bytes, start - 1, end + 1));
    });
    return Buffer.compare(one!, other!);
  }

  #message(plan: TypePlan, row: number): void {
    this.#steps(plan.steps, row);
  }

  #steps(steps: readonly StepPlan[], row: number): void {
    const out = this.out;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]!;
      const field = step.field;
      if (field === undefined) {
        const mark = out.mark();
        this.#steps(step.inner, row);
        out.length(step.number, mark);
        continue;
      }
      if (row === this.#metadata && row !== 0 && this.#isRevision(field)) continue;
      const value = this.#tape[row + 2 * field.slot]!;
      if (value === 0) {
        if (field.isWritten) out.copyShort(field.absent);
        continue;
      }
      const second = this.#tape[row + 2 * field.slot + 1]!;
      const { known } = field;
      if (known === null) this.#one(field, field.number, value, second);
      else if (value < 0) this.#writePart(this.#parts[-value - 1]!);
      else {
        const mark = out.mark();
        this.#writeLarge(field, value);
        if (second !== 0) this.#keep(known, second, mark);
      }
    }
  }

  #writePart({ message }: Part): void {
    this.out.copyRange(message, 0, message.length);
  }

  #writeLarge(field: FieldPlan, value: number): void {
    if (field.form === FORM_LIST) this.#writeList(field, value);
    else if (field.form === FORM_MAP) this.#writeMap(field, value);
    else this.#one(field, field.number, value, 0);
  }

  /** What was written since the mark is what the range of JSON stands for. */
  #keep(known: EncodedValueCache, range: number, mark: number): void {
    const { out } = this;
    const [start, end] = [this.#tape[range]!, this.#tape[range + 1]!];
    const message = out.bytes.subarray(out.at, out.bytes.length - mark);
    known.keep(this.#bytes.subarray(start, end), message);
  }

  /** Writes the revision in place of what the bytes say; false for any other field. */
  #isRevision(field: FieldPlan): boolean {
    if (field.number !== RESOURCE_VERSION_NUMBER || this.#resourceVersion === '') return false;
    this.out.string(RESOURCE_VERSION_NUMBER, this.#resourceVersion);
    return true;
  }

  #writeList(field: FieldPlan, last: number): void {
    const tape = this.#tape;
    for (let entry = last; entry !== 0; entry = tape[entry]!) {
      this.#one(field, field.number, tape[entry + 1]!, tape[entry + 2]!);
    }
  }

  #writeMap(field: FieldPlan, last: number): void {
    const tape = this.#tape;
    const out = this.out;
    for (let entry = last; entry !== 0; entry = tape[entry]!) {
      const mark = out.mark();
      this.#one(field, 2, tape[entry + 1]!, tape[entry + 2]!);
      this.#text(1, tape[entry + 3]!, tape[entry + 4]!);
      out.length(field.number, mark);
    }
  }

  /** One value with its tag; `value` 0 is the zero of a list's or map's item. */
  #one(field: FieldPlan, number: number, value: number, end: number): void {
    const out = this.out;
    if (field.op === OP_OBJECT) {
      const mark = out.mark();
      if (value === 0) this.#message(field.plan!, this.#take(2 * field.plan!.slots + 1));
      else this.#message(field.plan!, value);
      return out.length(number, mark);
    }
    if (field.op === OP_STRING) {
      if (value === 0) return out.string(number, '');
      return this.#text(number, value + 1, end - 1);
    }
    if (field.op === OP_INT) {
      out.int(value === 0 ? 0 : this.#integer(value, end));
      return out.varint(number * 8);
    }
    if (field.op === OP_BOOL) {
      out.varint(value !== 0 && this.#bytes[value] === LOWER_T ? 1 : 0);
      return out.varint(number * 8);
    }
    const mark = out.mark();
    if (value !== 0) this.#special(field.op, value, end);
    else if (field.op === OP_QUANTITY) out.string(1, '0');
    out.length(number, mark);
  }

  #special(op: number, start: number, end: number): void {
    const out = this.out;
    if (op === OP_QUANTITY) this.#text(1, start + 1, end - 1);
    else if (op === OP_BYTES) {
      out.copy(Buffer.from(this.#bytes.toString('latin1', start + 1, end - 1), 'base64'));
    } else if (op === OP_RAW) {
      const mark = out.mark();
      out.copyRange(this.#bytes, start, end);
      out.length(1, mark);
    } else if (op === OP_TIME || op === OP_MICRO_TIME) {
      const time = this.#time(start + 1, end - 1);
      if (time === undefined) return;
      out.int(op === OP_TIME ? 0 : time.nanos);
      out.varint(2 * 8);
      out.int(time.seconds);
      out.varint(1 * 8);
    } else if (op === OP_INT_OR_STRING) this.#intOrString(start, end);
  }

  /** Most times of an object are of one second: the last one is remembered. */
  #time(start: number, end: number): Instant | undefined {
    const length = end - start;
    const last = this.#lastTime;
    if (length === last.length && isKey(this.#bytes, start, length, last)) return this.#lastInstant;
    this.#lastTime = Buffer.from(this.#bytes.subarray(start, end));
    this.#lastInstant = parseTime(this.#lastTime.latin1Slice(0, length));
    return this.#lastInstant;
  }

  #intOrString(start: number, end: number): void {
    const out = this.out;
    const isText = this.#bytes[start] === QUOTE;
    if (isText) this.#text(3, start + 1, end - 1);
    else out.string(3, '');
    out.int(isText ? 0 : this.#integer(start, end));
    out.varint(2 * 8);
    out.varint(isText ? 1 : 0);
    out.varint(1 * 8);
  }

  #integer(start: number, end: number): number | bigint {
    const bytes = this.#bytes;
    if (end - start > DIGITS_EXACT) return exactNumber(bytes.latin1Slice(start, end));
    const isNegative = bytes[start] === MINUS;
    let value = 0;
    for (let at = isNegative ? start + 1 : start; at < end; at++) {
      const digit = bytes[at]! - 0x30;
      if (digit < 0 || digit > 9) return Math.trunc(Number(bytes.toString('latin1', start, end)));
      value = value * 10 + digit;
    }
    return isNegative ? -value : value;
  }

  /** A string of JSON, quotes left out, as bytes; escapes are resolved. */
  #text(number: number, start: number, end: number): void {
    const bytes = this.#bytes;
    const out = this.out;
    const length = end - start;
    if (length > SHORT_COPY) {
      const backslash = bytes.indexOf(BACKSLASH, start);
      if (backslash >= 0 && backslash < end) return this.#escaped(number, start, end);
      const mark = out.mark();
      out.copyRange(bytes, start, end);
      return out.length(number, mark);
    }
    out.room(length + 12);
    const target = out.bytes;
    let to = out.at;
    for (let from = end - 1; from >= start; from--) {
      const byte = bytes[from]!;
      if (byte === BACKSLASH) return this.#escaped(number, start, end);
      target[--to] = byte;
    }
    out.at = to;
    out.varint(length);
    out.varint(number * 8 + 2);
  }

  #escaped(number: number, start: number, end: number): void {
    const text = parseJson(this.#bytes.toString('utf8', start - 1, end + 1)) as string;
    this.out.string(number, text);
  }
}

const EMPTY = Buffer.alloc(0);

function isKey(bytes: Uint8Array, start: number, length: number, key: Uint8Array): boolean {
  if (key.length !== length) return false;
  for (let at = 0; at < length; at++) if (bytes[start + at] !== key[at]) return false;
  return true;
}

// data plane
/**
 * Reads messages of the built-in types into JSON-shaped objects. A type's program (which number
 * goes to which slot, and how it is read) is made when the type is first met; each message then
 * fills a row of slots, and the object is built from them in upstream's order, zero values as in
 * `normal-form.ts`. /
 */

import { ownMember, putMember } from '@megaplane/base/members';
import { readText } from '@megaplane/wire/protobuf';
import { parseJson } from '../json/json-text.ts';
import { keepRawText } from '../json/raw-text.ts';
import { type JsonObject, type JsonValue, setMember } from '../json/json-value.ts';
import { absentValue, isOmitted, zeroMember } from '../scheme/normal-form.ts';
import { parseQuantity, QUANTITY_FAILURES } from '../meta/quantity.ts';
import { findType, type Field, type Shape, type Type } from '../scheme/schema.ts';
import { formatDuration, formatMicroTime, formatTime } from '../meta/times.ts';
import type { Scalar } from '../scheme/zero-values.ts';

/** Messages nested deeper than this are refused. */
export const PROTOBUF_DEPTH_MAX = 100;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;
const TWO_32 = 4294967296;

interface Slot {
  readonly index: number;
  readonly field: Field;
  readonly shape: Shape;
  /** Set where the number is that of a message whose fields JSON has inline. */
  readonly embedded: readonly (Slot | undefined)[] | undefined;
}

interface Program {
  readonly fields: readonly Field[];
  readonly byNumber: readonly (Slot | undefined)[];
}

const programs = new Map<Type, Program>();

function programOf(type: Type): Program {
  let program = programs.get(type);
  if (program === undefined) programs.set(type, (program = compile(type)));
  return program;
}

function compile(type: Type): Program {
  const byNumber: (Slot | undefined)[] = [];
  const fields = type.fields;
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index]!;
    if (field.number === 0) continue;
    const slot: Slot = { index, field, shape: field.shape, embedded: undefined };
    let table = byNumber;
    for (const number of field.within) {
      const around = (table[number] ??= { ...slot, embedded: [] });
      table = around.embedded as (Slot | undefined)[];
    }
    table[field.number] = slot;
  }
  return { fields, byNumber };
}

/** One decoding at a time; reuse it. */
export class MessageDecoder {
  /** '' after a success, else why the bytes were refused, in the words of Go's decoders. */
  failure = '';
  #bytes: Buffer = EMPTY;
  #at = 0;
  #low = 0;
  #high = 0;

  /** The object of one bare message; undefined with `failure` set if the bytes are none. */
  decode(type: Type, bytes: Buffer, start: number, end: number): JsonObject | undefined {
    this.#bytes = bytes;
    this.#at = start;
    this.failure = '';
    const object = this.#object(type, end, 0);
    return this.failure === '' ? object : undefined;
  }

  #fail(text: string): void {
    if (this.failure === '') this.failure = text;
  }

  /** `before`: what an earlier part of the same message came to, which this one adds to. */
  #object(type: Type, end: number, depth: number, before?: JsonObject): JsonObject {
    const program = programOf(type);
    const slots: (JsonValue | undefined)[] = [];
    for (let index = 0; index < program.fields.length; index++) slots.push(undefined);
    if (before !== undefined) refill(slots, program.fields, before);
    if (depth > PROTOBUF_DEPTH_MAX) this.#fail('exceeded max depth');
    else this.#fields(program.byNumber, slots, end, depth);
    const object: JsonObject = {};
    for (let index = 0; index < program.fields.length; index++) {
      const field = program.fields[index]!;
      const value = slots[index];
      const written =
        value === undefined ? absentValue(field) : isOmitted(field, value) ? undefined : value;
      if (written !== undefined) putMember(object, field.name, written);
    }
    return object;
  }

  #fields(
    byNumber: readonly (Slot | undefined)[],
    slots: (JsonValue | undefined)[],
    end: number,
    depth: number,
  ): void {
    while (this.#at < end && this.failure === '') {
      const wireType = this.#tag(end);
      const number = this.#low >>> 3;
      if (this.failure !== '') return;
      const slot = byNumber[number];
      if (slot === undefined) this.#skip(wireType, end, 0);
      else if (slot.embedded !== undefined) {
        const inner = this.#chunk(wireType, end, slot.field.name);
        this.#fields(slot.embedded, slots, inner, depth);
        this.#at = inner;
      } else this.#slot(slot, slots, wireType, end, depth);
    }
  }

  #slot(
    slot: Slot,
    slots: (JsonValue | undefined)[],
    wireType: number,
    end: number,
    depth: number,
  ): void {
    const shape = slot.shape;
    const name = slot.field.name;
    if (shape.kind === 'list') {
      const items = (slots[slot.index] ??= []) as JsonValue[];
      if (shape.isMessage) {
        const inner = this.#chunk(wireType, end, name);
        this.#items(shape.items, items, inner, depth);
      } else this.#item(shape.items, items, wireType, end, depth, name);
    } else if (shape.kind === 'map') {
      const values = (slots[slot.index] ??= {}) as JsonObject;
      this.#entry(shape.values, values, this.#chunk(wireType, end, name), depth);
    } else if (shape.kind === 'object') {
      const inner = this.#chunk(wireType, end, name);
      const before = slots[slot.index] as JsonObject | undefined;
      slots[slot.index] = this.#object(shape.type, inner, depth + 1, before);
      this.#at = inner;
    } else {
      slots[slot.index] = this.#value(shape, wireType, end, depth, name);
    }
  }

  /** A list item; numbers may be packed. */
  #item(
    shape: Shape,
    items: JsonValue[],
    wireType: number,
    end: number,
    depth: number,
    name: string,
  ): void {
    const isNumber =
      shape.kind === 'scalar' &&
      (shape.scalar === 'int32' || shape.scalar === 'int64' || shape.scalar === 'bool');
    if (!isNumber || wireType !== BYTES) {
      items.push(this.#value(shape, wireType, end, depth, name));
      return;
    }
    const inner = this.#chunk(wireType, end, name);
    while (this.#at < inner && this.failure === '') {
      items.push(this.#value(shape, VARINT, inner, depth, name));
    }
  }

  /** The `items = 1` of a list that is a message of its own. */
  #items(shape: Shape, items: JsonValue[], end: number, depth: number): void {
    while (this.#at < end && this.failure === '') {
      const wireType = this.#tag(end);
      if (this.failure !== '') return;
      if (this.#low >>> 3 === 1) this.#item(shape, items, wireType, end, depth, 'items');
      else this.#skip(wireType, end, 0);
    }
  }

  #entry(shape: Shape, values: JsonObject, end: number, depth: number): void {
    let key = '';
    let value: JsonValue | undefined;
    while (this.#at < end && this.failure === '') {
      this.#varint(end);
      const number = this.#low >>> 3;
      const wireType = this.#low & 7;
      if (number === 1) {
        const inner = this.#chunk(wireType, end, 'key');
        key = readText(this.#bytes, this.#at, inner);
        this.#at = inner;
      } else if (number === 2) {
        if (shape.kind === 'list') {
          const items: JsonValue[] = [];
          const inner = this.#chunk(wireType, end, 'value');
          this.#items(shape.items, items, inner, depth);
          value = items;
        } else value = this.#value(shape, wireType, end, depth, 'value');
      } else this.#skip(wireType, end, 0);
    }
    if (this.failure === '') setMember(values, key, value ?? zeroMember(shape));
  }

  #value(shape: Shape, wireType: number, end: number, depth: number, name: string): JsonValue {
    if (shape.kind === 'object') {
      const inner = this.#chunk(wireType, end, name);
      const object = this.#object(shape.type, inner, depth + 1);
      this.#at = inner;
      return object;
    }
    if (shape.kind !== 'scalar') return null;
    const scalar = shape.scalar;
    if (scalar === 'double') return this.#double(wireType, end, name);
    if (scalar !== 'int32' && scalar !== 'int64' && scalar !== 'bool') {
      return this.#chunked(scalar, wireType, end, depth, name);
    }
    this.#number(wireType, end, name);
    if (scalar === 'int32') return this.#low | 0;
    if (scalar === 'bool') return this.#low !== 0 || this.#high !== 0;
    return this.#whole();
  }

  /** The number that was read last, of 64 bits with a sign. */
  #whole(): number | bigint {
    const high = this.#high | 0;
    const value = high * TWO_32 + this.#low;
    if (Number.isSafeInteger(value)) return value;
    return (BigInt(high) << 32n) | BigInt(this.#low);
  }

  /** Scalars that stand length-delimited. */
  #chunked(scalar: Scalar, wireType: number, end: number, depth: number, name: string): JsonValue {
    const inner = this.#chunk(wireType, end, name);
    if (this.failure !== '') return null;
    const start = this.#at;
    this.#at = inner;
    if (scalar === 'string') return readText(this.#bytes, start, inner);
    if (scalar === 'bytes') return this.#bytes.toString('base64', start, inner);
    this.#at = start;
    const value = this.#special(scalar, inner, depth);
    this.#at = inner;
    return value;
  }

  #special(scalar: Scalar, end: number, depth: number): JsonValue {
    if (scalar === 'time' || scalar === 'microTime') {
      return this.#time(scalar === 'microTime', end);
    }
    if (scalar === 'quantity') return this.#quantity(end);
    if (scalar === 'raw' || scalar === 'json' || scalar === 'fieldsV1') return this.#raw(end);
    if (scalar !== 'duration' && scalar !== 'intOrString') return this.#schema(scalar, end, depth);
    this.#numbers(end, scalar === 'duration' ? DURATION : INT_OR_STRING);
    if (scalar === 'duration') return formatDuration(numbers[1]!);
    return numbers[1] === 1 ? texts[3]! : Number(numbers[2]!);
  }

  #time(isMicro: boolean, end: number): JsonValue {
    if (this.#at >= end) return null;
    this.#numbers(end, TIMESTAMP);
    const seconds = Number(numbers[1]!);
    return isMicro ? formatMicroTime(seconds, Number(numbers[2]!)) : formatTime(seconds);
  }

  /** The fields of a small message into `numbers` and `texts`. */
  #numbers(end: number, fields: readonly SmallField[]): void {
    numbers.fill(0);
    texts.fill('');
    while (this.#at < end && this.failure === '') {
      const wireType = this.#tag(end);
      const number = this.#low >>> 3;
      const field = fields[number - 1];
      if (this.failure !== '') return;
      if (field === undefined) this.#skip(wireType, end, 0);
      else if (!field.isText) {
        this.#number(wireType, end, field.name);
        numbers[number] = this.#whole();
      } else {
        const inner = this.#chunk(wireType, end, field.name);
        texts[number] = readText(this.#bytes, this.#at, inner);
        // a text that is there, though it may be empty
        numbers[number] = 1;
        this.#at = inner;
      }
    }
  }

  /** Reads the tag of a field of a message, which stays in `#low`; gives its wire type. */
  #tag(end: number): number {
    this.#varint(end);
    const wireType = this.#low & 7;
    if (this.failure === '' && (this.#low >>> 3 === 0 || this.#high !== 0)) {
      this.#fail(`proto: illegal tag ${this.#low >>> 3} (wire type ${wireType})`);
    }
    return wireType;
  }

  /** A message of one text; none at all is zero. */
  #quantity(end: number): JsonValue {
    this.#numbers(end, QUANTITY);
    if (numbers[1] === 0 && texts[1] === '') return '0';
    const parsed = parseQuantity(texts[1]!);
    if (typeof parsed !== 'string') return parsed.toString();
    this.#fail(QUANTITY_FAILURES[parsed]);
    return null;
  }

  /** Field 1 as JSON: an object kept as it was sent. */
  #raw(end: number): JsonValue {
    let value: JsonValue = null;
    while (this.#at < end && this.failure === '') {
      const wireType = this.#tag(end);
      if (this.failure !== '') return null;
      if (this.#low >>> 3 !== 1) {
        this.#skip(wireType, end, 0);
        continue;
      }
      const inner = this.#chunk(wireType, end, 'Raw');
      value = parseRaw(this.#bytes, this.#at, inner);
      this.#at = inner;
    }
    return value;
  }

  #schema(scalar: Scalar, end: number, depth: number): JsonValue {
    const schemas: JsonValue[] = [];
    const texts: JsonValue[] = [];
    let allows = false;
    const type = findType('apiextensions.v1.JSONSchemaProps')!;
    while (this.#at < end && this.failure === '') {
      this.#varint(end);
      const wireType = this.#low & 7;
      const number = this.#low >>> 3;
      if (wireType === VARINT) {
        this.#varint(end);
        allows = this.#low !== 0;
        continue;
      }
      const inner = this.#chunk(wireType, end, 'Schema');
      if (scalar === 'schemaOrStringArray' && number === 2) {
        texts.push(readText(this.#bytes, this.#at, inner));
      } else schemas.push(this.#object(type, inner, depth + 1));
      this.#at = inner;
    }
    if (scalar === 'schemaOrBool') return schemas[0] ?? allows;
    if (texts.length > 0) return texts;
    return schemas.length > 1 ? schemas : (schemas[0] ?? null);
  }

  #number(wireType: number, end: number, name: string): void {
    if (wireType !== VARINT) this.#wrongType(wireType, name);
    else this.#varint(end);
  }

  #double(wireType: number, end: number, name: string): number {
    if (wireType !== FIXED64) {
      this.#wrongType(wireType, name);
      return 0;
    }
    if (this.#at + 8 > end) {
      this.#fail(EOF);
      return 0;
    }
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return Number.isFinite(value) ? value : 0;
  }

  #wrongType(wireType: number, name: string): void {
    const field = name.charAt(0).toUpperCase() + name.slice(1);
    this.#fail(`proto: wrong wireType = ${wireType} for field ${field}`);
  }

  /** Reads a length; gives the end of the bytes that follow, which start at `#at`. */
  #chunk(wireType: number, end: number, name: string): number {
    if (wireType !== BYTES) {
      this.#wrongType(wireType, name);
      return end;
    }
    this.#varint(end);
    if (this.#high !== 0 || this.#low > end - this.#at) {
      this.#fail(
        this.#high >= 0x80000000 ? 'proto: negative length found during unmarshaling' : EOF,
      );
      return end;
    }
    return this.#at + this.#low;
  }

  #varint(end: number): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= end) return this.#fail(EOF);
      const byte = this.#bytes[this.#at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    this.#fail('proto: integer overflow');
  }

  #skip(wireType: number, end: number, depth: number): void {
    if (wireType === VARINT) this.#varint(end);
    else if (wireType === FIXED64) this.#at += 8;
    else if (wireType === FIXED32) this.#at += 4;
    else if (wireType === BYTES) this.#at = this.#chunk(wireType, end, '');
    else if (wireType === GROUP_START) this.#skipGroup(end, depth + 1);
    else if (wireType === GROUP_END) this.#fail('proto: unexpected end of group');
    else this.#fail(`proto: illegal wireType ${wireType}`);
    if (this.#at > end) this.#fail(EOF);
  }

  #skipGroup(end: number, depth: number): void {
    if (depth > PROTOBUF_DEPTH_MAX) return this.#fail('exceeded max depth');
    while (this.failure === '') {
      this.#varint(end);
      const wireType = this.#low & 7;
      if (this.failure !== '' || wireType === GROUP_END) return;
      this.#skip(wireType, end, depth);
    }
  }
}

function refill(
  slots: (JsonValue | undefined)[],
  fields: readonly Field[],
  before: JsonObject,
): void {
  for (const [index, { name }] of fields.entries())
    slots[index] = ownMember(before, name) ?? undefined;
}

const EMPTY = Buffer.alloc(0);
const EOF = 'unexpected EOF';

/** A field of a small message, in the order of their numbers. */
interface SmallField {
  readonly name: string;
  readonly isText: boolean;
}

function small(isText: boolean, ...names: string[]): SmallField[] {
  return names.map((name) => ({ name, isText }));
}

const TIMESTAMP = small(false, 'Seconds', 'Nanos');
const DURATION = small(false, 'Duration');
const QUANTITY = small(true, 'String_');
const INT_OR_STRING = [...small(false, 'Type', 'IntVal'), ...small(true, 'StrVal')];

/** Fields of the small messages, by number; shared by all decoders, as decoding never yields. */
const numbers: (number | bigint)[] = [0, 0, 0, 0];
const texts: string[] = ['', '', '', ''];

/** Bytes that hold no JSON (an enveloped object) come as null: no built-in kind keeps such. */
function parseRaw(bytes: Buffer, start: number, end: number): JsonValue {
  if (start === end) return null;
  try {
    const text = bytes.toString('utf8', start, end);
    const value = parseJson(text);
    keepRawText(text, value);
    return value;
  } catch {
    return null;
  }
}

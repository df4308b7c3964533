// data plane
/**
 * Writes JSON-shaped objects as messages, byte for byte as upstream's encoder: fields by number,
 * plain scalars and structs even if zero, maps sorted by key.
 *
 * Writing goes from the end of a scratch buffer towards its start, so that each length is known
 * when it is written and nothing is measured first:
 *
 *     [ ......... free ......... | tag len field 1 | tag len field 2 ]
 *                                ^ #at
 * /
 */

import type { JsonObject, JsonValue } from './json-value.ts';
import { findType, type Field, type Scalar, type Shape, type Type } from './schema.ts';
import { parseDuration, parseTime } from './times.ts';

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const TWO_32 = 4294967296;
const SCRATCH_BYTES = 1 << 20;
/** JSON nested deeper than this is refused: it could only come from a hostile body. */
const DEPTH_MAX = 200;

interface Step {
  readonly number: number;
  readonly field: Field;
  /** Set where this number is a message whose fields JSON has inline. */
  readonly embedded: readonly Step[] | undefined;
}

const programs = new Map<Type, readonly Step[]>();

/** Steps in descending order of number: the order in which they are written. */
function programOf(type: Type): readonly Step[] {
  let program = programs.get(type);
  if (program === undefined) {
    program = compile(type.fields, 0);
    programs.set(type, program);
  }
  return program;
}

/** `depth` is how many embedded messages are around these fields. */
function compile(fields: readonly Field[], depth: number): readonly Step[] {
  const steps: Step[] = [];
  for (const field of fields) {
    if (field.number === 0 || field.within.length > depth) continue;
    steps.push({ number: field.number, field, embedded: undefined });
  }
  for (const number of new Set(fields.map((field) => field.within[depth]))) {
    if (number === undefined) continue;
    const inner = fields.filter((field) => field.within[depth] === number);
    steps.push({ number, field: inner[0]!, embedded: compile(inner, depth + 1) });
  }
  return steps.toSorted(descending);
}

function descending(left: Step, right: Step): number {
  return right.number - left.number;
}

/**
 * One encoding at a time; reuse it. Values that do not fit their field's type are written as zero.
 */
export class MessageEncoder {
  #bytes: Buffer = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  #at: number = SCRATCH_BYTES;

  /** The bare message in a Buffer of its own. */
  encode(type: Type, object: JsonObject): Buffer {
    this.#at = this.#bytes.length;
    this.#object(type, object, 0);
    return Buffer.from(this.#bytes.subarray(this.#at));
  }

  /** The message in the `k8s\0` envelope, in a Buffer of its own. */
  envelope(type: Type, object: JsonObject, apiVersion: string, kind: string): Buffer {
    this.#at = this.#bytes.length;
    this.#open();
    const end = this.#mark();
    this.#object(type, object, 0);
    return this.#close(end, apiVersion, kind);
  }

  /** `contentEncoding` and `contentType`, both empty, stand at the end of every envelope. */
  #open(): void {
    this.#varint(0);
    this.#varint(0x22);
    this.#varint(0);
    this.#varint(0x1a);
  }

  #close(end: number, apiVersion: string, kind: string): Buffer {
    this.#length(2, end);
    const typeEnd = this.#mark();
    this.#string(2, kind);
    this.#string(1, apiVersion);
    this.#length(1, typeEnd);
    this.#room(4);
    this.#at -= 4;
    this.#bytes.set(MAGIC, this.#at);
    return Buffer.from(this.#bytes.subarray(this.#at));
  }

  /**
   * The enveloped list whose items are bare messages already: `metadata` is a `ListMeta`.
   */
  list(
    apiVersion: string,
    listKind: string,
    metadata: JsonObject,
    items: readonly Uint8Array[],
  ): Buffer {
    this.#at = this.#bytes.length;
    this.#open();
    const end = this.#mark();
    for (let index = items.length - 1; index >= 0; index--) {
      const item = items[index]!;
      const itemEnd = this.#mark();
      this.#copy(item);
      this.#length(2, itemEnd);
    }
    const metaEnd = this.#mark();
    this.#object(findType('meta.v1.ListMeta')!, metadata, 0);
    this.#length(1, metaEnd);
    return this.#close(end, apiVersion, listKind);
  }

  /** The frame of a watch: four bytes of length, then a WatchEvent around the envelope. */
  frame(type: string, envelope: Uint8Array): Buffer {
    this.#at = this.#bytes.length;
    const end = this.#mark();
    this.#copy(envelope);
    this.#length(1, end);
    this.#length(2, end);
    this.#string(1, type);
    const length = this.#mark() - end;
    this.#room(4);
    this.#at -= 4;
    this.#bytes.writeUInt32BE(length, this.#at);
    return Buffer.from(this.#bytes.subarray(this.#at));
  }

  #object(type: Type, object: JsonObject, depth: number): void {
    if (depth > DEPTH_MAX) return;
    this.#steps(programOf(type), object, depth);
  }

  #steps(steps: readonly Step[], object: JsonObject, depth: number): void {
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]!;
      if (step.embedded !== undefined) {
        const end = this.#mark();
        this.#steps(step.embedded, object, depth);
        this.#length(step.number, end);
        continue;
      }
      const field = step.field;
      const value = object[field.name];
      if (value === undefined || value === null) {
        if (!field.isPointer) this.#zero(step.number, field.shape, depth);
      } else this.#field(step.number, field.shape, value, depth);
    }
  }

  #field(number: number, shape: Shape, value: JsonValue, depth: number): void {
    if (shape.kind === 'list') {
      if (!Array.isArray(value)) return;
      const end = this.#mark();
      for (let index = value.length - 1; index >= 0; index--) {
        this.#item(shape.isMessage ? 1 : number, shape.items, value[index]!, depth);
      }
      if (shape.isMessage) this.#length(number, end);
    } else if (shape.kind === 'map') {
      if (isPlain(value)) this.#map(number, shape.values, value, depth);
    } else this.#item(number, shape, value, depth);
  }

  #item(number: number, shape: Shape, value: JsonValue, depth: number): void {
    if (value === null) return this.#zero(number, shape, depth);
    if (shape.kind === 'object') {
      const end = this.#mark();
      if (isPlain(value)) this.#object(shape.type, value, depth + 1);
      this.#length(number, end);
    } else if (shape.kind === 'scalar') this.#scalar(number, shape.scalar, value, depth);
  }

  /** A field that Go holds by value is written even if nobody set it. */
  #zero(number: number, shape: Shape, depth: number): void {
    if (shape.kind === 'object') {
      const end = this.#mark();
      this.#object(shape.type, {}, depth + 1);
      this.#length(number, end);
    } else if (shape.kind === 'scalar' && shape.scalar !== 'bytes') {
      this.#scalar(number, shape.scalar, null, depth);
    }
  }

  #map(number: number, shape: Shape, value: JsonObject, depth: number): void {
    const keys = Object.keys(value).sort();
    for (let index = keys.length - 1; index >= 0; index--) {
      const key = keys[index]!;
      const item = value[key] ?? null;
      const end = this.#mark();
      if (shape.kind === 'list') this.#field(2, shape, item, depth);
      else if (shape.kind === 'scalar' && shape.scalar === 'bytes' && item === null) {
        this.#string(2, '');
      } else this.#item(2, shape, item, depth);
      this.#string(1, key);
      this.#length(number, end);
    }
  }

  #scalar(number: number, scalar: Scalar, value: JsonValue, depth: number): void {
    if (scalar === 'string') return this.#string(number, typeof value === 'string' ? value : '');
    if (scalar === 'bytes') return this.#base64(number, typeof value === 'string' ? value : '');
    if (scalar === 'int32' || scalar === 'int64') {
      this.#int(typeof value === 'number' ? value : 0);
      return this.#varint(number * 8 + VARINT);
    }
    if (scalar === 'bool') {
      this.#varint(value === true ? 1 : 0);
      return this.#varint(number * 8 + VARINT);
    }
    if (scalar === 'double') {
      this.#room(8);
      this.#at -= 8;
      this.#bytes.writeDoubleLE(typeof value === 'number' ? value : 0, this.#at);
      return this.#varint(number * 8 + FIXED64);
    }
    const end = this.#mark();
    this.#special(scalar, value, depth);
    this.#length(number, end);
  }

  #special(scalar: Scalar, value: JsonValue, depth: number): void {
    const text = typeof value === 'string' ? value : '';
    if (scalar === 'time' || scalar === 'microTime') {
      const time = parseTime(text);
      if (time === undefined) return;
      this.#scalar(2, 'int32', scalar === 'time' ? 0 : time.nanos, depth);
      return this.#scalar(1, 'int64', time.seconds, depth);
    }
    if (scalar === 'quantity') return this.#string(1, text === '' ? '0' : text);
    if (scalar === 'duration') return this.#scalar(1, 'int64', parseDuration(text) ?? 0, depth);
    if (scalar === 'intOrString') {
      this.#string(3, text);
      this.#scalar(2, 'int32', typeof value === 'number' ? value : 0, depth);
      return this.#scalar(1, 'int64', typeof value === 'string' ? 1 : 0, depth);
    }
    if (scalar === 'raw' || scalar === 'json' || scalar === 'fieldsV1') {
      if (value !== null) this.#string(1, JSON.stringify(value));
      return;
    }
    this.#schema(scalar, value, depth);
  }

  #schema(scalar: Scalar, value: JsonValue, depth: number): void {
    const type = findType('apiextensions.v1.JSONSchemaProps')!;
    const schemaNumber = scalar === 'schemaOrBool' ? 2 : 1;
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--) {
        const item = value[index]!;
        if (typeof item === 'string') this.#string(2, item);
        else this.#item(2, { kind: 'object', type }, item, depth);
      }
    } else if (isPlain(value)) this.#item(schemaNumber, { kind: 'object', type }, value, depth);
    if (scalar === 'schemaOrBool') this.#scalar(1, 'bool', value !== false, depth);
  }

  #string(number: number, text: string): void {
    const end = this.#mark();
    const length = text.length;
    this.#room(length * 3);
    const bytes = this.#bytes;
    let at = this.#at;
    let index = length - 1;
    if (length <= SHORT_TEXT) {
      for (; index >= 0; index--) {
        const code = text.charCodeAt(index);
        if (code >= 0x80) break;
        bytes[--at] = code;
      }
    }
    if (index >= 0) {
      at = this.#at - Buffer.byteLength(text);
      bytes.write(text, at);
    }
    this.#at = at;
    this.#length(number, end);
  }

  #base64(number: number, text: string): void {
    const end = this.#mark();
    this.#copy(Buffer.from(text, 'base64'));
    this.#length(number, end);
  }

  #copy(source: Uint8Array): void {
    this.#room(source.length);
    this.#at -= source.length;
    this.#bytes.set(source, this.#at);
  }

  /** How much is written: a place that stays right when the scratch buffer grows. */
  #mark(): number {
    return this.#bytes.length - this.#at;
  }

  /** Writes the length of what has been written since the mark `end`, and the tag before it. */
  #length(number: number, end: number): void {
    this.#varint(this.#mark() - end);
    this.#varint(number * 8 + BYTES);
  }

  #int(value: number): void {
    if (value >= 0) return this.#varint(value);
    const low = value >>> 0;
    const high = Math.floor(value / TWO_32) >>> 0;
    this.#room(10);
    let at = this.#at - 10;
    this.#at = at;
    let rest = low;
    for (let index = 0; index < 4; index++) {
      this.#bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[at++] = rest | ((high & 7) << 4) | 0x80;
    rest = high >>> 3;
    for (let index = 0; index < 4; index++) {
      this.#bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[at] = 1;
  }

  /** A whole number from 0 to 2^53. */
  #varint(value: number): void {
    this.#room(10);
    const bytes = this.#bytes;
    if (value < 0x80) {
      bytes[--this.#at] = value;
      return;
    }
    let size = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) size++;
    let at = this.#at - size;
    this.#at = at;
    let rest = value;
    while (rest >= 0x80) {
      bytes[at++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    bytes[at] = rest;
  }

  /**
   * Makes sure that `size` bytes are free before `#at`; what is written keeps its distance from the
   * end.
   */
  #room(size: number): void {
    if (size <= this.#at) return;
    const written = this.#bytes.length - this.#at;
    const length = Math.max(this.#bytes.length * 2, written + size);
    const grown = Buffer.allocUnsafeSlow(length);
    grown.set(this.#bytes.subarray(this.#at), length - written);
    this.#bytes = grown;
    this.#at = length - written;
  }
}

const SHORT_TEXT = 64;
const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

function isPlain(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// data plane
/**
 * Writes JSON-shaped objects as messages, byte for byte as upstream's encoder: fields by number,
 * plain scalars and structs even if zero, maps sorted by key.
 */

import { ownMember } from '@megaplane/base/members';
import { BackwardWriter } from './backward-writer.ts';
import { isNumber, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { closeEnvelope, openEnvelope } from './protobuf-envelope.ts';
import { rawJson } from '../json/raw-text.ts';
import { findType, type Field, type Shape, type Type } from '../scheme/schema.ts';
import { parseGoDuration, parseTime } from '../meta/times.ts';
import type { Scalar } from '../scheme/zero-values.ts';

const VARINT = 0;
const FIXED64 = 1;
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
  readonly #out = new BackwardWriter();

  /** The bare message in a Buffer of its own. */
  encode(type: Type, object: JsonObject): Buffer {
    this.#out.reset();
    this.#object(type, object, 0);
    return this.#out.take();
  }

  /** What stands for a field that Go holds by value and nobody set; may be empty. */
  absentField(number: number, shape: Shape): Buffer {
    this.#out.reset();
    if (number !== 0) this.#zero(number, shape, 0);
    return this.#out.take();
  }

  /** The message in the `k8s\0` envelope, in a Buffer of its own. */
  envelope(type: Type, object: JsonObject, apiVersion: string, kind: string): Buffer {
    this.#out.reset();
    openEnvelope(this.#out);
    const end = this.#out.mark();
    this.#object(type, object, 0);
    closeEnvelope(this.#out, end, apiVersion, kind);
    return this.#out.take();
  }

  /**
   * The enveloped list whose items are bare messages already: `metadata` is a `ListMeta`.
   */
  list(
    apiVersion: string,
    listKind: string,
    metadata: JsonObject,
    items: readonly Uint8Array[],
    isTurned = false,
  ): Buffer {
    const [metaField, itemsField] = isTurned ? [2, 1] : [1, 2];
    this.#out.reset();
    openEnvelope(this.#out);
    const end = this.#out.mark();
    for (let index = items.length - 1; index >= 0; index--) {
      const item = items[index]!;
      const itemEnd = this.#out.mark();
      this.#out.copy(item);
      this.#out.length(itemsField, itemEnd);
    }
    const metaEnd = this.#out.mark();
    this.#object(findType('meta.v1.ListMeta')!, metadata, 0);
    this.#out.length(metaField, metaEnd);
    closeEnvelope(this.#out, end, apiVersion, listKind);
    return this.#out.take();
  }

  /** The frame of a watch: four bytes of length, then a WatchEvent around the envelope. */
  frame(type: string, envelope: Uint8Array): Buffer {
    this.#out.reset();
    const end = this.#out.mark();
    this.#out.copy(envelope);
    this.#out.length(1, end);
    this.#out.length(2, end);
    this.#out.string(1, type);
    const length = this.#out.mark() - end;
    this.#out.uint32(length);
    return this.#out.take();
  }

  #object(type: Type, object: JsonObject, depth: number): void {
    if (depth > DEPTH_MAX) return;
    this.#steps(programOf(type), object, depth);
  }

  #steps(steps: readonly Step[], object: JsonObject, depth: number): void {
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]!;
      if (step.embedded !== undefined) {
        const end = this.#out.mark();
        this.#steps(step.embedded, object, depth);
        this.#out.length(step.number, end);
        continue;
      }
      const field = step.field;
      const value = ownMember(object, field.name);
      if (value === undefined || value === null) {
        if (!field.isPointer) this.#zero(step.number, field.shape, depth);
      } else this.#field(step.number, field.shape, value, depth);
    }
  }

  #field(number: number, shape: Shape, value: JsonValue, depth: number): void {
    if (shape.kind === 'list') {
      if (!Array.isArray(value)) return;
      const end = this.#out.mark();
      for (let index = value.length - 1; index >= 0; index--) {
        this.#item(shape.isMessage ? 1 : number, shape.items, value[index]!, depth);
      }
      if (shape.isMessage) this.#out.length(number, end);
    } else if (shape.kind === 'map') {
      if (isPlain(value)) this.#map(number, shape.values, value, depth);
    } else this.#item(number, shape, value, depth);
  }

  #item(number: number, shape: Shape, value: JsonValue, depth: number): void {
    if (value === null) return this.#zero(number, shape, depth);
    if (shape.kind === 'object') {
      const end = this.#out.mark();
      if (isPlain(value)) this.#object(shape.type, value, depth + 1);
      this.#out.length(number, end);
    } else if (shape.kind === 'scalar') this.#scalar(number, shape.scalar, value, depth);
  }

  /** A field that Go holds by value is written even if nobody set it. */
  #zero(number: number, shape: Shape, depth: number): void {
    if (shape.kind === 'object') {
      const end = this.#out.mark();
      this.#object(shape.type, {}, depth + 1);
      this.#out.length(number, end);
    } else if (shape.kind === 'scalar' && shape.scalar !== 'bytes') {
      this.#scalar(number, shape.scalar, null, depth);
    }
  }

  #map(number: number, shape: Shape, value: JsonObject, depth: number): void {
    const keys = Object.keys(value).sort();
    if (keys.some(hasSurrogate)) keys.sort(compareBytes);
    for (let index = keys.length - 1; index >= 0; index--) {
      const key = keys[index]!;
      const item = ownMember(value, key) ?? null;
      const end = this.#out.mark();
      if (shape.kind === 'list') this.#field(2, shape, item, depth);
      else if (shape.kind === 'scalar' && shape.scalar === 'bytes' && item === null) {
        this.#out.string(2, '');
      } else this.#item(2, shape, item, depth);
      this.#out.string(1, key);
      this.#out.length(number, end);
    }
  }

  #scalar(number: number, scalar: Scalar, value: JsonValue, depth: number): void {
    if (scalar === 'string')
      return this.#out.string(number, typeof value === 'string' ? value : '');
    if (scalar === 'bytes') return this.#out.base64(number, typeof value === 'string' ? value : '');
    if (scalar === 'int32' || scalar === 'int64') {
      this.#out.int(isNumber(value) ? value : 0);
      return this.#out.varint(number * 8 + VARINT);
    }
    if (scalar === 'bool') {
      this.#out.varint(value === true ? 1 : 0);
      return this.#out.varint(number * 8 + VARINT);
    }
    if (scalar === 'double') {
      this.#out.double(isNumber(value) ? Number(value) : 0);
      return this.#out.varint(number * 8 + FIXED64);
    }
    const end = this.#out.mark();
    this.#special(scalar, value, depth);
    this.#out.length(number, end);
  }

  #special(scalar: Scalar, value: JsonValue, depth: number): void {
    const text = typeof value === 'string' ? value : '';
    if (scalar === 'time' || scalar === 'microTime') {
      const time = parseTime(text);
      if (time === undefined) return;
      this.#scalar(2, 'int32', scalar === 'time' ? 0 : time.nanos, depth);
      return this.#scalar(1, 'int64', time.seconds, depth);
    }
    if (scalar === 'quantity') return this.#out.string(1, text === '' ? '0' : text);
    if (scalar === 'duration') return this.#scalar(1, 'int64', parseGoDuration(text) ?? 0n, depth);
    if (scalar === 'intOrString') {
      this.#out.string(3, text);
      this.#scalar(2, 'int32', typeof value === 'number' ? value : 0, depth);
      return this.#scalar(1, 'int64', typeof value === 'string' ? 1 : 0, depth);
    }
    if (scalar === 'raw') {
      if (value !== null) this.#out.string(1, rawJson(value));
      return;
    }
    if (scalar === 'json' || scalar === 'fieldsV1') {
      if (value !== null) this.#out.string(1, JSON.stringify(value));
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
        if (typeof item === 'string') this.#out.string(2, item);
        else this.#item(2, { kind: 'object', type }, item, depth);
      }
    } else if (isPlain(value)) this.#item(schemaNumber, { kind: 'object', type }, value, depth);
    if (scalar === 'schemaOrBool') this.#scalar(1, 'bool', value !== false, depth);
  }
}

function isPlain(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Where only these are, the order of UTF-16 is not that of the bytes. */
function hasSurrogate(text: string): boolean {
  return /[\ud800-\udfff]/.test(text);
}

function compareBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

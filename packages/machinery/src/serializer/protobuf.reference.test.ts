// shell
/**
 * Our codec against a naive reader that knows only the published definitions: other tables, other
 * code.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { corpus } from '@megaplane/base/corpus.sim';
import fc from 'fast-check';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { decodeProtobuf, encodeItem, encodeProtobuf } from './protobuf.ts';
import { findTypeOfKind, type Shape, type Type } from '../scheme/schema.ts';

const PUBLISHED = `${corpus('kubernetes')}/proto-fields.json`;

type Definitions = Readonly<Record<string, readonly [number, string, string][]>>;
interface Wire {
  readonly number: number;
  readonly value: number | Buffer;
}

/** Splits a message into fields; numbers below 2^53 only. */
function split(bytes: Buffer): Wire[] {
  const fields: Wire[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if (tag % 8 === 0) fields.push({ number: Math.floor(tag / 8), value: varint() });
    else {
      const length = varint();
      fields.push({ number: Math.floor(tag / 8), value: bytes.subarray(at, (at += length)) });
    }
  }
  return fields;
}

/** The special messages of Kubernetes, by the last part of their names. */
const SPECIALS: Readonly<Record<string, (fields: readonly Wire[]) => JsonValue>> = {
  Quantity: (fields) => String(fields[0]?.value),
  Time: (fields) => isoOf(fields, 0),
  MicroTime: (fields) => isoOf(fields, 6),
  IntOrString: (fields) => {
    const part = (number: number): unknown => fields.find((f) => f.number === number)?.value;
    return part(1) === 1 ? String(part(3)) : Number(part(2));
  },
  FieldsV1: (fields) => JSON.parse(String(fields[0]?.value)) as JsonValue,
  RawExtension: (fields) => JSON.parse(String(fields[0]?.value)) as JsonValue,
};

function isoOf(fields: readonly Wire[], digits: number): JsonValue {
  if (fields.length === 0) return null;
  const seconds = Number(fields.find((field) => field.number === 1)?.value ?? 0);
  const nanos = Number(fields.find((field) => field.number === 2)?.value ?? 0);
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (digits === 0) return `${text}Z`;
  return `${text}.${String(nanos).padStart(9, '0').slice(0, digits)}Z`;
}

class NaiveReader {
  readonly #definitions: Definitions;

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
  }

  read(name: string, type: Type | undefined, bytes: Buffer): JsonValue {
    const special = SPECIALS[name.split('.').at(-1) ?? ''];
    if (special !== undefined) return special(split(bytes));
    const object: JsonObject = {};
    for (const { number, value } of split(bytes)) {
      const definition = this.#definitions[name]?.find((field) => field[0] === number);
      assert(definition !== undefined, `${name} has no published field ${number}`);
      this.#put(object, definition[1], definition[2], type, value);
    }
    return object;
  }

  #put(
    object: JsonObject,
    name: string,
    typeName: string,
    type: Type | undefined,
    value: number | Buffer,
  ): void {
    const shape = type?.field(name)?.shape;
    if (typeName.startsWith('[]')) {
      const list = (object[name] ??= []) as JsonValue[];
      list.push(this.#one(typeName.slice(2), inner(shape), value));
    } else if (typeName.startsWith('map<string,')) {
      const map = (object[name] ??= {}) as JsonObject;
      const [key, item] = split(value as Buffer);
      const itemType = typeName.slice('map<string,'.length, -1);
      map[String(key?.value)] = this.#one(itemType, inner(shape), item?.value ?? 0);
    } else if (shape === undefined && typeName.includes('.')) {
      Object.assign(object, this.read(typeName, type, value as Buffer));
    } else object[name] = this.#one(typeName, shape, value);
  }

  #one(typeName: string, shape: Shape | undefined, value: number | Buffer): JsonValue {
    if (typeName.includes('.')) {
      const type = shape?.kind === 'object' ? shape.type : undefined;
      return this.read(typeName, type, value as Buffer);
    }
    if (typeName === 'bytes') return (value as Buffer).toString('base64');
    if (typeName === 'string') return value.toString();
    return typeName === 'bool' ? value === 1 : (value as number);
  }
}

function inner(shape: Shape | undefined): Shape | undefined {
  return shape?.kind === 'list' ? shape.items : shape?.kind === 'map' ? shape.values : undefined;
}

/** Without what is zero or empty: the reader cannot tell it from what is absent. */
function pruned(value: JsonValue): JsonValue | undefined {
  if (value === 0 || value === '' || value === false || value === null) return undefined;
  // An amount that nobody set is written as zero.
  if (value === '0') return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(orNull);
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    const inside = pruned(member ?? null);
    if (inside !== undefined) kept[name] = inside;
  }
  return Object.keys(kept).length === 0 ? undefined : kept;
}

function orNull(value: JsonValue): JsonValue {
  return pruned(value) ?? null;
}

const KINDS = [
  ['v1', 'Pod'],
  ['v1', 'Node'],
  ['v1', 'Service'],
  ['v1', 'Secret'],
  ['apps/v1', 'StatefulSet'],
  ['batch/v1', 'CronJob'],
  ['coordination.k8s.io/v1', 'Lease'],
  ['networking.k8s.io/v1', 'Ingress'],
] as const;

/** Alpha in 1.36, and numbered anew in the definitions of 1.37. */
const RENUMBERED = ['nodeAllocatableResourceClaimStatuses'];

/** Draws values by the shape of a field; `draw(n)` gives 0..n-1. */
function valueOf(shape: Shape, draw: (n: number) => number, depth: number): JsonValue {
  if (shape.kind === 'list') {
    const count = 1 + draw(2);
    return Array.from({ length: count }, () => valueOf(shape.items, draw, depth + 1));
  }
  if (shape.kind === 'map') return { [`k${draw(9)}`]: valueOf(shape.values, draw, depth + 1) };
  if (shape.kind === 'object') return objectOf(shape.type, draw, depth + 1);
  const scalars: Readonly<Record<string, JsonValue>> = {
    string: ['é', 'text', '"\\', 'x'.repeat(200)][draw(4)] ?? '',
    int32: 1 + draw(2 ** 31 - 2),
    int64: 1 + draw(2 ** 31 - 2) * 2 ** 20,
    bool: true,
    bytes: ['AA==', '/w=='][draw(2)] ?? '',
    time: '2026-01-02T03:04:05Z',
    microTime: '2026-01-02T03:04:05.678901Z',
    quantity: ['1', '500m', '2Gi'][draw(3)] ?? '',
    intOrString: [8080, 'http'][draw(2)] ?? 0,
  };
  return scalars[shape.scalar] ?? { 'f:a': { '.': {} } };
}

function objectOf(type: Type, draw: (n: number) => number, depth: number): JsonObject {
  const object: JsonObject = {};
  for (const field of type.fields) {
    if (depth > 6 || draw(1 + depth) > 1 || RENUMBERED.includes(field.name)) continue;
    object[field.name] = valueOf(field.shape, draw, depth);
  }
  return object;
}

test('a naive reader of the published definitions reads what we write', () => {
  const reader = new NaiveReader(JSON.parse(readFileSync(PUBLISHED, 'utf8')) as Definitions);
  fc.assert(
    fc.property(
      fc.constantFrom(...KINDS),
      fc.infiniteStream(fc.nat()),
      ([version, kind], draws) => {
        const type = findTypeOfKind(version, kind);
        assert(type !== undefined);
        const draw = (n: number): number => (draws.next().value ?? 0) % n;
        const object = objectOf(type, draw, 0);
        const bytes = encodeItem(version, kind, object) ?? Buffer.alloc(0);
        const read = reader.read(`k8s.io.api.${type.name}`, type, bytes);
        assert.deepEqual(pruned(read), pruned(object));
        const envelope = encodeProtobuf({ kind, apiVersion: version, ...object });
        assert(envelope !== undefined);
        const decoded = decodeProtobuf(envelope, 0, envelope.length);
        assert(decoded.ok);
        assert.deepEqual(encodeProtobuf(decoded.object), envelope);
      },
    ),
    { numRuns: 60 },
  );
});

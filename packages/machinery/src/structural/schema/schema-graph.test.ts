import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import { equals } from '../../json/json.ts';
import { accepts } from '../quick-validate.ts';
import { compileSchema, CompiledSchema, SchemaCache } from '../compiled-schema.ts';
import { explainedErrors } from '../openapi-faults.ts';
import { SchemaGraph } from './schema-graph.ts';

const NAMES = ['a', 'b', 'c'] as const;

const values = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<JsonValue>(null, true, 0, 1, 7, 1.5, '', 'a', 'abc'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES, 'x'), tie('value'), { maxKeys: 3 }),
  ),
})).value;

const schemas: fc.Arbitrary<JsonObject> = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<JsonObject>(
      { type: 'string' },
      { type: 'string', maxLength: 2, default: 'd' },
      { type: 'string', enum: ['a', 'abc'], nullable: true },
      { type: 'integer', minimum: 1 },
      { type: 'integer', default: 3 },
      { type: 'number', maximum: 1.5 },
      { type: 'boolean' },
      { 'x-kubernetes-int-or-string': true },
      { 'x-kubernetes-preserve-unknown-fields': true },
    ),
    fc.record({ type: fc.constant('array'), items: tie('schema') }) as fc.Arbitrary<JsonObject>,
    fc.record({
      type: fc.constant('object'),
      additionalProperties: tie('schema'),
    }) as fc.Arbitrary<JsonObject>,
    fc.record(
      {
        type: fc.constant('object'),
        properties: fc.dictionary(fc.constantFrom(...NAMES), tie('schema'), { maxKeys: 3 }),
        required: fc.subarray([...NAMES], { maxLength: 1 }),
        default: fc.constant({}),
        'x-kubernetes-preserve-unknown-fields': fc.constant(true),
      },
      { requiredKeys: ['type', 'properties'] },
    ) as fc.Arbitrary<JsonObject>,
  ),
})).schema;

function at(schema: JsonObject | null, name: string): JsonObject | null {
  const properties = (schema?.['properties'] ?? {}) as Record<string, JsonObject>;
  const more = schema?.['additionalProperties'];
  if (Object.hasOwn(properties, name)) return properties[name] ?? null;
  return typeof more === 'object' ? (more as JsonObject) : null;
}

/** What pruning and defaulting come to, by the words of the documentation, without any care. */
function formed(schema: JsonObject | null, value: JsonValue): JsonValue {
  const keeps = schema?.['x-kubernetes-preserve-unknown-fields'] === true;
  if (Array.isArray(value)) {
    const items = (schema?.['items'] ?? null) as JsonObject | null;
    if (items === null) return keeps ? value : value.map((one) => formed(null, one));
    return value.map((one) => formed(items, withDefault(items, one) ?? null));
  }
  if (typeof value !== 'object' || value === null) return value;
  const made: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    const part = at(schema, name);
    if (part === null && keeps) made[name] = member ?? null;
    if (part === null || member === undefined) continue;
    const isDropped = member === null && part['nullable'] !== true;
    if (isDropped && part['default'] === undefined) continue;
    made[name] = formed(part, withDefault(part, member) ?? null);
  }
  for (const [name, part] of Object.entries((schema?.['properties'] ?? {}) as JsonObject)) {
    const own = part as JsonObject;
    if (made[name] !== undefined || own['default'] === undefined) continue;
    made[name] = formed(own, structuredClone(own['default']));
  }
  return made;
}

function withDefault(schema: JsonObject, value: JsonValue): JsonValue | undefined {
  if (value !== null || schema['nullable'] === true) return value;
  return schema['default'] === undefined ? value : structuredClone(schema['default']);
}

const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 400;

function rooted(spec: JsonObject): JsonObject {
  return { type: 'object', properties: { spec } };
}

test('pruning and defaulting agree with a naive reference', () => {
  fc.assert(
    fc.property(schemas, values, (spec, value) => {
      const schema = compileSchema(rooted(spec));
      const object: JsonObject = { spec: structuredClone(value) };
      schema.decode(object, { isTracked: false, isStored: false });
      schema.applyDefaults(object);
      const wanted = formed(rooted(spec), { spec: value }) as JsonObject;
      assert.ok(equals(object, wanted), `${JSON.stringify(object)} ${JSON.stringify(wanted)}`);
    }),
    { numRuns: RUNS },
  );
});

test('what is accepted has no faults, and what is not has some', () => {
  fc.assert(
    fc.property(schemas, values, (spec, value) => {
      const { root } = compileSchema(spec);
      const isRight = accepts(root, value);
      assert.equal(explainedErrors(root, value, 'spec', null).length === 0, isRight);
    }),
    { numRuns: RUNS },
  );
});

test('a schema answers the same whether its parts are shared or not', () => {
  const shared = new SchemaGraph();
  fc.assert(
    fc.property(schemas, schemas, values, (one, other, value) => {
      const schema = rooted({ type: 'object', properties: { a: one, b: other, c: one } });
      const alone = compileSchema(schema);
      const among = new CompiledSchema(shared.add(schema));
      const answers = [alone, among].map((compiled) => {
        const object: JsonObject = { spec: { a: value, b: value, c: value } };
        const copy = structuredClone(object);
        const { unknown } = compiled.decode(copy, { isTracked: true, isStored: false });
        compiled.applyDefaults(copy);
        const scope = { part: 'object', scale: null, found: [] } as const;
        return { unknown, copy, errors: compiled.validate(copy, null, scope) };
      });
      assert.deepEqual(answers[0], answers[1]);
    }),
    { numRuns: RUNS },
  );
});

test('equal parts are one node, and the last user takes it along', () => {
  const graph = new SchemaGraph();
  const part = { type: 'object', properties: { a: { type: 'string', description: 'one' } } };
  const again = { type: 'object', properties: { a: { type: 'string', description: 'other' } } };
  const first = graph.add({ type: 'object', properties: { x: part, y: again } });
  assert.equal(first.properties?.get('x'), first.properties?.get('y'));
  const second = graph.add({ type: 'object', properties: { z: part } });
  assert.equal(second.properties?.get('z'), first.properties?.get('x'));
  graph.release(first);
  assert.equal(graph.size, 3);
  graph.release(second);
  assert.equal(graph.size, 0);
  assert.equal(graph.bytes, 0);
});

test('a cache keeps to its bytes and forgets what was not used longest', () => {
  const cache = new SchemaCache(20_000);
  let reads = 0;
  const get = (key: string): void => {
    cache.get(key, () => {
      reads++;
      return rooted({ type: 'string', pattern: key, enum: [key.repeat(50)] });
    });
  };
  for (let i = 0; i < 100; i++) get(`k${i}`);
  assert.ok(cache.bytes <= 20_000, `${cache.bytes} bytes`);
  reads = 0;
  get('k99');
  assert.equal(reads, 0);
  get('k0');
  assert.equal(reads, 1);
});

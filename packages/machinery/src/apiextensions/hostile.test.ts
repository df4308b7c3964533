import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { applyDefaults } from '../defaults/defaulting.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { compileSchema } from '../structural/compiled-schema.ts';
import { validateDefinition } from './definition.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === '1' ? 20_000 : 300;
/** CPU time that one hostile input may take, in microseconds. */
const HOSTILE_MICROS_MAX = 2_000_000;

function within<Value>(run: () => Value): Value {
  const started = process.cpuUsage();
  const value = run();
  const { user } = process.cpuUsage(started);
  assert.ok(user < HOSTILE_MICROS_MAX, `${user} µs`);
  return value;
}

function definitionOf(schema: JsonValue): JsonObject {
  const definition: JsonObject = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  };
  applyDefaults(definition);
  return definition;
}

function faults(spec: JsonObject, value: JsonValue, old?: JsonValue): string[] {
  const schema = compileSchema({ type: 'object', properties: { spec } });
  const object: JsonObject = { spec: value };
  schema.decode(object, { isTracked: true, isStored: false });
  schema.applyDefaults(object);
  const previous = old === undefined ? null : { spec: old };
  const scope = { part: 'object', scale: null, found: [] } as const;
  return schema.validate(object, previous, scope).map(({ body }) => body);
}

const MEMBERS = [
  ...['type', 'properties', 'items', 'additionalProperties', 'default', 'enum', 'required'],
  ...['anyOf', 'oneOf', 'allOf', 'not', 'pattern', 'format', 'nullable', 'maxItems', 'minimum'],
  ...['x-kubernetes-validations', 'x-kubernetes-list-type', 'x-kubernetes-list-map-keys'],
  ...['x-kubernetes-int-or-string', 'x-kubernetes-embedded-resource', 'a', 'metadata'],
  ...['x-kubernetes-preserve-unknown-fields', 'rule', 'messageExpression', 'fieldPath'],
];

const anything = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom<JsonValue>(null, true, false, 0, -1, 1.5, 1e21, '', 'object', 'array', 'map'),
    fc.constantFrom<JsonValue>('string', 'integer', 'self.a == oldSelf.a', "self.all(x, x == '')"),
    fc.constantFrom<JsonValue>('set', '(', '.a', '^a+$', 'date-time', 'name', '__proto__'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...MEMBERS), tie('value'), { maxKeys: 5 }),
  ),
})).value;

test('anything as a schema is judged, and what is let through judges anything', () => {
  let accepted = 0;
  const shape = fc.record({ type: fc.constant('object'), properties: anything, other: anything });
  fc.assert(
    fc.property(shape, anything, anything, ({ other, ...schema }, value, old) => {
      const root = { ...schema, ...(other as object), type: 'object' } as JsonObject;
      if (validateDefinition(definitionOf(root), null).length > 0) return;
      accepted++;
      const compiled = compileSchema(root);
      const object: JsonObject = { a: structuredClone(value) };
      compiled.decode(object, { isTracked: true, isStored: false });
      compiled.applyDefaults(object);
      const scope = { part: 'object', scale: null, found: [] } as const;
      compiled.validate(object, { a: old }, scope);
      compiled.validate(object, null, { ...scope, part: 'status' });
    }),
    { numRuns: RUNS },
  );
  assert.ok(accepted > 0);
});

test('a pattern that is made to explode does not', () => {
  const text = `${'a'.repeat(100_000)}!`;
  for (const pattern of ['^(a+)+$', '^(a|aa)+$', '(a*)*b', '(.*a){20}$']) {
    const found = within(() => faults({ type: 'string', pattern }, text));
    assert.equal(found.length, 1, pattern);
  }
  const huge = definitionOf({
    type: 'object',
    properties: { a: { type: 'string', pattern: '((a{100}){100}){100}' } },
  });
  const [error] = within(() => validateDefinition(huge, null));
  assert.match(error?.body ?? '', /must be a valid regular expression, but isn't/);
});

test('lists of many items are told apart, and compared by their keys, in linear time', () => {
  const keyed = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { type: 'object', properties: { name: { type: 'string' } } },
    'x-kubernetes-validations': [{ rule: 'self == oldSelf' }],
  };
  const many = Array.from({ length: 50_000 }, (_, i) => ({ name: `name-${i}` }));
  within(() => assert.deepEqual(faults(keyed, many, many.toReversed()), []));
  const set = { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' };
  const names = many.map(({ name }) => name);
  within(() => assert.equal(faults(set, [...names, ...names]).length, names.length));
});

test('values that are nested as deep as JSON may be are judged', () => {
  let deep: JsonValue = 'x';
  for (let i = 0; i < 9_000; i++) deep = i % 2 === 0 ? [deep] : { a: deep };
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const rules = [{ rule: 'self == oldSelf' }];
  within(() => faults({ ...open, 'x-kubernetes-validations': rules }, { deep }, { deep }));
  within(() => faults({ type: 'string' }, deep));
  within(() =>
    faults({ type: 'array', items: open, 'x-kubernetes-list-type': 'set' }, [deep, deep]),
  );
});

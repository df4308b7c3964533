import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { JsonObject } from '../json/json-value.ts';
import { applyMergePatch } from '../patch/patch-merge.ts';
import { compileSchema } from './compiled-schema.ts';

const META = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };

function faults(spec: JsonObject, value: unknown, old?: unknown): string[] {
  const schema = compileSchema({ type: 'object', properties: { spec } });
  const object = { ...META, spec: value } as JsonObject;
  const previous = old === undefined ? null : ({ ...META, spec: old } as JsonObject);
  const scope = { part: 'object', scale: null, found: [] } as const;
  return schema.validate(object, previous, scope).map(({ field, body }) => `${field}: ${body}`);
}

test('values are refused with the paths and words of upstream', () => {
  const number = { type: 'integer', minimum: 1, maximum: 10 };
  assert.deepEqual(faults(number, 11), [
    'spec: Invalid value: 11: spec in body should be less than or equal to 10',
  ]);
  assert.deepEqual(faults(number, 'x'), [
    'spec: Invalid value: "string": spec in body must be of type integer: "string"',
  ]);
  const object = { type: 'object', required: ['a'], properties: { a: { type: 'string' } } };
  assert.deepEqual(faults(object, {}), ['spec.a: Required value']);
  const listed = { type: 'string', enum: ['a', 'b'] };
  assert.deepEqual(faults(listed, 'x'), [
    'spec: Unsupported value: "x": supported values: "a", "b"',
  ]);
  assert.deepEqual(faults({ type: 'string', pattern: '^a+$' }, 'b'), [
    `spec: Invalid value: "b": spec in body should match '^a+$'`,
  ]);
  const few = { type: 'array', maxItems: 2, items: { type: 'string' } };
  assert.deepEqual(faults(few, ['a', 'b', 'c']), ['spec: Too many: 3: must have at most 2 items']);
});

test('a required member is met by a member of that name alone', () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    const schema = {
      type: 'object',
      required: [name],
      'x-kubernetes-preserve-unknown-fields': true,
    };
    assert.deepEqual(faults(schema, {}), [`spec.${name}: Required value`]);
    assert.deepEqual(faults(schema, JSON.parse(`{${JSON.stringify(name)}:"x"}`)), []);
  }
  const size = { type: 'integer' };
  const object = { type: 'object', required: ['size'], properties: { size } };
  const given = applyMergePatch(
    { spec: { size: 1 } },
    JSON.parse('{"spec":{"size":null,"__proto__":{"size":1}}}') as JsonObject,
  );
  assert.equal(JSON.stringify(given), '{"spec":{"__proto__":{"size":1}}}');
  assert.deepEqual(faults(object, given['spec']), ['spec.size: Required value']);
});

test('a bound is printed as an integer beside integers, else as a float', () => {
  const large = { type: 'number', minimum: 2_000_000, multipleOf: 3_000_000 };
  const about = 'spec in body should be';
  assert.deepEqual(faults(large, 5), [
    `spec: Invalid value: 5: ${about} a multiple of 3000000`,
    `spec: Invalid value: 5: ${about} greater than or equal to 2000000`,
  ]);
  assert.deepEqual(faults(large, 0.5), [
    `spec: Invalid value: 0.5: ${about} a multiple of 3e+06`,
    `spec: Invalid value: 0.5: ${about} greater than or equal to 2e+06`,
  ]);
});

test('beside a bound that its format does not have a value is printed as a float', () => {
  const small = { type: 'integer', format: 'int32', minimum: 2 ** 33 };
  const form = 'value must be of type integer with format int32';
  assert.deepEqual(faults(small, 2_000_000_000), [
    `<nil>: Invalid value: "": Minimum boundary ${form} in spec`,
    'spec: Invalid value: 2e+09: spec in body should be greater than or equal to 8.589934592e+09',
  ]);
});

test('a bound beyond 64 bits is the least integer beside integers, as Go converts it', () => {
  const huge = { type: 'number', minimum: 1e21 };
  assert.deepEqual(faults(huge, 5), []);
  const about = 'spec in body should be';
  assert.deepEqual(faults(huge, 0.5), [
    `spec: Invalid value: 0.5: ${about} greater than or equal to 1e+21`,
  ]);
  assert.deepEqual(faults({ type: 'number', maximum: 1e21 }, 5), [
    `spec: Invalid value: 5: ${about} less than or equal to -9223372036854775808`,
  ]);
});

test('alternatives that all fail show the faults of the one that came furthest', () => {
  const either = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' } },
    oneOf: [{ required: ['a'] }, { required: ['b'] }],
  };
  assert.deepEqual(faults(either, {}), [
    '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). ' +
      'Found none valid',
    'spec.a: Required value',
  ]);
});

test('sets and maps have nothing twice', () => {
  const set = { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' };
  assert.deepEqual(faults(set, ['a', 'b', 'a']), ['spec[2]: Duplicate value: "a"']);
  const map = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  };
  assert.deepEqual(faults(map, [{ name: 'a' }, { name: 'a' }]), [
    'spec[1]: Duplicate value: {"name":"a"}',
  ]);
  // an item that is null has no key, as one without its keys
  assert.ok(faults(map, [null, {}]).includes('spec[1]: Duplicate value: {}'));
  assert.deepEqual(faults(map, [{ name: 'a' }, { name: 'a' }], [{ name: 'b' }, { name: 'b' }]), []);
});

test('what was wrong before and did not change is let through', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'string', maxLength: 2 }, b: { type: 'string', maxLength: 2 } },
  };
  const old = { a: 'long', b: 'b' };
  assert.deepEqual(faults(schema, { ...old, b: 'c' }, old), []);
  assert.deepEqual(faults(schema, { ...old, a: 'other' }, old), [
    'spec.a: Too long: may not be more than 2 bytes',
  ]);
});

test('rules compare with the old value, say their own messages, and name fields', () => {
  const schema = {
    type: 'object',
    properties: { min: { type: 'integer' }, max: { type: 'integer' } },
    'x-kubernetes-validations': [
      { rule: 'self.min <= self.max', fieldPath: '.min', reason: 'FieldValueForbidden' },
      { rule: 'self.max >= oldSelf.max', messageExpression: "'not below ' + string(oldSelf.max)" },
    ],
  };
  assert.deepEqual(faults(schema, { min: 2, max: 1 }), [
    'spec.min: Forbidden: failed rule: self.min <= self.max',
  ]);
  assert.deepEqual(faults(schema, { min: 0, max: 1 }, { min: 0, max: 3 }), [
    'spec: Invalid value: not below 3',
  ]);
});

test('rules are not run on what is not of the form that they expect', () => {
  const schema = {
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'string' } },
    'x-kubernetes-validations': [{ rule: "self.a != ''" }],
  };
  assert.deepEqual(faults(schema, {}), [
    'spec.a: Required value',
    '<nil>: Invalid value: null: some validation rules were not checked because the object was ' +
      'invalid; correct the existing errors to complete validation',
  ]);
});

test('a rule that does too much is stopped', () => {
  const schema = {
    type: 'array',
    items: { type: 'integer' },
    'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, self.all(z, x + y + z >= 0)))' }],
  };
  const [fault = '', ...more] = faults(
    schema,
    Array.from({ length: 2_000 }, () => 1),
  );
  assert.match(fault, /operation cancelled: actual cost limit exceeded/);
  assert.deepEqual(more, []);
});

test('durations of schemas are durations of rules, whichever words they use', () => {
  const rules = [{ rule: "self > duration('36h')" }];
  const wait = { type: 'string', format: 'duration', 'x-kubernetes-validations': rules };
  assert.deepEqual(faults(wait, '2 days'), []);
  assert.deepEqual(faults(wait, '37h30m'), []);
  assert.match(faults(wait, '1 day 2 hours')[0] ?? '', /failed rule: self > duration/);
  assert.match(faults(wait, 'soon')[0] ?? '', /must be of type duration: "soon"/);
});

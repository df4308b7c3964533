import { test } from 'node:test';
import assert from 'node:assert/strict';
import { applyDefaults } from '../defaults/defaulting.ts';
import { equals } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { definitionWarnings } from './definition-warnings.ts';
import { judgeDefinition, validateDefinition } from './definition.ts';
import { SCHEMA_DEPTH_MAX } from '../structural/schema/schema-json.ts';

function widgets(spec: JsonObject, version: JsonObject = {}): JsonObject {
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const definition: JsonObject = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [{ name: 'v1', served: true, storage: true, schema, ...version }],
    },
  };
  applyDefaults(definition);
  return definition;
}

function faults(definition: JsonObject, old: JsonObject | null = null): string[] {
  return validateDefinition(definition, old).map(({ field, body }) => `${field}: ${body}`);
}

const ROOT = 'spec.validation.openAPIV3Schema.properties[spec]';

test('a definition that is right has no faults', () => {
  const color = { type: 'string', maxLength: 10, default: 'red' };
  const rules = [{ rule: "self.color != 'blue'", fieldPath: '.color' }];
  const spec = { type: 'object', properties: { color }, 'x-kubernetes-validations': rules };
  const definition = widgets(spec, {
    subresources: { status: {} },
    additionalPrinterColumns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color' }],
    selectableFields: [{ jsonPath: '.spec.color' }],
  });
  assert.deepEqual(faults(definition), []);
  assert.deepEqual(faults(definition, definition), []);
});

test('schemas have to be structural', () => {
  assert.deepEqual(faults(widgets({ type: 'object', properties: { a: {} } })), [
    `${ROOT}.properties[a].type: Required value: must not be empty for specified object fields`,
  ]);
  const anyOf = [{ properties: { a: { minLength: 1 } } }];
  const schema = { openAPIV3Schema: { type: 'object', anyOf } };
  const root = 'spec.validation.openAPIV3Schema';
  assert.deepEqual(faults(widgets({}, { schema })), [
    `${root}.properties[a]: Required value: because it is defined in ` +
      `${root}.anyOf[0].properties[a]`,
  ]);
  const ahead = { type: 'string', pattern: 'a(?=b)' };
  assert.match(faults(widgets(ahead))[0] ?? '', /pattern: Invalid value.*invalid or unsupported/);
});

test('what is empty is there where upstream has a pointer or a list', () => {
  assert.deepEqual(faults(widgets({ type: 'object', items: [] })), []);
  const nested = { properties: { a: { 'x-kubernetes-map-type': '' } } };
  const found = faults(
    widgets({ type: 'object', properties: { a: { type: 'object' } }, not: nested }),
  );
  const at = `${ROOT}.not.properties[a].x-kubernetes-map-type`;
  assert.ok(found.includes(`${at}: Forbidden: must be undefined to be structural`), String(found));
  const schema = { openAPIV3Schema: { type: 'object', not: { required: [], properties: {} } } };
  const [shown] = faults(widgets({}, { schema, subresources: { status: {} } }));
  assert.match(shown ?? '', /"Not":\{.*"Required":\[\],.*"Properties":\{\}/);
});

test('defaults have to be right by their own schema', () => {
  const object = {
    type: 'object',
    properties: { a: { type: 'integer', minimum: 3 } },
    default: { a: 1, b: 2 },
  };
  assert.deepEqual(faults(widgets(object)), [
    `${ROOT}.default: Invalid value: {"a":1,"b":2}: must not have unknown fields`,
    `${ROOT}.default.a: Invalid value: 1: a in body should be greater than or equal to 3`,
  ]);
});

test('the default of an int-or-string may be of any type, but for what it says of it', () => {
  const open = { 'x-kubernetes-int-or-string': true, default: 1.5 };
  assert.deepEqual(faults(widgets({ type: 'object', properties: { open } })), []);
  const anyOf = [{ type: 'integer' }, { type: 'string' }];
  const closed = faults(widgets({ type: 'object', properties: { closed: { ...open, anyOf } } }));
  assert.match(closed[0] ?? '', /^spec\.validation.*\[closed\]\.default: Invalid value/);
});

test('what was before is known in maps of the types that there are', () => {
  const rules = { type: 'string', maxLength: 9 };
  const field = { ...rules, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] };
  const map = (type: string): JsonObject => {
    return { type: 'object', properties: { field }, 'x-kubernetes-map-type': type };
  };
  assert.deepEqual(faults(widgets(map('atomic'))), []);
  assert.deepEqual(faults(widgets(map('other'))).length, 2);
});

test('rules are compiled, and those that can cost too much are refused', () => {
  const shown = (rule: string): string =>
    `{"Rule":"${rule}","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",` +
    '"OptionalOldSelf":null}';
  const typed = { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.nope == 1' }] };
  assert.deepEqual(faults(widgets({ ...typed, properties: { a: { type: 'string' } } })), [
    `${ROOT}.x-kubernetes-validations[0].rule: Invalid value: ${shown('self.nope == 1')}: ` +
      "compilation failed: ERROR: <input>:1:5: undefined field 'nope'" +
      '\n | self.nope == 1\n | ....^',
  ]);
  const open = {
    type: 'array',
    items: { type: 'string' },
    'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, x == y))' }],
  };
  assert.deepEqual(faults(widgets(open)), [
    `${ROOT}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by ` +
      'factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, ' +
      'and maxLength where arrays, maps, and strings are declared)',
    'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: ' +
      'Forbidden: contributed to estimated rule cost total exceeding cost limit for entire ' +
      'OpenAPIv3 schema',
    'spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost ' +
      'total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try ' +
      'simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, ' +
      'maps, and strings are declared)',
  ]);
  const bounded = { ...open, maxItems: 10, items: { type: 'string', maxLength: 10 } };
  assert.deepEqual(faults(widgets(bounded)), []);
});

test('names, versions and what is stored cannot be anything', () => {
  const plain = widgets({ type: 'object' });
  const renamed = structuredClone(plain);
  renamed['metadata'] = { name: 'other.example.com' };
  assert.deepEqual(faults(renamed), [
    'metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group',
  ]);
  const stale = structuredClone(plain);
  stale['status'] = { storedVersions: ['v1', 'v0'] };
  assert.match(
    faults(stale)[0] ?? '',
    /^status\.storedVersions\[1\]: Invalid value: "v0": missing/,
  );
  const moved = { ...plain, spec: { ...(plain['spec'] as JsonObject), scope: 'Cluster' } };
  const conditions = [{ type: 'Established', status: 'True' }];
  const old = { ...plain, status: { storedVersions: ['v1'], conditions } };
  assert.deepEqual(faults(moved, old), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
  ]);
});

test('a list of versions that is missing is shown as null', () => {
  const { metadata, spec } = widgets({});
  const without = (versions: JsonObject): JsonObject => {
    const { versions: _, ...rest } = spec as JsonObject;
    return { metadata: metadata ?? {}, spec: { ...rest, ...versions } };
  };
  const text = 'must have exactly one version marked as storage version';
  assert.ok(faults(without({})).includes(`spec.versions: Invalid value: null: ${text}`));
  assert.ok(
    faults(without({ versions: [] })).includes(`spec.versions: Invalid value: []: ${text}`),
  );
});

test('what all versions have alike is looked at once, above them', () => {
  const definition = widgets({ type: 'nope' });
  const spec = definition['spec'] as { versions: JsonObject[] };
  const [first = {}] = spec.versions;
  spec.versions.push({ ...structuredClone(first), name: 'v2', storage: false });
  assert.ok(
    faults(definition).every((text) => text.startsWith(ROOT)),
    'above the versions',
  );
  const other = structuredClone(definition);
  const [, second = {}] = (other['spec'] as { versions: JsonObject[] }).versions;
  second['schema'] = { openAPIV3Schema: { type: 'object' } };
  assert.ok(!equals(definition, other));
  assert.ok(faults(other).every((text) => text.startsWith('spec.versions[0].schema')));
});

test('a schema that is nested too deep is refused in no time', () => {
  let spec: JsonObject = { type: 'string' };
  for (let i = 0; i < SCHEMA_DEPTH_MAX * 2; i++) spec = { type: 'object', properties: { a: spec } };
  assert.deepEqual(faults(widgets(spec)), [
    'spec.validation.openAPIV3Schema: Invalid value: "": ' +
      `must not be nested deeper than ${SCHEMA_DEPTH_MAX} levels`,
  ]);
});

test('a definition of 1.4 MB is judged within seconds, whatever it is made of', () => {
  const wide: JsonObject = { type: 'object', properties: {} };
  for (let i = 0; i < 20_000; i++) {
    (wide['properties'] as JsonObject)[`p${i}`] = { type: 'string', maxLength: 10 + (i % 7) };
  }
  let deep: JsonObject = { type: 'string' };
  for (let i = 0; i < SCHEMA_DEPTH_MAX - 10; i++) {
    deep = { type: 'object', properties: { a: deep }, description: 'x'.repeat(1000) };
  }
  for (const spec of [wide, deep]) {
    const started = process.cpuUsage();
    assert.deepEqual(faults(widgets(spec)), []);
    const { user } = process.cpuUsage(started);
    assert.ok(user < 3_000_000, `${user} µs`);
  }
});

test('formats that nobody checks are told once', () => {
  const spec = { type: 'object', properties: { a: { type: 'string', format: 'nope' } } };
  const definition = widgets(spec);
  assert.deepEqual(faults(definition), []);
  assert.deepEqual(definitionWarnings(definition, null), ['unrecognized format "nope"']);
  assert.deepEqual(definitionWarnings(definition, definition), []);
});

test('schemas that were compared while a definition was judged are not compared again', () => {
  let looks = 0;
  const counted = new Proxy(
    { openAPIV3Schema: { type: 'object' } },
    {
      ownKeys: (schema) => {
        looks++;
        return Reflect.ownKeys(schema);
      },
    },
  );
  const old = { spec: { versions: [{ name: 'v1', schema: counted }] } };
  const next = { spec: { versions: [{ name: 'v1', schema: { openAPIV3Schema: {} } }] } };
  for (const _ of judgeDefinition(next, old));
  const before = looks;
  assert.ok(before > 0);
  const revised = { ...next, metadata: { resourceVersion: '1' } };
  validateDefinition(revised, old);
  assert.equal(looks, before);
  validateDefinition(structuredClone(next), old);
  assert.ok(looks > before);
});

test('refusals show lists of versions that are there and empty', () => {
  const definition = widgets({ type: 'object' });
  const [version] = (definition['spec'] as JsonObject)['versions'] as JsonObject[];
  const fields = [{ jsonPath: '.spec' }];
  const versions = [
    { ...version, selectableFields: [] },
    { ...version, selectableFields: fields, additionalPrinterColumns: [] },
  ];
  const twice = { ...definition, spec: { ...(definition['spec'] as JsonObject), versions } };
  const text = faults(twice).find((one) => one.includes('must contain unique version names')) ?? '';
  const lists = text.match(/"(?:SelectableFields|AdditionalPrinterColumns)":[^,}]*/g);
  const [columns, none, empty] = ['"AdditionalPrinterColumns":', 'null', '[]'];
  const shown = [columns + none, `"SelectableFields":${empty}`, columns + none];
  assert.deepEqual(lists?.slice(0, 3), shown);
});

test('of thousands of versions each is looked up, not looked for', () => {
  const MANY = 500;
  const build = (named: (name: string) => JsonObject): JsonObject => {
    const definition = widgets({ type: 'object' });
    const { versions, ...spec } = definition['spec'] as { versions: JsonObject[] };
    const many = Array.from({ length: MANY }, (_, index) => {
      const own = { ...versions[0], storage: index === 0 };
      return Object.defineProperties(own, Object.getOwnPropertyDescriptors(named(`v${index + 1}`)));
    });
    return { ...definition, spec: { ...spec, versions: many } };
  };
  let reads = 0;
  const old = build((name) => ({
    get name() {
      reads++;
      return name;
    },
  }));
  assert.deepEqual(
    faults(
      build((name) => ({ name })),
      old,
    ),
    [],
  );
  assert(reads > 0 && reads <= 20 * MANY, `${reads} reads of ${MANY} names`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const APPLY = { 'content-type': 'application/apply-patch+yaml' };

const SPEC = {
  type: 'object',
  required: ['size'],
  properties: {
    size: { type: 'integer', minimum: 1 },
    color: { type: 'string', enum: ['red', 'blue'], default: 'red' },
    parts: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, count: { type: 'integer' } },
      },
    },
  },
  'x-kubernetes-validations': [
    { rule: 'self.size < 100', message: 'too large' },
    { rule: 'self.size >= oldSelf.size', message: 'never shrinks' },
  ],
};

function started(spec: object) {
  const rig = startRig();
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  define(rig, definitionOf('widgets', [versionOf('v1', { schema })]));
  return rig;
}

function widget(name: string, spec: object): object {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name }, spec };
}

function specOf(exchange: ExchangeModel): unknown {
  return (JSON.parse(exchange.text) as { spec: unknown }).spec;
}

function messageOf(exchange: ExchangeModel): string {
  return (JSON.parse(exchange.text) as { message: string }).message;
}

test('objects are pruned and defaulted, and refused by schema and rules', () => {
  const { ask } = started(SPEC);
  const made = ask('POST', WIDGETS, widget('a', { size: 3, nope: true }));
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(specOf(made), { size: 3, color: 'red' });
  const strict = ask('POST', `${WIDGETS}?fieldValidation=Strict`, widget('b', { nope: 1 }));
  assert.equal(strict.status, 400);
  assert.match(messageOf(strict), /unknown field "spec\.nope"/);
  const wrong = ask('POST', WIDGETS, widget('c', { size: 200 }));
  assert.equal(wrong.status, 422);
  const why = 'Widget.example.com "c" is invalid: spec: Invalid value: too large';
  assert.equal(messageOf(wrong), why);
  const shrunk = ask('PATCH', `${WIDGETS}/a`, { spec: { size: 2 } }, MERGE);
  assert.match(messageOf(shrunk), /spec: Invalid value: never shrinks$/);
  assert.equal(ask('PATCH', `${WIDGETS}/a`, { spec: { size: 4 } }, MERGE).status, 200);
});

test('apply merges lists by their keys, and refuses what is not declared', () => {
  const { ask } = started(SPEC);
  const apply = (manager: string, spec: object): ExchangeModel =>
    ask('PATCH', `${WIDGETS}/a?fieldManager=${manager}`, widget('a', spec), APPLY);
  assert.equal(apply('one', { size: 1, parts: [{ name: 'x', count: 1 }] }).status, 201);
  const both = apply('two', { size: 1, parts: [{ name: 'y' }] });
  assert.deepEqual(specOf(both), {
    size: 1,
    color: 'red',
    parts: [{ name: 'x', count: 1 }, { name: 'y' }],
  });
  assert.match(messageOf(apply('one', { size: 1, nope: 1 })), /field not declared in schema/);
});

test('a null that is applied is no field left out', () => {
  const text = { type: 'string' };
  const properties = { a: text, b: { ...text, nullable: true }, c: { ...text, default: 'x' } };
  const { ask } = started({ type: 'object', properties });
  const apply = (spec: object): ExchangeModel =>
    ask('PATCH', `${WIDGETS}/a?fieldManager=one`, widget('a', spec), APPLY);
  assert.match(messageOf(apply({ a: null })), /spec\.a in body must be of type string: "null"$/);
  assert.deepEqual(specOf(apply({ b: null, c: null })), { b: null, c: 'x' });
  assert.equal(ask('POST', WIDGETS, widget('b', { a: null })).status, 201);
});

test('nobody owns an object whose values rules let pass, but types do not', () => {
  const { ask } = started({
    type: 'object',
    properties: { a: { type: 'string', format: 'cidr' } },
  });
  const owners = (exchange: ExchangeModel): unknown =>
    (JSON.parse(exchange.text) as { metadata: { managedFields?: unknown } }).metadata.managedFields;
  assert.equal(owners(ask('POST', WIDGETS, widget('a', { a: [1.5] }))), undefined);
  const text = ask('POST', WIDGETS, widget('b', { a: '10.0.0.0/8' }));
  assert.notEqual(owners(text), undefined);
  assert.equal(owners(ask('PATCH', `${WIDGETS}/b`, { spec: { a: [] } }, MERGE)), undefined);
});

test('numbers in keys of lists have exponents of two digits', () => {
  const items = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } };
  const list = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n'] };
  const { ask } = started({ type: 'object', properties: { l: { type: 'array', items, ...list } } });
  const made = ask('POST', WIDGETS, widget('a', { l: [{ n: 5e-7 }] }));
  assert.match(made.text, /"k:\{\\"n\\":5e-07\}"/);
  const applied = ask('PATCH', `${WIDGETS}/a?fieldManager=one`, widget('a', { l: 5e-7 }), APPLY);
  assert.match(messageOf(applied), /expected list, got &\{5e-07\}$/);
});

test('what a stricter schema refuses may stay until it changes, with a warning', () => {
  const { ask, settle } = started({ type: 'object', properties: { size: { type: 'integer' } } });
  assert.equal(ask('POST', WIDGETS, widget('a', { size: 500 })).status, 201);
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: SPEC } } };
  const versions = [{ name: 'v1', served: true, storage: true, schema }];
  const stricter = ask(
    'PATCH',
    `${DEFINITIONS}/widgets.example.com`,
    { spec: { versions } },
    MERGE,
  );
  assert.equal(stricter.status, 200, stricter.text);
  settle();
  const labelled = ask('PATCH', `${WIDGETS}/a`, { metadata: { labels: { a: 'b' } } }, MERGE);
  assert.equal(labelled.status, 200, labelled.text);
  assert.ok(labelled.headers.includes('299 - "spec: Invalid value: too large"'));
  const blue = ask('PATCH', `${WIDGETS}/a`, { spec: { color: 'blue' } }, MERGE);
  assert.equal(blue.status, 422, blue.text);
});

test('definitions are told of formats that nobody checks, and refused in upstream’s words', () => {
  const { ask } = startRig();
  const schemaOf = (spec: object): object => {
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    return definitionOf('widgets', [versionOf('v1', { schema })]);
  };
  const refused = ask('POST', DEFINITIONS, schemaOf({ type: 'object', properties: { a: {} } }));
  assert.equal(refused.status, 422);
  assert.match(messageOf(refused), /properties\[a\]\.type: Required value: must not be empty/);
  const made = ask('POST', DEFINITIONS, schemaOf({ type: 'string', format: 'nope' }));
  assert.equal(made.status, 201, made.text);
  assert.ok(made.headers.includes('299 - "unrecognized format \\"nope\\""'), String(made.headers));
});

test('wrong metadata has one cause in a new object, and three in a changed one', () => {
  const { ask } = started(SPEC);
  const causes = (exchange: ExchangeModel): string[] => {
    assert.equal(exchange.status, 422, exchange.text);
    const { details } = JSON.parse(exchange.text) as { details: { causes: { field: string }[] } };
    return details.causes.map(({ field }) => field);
  };
  const labels = { a: 'no spaces' };
  const wrong = { ...widget('a', { size: 3 }), metadata: { name: 'a', labels } };
  assert.deepEqual(causes(ask('POST', WIDGETS, wrong)), ['metadata.labels']);
  assert.deepEqual(causes(ask('POST', WIDGETS, { ...wrong, spec: { size: 0 } })), [
    'metadata.labels',
    'spec.size',
  ]);
  assert.equal(ask('POST', WIDGETS, widget('a', { size: 3 })).status, 201);
  const changed = ask('PATCH', `${WIDGETS}/a`, { metadata: { labels } }, MERGE);
  assert.deepEqual(causes(changed), ['metadata.labels', 'metadata.labels', 'metadata.labels']);
});

test('owners of an object that no longer fits its schema are forgotten', () => {
  const withSize = (size: object): object => {
    const spec = { type: 'object', properties: { size, color: { type: 'string' } } };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    return definitionOf('widgets', [versionOf('v1', { schema })]);
  };
  const rig = startRig();
  define(rig, withSize({ type: 'integer' }) as Record<string, unknown>);
  const old = { a: { size: 3 }, b: { size: 3 }, c: { color: 'red' } };
  for (const [name, spec] of Object.entries(old)) {
    assert.equal(rig.ask('POST', WIDGETS, widget(name, spec)).status, 201);
  }
  const path = `${DEFINITIONS}/widgets.example.com`;
  assert.equal(rig.ask('PATCH', path, withSize({ type: 'string' }), MERGE).status, 200);
  rig.settle();

  const misfit =
    'failed to create typed live object (default/a; example.com/v1, Kind=Widget): ' +
    '.spec.size: expected string, got &value.valueUnstructured{Value:3}';
  const apply = (name: string, spec: object): ExchangeModel =>
    rig.ask('PATCH', `${WIDGETS}/${name}?fieldManager=m`, widget(name, spec), APPLY);
  const applied = apply('a', { color: 'red' });
  assert.deepEqual([applied.status, messageOf(applied)], [500, misfit]);

  const patched = rig.ask('PATCH', `${WIDGETS}/a`, { metadata: { labels: { x: 'y' } } }, MERGE);
  assert.equal(patched.status, 200, patched.text);
  assert(!patched.text.includes('managedFields'), patched.text);
  const again = apply('a', { color: 'red' });
  const first =
    'failed to create manager for existing fields: failed to convert new object ' +
    '(default/a; example.com/v1, Kind=Widget) to smd typed: .spec.size: expected string, ' +
    'got &value.valueUnstructured{Value:3}';
  assert.deepEqual([again.status, messageOf(again)], [500, first]);

  const fixed = rig.ask('PATCH', `${WIDGETS}/b`, { spec: { size: 'three' } }, MERGE);
  assert(!fixed.text.includes('managedFields'), fixed.text);
  assert.equal(apply('b', { color: 'red' }).status, 200);
  const fits = rig.ask('PATCH', `${WIDGETS}/c`, { metadata: { labels: { x: 'y' } } }, MERGE);
  assert(fits.text.includes('f:color'), fits.text);
});

/** Versions with schemas of their own, `v1` stored. */
function twoSchemas() {
  const version = (name: string, properties: object): Record<string, unknown> => {
    const spec = { type: 'object', properties };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    return versionOf(name, { schema });
  };
  const text = (more?: string): object => ({ type: 'string', ...(more && { default: more }) });
  const rig = startRig();
  const old = version('v1', { a: text('one'), old: text('o1'), both: text('b1') });
  const next = version('v2', { a: text(), next: text('o2'), both: text('b2') });
  define(rig, definitionOf('widgets', [old, next]));
  return rig;
}

test('what is stored has the fields of the stored version, and its defaults when read', () => {
  const { ask } = twoSchemas();
  const other = WIDGETS.replace('v1', 'v2');
  const made = ask('POST', other, { ...widget('a', { next: 'x' }), apiVersion: 'example.com/v2' });
  assert.deepEqual(specOf(made), { both: 'b2', a: 'one' });
  assert.deepEqual(specOf(ask('GET', `${other}/a`)), { both: 'b2', a: 'one' });
  assert.deepEqual(specOf(ask('GET', `${WIDGETS}/a`)), { both: 'b2', a: 'one', old: 'o1' });

  assert.equal(ask('POST', WIDGETS, widget('b', { a: 'x' })).status, 201);
  assert.deepEqual(specOf(ask('GET', `${other}/b`)), { a: 'x', both: 'b1' });
  const labelled = ask('PATCH', `${other}/b`, { metadata: { labels: { x: 'y' } } }, MERGE);
  // its defaults are filled in for the write, of which the owners of `v1` know nothing
  assert.match(labelled.text, /"generation":2/);
  assert(!labelled.text.includes('managedFields'), labelled.text);
  assert.deepEqual(specOf(labelled), { a: 'x', both: 'b1' });
});

test('watches end where another schema shows the objects otherwise', () => {
  const rig = started(SPEC);
  const path = `${DEFINITIONS}/widgets.example.com`;
  const watch = rig.ask('GET', `${WIDGETS}?watch=1`);
  rig.ask('PATCH', path, { metadata: { labels: { x: 'y' } } }, MERGE);
  rig.settle();
  assert(!watch.isEnded);
  const spec = { ...SPEC, properties: { ...SPEC.properties, more: { type: 'string' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const versions = [{ ...versionOf('v1', { schema }), storage: true }];
  assert.equal(rig.ask('PATCH', path, { spec: { versions } }, MERGE).status, 200);
  rig.settle();
  assert(watch.isEnded);
});

test('a null that may not be is applied, counted, and never shown', () => {
  const any = { 'x-kubernetes-preserve-unknown-fields': true };
  const rig = started({ type: 'object', properties: { a: any, b: { ...any, nullable: true } } });
  const apply = (spec: object): readonly unknown[] => {
    const answer = rig.ask('PATCH', `${WIDGETS}/w?fieldManager=m`, widget('w', spec), APPLY);
    const { metadata } = JSON.parse(answer.text) as { metadata: { generation: number } };
    return [metadata.generation, specOf(answer)];
  };
  assert.deepEqual(apply({ a: null }), [1, {}]);
  assert.deepEqual(apply({ a: null }), [2, {}]);
  assert.deepEqual(apply({ a: { x: null }, b: null }), [3, { a: { x: null }, b: null }]);
});

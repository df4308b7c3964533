/** What requests for custom resources are refused with, and told, in upstream's words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import { define, definitionOf, MERGE, startRig, versionOf } from '../../testing/definitions.sim.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const GADGETS = '/apis/example.com/v1';
const SPEC = {
  type: 'object',
  properties: { replicas: { type: 'integer', format: 'int32' }, pod: { type: 'object' } },
  'x-kubernetes-validations': [{ rule: 'self.replicas >= 0' }],
};
const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
};

function started() {
  const rig = startRig();
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: SPEC } } };
  const subresources = { status: {}, scale: SCALE };
  define(
    rig,
    definitionOf('widgets', [
      versionOf('v1', { schema, subresources }),
      versionOf('v1alpha1', { schema }),
    ]),
  );
  define(rig, definitionOf('gadgets', [versionOf('v1')], { scope: 'Cluster' }));
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };
  const made = rig.ask('POST', WIDGETS, { ...widget, spec: { replicas: 3 } });
  assert.equal(made.status, 201, made.text);
  return { ...rig, widget };
}

function told(exchange: ExchangeModel): string {
  const { message = '' } = JSON.parse(exchange.text) as { message?: string };
  return `${exchange.status} ${message}`;
}

test('subresources that a kind does not have, and methods that they do not', () => {
  const { ask } = started();
  const missing = '404 widgets.example.com "w" not found';
  assert.equal(told(ask('GET', `${WIDGETS}/w/foo`)), missing);
  const head = 'is not supported on resources of kind "widgets.example.com"';
  assert.equal(told(ask('DELETE', `${WIDGETS}/w/status`)), `405 delete ${head}`);
  assert.equal(told(ask('POST', `${WIDGETS}/w/scale`, {})), `405 create ${head}`);
});

test('paths of the other scope are no paths', () => {
  const { ask, widget } = started();
  for (const path of [`${GADGETS}/namespaces/default/gadgets`, `${GADGETS}/widgets/w`]) {
    assert.equal(ask('GET', path).text, '404 page not found\n');
  }
  assert.equal(ask('POST', `${GADGETS}/widgets`, widget).text, '404 page not found\n');
  assert.equal(ask('GET', `${GADGETS}/widgets`).status, 200);
});

test('a scale is of its object, and of its type', () => {
  const { ask } = started();
  const scale = JSON.parse(ask('GET', `${WIDGETS}/w/scale`).text) as { metadata: object };
  const put = (metadata: object): string =>
    told(
      ask('PUT', `${WIDGETS}/w/scale`, { ...scale, metadata: { ...scale.metadata, ...metadata } }),
    );
  const mismatch = '400 the name of the object (x) does not match the name on the URL (w)';
  assert.equal(put({ name: 'x' }), mismatch);
  assert.match(put({ uid: 'x' }), /^409 .*Precondition failed: UID in precondition: x,/);
  const patch = (spec: object, query = ''): ExchangeModel =>
    ask('PATCH', `${WIDGETS}/w/scale${query}`, { spec }, MERGE);
  const wrong = told(patch({ replicas: 'x' }));
  assert.match(wrong, /^422 .*Invalid value: "\{\\"apiVersion\\":\\"autoscaling\/v1\\"/);
  assert.match(wrong, /cannot unmarshal string into Go struct field ScaleSpec\.spec\.replicas/);
  const warned = patch({ foo: 1 });
  assert.equal(warned.status, 200);
  assert.ok(warned.headers.includes('299 - "unknown field \\"spec.foo\\""'));
  assert.match(told(patch({ foo: 1 }, '?fieldValidation=Strict')), /^422 .*strict decoding error/);
  const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
  assert.equal(ask('PATCH', `${WIDGETS}/w/scale`, { spec: {} }, strategic).status, 415);
});

test('a scale is read where its paths lead, and says what it found there instead', () => {
  const rig = startRig();
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const properties = { spec: { type: 'object', properties: { n: open } }, status: open };
  const schema = { openAPIV3Schema: { type: 'object', properties } };
  const scale = (specReplicasPath: string): object => ({
    scale: { ...SCALE, specReplicasPath, labelSelectorPath: '.status.sel.x' },
  });
  const subresources = scale('.spec.n.replicas');
  // what one version's paths cannot read may come by another
  const cogs = [versionOf('v1', { schema, subresources }), versionOf('v1alpha1', { schema })];
  define(rig, definitionOf('cogs', cogs));
  const path = '/apis/example.com/v1/namespaces/default/cogs';
  const alpha = '/apis/example.com/v1alpha1/namespaces/default/cogs';
  const cog = { apiVersion: 'example.com/v1', kind: 'Cog', metadata: { name: 'c' } };
  for (const [name, sel] of [
    ['c', 'a=b'],
    ['d', { x: 'a=b' }],
  ]) {
    const spec = { n: { replicas: 3 } };
    const other = { ...cog, apiVersion: 'example.com/v1alpha1', metadata: { name } };
    const made = rig.ask('POST', alpha, { ...other, spec, status: { sel } });
    assert.equal(made.status, 201, made.text);
  }
  const fault = 'accessor error: a=b is of the type string, expected map[string]interface{}';
  assert.equal(told(rig.ask('GET', `${path}/c/scale`)), `500 .status.sel.x ${fault}`);
  const patch = { spec: { replicas: 4 } };
  assert.equal(
    told(rig.ask('PATCH', `${path}/c/scale`, patch, MERGE)),
    `500 .status.sel.x ${fault}`,
  );
  const read = JSON.parse(rig.ask('GET', `${path}/d/scale`).text) as { status: object };
  assert.deepEqual(read.status, { replicas: 0, selector: 'a=b' });
  // replicas that the schema does not know are not kept
  define(rig, definitionOf('pins', [versionOf('v1', { schema, subresources: scale('.spec.m') })]));
  const pins = '/apis/example.com/v1/namespaces/default/pins';
  rig.ask('POST', pins, { ...cog, kind: 'Pin' });
  const scaled = rig.ask('PATCH', `${pins}/c/scale`, patch, MERGE);
  assert.equal(scaled.status, 200, scaled.text);
  assert.deepEqual((JSON.parse(scaled.text) as { spec: object }).spec, {});
});

test('what a patch makes is shown whole and sorted where it is refused', () => {
  const { ask } = started();
  const patch = (body: unknown): string => told(ask('PATCH', `${WIDGETS}/w`, body, MERGE));
  const labels = patch({ metadata: { labels: 'x' } });
  const shown = /^422 .*"\{\\"apiVersion\\":\\"example.com\/v1\\",\\"kind\\":\\"Widget\\",/;
  assert.match(labels, shown);
  assert.match(labels, /\\"labels\\":\\"x\\",\\"managedFields\\":\[/);
  assert.match(labels, /Go struct field ObjectMeta\.labels of type map\[string\]string$/);
  assert.equal(
    patch({ apiVersion: 'x/v1' }),
    '422 Widget.x "w" is invalid: apiVersion: Invalid value: "x/v1": must be example.com/v1',
  );
  assert.equal(
    patch({ apiVersion: 'v9' }),
    '422 Widget "w" is invalid: apiVersion: Invalid value: "v9": must be example.com/v1',
  );
  const nameless = patch({ kind: null });
  assert.match(nameless, /^422 {2}"" is invalid: patch: Invalid value: "\{\\"apiVersion\\"/);
  assert.match(nameless, /: Object 'Kind' is missing in '\{"apiVersion":"example\.com\/v1",/);
  assert.equal(patch(null), '400 Invalid JSON Patch');
});

test('of a version that the kind has not nothing is known', () => {
  const { ask, widget } = started();
  const warned = (version: string): boolean => {
    const body = { ...widget, apiVersion: `example.com/${version}`, spec: {} };
    const { status, headers } = ask('POST', WIDGETS, body);
    assert.equal(status, 400);
    return headers.includes('299 - "unknown field \\"spec\\""');
  };
  assert.equal(warned('v9'), true);
  assert.equal(warned('v1alpha1'), false);
});

test('bodies that are no objects are shown as hex, and metadata stand by themselves', () => {
  const { ask, widget } = started();
  const post = (body: unknown): string => told(ask('POST', WIDGETS, body));
  assert.match(post([]), /cannot unmarshal array into Go value of type struct \{.*\} \(5b5d\)$/);
  assert.match(post(null), /Object 'Kind' is missing in 'null' \(6e756c6c\)$/);
  const named = post({ ...widget, metadata: { name: 5 } });
  assert.match(named, /unmarshal number into Go struct field ObjectMeta\.name of type string$/);
  assert.match(post({ ...widget, metadata: [] }), /array into Go value of type v1\.ObjectMeta$/);
  assert.match(
    post({ ...widget, metadata: {} }),
    /name or generateName is required, <nil>: Invalid value: null: some validation rules/,
  );
});

test('finalizers without a domain are warned of once, and lists say where they go on', () => {
  const { ask } = started();
  const hold = { metadata: { finalizers: ['a', 'b.c', 'orphan'] } };
  const held = ask('PATCH', `${WIDGETS}/w`, hold, MERGE);
  const text = 'to avoid accidental conflicts with other finalizer writers';
  const name = 'prefer a domain-qualified finalizer name';
  assert.deepEqual(
    held.headers.filter((one) => one.startsWith('299')),
    [
      `299 - "metadata.finalizers: \\"a\\": ${name} ${text}"`,
      `299 - "metadata.finalizers: \\"b.c\\": ${name} including a path (/) ${text}"`,
    ],
  );
  const again = ask('PATCH', `${WIDGETS}/w`, { metadata: { labels: { a: 'b' } } }, MERGE);
  assert.ok(!again.headers.some((one) => one.startsWith('299')));
  const deleted = ask('DELETE', `${WIDGETS}?labelSelector=none=1`);
  assert.match(deleted.text, /"continue":""/);
});

test('what is nested too deeply is refused, however it comes', () => {
  const { ask } = started();
  const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const gadget = (levels: number): Buffer =>
    Buffer.from(
      '{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g"},' +
        `"spec":${deep(levels)}}`,
    );
  const path = `${GADGETS}/gadgets`;
  assert.match(told(ask('POST', path, gadget(1000))), /^400 .*invalid character '{' exceeded max/);
  assert.equal(ask('POST', path, gadget(998)).status, 201);
  const patch = Buffer.from(`{"spec":${deep(8000)}}`);
  const patched = ask('PATCH', `${path}/g`, patch, MERGE);
  const why = "400 error decoding patch: invalid character '{' exceeded max depth";
  assert.equal(told(patched), why);
  assert.equal(ask('GET', `${path}/g`).status, 200);
});

test('an apiVersion that is null, and owners of fields of embedded objects, are refused', () => {
  const { ask, widget, ...rig } = started();
  const head = '400 Widget in version "" cannot be handled as a Widget';
  const why = '.apiVersion accessor error: <nil> is of the type <nil>, expected string';
  assert.equal(told(ask('POST', WIDGETS, { ...widget, apiVersion: null })), `${head}: ${why}`);
  const pod = {
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  const schema = {
    openAPIV3Schema: { type: 'object', properties: { pod: { type: 'object', ...pod } } },
  };
  define(
    { ask, ...rig },
    definitionOf('crates', [versionOf('v1', { schema })], { scope: 'Cluster' }),
  );
  const held = (entry: object): string => {
    const metadata = { managedFields: [entry] };
    const made = ask('POST', `${GADGETS}/crates`, {
      ...{ apiVersion: 'example.com/v1', kind: 'Crate', metadata: { name: 'c' } },
      pod: { apiVersion: 'v1', kind: 'Pod', metadata },
    });
    return told(made).replace(/^.*managedFields\[0\]\./, '');
  };
  assert.equal(held({}), 'operation: Invalid value: "": must be `Apply` or `Update`');
  const owner = { operation: 'Update' };
  assert.equal(
    held({ ...owner, fieldsType: 'x' }),
    'fieldsType: Invalid value: "x": must be `FieldsV1`',
  );
  assert.equal(
    held({ ...owner, manager: 'ä\u0007' }),
    'manager: Invalid value: "ä\\a": invalid character U+0007 (at position 2)',
  );
  assert.equal(
    held({ ...owner, subresource: 'x'.repeat(257) }),
    'subresource: Too long: may not be more than 256 bytes',
  );
  assert.equal(held(owner), '201 ');
});

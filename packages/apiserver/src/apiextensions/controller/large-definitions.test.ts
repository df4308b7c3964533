/** Large definitions are read, judged and stored in turns between which others are served. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import { StorageModel } from '../../storage/storage-model.sim.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
  type Rig,
} from '../../testing/definitions.sim.ts';
import { packedDefinition, RecentDefinitions } from '../../storage/packed-definitions.ts';
import { schemaSpans, withSchemas } from '../definition/schema-spans.ts';

const PATH = `${DEFINITIONS}/widgets.example.com`;

interface Shown {
  readonly metadata: { readonly managedFields: readonly { readonly manager: string }[] };
  readonly spec: { readonly versions: readonly { readonly schema: unknown }[] };
  readonly status: { readonly conditions: readonly { readonly type: string }[] };
}

/** Two versions of some 150 KB each. */
function large(more: object = {}): ReturnType<typeof definitionOf> {
  const properties = Object.fromEntries(
    Array.from({ length: 1500 }, (_, index) => {
      return [`field${index}`, { type: 'string', description: 'Says what it says. '.repeat(4) }];
    }),
  );
  const spec = { type: 'object', properties };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec }, ...more } };
  return definitionOf('widgets', [versionOf('v1', { schema }), versionOf('v2', { schema })]);
}

/** How many turns a request takes until it is answered. */
function turnsOf(rig: Rig, exchange: ExchangeModel, status: number): number {
  assert.equal(exchange.status, 0, 'it is not answered in the turn that it came in');
  const turns = rig.settle();
  assert.equal(exchange.status, status, exchange.text.slice(0, 300));
  return turns;
}

function shown({ ask }: Rig): Shown {
  return JSON.parse(ask('GET', PATH).text) as Shown;
}

test('a large definition takes several turns, whatever is done with it', () => {
  const rig = startRig();
  assert.ok(turnsOf(rig, rig.ask('POST', DEFINITIONS, large()), 201) >= 2);
  const label = rig.ask('PATCH', PATH, { metadata: { labels: { a: 'b' } } }, MERGE);
  assert.ok(turnsOf(rig, label, 200) >= 3);
  assert.ok(turnsOf(rig, rig.ask('PUT', PATH, shown(rig)), 200) >= 4);
  const apply = { 'content-type': 'application/apply-patch+yaml' };
  const applied = rig.ask('PATCH', `${PATH}?fieldManager=a&force=true`, large(), apply);
  assert.ok(turnsOf(rig, applied, 200) >= 4);
  assert.ok(turnsOf(rig, rig.ask('DELETE', PATH), 200) >= 1);
  assert.equal(rig.ask('GET', PATH).status, 404);
});

test('the server writes statuses of definitions, and leaves their schemas as they were', () => {
  const rig = startRig();
  define(rig, definitionOf('gadgets', [versionOf('v1')]));
  const made = rig.ask('POST', DEFINITIONS, large());
  rig.settle();
  assert.equal(made.status, 201);
  const { metadata, spec, status } = shown(rig);
  const sent = large()['spec'] as Shown['spec'];
  assert.deepEqual(
    spec.versions.map(({ schema }) => schema),
    sent.versions.map(({ schema }) => schema),
  );
  assert.deepEqual(
    status.conditions.map(({ type }) => type),
    ['NamesAccepted', 'Established'],
  );
  const managers = metadata.managedFields.map(({ manager }) => manager);
  assert.deepEqual(managers.sort(), ['kube-apiserver', 'unknown']);
});

test('who writes between the turns of an update is not overwritten', () => {
  const rig = startRig();
  rig.ask('POST', DEFINITIONS, large());
  rig.settle();
  const first = rig.ask('PATCH', PATH, { metadata: { labels: { a: '1' } } }, MERGE);
  const second = rig.ask('PATCH', PATH, { metadata: { labels: { b: '2' } } }, MERGE);
  rig.settle();
  assert.deepEqual([first.status, second.status], [200, 200]);
  const { metadata } = JSON.parse(rig.ask('GET', PATH).text) as { metadata: { labels: object } };
  assert.deepEqual(metadata.labels, { a: '1', b: '2' });
  const stale = shown(rig);
  rig.ask('PATCH', PATH, { metadata: { labels: { c: '3' } } }, MERGE);
  const late = rig.ask('PUT', PATH, stale);
  rig.settle();
  assert.equal(late.status, 409, late.text.slice(0, 300));
});

test('who left while a large definition was read is not served', () => {
  const storage = new StorageModel();
  const rig = startRig({}, storage);
  const made = rig.ask('POST', DEFINITIONS, large());
  made.reset();
  rig.settle();
  assert.equal(rig.ask('GET', PATH).status, 404);
});

test('schemas are put back where they were', () => {
  const [one, other] = ['{"a":1}', '{"description":"two"}'];
  const text = (first: string, second: string): Buffer =>
    Buffer.from(`{"spec":{"versions":[{"schema":${first}},{"x":1},{"schema":${second}}]},"b":2}`);
  const bare = text('null', 'null');
  assert.equal(schemaSpans(bare, 0, bare.length).length, 2);
  const whole = withSchemas(bare, [Buffer.from(one), Buffer.from(other)]);
  assert.equal(String(whole), String(text(one, other)));
});

test('what was unpacked last is at hand, up to some megabytes', () => {
  const recent = new RecentDefinitions();
  const key = Buffer.from('/registry/apiextensions.k8s.io/customresourcedefinitions/widgets');
  const value = Buffer.from(JSON.stringify(large()));
  const packed = packedDefinition(key, value);
  assert.ok(packed.length < value.length);
  const once = recent.unpacked(7, packed, 0, packed.length);
  assert.ok(once.equals(value));
  assert.equal(recent.unpacked(7, packed, 0, packed.length), once);
  for (let revision = 8; revision < 12; revision++)
    recent.note(revision, Buffer.alloc(1024 * 1024));
  assert.notEqual(recent.unpacked(7, packed, 0, packed.length), once);
});

/** A start that finds many definitions: what is asked for is there, though not all were read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageModel } from '../../storage/storage-model.sim.ts';
import {
  define,
  DEFINITIONS,
  definitionOf,
  MERGE,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';

const COUNT = 200;
const plurals = Array.from({ length: COUNT }, (_, index) => `kind${1000 + index}s`);
const last = plurals.at(-1) ?? '';
const pathOf = (plural: string): string => `/apis/example.com/v1/namespaces/default/${plural}`;

/** A storage that a server has left behind. */
function filled(): StorageModel {
  const storage = new StorageModel();
  const rig = startRig({}, storage);
  for (const plural of plurals) define(rig, definitionOf(plural, [versionOf('v1')]));
  return storage;
}

test('a kind is served before the definitions in front of it were read', () => {
  const rig = startRig({}, filled());
  let known = 0;
  rig.api.parts.world.kinds.onChange(() => known++);
  assert.equal(rig.ask('GET', pathOf(last)).status, 200);
  assert.equal(known, 1);
  assert.equal(rig.ask('GET', pathOf('others')).status, 404);
  rig.settle();
  assert.ok(known > 100 && known < COUNT, String(known));
  assert.equal(rig.api.parts.world.kinds.size, COUNT);
});

test('discovery and OpenAPI wait for all kinds, and for them nobody waits', () => {
  const rig = startRig({}, filled());
  const asked = ['/apis/example.com/v1', '/apis', '/openapi/v3', '/api'].map((path) =>
    rig.ask('GET', path),
  );
  assert.deepEqual(
    asked.map(({ status }) => status),
    [0, 0, 0, 0],
  );
  assert.equal(rig.ask('GET', '/api/v1/namespaces/default').status, 200);
  assert.equal(rig.ask('GET', pathOf(last)).status, 200);
  assert.ok(rig.settle() > 5);
  const [version, groups, documents] = asked.map(({ text }) => text);
  const found = JSON.parse(version ?? '') as { resources: object[] };
  assert.equal(found.resources.length, COUNT);
  assert.match(groups ?? '', /"name":"example\.com"/);
  assert.match(documents ?? '', /apis\/example\.com\/v1/);
});

test('what changes while definitions are read is taken over in the end', () => {
  const storage = filled();
  const rig = startRig({}, storage);
  const [first = '', second = ''] = plurals.slice(-3);
  assert.equal(rig.ask('DELETE', `${DEFINITIONS}/${first}.example.com`).status, 200);
  const patch = { spec: { names: { shortNames: ['shrt'] } } };
  const path = `${DEFINITIONS}/${second}.example.com`;
  assert.equal(rig.ask('PATCH', path, patch, MERGE).status, 200);
  assert.equal(rig.ask('GET', pathOf(second)).status, 200);
  define(rig, definitionOf('newcomers', [versionOf('v1')]));
  rig.settle();
  const { kinds } = rig.api.parts.world;
  assert.equal(kinds.size, COUNT);
  assert.equal(kinds.ownerOf('example.com', 'resource', 'shrt'), `${second}.example.com`);
  assert.equal(rig.ask('GET', pathOf(first)).status, 404);
  assert.equal(rig.ask('GET', pathOf('newcomers')).status, 200);
});

/** Patches of long lists take steps by their length, not by its square. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringAt } from '../json/json.ts';
import { isObject, type JsonObject } from '../json/json-value.ts';
import { findTypeOfKind } from '../scheme/schema.ts';
import { applyPatch, parsePatch, type PatchKind } from './patch.ts';

const COUNT = 20_000;
/** Of processor time; by the square of the length it is many times as much. */
const PATCH_MS_MAX = 1500;
const names = Array.from({ length: COUNT }, (_, at) => ({ name: `c${at}` }));
const LIVE: JsonObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', finalizers: names.map(({ name }) => name) },
  spec: { containers: names },
};
const POD = findTypeOfKind('v1', 'Pod');

function patched(kind: PatchKind, body: unknown): ReturnType<typeof applyPatch> {
  const patch = parsePatch(kind, JSON.stringify(body));
  assert(patch.ok);
  const before = process.cpuUsage();
  const result = applyPatch(patch.value, LIVE, POD);
  const { user } = process.cpuUsage(before);
  assert(user / 1000 < PATCH_MS_MAX, `${user / 1000} ms`);
  return result;
}

function containersOf(result: ReturnType<typeof applyPatch>): string[] {
  assert(result.ok);
  const { spec } = result.value;
  assert(isObject(spec) && Array.isArray(spec['containers']));
  return spec['containers'].map((one) => stringAt(one, 'name'));
}

test('an order of 20,000 items, all of them new, deleted or merged', () => {
  const reversed = names.toReversed();
  const order = { '$setElementOrder/containers': reversed, containers: [{ name: 'c1' }] };
  const ordered = containersOf(patched('strategic', { spec: order }));
  assert.deepEqual([ordered[0], ordered.at(-1)], [`c${COUNT - 1}`, 'c0']);
  const fresh = names.map(({ name }) => ({ name: `new-${name}` }));
  assert.equal(
    containersOf(patched('strategic', { spec: { containers: fresh } })).length,
    2 * COUNT,
  );
  const gone = names.map(({ name }) => ({ name, $patch: 'delete' }));
  assert.deepEqual(containersOf(patched('strategic', { spec: { containers: gone } })), []);
  const finalizers = names.map(({ name }) => name);
  const all = { '$deleteFromPrimitiveList/finalizers': finalizers };
  const { ok } = patched('strategic', { metadata: all });
  assert(ok);
});

test('a JSON patch that moves too many items along is refused', () => {
  const from = '/spec/containers/0';
  const moves = names
    .slice(0, 10_000)
    .map(() => ({ op: 'move', from, path: '/spec/containers/1' }));
  assert.equal(patched('json', moves).ok, false);
  assert.equal(patched('json', moves.slice(0, 100)).ok, true);
});

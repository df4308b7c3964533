import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import fc from 'fast-check';
import { GarbageGraph } from './garbage-graph.ts';

const UIDS = Array.from({ length: 8 }, (_, i) => `0000000${i}-0000-4000-8000-00000000000${i}`);

const ascending = (a: number, b: number): number => a - b;

interface Thing {
  readonly name: number;
  readonly owners: readonly number[];
}

/** Objects of one kind, named by number, whose uid tells the number. */
class World {
  readonly checked: Set<number> = new Set();
  readonly graph: GarbageGraph;
  readonly #scan = new ObjectScan();
  readonly things: Map<number, Thing> = new Map();

  constructor() {
    this.graph = new GarbageGraph(new Random(1), {
      check: (_resource, row) => this.checked.add(row),
      locate: (_resource, _row, { name }) =>
        this.things.has(Number(name)) ? [0, Number(name)] : undefined,
      calledHash: (_resource, _row, { name }) => Number(name) + 1,
      placeHash: (_resource, row) => row + 1,
    });
    this.graph.addResource(0);
  }

  put(name: number, owners: readonly number[], more: object = {}): void {
    const isNew = !this.things.has(name);
    this.things.set(name, { name, owners });
    const ownerReferences = owners.map((owner) => ({
      apiVersion: 'v1',
      kind: 'Thing',
      name: String(owner),
      uid: UIDS[owner],
      blockOwnerDeletion: true,
    }));
    const metadata = { name: String(name), uid: UIDS[name], ownerReferences, ...more };
    const bytes = Buffer.from(JSON.stringify({ metadata }));
    this.#scan.scan(bytes, 0, bytes.length);
    this.graph.upsert(0, name, isNew, bytes, this.#scan);
  }

  remove(name: number): void {
    if (!this.things.delete(name)) return;
    this.graph.remove(0, name);
  }
}

test('an object is looked at when an owner goes, or was never there', () => {
  const world = new World();
  world.put(0, []);
  world.put(1, [0]);
  assert.deepEqual([...world.checked], []);
  world.put(2, [7]);
  assert.deepEqual([...world.checked], [2]);
  world.checked.clear();
  world.remove(0);
  assert.deepEqual([...world.checked], [1]);
});

test('an object that came before its owner is settled when the owner comes under its name', () => {
  const world = new World();
  world.put(1, [0]);
  assert.deepEqual([...world.checked], [1]);
  assert.equal(world.graph.isSettled(0, 1), false);
  world.put(0, []);
  assert.equal(world.graph.isSettled(0, 1), true);
  const misnamed = {
    ownerReferences: [{ apiVersion: 'v1', kind: 'Thing', name: '3', uid: UIDS[0] }],
  };
  world.put(2, [], misnamed);
  assert.equal(world.graph.isSettled(0, 2), false, 'the uid alone is not enough');
  const deletion = {
    deletionTimestamp: '2026-01-01T00:00:00Z',
    finalizers: ['foregroundDeletion'],
  };
  world.put(0, [], deletion);
  assert.equal(world.graph.isSettled(0, 1), false, 'an owner that waits');
  world.remove(0);
  assert.equal(world.graph.isSettled(0, 1), false, 'an owner that is gone');
});

test('an owner that waits in the foreground is looked at when a dependent goes', () => {
  const world = new World();
  world.put(0, []);
  world.put(1, [0]);
  const deletion = {
    deletionTimestamp: '2026-01-01T00:00:00Z',
    finalizers: ['foregroundDeletion'],
  };
  world.put(0, [], deletion);
  assert.deepEqual([...world.checked].sort(ascending), [0, 1]);
  world.checked.clear();
  world.remove(1);
  assert.deepEqual([...world.checked], [0]);
  assert.equal(world.graph.hasDependents(0, 0), false);
});

test('an owner that waits is looked at when a dependent lets go of it', () => {
  const world = new World();
  world.put(0, []);
  world.put(3, []);
  world.put(1, [0, 3]);
  world.put(0, [], { deletionTimestamp: 'x', finalizers: ['foregroundDeletion'] });
  world.checked.clear();
  world.put(1, [3]);
  assert.deepEqual([...world.checked], [0]);
});

test('what the server has not is remembered for all dependents', () => {
  const world = new World();
  world.put(1, [7]);
  world.put(2, [7, 6]);
  assert(!world.graph.isAbandoned(0, 1));
  world.graph.markAbsent(UIDS[7] ?? '');
  assert(world.graph.isAbandoned(0, 1));
  assert(!world.graph.isAbandoned(0, 2));
  assert.equal(world.graph.uidOf(0, 1), UIDS[1]);
  assert.equal(world.graph.search(0, UIDS[6] ?? '', 8), -1);
  world.put(6, []);
  assert.equal(world.graph.search(0, UIDS[6] ?? '', 8), undefined);
  world.put(3, [5]);
  world.put(5, []);
  assert.equal(world.graph.search(0, UIDS[5] ?? '', 8), 5);
  assert.equal(world.graph.search(0, UIDS[5] ?? '', 8), 5);
  world.remove(5);
  assert.equal(world.graph.search(0, UIDS[5] ?? '', 8), undefined);
});

test('dependents are exactly those that a naive model finds, whatever happens', () => {
  const step = fc.oneof(
    fc.record({ put: fc.nat(7), owners: fc.uniqueArray(fc.nat(7), { maxLength: 3 }) }),
    fc.record({ remove: fc.nat(7) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      for (const one of steps) {
        if ('put' in one) world.put(one.put, one.owners);
        else world.remove(one.remove);
      }
      let edges = 0;
      for (const { name } of world.things.values()) {
        const expected = [...world.things.values()]
          .filter(({ owners }) => owners.includes(name))
          .map((thing) => thing.name);
        const found: number[] = [];
        world.graph.dependents(0, name, (_resource, row) => found.push(row));
        assert.deepEqual(found.sort(ascending), expected.sort(ascending));
      }
      for (const { owners } of world.things.values()) edges += owners.length;
      assert.equal(world.graph.edges, edges);
    }),
  );
});

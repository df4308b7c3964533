import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { StorageOptions } from '../contract.ts';
import { newPage } from '../mvcc/ranges.ts';
import { Replica } from './replica.ts';
import { Store } from '../mvcc/store.ts';

const IN_MEMORY: StorageOptions = {
  dataDir: null,
  durability: 'none',
  prefixes: [{ prefix: 'b/' }],
};
const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 100 : 5000;

interface Shown {
  readonly key: string;
  readonly value: string;
  readonly mod: number;
  readonly create: number;
  readonly version: number;
}

function list(store: Store, revision: number): readonly Shown[] | number {
  const page = newPage();
  const bytes = Buffer.from('ac', 'latin1');
  const failure = store.range(bytes, 0, 1, 1, 2, revision, 0, page);
  if (failure !== 0) return failure;
  assert.equal(page.count, page.length);
  return [...page.refs.subarray(0, page.length)].map((ref) => ({
    key: store.record(ref).latin1Slice(store.keyAt(ref), store.keyTo(ref)),
    value: store.record(ref).latin1Slice(store.valueAt(ref), store.valueTo(ref)),
    mod: store.modRevision(ref),
    create: store.createRevision(ref),
    version: store.version(ref),
  }));
}

const change = fc.record({
  key: fc.constantFrom('a/1', 'a/2', 'b/1', 'b/2', 'b/3', 'z/outside'),
  value: fc.option(fc.string({ maxLength: 40, size: 'max' }), { nil: null }),
});
const history = fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), {
  maxLength: 40,
  size: 'max',
});

/** The changes of one revision, as far as they lie below `c`. */
interface Turn {
  readonly revision: number;
  readonly changes: readonly { readonly key: Buffer; readonly value: Buffer | null }[];
}

function play(origin: Store, turns: readonly (readonly { key: string; value: string | null }[])[]) {
  const told: Turn[] = [];
  for (const turn of turns) {
    const seen = new Map<string, Buffer | null>();
    const before = origin.appliedRevision;
    origin.begin();
    for (const { key, value } of turn) {
      if (seen.has(key)) continue;
      const bytes = Buffer.from(key);
      const state = value === null ? null : Buffer.from(value);
      if (state === null) {
        if (origin.delete(bytes, 0, bytes.length) === 0) continue;
      } else origin.put(bytes, 0, bytes.length, state, 0, state.length, 0);
      seen.set(key, state);
    }
    const revision = origin.commit();
    if (revision === before) continue;
    const changes = [...seen].flatMap(([key, value]) =>
      key < 'c' ? [{ key: Buffer.from(key), value }] : [],
    );
    told.push({ revision, changes });
  }
  return told;
}

function feed(replica: Replica, turns: readonly Turn[]): void {
  for (const { revision, changes } of turns) {
    if (changes.length === 0) continue;
    replica.begin(revision);
    for (const { key, value } of changes) {
      if (value === null) replica.delete(key);
      else replica.put(key, value);
    }
    replica.commit();
  }
}

function seed(replica: Replica, origin: Store): void {
  for (const one of list(origin, 0) as readonly Shown[]) {
    const value = Buffer.from(one.value, 'latin1');
    replica.seed(Buffer.from(one.key), value, one.mod, one.create, one.version);
  }
  replica.advance(origin.appliedRevision, true);
}

test('a replica answers every kept revision as its origin does', () => {
  fc.assert(
    fc.property(history, history, (before, after) => {
      const origin = new Store(IN_MEMORY, 1);
      const replica = new Replica(new Store(IN_MEMORY, 2));
      play(origin, before);
      seed(replica, origin);
      const first = origin.appliedRevision;
      feed(replica, play(origin, after));
      replica.advance(origin.appliedRevision);
      replica.store.flush();
      for (let revision = first; revision <= origin.appliedRevision; revision++) {
        assert.deepEqual(list(replica.store, revision), list(origin, revision));
      }
      if (first > 1) assert.equal(list(replica.store, first - 1), -1);
    }),
    { numRuns: RUNS },
  );
});

test('a watch of a replica tells what its feed told, and ends at a gap', () => {
  const replica = new Replica(new Store(IN_MEMORY, 3));
  const { store } = replica;
  replica.seed(Buffer.from('a/1'), Buffer.from('one'), 7, 5, 2);
  replica.advance(9, true);
  const range = Buffer.from('ac');
  const watch = store.watch(range, 0, 1, 1, 2, 10, { onEvents: () => {} });
  replica.begin(12);
  replica.put(Buffer.from('a/1'), Buffer.from('two'));
  replica.commit();
  store.flush();
  const ref = store.watchNext(watch);
  assert.deepEqual([store.modRevision(ref), store.createRevision(ref)], [12, 5]);
  assert.equal(store.version(ref), 3);
  assert.equal(store.modRevision(store.previous(ref)), 7);
  assert.equal(store.watchNext(watch), 0);
  replica.begin(20);
  replica.adopt(Buffer.from('a/2'), Buffer.from('new'), 15, 4);
  replica.commit();
  replica.advance(30, true);
  store.flush();
  assert.equal(store.watchNext(watch), -1);
  const found = store.get(Buffer.from('a/2'), 0, 3);
  assert.deepEqual([store.createRevision(found), store.version(found)], [15, 4]);
  assert.equal(store.publishedRevision, 30);
});

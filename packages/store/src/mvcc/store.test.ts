import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FAILURE, type StorageOptions } from '../contract.ts';
import { type Change, Model, type Version } from './model.sim.ts';
import { newPage } from './ranges.ts';
import { Store } from './store.ts';

const IN_MEMORY: StorageOptions = { dataDir: null, durability: 'none', prefixes: [] };
const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 150 : 20_000;

/** A range as one Buffer and its offsets. */
function range(start: string, end: string): [Buffer, number, number, number, number] {
  const bytes = Buffer.from(start + end, 'latin1');
  return [bytes, 0, start.length, start.length, start.length + end.length];
}

function read(store: Store, ref: number): Version {
  const bytes = store.record(ref);
  return {
    key: bytes.latin1Slice(store.keyAt(ref), store.keyTo(ref)),
    value: store.isTombstone(ref)
      ? null
      : bytes.latin1Slice(store.valueAt(ref), store.valueTo(ref)),
    mod: store.modRevision(ref),
    create: store.createRevision(ref),
    version: store.version(ref),
    lease: store.leaseLow(ref),
  };
}

function list(store: Store, start: string, end: string, revision: number, limit = 0) {
  const page = newPage();
  const failure = store.range(...range(start, end), revision, limit, page);
  const kvs = [...page.refs.subarray(0, page.length)].map((ref) => read(store, ref));
  return { failure, kvs, count: page.count, more: page.more };
}

function apply(store: Store, changes: readonly Change[]): number {
  store.begin();
  for (const change of changes) {
    const key = Buffer.from(change.key, 'latin1');
    if (change.kind === 'delete') store.delete(key, 0, key.length);
    else {
      const value = Buffer.from(change.value, 'latin1');
      const lease = change.lease === 0 ? 0 : store.leases.find(0, change.lease);
      store.put(key, 0, key.length, value, 0, value.length, lease);
    }
  }
  return store.commit();
}

const KEYS = ['/a/', '/a/x', '/a/x/1', '/a/x/2', '/a/y', '/b/', '/b/1', '/b/2', '/b/22', '/c', 'd'];
const key = fc.constantFrom(...KEYS);
const value = fc.oneof(
  fc.string({ maxLength: 12, unit: 'binary-ascii' }),
  fc.constant('v'.repeat(300_000)),
);
const lease = fc.constantFrom(0, 0, 1, 2);
const change = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), key, value, lease }),
  fc.record({ kind: fc.constant('delete' as const), key }),
);
const bound = fc.constantFrom(...KEYS, '/', '/a/x/11', '\0', '/a0', '/b0', 'zz');
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      changes: fc.uniqueArray(change, { maxLength: 4, selector: (one) => one.key }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('grant' as const), lease: fc.constantFrom(1, 2) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('revoke' as const), lease: fc.constantFrom(1, 2) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const), back: fc.nat(8) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('watch' as const),
      start: bound,
      end: fc.oneof(bound, fc.constant('')),
      back: fc.integer({ min: -2, max: 8 }),
      greed: fc.nat(3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      start: bound,
      end: fc.oneof(bound, fc.constant('')),
      back: fc.integer({ min: -1, max: 8 }),
      limit: fc.nat(4),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Watch {
  readonly start: string;
  readonly end: string;
  readonly from: number;
  readonly greed: number;
  readonly seen: Version[];
  id: number;
  isCompacted: boolean;
}

class World {
  readonly store: Store;
  readonly model = new Model();
  readonly watches: Watch[] = [];

  constructor(options: StorageOptions) {
    this.store = new Store(options, 1);
  }

  take(watch: Watch, count: number): void {
    for (let i = 0; i < count; i++) {
      const ref = this.store.watchNext(watch.id);
      if (ref === FAILURE.compacted) watch.isCompacted = true;
      if (ref <= 0) return;
      watch.seen.push(read(this.store, ref));
    }
  }

  run(one: Step): void {
    const { store, model } = this;
    switch (one.do) {
      case 'write': {
        const changes = one.changes.filter(
          (change) =>
            change.kind === 'delete' || change.lease === 0 || model.leases.has(change.lease),
        );
        assert.equal(apply(store, changes), model.apply(changes));
        break;
      }
      case 'grant':
        assert.equal(store.leases.grant(0, one.lease, 60, 0) > 0, !model.leases.has(one.lease));
        model.leases.add(one.lease);
        break;
      case 'revoke': {
        const expected = model.leases.has(one.lease)
          ? model.revoke(one.lease)
          : FAILURE.leaseNotFound;
        const number = store.leases.find(0, one.lease);
        assert.equal(store.leases.revoke(number), expected);
        break;
      }
      case 'compact': {
        const revision = Math.max(0, model.revision - one.back);
        const isPast = revision <= model.compacted;
        assert.equal(store.compact(revision), isPast ? FAILURE.compacted : 0);
        model.compacted = Math.max(model.compacted, revision);
        break;
      }
      case 'turn':
        store.flush();
        store.tick(0);
        break;
      case 'watch':
        this.watch(one.start, one.end, Math.max(1, model.revision - one.back), one.greed);
        break;
      case 'list':
        this.list(one.start, one.end, model.revision - one.back, one.limit);
        break;
    }
  }

  watch(start: string, end: string, from: number, greed: number): void {
    const watch: Watch = { start, end, from, greed, seen: [], id: 0, isCompacted: false };
    const onEvents = (): void => this.take(watch, greed === 0 ? 1000 : greed - 1);
    watch.id = this.store.watch(...range(start, end), from, { onEvents });
    this.watches.push(watch);
  }

  list(start: string, end: string, revision: number, limit: number): void {
    const found = list(this.store, start, end, revision, limit);
    if (revision > this.model.revision) {
      assert.equal(found.failure, FAILURE.futureRevision);
    } else if (revision > 0 && revision < this.model.compacted) {
      assert.equal(found.failure, FAILURE.compacted);
    } else {
      const all = this.model.range(start, end, revision > 0 ? revision : this.model.revision);
      const kvs = limit > 0 ? all.slice(0, limit) : all;
      assert.deepEqual(found, {
        failure: 0,
        kvs,
        count: all.length,
        more: kvs.length < all.length,
      });
      assert.equal(this.store.count(...range(start, end), revision), all.length);
    }
  }

  /** Everything is published: each watcher takes the rest and must have seen it all. */
  finish(): void {
    for (let i = 0; i < 5; i++) {
      this.store.flush();
      this.store.tick(0);
    }
    for (const watch of this.watches) {
      this.take(watch, 10_000);
      const expected = this.model.events(watch.start, watch.end, watch.from);
      if (!watch.isCompacted) {
        assert.deepEqual(watch.seen, expected);
        assert.equal(this.store.watchIsCurrent(watch.id), watch.from <= this.model.revision + 1);
      } else {
        assert.deepEqual(watch.seen, expected.slice(0, watch.seen.length));
        assert(watch.from <= this.model.compacted);
      }
      this.store.unwatch(watch.id);
    }
    assert.equal(this.store.hub.rangeCount, 0);
  }
}

function story(options: StorageOptions): (steps: Step[]) => void {
  return (steps) => {
    const world = new World(options);
    for (const one of steps) world.run(one);
    world.finish();
    for (let back = 0; back < 6; back++) world.list('\0', '\0', world.model.revision - back, 0);
  };
}

test('any history reads, counts and watches as the naive model does', () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 60, size: 'max' }), story(IN_MEMORY)), {
    numRuns: RUNS,
  });
});

test('keys of several classes keep one order of revisions', () => {
  const prefixes = [{ prefix: '/a/' }, { prefix: '/a/x/' }, { prefix: '/b/' }];
  const options = { ...IN_MEMORY, prefixes };
  fc.assert(fc.property(fc.array(step, { maxLength: 60, size: 'max' }), story(options)), {
    numRuns: RUNS,
  });
});

test('a history budget cuts its own prefix and leaves the others', () => {
  const prefixes = [{ prefix: '/leases/', historyBytesMax: 10_000 }];
  const store = new Store({ ...IN_MEMORY, prefixes }, 1);
  for (let i = 0; i < 1000; i++) {
    apply(store, [{ kind: 'put', key: `/leases/${i % 10}`, value: 'x'.repeat(100), lease: 0 }]);
    apply(store, [{ kind: 'put', key: '/pods/a', value: `${i}`, lease: 0 }]);
    store.flush();
    store.tick(0);
  }
  assert.equal(list(store, '/leases/', '/leases0', 100).failure, FAILURE.compacted);
  assert.equal(list(store, '/pods/', '/pods0', 100).failure, 0);
  assert.equal(list(store, '/leases/', '/leases0', store.appliedRevision - 20).count, 10);
  assert.equal(list(store, '/', '0', 100).failure, FAILURE.compacted);
  assert((store.classes.all[1]?.historyBytes ?? 0) < 10_500);
});

test('a budget with two bounds is half of what is alive between them', () => {
  const prefixes = [{ prefix: '/pods/', historyBytesMin: 10_000, historyBytesMax: 100_000 }];
  const store = new Store({ ...IN_MEMORY, prefixes }, 1);
  const value = 'x'.repeat(440);
  const history = (keys: number): number => {
    for (let i = 0; i < 2000; i++) {
      apply(store, [{ kind: 'put', key: `/pods/${i % keys}`, value, lease: 0 }]);
      store.flush();
      store.tick(0);
    }
    return store.classes.all[1]?.historyBytes ?? 0;
  };
  const size = history(1) / Math.floor(10_000 / 496);
  assert(Math.abs(size - 496) < 32, `a version takes ${size}`);
  assert(Math.abs(history(100) / size - 50) <= 1);
  assert(Math.abs(history(1000) - 100_000) <= size);
});

test('a put of many versions and a compaction give all arenas but the last ones back', () => {
  const store = new Store(IN_MEMORY, 1);
  const value = 'x'.repeat(100_000);
  for (let i = 0; i < 2000; i++) {
    apply(store, [{ kind: 'put', key: `k${i % 20}`, value, lease: 0 }]);
  }
  assert(store.arenas.allocatedBytes > 200_000_000);
  store.flush();
  store.compact(store.appliedRevision);
  while (store.sweep.hasWork) store.tick(0);
  assert(store.arenas.allocatedBytes <= 3 * 4 * 1024 * 1024);
  assert.equal(list(store, '\0', '\0', 0).count, 20);
});

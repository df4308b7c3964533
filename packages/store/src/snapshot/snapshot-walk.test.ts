import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { SnapshotWalk } from './snapshot-walk.ts';
import { Store } from '../mvcc/store.ts';

const SEEDS = 8;
const WRITES = 500;
const KEYS = 60;
/** So that a store of few keys has many arenas. */
const VALUE_BYTES_MAX = 30_000;
const PREFIXES = [
  { prefix: 'unlogged/', durability: 'none' as const },
  { prefix: 'budget/', historyBytesMax: 2 ** 20 },
];

class Writer {
  readonly store: Store;
  readonly #random: Random;
  readonly #value: Buffer = Buffer.alloc(VALUE_BYTES_MAX + 64, 'v');

  constructor(random: Random) {
    this.#random = random;
    this.store = new Store({ dataDir: 'nowhere', durability: 'buffered', prefixes: PREFIXES }, 3);
  }

  change(): void {
    const random = this.#random;
    const prefix = ['', ...PREFIXES.map((policy) => policy.prefix)][random.below(3)];
    const size = this.#value.write(`${prefix}${random.below(KEYS)}`, 'latin1');
    if (random.below(4) === 0) this.store.deleteIf(this.#value, 0, size, -1);
    else {
      const valueTo = size + random.below(VALUE_BYTES_MAX);
      this.store.putIf(this.#value, 0, size, -1, this.#value, size, valueTo, 0);
    }
  }

  publish(): void {
    this.store.flush();
    this.store.publish(this.store.appliedRevision);
  }
}

/** By its definition: the newest of each key at or before the cut, and all that came after. */
function expected({ keys, arenas, classes }: Store, cuts: readonly number[]): Set<number> {
  const found = new Set<number>();
  for (let id = 1; id < keys.idEnd; id++) {
    if (classes.all[keys.classOf(id)]!.durability === 'none') continue;
    const cut = cuts[keys.classOf(id)]!;
    for (let ref = keys.head(id); ref !== 0; ref = arenas.previous(ref)) {
      const revision = arenas.modRevision(ref);
      if (revision >= cut || !arenas.isTombstone(ref)) found.add(ref);
      if (revision <= cut) break;
    }
  }
  return found;
}

test('a snapshot holds what was kept when it began, oldest first, whatever happens then', () => {
  let replaced = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = new Random(seed);
    const writer = new Writer(random);
    const { store } = writer;
    for (let i = 0; i < WRITES; i++) {
      writer.change();
      if (random.below(20) === 0) writer.publish();
      if (random.below(100) === 0) {
        store.compact(store.publishedRevision);
        for (let slices = 0; slices < 50; slices++) store.tick(seed + i * 1000);
      }
    }
    writer.publish();
    store.sweep.hold();
    const last = store.appliedRevision;
    const cuts = store.classes.all.map((klass) => {
      const later = random.below(3) === 0 ? 0 : random.below(last - klass.boundary + 1);
      return klass.boundary + later;
    });
    const wanted = expected(store, cuts);
    const newest = new Map<number, number>();
    const walk = new SnapshotWalk(store, cuts, 2 + random.below(10));
    while (walk.collect()) {
      for (const ref of walk.refs.subarray(0, walk.length)) {
        const id = store.arenas.keyId(ref);
        const revision = store.arenas.modRevision(ref);
        assert(wanted.delete(ref), `seed ${seed}: revision ${revision} does not belong there`);
        assert(revision > (newest.get(id) ?? 0), `seed ${seed}: revision ${revision} comes late`);
        newest.set(id, revision);
        if (store.keys.head(id) !== ref && revision <= cuts[store.keys.classOf(id)]!) replaced++;
      }
      for (let i = random.below(6); i > 0; i--) writer.change();
      if (random.below(3) === 0) writer.publish();
    }
    assert.equal(wanted.size, 0, `seed ${seed}: ${wanted.size} records are missing`);
    store.sweep.release();
  }
  assert(replaced > 100, `${replaced} of the oldest records were replaced: too few to tell`);
});

// data plane: a store that follows another one, at that one's revisions
/**
 * A replica is a store in memory that nobody writes to but its feed. It begins with the state of
 * the origin at one revision and takes each later revision as a whole, so that every read, count,
 * history and watch of it answers as the origin would.
 *
 * What happened while the feed was broken for too long cannot be told: `advance(to, true)` then
 * moves the boundary of history up, and watches that were behind it end as compacted.
 */
import { assertWhole } from '@megaplane/base/assert';
import { Arenas, GRANULE_BITS, arenaOf } from '../record/arenas.ts';
import type { Store } from '../mvcc/store.ts';

const GRANULE_MASK = (1 << GRANULE_BITS) - 1;

export class Replica {
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  /** Revision up to which the origin's changes are all in. */
  get revision(): number {
    return this.store.appliedRevision;
  }

  /**
   * One key of the first state, in any order of revisions: there are no events for it. After the
   * last one call `advance(revision, true)`.
   */
  seed(key: Buffer, value: Buffer, modRevision: number, create: number, version: number): void {
    const { arenas, keys, classes, live } = this.store;
    keys.load(key, 0, key.length);
    assertWhole(keys.find() === 0, 'a key is seeded twice');
    const klass = classes.ofKey(key, 0, key.length);
    const ref = arenas.allocate(klass, Arenas.sizeOf(key.length, value.length, false));
    const arena = arenaOf(ref);
    const at = (ref & GRANULE_MASK) << 2;
    const words = arenas.words[arena]!;
    arenas.doubles[arena]![(at >> 1) + 1] = modRevision;
    arenas.doubles[arena]![(at >> 1) + 2] = create;
    words[at + 6] = version;
    words[at + 7] = value.length;
    words[at + 8] = 0;
    words[at + 9] = key.length;
    for (let i = 0; i < (key.length + 3) >> 2; i++) words[at + 10 + i] = keys.words[i]!;
    value.copy(arenas.bytes[arena]!, arenas.valueAt(ref));
    if (modRevision > arenas.lastRevision[arena]!) arenas.lastRevision[arena] = modRevision;
    const id = keys.insert(ref, klass);
    arenas.setPrevious(ref, 0);
    live.insert(id);
  }

  /**
   * Brings the replica to just before `revision`; `isGap` when changes were missed on the way.
   * Older revisions are left alone.
   */
  advance(revision: number, isGap: boolean = false): void {
    const { store } = this;
    if (revision > store.appliedRevision) store.follow(revision);
    if (isGap) store.compact(store.appliedRevision);
  }

  /** Opens the changes of `revision`, which must be newer than all before. */
  begin(revision: number): void {
    assertWhole(revision > this.store.appliedRevision, 'a replica is given an old revision');
    if (revision - 1 > this.store.appliedRevision) this.store.follow(revision - 1);
    this.store.begin();
  }

  put(key: Buffer, value: Buffer): void {
    this.store.put(key, 0, key.length, value, 0, value.length, 0);
  }

  delete(key: Buffer): void {
    this.store.delete(key, 0, key.length);
  }

  /** A key as the origin has it now, where what came before was not seen. */
  adopt(key: Buffer, value: Buffer, createRevision: number, version: number): void {
    const { store } = this;
    const ref = store.put(key, 0, key.length, value, 0, value.length, 0);
    const arena = ref >>> GRANULE_BITS;
    const word = (ref & GRANULE_MASK) << 2;
    store.arenas.doubles[arena]![(word >> 1) + 2] = createRevision;
    store.arenas.words[arena]![word + 6] = version;
  }

  /** All changes of the revision are in. */
  commit(): void {
    this.store.commit();
  }
}

// data plane: which records a snapshot holds, in the order in which it holds them
/**
 * A snapshot "as of revision S" holds two kinds of records. Of each key the newest one at or before
 * the cut of its class (`base`); and all changes behind the cut up to S.
 *
 * The base is found by walking the arenas in the order of their memory: by keys, each record is a
 * cache miss or several, eight times the work. A record there belongs to the base when it is at or
 * before the cut and nothing newer is there of its key. What was replaced behind the cut is named
 * by the event that replaced it; so events are looked at before each slice of the walk, also those
 * that come while it goes on, and what they replaced is taken then, unless the walk was there when
 * it was still the newest.
 *
 *   arenas   [ taken as the newest of its key | taken from events, or by the walk when it comes ]
 *                                             ^ walk
 *
 * The changes follow in their own order. So the records of a key come oldest first.
 *
 * The caller holds the sweep from before the start to the end: nothing is freed or moved.
 */
import { FLAG_GARBAGE, FLAG_TOMBSTONE, arenaOf, offsetOf, refAt } from '../record/arenas.ts';
import type { KeyClass } from '../record/classes.ts';
import { recordSize } from '../recovery/record-shelf.ts';
import type { Store } from '../mvcc/store.ts';

/** Records looked at per slice: half a millisecond with those that are copied. */
const SLICE_RECORDS = 2048;
/** Events, for each of those: more than ever come between two slices, or the walk would stand. */
const EVENTS_PER_RECORD = 4;

export class SnapshotWalk {
  readonly #store: Store;
  /** Class -> the revision before which only the newest record of a key counts. */
  readonly #cuts: readonly number[];
  readonly #sliceRecords: number;
  /** Class -> events behind the cut before this one were looked at for what they replaced. */
  readonly #seen: number[];
  /** Class -> the next change to take, and the first one that came after S. */
  readonly #changes: number[];
  readonly #changesEnd: readonly number[];
  /** Where the walk is, and the first arena that was not there when it began. */
  #walk: number = refAt(1, 0);
  readonly #arenaEnd: number;
  /** What `collect` found; the first `length` count. */
  readonly refs: Uint32Array;
  length = 0;

  /** As of now. `cuts` are revisions by class. */
  constructor(store: Store, cuts: readonly number[], sliceRecords: number = SLICE_RECORDS) {
    this.#store = store;
    this.#cuts = cuts;
    this.#sliceRecords = sliceRecords;
    this.refs = new Uint32Array(sliceRecords * (EVENTS_PER_RECORD + 1));
    const { all } = store.classes;
    this.#seen = all.map(({ number, events }) => events.seek(cuts[number]! + 1));
    this.#changes = [...this.#seen];
    // What the log does not hold must not come back from a snapshot either, older than it was.
    this.#changesEnd = all.map((klass) => (isLogged(klass) ? klass.events.next : 0));
    this.#arenaEnd = store.arenas.used.length;
  }

  /** Fills `refs` with what comes next, maybe with nothing yet; false when all was collected. */
  collect(): boolean {
    this.length = 0;
    if (arenaOf(this.#walk) < this.#arenaEnd) {
      if (this.#collectReplaced()) this.#collectNewest();
      return true;
    }
    this.#collectChanges();
    return this.length > 0;
  }

  /** False when there are more events to look at before the walk may go on. */
  #collectReplaced(): boolean {
    const { arenas, classes } = this.#store;
    const walk = this.#walk;
    let budget = this.#sliceRecords * EVENTS_PER_RECORD;
    for (const klass of classes.all) {
      if (!isLogged(klass)) continue;
      const { number, events } = klass;
      const cut = this.#cuts[number]!;
      let position = this.#seen[number]!;
      const end = Math.min(events.next, position + budget);
      budget -= end - position;
      for (; position < end; position++) {
        const ref = arenas.previous(events.at(position));
        if (ref < walk) continue;
        const revision = arenas.modRevision(ref);
        if (revision > cut || (revision < cut && arenas.isTombstone(ref))) continue;
        this.refs[this.length++] = ref;
      }
      this.#seen[number] = end;
      if (end < events.next) return false;
    }
    return true;
  }

  #collectNewest(): void {
    let budget = this.#sliceRecords;
    let arena = arenaOf(this.#walk);
    let at = offsetOf(this.#walk);
    while (budget > 0 && arena < this.#arenaEnd) {
      const end = this.#walkEnd(arena);
      for (; at < end && budget > 0; budget--) at = this.#look(arena, at);
      if (at < end) break;
      // Behind a giant its followers are empty.
      arena++;
      at = 0;
      budget--;
    }
    this.#walk = refAt(arena, at);
  }

  /** How far the records of an arena are worth a look. */
  #walkEnd(arena: number): number {
    const { arenas, classes } = this.#store;
    const klass = classes.all[arenas.classOf[arena]!]!;
    return isLogged(klass) && this.#cuts[klass.number]! > 0 ? arenas.used[arena]! : 0;
  }

  /** Takes the record of an arena if it belongs to the base; returns where the next one is. */
  #look(arena: number, at: number): number {
    const { arenas, keys } = this.#store;
    const words = arenas.words[arena]!;
    const word = at >> 2;
    const flags = words[word + 9]! >>> 24;
    const next = at + recordSize(words, word);
    if ((flags & FLAG_GARBAGE) !== 0) return next;
    const cut = this.#cuts[arenas.classOf[arena]!]!;
    const revision = arenas.doubles[arena]![(at >> 3) + 1]!;
    if (revision > cut || (revision < cut && (flags & FLAG_TOMBSTONE) !== 0)) return next;
    const ref = refAt(arena, at);
    if (keys.head(words[word]!) === ref) this.refs[this.length++] = ref;
    return next;
  }

  #collectChanges(): void {
    for (const { number, events } of this.#store.classes.all) {
      let position = this.#changes[number]!;
      const room = this.#sliceRecords - this.length;
      const end = Math.min(this.#changesEnd[number]!, position + room);
      for (; position < end; position++) this.refs[this.length++] = events.at(position);
      this.#changes[number] = position;
    }
  }
}

function isLogged({ durability }: KeyClass): boolean {
  return durability !== 'none';
}

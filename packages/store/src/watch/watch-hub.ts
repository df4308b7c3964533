// data plane: watchers as cursors into the event logs
/**
 * A watcher is a row of numbers: the range that it watches and the last event that it took. It is
 * *live* when it took everything published, else *lagging*. Publication collects, per watched
 * range, the refs of this turn's events (`entry` lists) and wakes the range's live watchers once.
 * Whoever does not take all of its entries then is lagging: it will find the rest in the event
 * log (or, watching one key, in the key's chain of versions), from its place on. So there is no
 * queue per watcher, and a slow one costs 40 bytes.
 */
import { assertWhole } from '@megaplane/base/assert';
import type { Arenas } from '../record/arenas.ts';
import type { KeyClass, KeyClasses } from '../record/classes.ts';
import { FAILURE, type Watcher } from '../contract.ts';
import type { KeyIndex } from '../record/key-index.ts';
import { WatchOwners } from './watch-owners.ts';
import { WatchReading } from './watch-reading.ts';
import { RANGE_KEY, WatchRanges, grown, isInside } from './watch-ranges.ts';

const DEAD = 0;
const LIVE = 1;
const LAGGING = 2;
const SUB_END = 0xffffffff;
/** Events that one call of `next` looks at before it says "later": about half a millisecond. */
const SCAN_EVENTS_MAX = 4096;
/**
 * Work of one call of `wakeRestless`, in events looked at, a watcher for some more: a few
 * milliseconds. A client that comes back resumes all its watches at once.
 */
const WAKE_EVENTS_MAX = 16_384;
const WAKE_WATCHER_EVENTS = 16;
/** Versions of a watched key that are taken from its chain; more are looked for in the log. */
const CHAIN_VERSIONS_MAX = 4096;

export class WatchHub {
  readonly #arenas: Arenas;
  readonly #keys: KeyIndex;
  readonly #classes: KeyClasses;
  readonly #ranges = new WatchRanges();
  // By watcher.
  #states = new Uint8Array(64);
  #rangeOf = new Uint32Array(64);
  #nextInRange = new Uint32Array(64);
  #previousInRange = new Uint32Array(64);
  #entryOf = new Uint32Array(64);
  /** The last event taken, or looked at and left. */
  #lastRevision = new Float64Array(64);
  #lastSub = new Uint32Array(64);
  #ownerOf = new Uint32Array(64);
  readonly #owners = new WatchOwners();
  #idEnd = 1;
  readonly #free: number[] = [];
  #size = 0;
  // By range.
  #firstWatcher = new Uint32Array(64);
  #headEntry = new Uint32Array(64);
  // This turn's events: refs in lists per range. Entry 0 ends a list.
  #entryRefs = new Uint32Array(256);
  #entryNext = new Uint32Array(256);
  /** The last entry of the list that an entry begins. */
  #entryTail = new Uint32Array(256);
  #entryEnd = 1;
  readonly #touched: number[] = [];
  readonly #matched: number[] = [];
  readonly #woken: number[] = [];
  /** Watchers that want to be called again: new with history, or out of scan budget. */
  #restless: number[] = [];
  // The scan that is under way: places per class, for one watcher.
  #scanned = 0;
  readonly #places: number[] = [];
  #scanClasses: KeyClass[] = [];
  #scanStart: Buffer = Buffer.alloc(0);
  #scanEnd: Buffer = this.#scanStart;
  /** Events that scans have looked at. */
  #looked = 0;
  /** Revision of which the scan may have returned something. */
  #scanReturned = 0;
  // Watching one key: what is still to be taken of its versions, the newest first.
  #isChain = false;
  readonly #chain = new Uint32Array(CHAIN_VERSIONS_MAX);
  #chainSize = 0;
  readonly #reading = new WatchReading();
  #published = 1;

  constructor(arenas: Arenas, keys: KeyIndex, classes: KeyClasses) {
    this.#arenas = arenas;
    this.#keys = keys;
    this.#classes = classes;
  }

  /** Open watchers. */
  get size(): number {
    return this.#size;
  }

  /** Distinct ranges watched. */
  get rangeCount(): number {
    return this.#ranges.size;
  }

  get hasRestless(): boolean {
    return this.#restless.length > 0;
  }

  open(
    bytes: Uint8Array,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    fromRevision: number,
    watcher: Watcher,
  ): number {
    const id = this.#free.length > 0 ? this.#free.pop()! : this.#idEnd++;
    if (id >= this.#states.length) this.#grow();
    assertWhole(this.#states[id] === DEAD, 'a number is that of one watcher');
    const range = this.#ranges.open(bytes, at, to, endAt, endTo);
    if (range >= this.#firstWatcher.length) {
      this.#firstWatcher = grown(this.#firstWatcher, range);
      this.#headEntry = grown(this.#headEntry, range);
    }
    const first = this.#firstWatcher[range]!;
    this.#nextInRange[id] = first;
    this.#previousInRange[id] = 0;
    if (first !== 0) this.#previousInRange[first] = id;
    this.#firstWatcher[range] = id;
    this.#rangeOf[id] = range;
    this.#entryOf[id] = 0;
    this.#ownerOf[id] = this.#owners.hold(watcher);
    this.#size++;
    const isFuture = fromRevision === 0 || fromRevision > this.#published;
    this.#lastRevision[id] = fromRevision === 0 ? this.#published : fromRevision - 1;
    this.#lastSub[id] = SUB_END;
    this.#states[id] = isFuture ? LIVE : LAGGING;
    if (!isFuture) this.#restless.push(id);
    return id;
  }

  #grow(): void {
    const size = this.#states.length * 2;
    const states = new Uint8Array(size);
    states.set(this.#states);
    this.#states = states;
    const revisions = new Float64Array(size);
    revisions.set(this.#lastRevision);
    this.#lastRevision = revisions;
    this.#rangeOf = grown(this.#rangeOf, size - 1);
    this.#ownerOf = grown(this.#ownerOf, size - 1);
    this.#nextInRange = grown(this.#nextInRange, size - 1);
    this.#previousInRange = grown(this.#previousInRange, size - 1);
    this.#entryOf = grown(this.#entryOf, size - 1);
    this.#lastSub = grown(this.#lastSub, size - 1);
  }

  close(id: number): void {
    if (this.#states[id] === DEAD) return;
    this.#reading.forget();
    const range = this.#rangeOf[id]!;
    const next = this.#nextInRange[id]!;
    const previous = this.#previousInRange[id]!;
    const before = previous === 0 ? this.#firstWatcher[range]! : this.#nextInRange[previous]!;
    assertWhole(before === id, 'a watcher is in the list of its range');
    if (next !== 0) this.#previousInRange[next] = previous;
    if (previous !== 0) this.#nextInRange[previous] = next;
    else this.#firstWatcher[range] = next;
    // A range touched in this turn is closed when the turn's lists are cleared.
    if (previous === 0 && next === 0 && this.#headEntry[range] === 0) this.#ranges.close(range);
    this.#states[id] = DEAD;
    this.#owners.release(this.#ownerOf[id]!);
    this.#free.push(id);
    this.#size--;
    const numbers = this.#size + this.#free.length;
    assertWhole(numbers === this.#idEnd - 1, 'a number is of an open watcher, or free');
    if (this.#scanned === id) this.#scanned = 0;
  }

  /** Shows watchers the events up to a revision, class logs merged in order; wakes them. */
  publish(revision: number): void {
    assertWhole(revision >= this.#published, 'what was shown is not taken back');
    this.#published = revision;
    this.#scanned = 0;
    this.#reading.forget();
    if (this.#size === 0) {
      for (const klass of this.#classes.all) this.#skipTo(klass, revision);
      return;
    }
    for (;;) {
      const klass = this.#nextClass(this.#classes.all, revision);
      if (klass === null) break;
      this.#dispatch(klass.events.at(klass.publishedPosition));
      klass.publishedPosition++;
    }
    this.#wake();
  }

  /** Nobody watches: everything up to the revision counts as shown. */
  #skipTo(klass: KeyClass, revision: number): void {
    const { events } = klass;
    if (klass.publishedPosition === events.next) return;
    const isAll = this.#arenas.modRevision(events.at(events.next - 1)) <= revision;
    klass.publishedPosition = isAll ? events.next : events.seek(revision + 1);
  }

  /** The class whose next unpublished event is the oldest, if one is due. */
  #nextClass(classes: readonly KeyClass[], revision: number): KeyClass | null {
    let best: KeyClass | null = null;
    let bestRef = 0;
    for (let i = 0; i < classes.length; i++) {
      const klass = classes[i]!;
      if (klass.publishedPosition >= klass.events.next) continue;
      const ref = klass.events.at(klass.publishedPosition);
      if (this.#arenas.modRevision(ref) > revision) continue;
      if (best === null || this.#isBefore(ref, bestRef)) {
        best = klass;
        bestRef = ref;
      }
    }
    return best;
  }

  #isBefore(a: number, b: number): boolean {
    const difference = this.#arenas.modRevision(a) - this.#arenas.modRevision(b);
    return difference < 0 || (difference === 0 && this.#arenas.sub(a) < this.#arenas.sub(b));
  }

  #dispatch(ref: number): void {
    const at = this.#arenas.keyAt(ref);
    const to = at + this.#arenas.keySize(ref);
    const count = this.#ranges.match(this.#arenas.buffer(ref), at, to, this.#matched);
    for (let i = 0; i < count; i++) {
      const range = this.#matched[i]!;
      const entry = this.#entryEnd++;
      if (entry >= this.#entryRefs.length) {
        this.#entryRefs = grown(this.#entryRefs, entry);
        this.#entryNext = grown(this.#entryNext, entry);
        this.#entryTail = grown(this.#entryTail, entry);
      }
      this.#entryRefs[entry] = ref;
      this.#entryNext[entry] = 0;
      const head = this.#headEntry[range]!;
      if (head === 0) {
        this.#headEntry[range] = entry;
        this.#entryTail[entry] = entry;
        this.#touched.push(range);
      } else {
        this.#entryNext[this.#entryTail[head]!] = entry;
        this.#entryTail[head] = entry;
      }
    }
  }

  #wake(): void {
    const woken = this.#woken;
    for (const range of this.#touched) {
      const head = this.#headEntry[range]!;
      const first = this.#arenas.modRevision(this.#entryRefs[head]!);
      for (let id = this.#firstWatcher[range]!; id !== 0; id = this.#nextInRange[id]!) {
        if (this.#states[id] !== LIVE) continue;
        this.#entryOf[id] = head;
        if (this.#lastRevision[id]! >= first) this.#skipOld(id);
        if (this.#entryOf[id] !== 0) woken.push(id);
      }
    }
    for (let i = 0; i < woken.length; i++) {
      const id = woken[i]!;
      if (this.#states[id] === LIVE && this.#entryOf[id] !== 0) {
        this.#owners.get(this.#ownerOf[id]!).onEvents(id);
        if (this.#states[id] === LIVE && this.#entryOf[id] !== 0) this.#fallBehind(id);
      }
    }
    woken.length = 0;
    for (const range of this.#touched) {
      this.#headEntry[range] = 0;
      if (this.#firstWatcher[range] === 0) this.#ranges.close(range);
    }
    this.#touched.length = 0;
    this.#entryEnd = 1;
  }

  /** A watcher that starts in the future passes over what is older. */
  #skipOld(id: number): void {
    let entry = this.#entryOf[id]!;
    while (entry !== 0 && !this.#isAfterLast(id, this.#entryRefs[entry]!)) {
      entry = this.#entryNext[entry]!;
    }
    this.#entryOf[id] = entry;
  }

  #isAfterLast(id: number, ref: number): boolean {
    const difference = this.#arenas.modRevision(ref) - this.#lastRevision[id]!;
    return difference > 0 || (difference === 0 && this.#arenas.sub(ref) > this.#lastSub[id]!);
  }

  /** Entries are left: remember the place just before the first of them. */
  #fallBehind(id: number): void {
    this.#placeBefore(id, this.#entryRefs[this.#entryOf[id]!]!);
  }

  #placeBefore(id: number, ref: number): void {
    const revision = this.#arenas.modRevision(ref);
    const sub = this.#arenas.sub(ref);
    if (sub === 0) {
      this.#lastRevision[id] = revision - 1;
      this.#lastSub[id] = SUB_END;
    } else if (revision !== this.#lastRevision[id] || sub <= this.#lastSub[id]!) {
      this.#lastRevision[id] = revision;
      this.#lastSub[id] = sub - 1;
    }
    this.#entryOf[id] = 0;
    this.#states[id] = LAGGING;
  }

  /** See RevisionedStore.watchPutBack. */
  putBack(id: number): void {
    if (this.#states[id] === DEAD) return;
    const revision = this.#lastRevision[id]!;
    const sub = this.#lastSub[id]!;
    this.#lastRevision[id] = sub === 0 ? revision - 1 : revision;
    this.#lastSub[id] = sub === 0 ? SUB_END : sub - 1;
    this.#entryOf[id] = 0;
    this.#states[id] = LAGGING;
    if (this.#scanned === id) this.#scanned = 0;
  }

  /** See RevisionedStore.watchNext. */
  next(id: number): number {
    if (this.#states[id] === LIVE) {
      const entry = this.#entryOf[id]!;
      if (entry === 0) return 0;
      const ref = this.#entryRefs[entry]!;
      this.#entryOf[id] = this.#entryNext[entry]!;
      this.#take(id, ref);
      return ref;
    }
    if (this.#states[id] === DEAD) return 0;
    const range = this.#rangeOf[id]!;
    const needed =
      this.#lastSub[id] === SUB_END ? this.#lastRevision[id]! + 1 : this.#lastRevision[id]!;
    if (this.#scanned !== id) this.#beginScan(id, range);
    for (const klass of this.#scanClasses) if (needed < klass.boundary) return FAILURE.compacted;
    return this.#isChain ? this.#nextOfChain(id) : this.#scan(id);
  }

  /** See RevisionedStore.watchReading. */
  reading(id: number): number {
    const state = this.#states[id]!;
    if (state === DEAD || (state === LIVE && this.#entryOf[id] === 0)) return 0;
    return this.#reading.numberOf(
      this.#rangeOf[id]!,
      state,
      this.#lastRevision[id]!,
      this.#lastSub[id]!,
    );
  }

  /** See RevisionedStore.watchShare. */
  share(id: number): void {
    this.#reading.end(this.#states[id]!, this.#lastRevision[id]!, this.#lastSub[id]!);
  }

  /** See RevisionedStore.watchPass. */
  pass(id: number): void {
    this.#states[id] = this.#reading.endState;
    this.#lastRevision[id] = this.#reading.endRevision;
    this.#lastSub[id] = this.#reading.endSub;
    this.#entryOf[id] = 0;
    if (this.#scanned === id) this.#scanned = 0;
  }

  #take(id: number, ref: number): void {
    const revision = this.#arenas.modRevision(ref);
    const sub = this.#arenas.sub(ref);
    const last = this.#lastRevision[id]!;
    const isNext = revision > last || (revision === last && sub > this.#lastSub[id]!);
    assertWhole(isNext, 'events reach a watcher in their order');
    this.#lastRevision[id] = revision;
    this.#lastSub[id] = sub;
  }

  #beginScan(id: number, range: number): void {
    const { start, end } = this.#ranges.bounds(range);
    const both = Buffer.concat([start, end]);
    this.#scanClasses = this.#classes.all.filter((klass) =>
      this.#classes.overlaps(klass, both, 0, start.length, start.length, both.length),
    );
    this.#scanned = id;
    this.#scanStart = start;
    this.#scanEnd = end;
    // Something else was scanned or published since: the revision that was begun is still that.
    this.#scanReturned = this.#lastSub[id] === SUB_END ? 0 : this.#lastRevision[id]!;
    this.#isChain = this.#ranges.kind(range) === RANGE_KEY && this.#gatherChain(id, start);
    if (this.#isChain) return;
    for (let i = 0; i < this.#scanClasses.length; i++) {
      const events = this.#scanClasses[i]!.events;
      let place = events.seek(this.#lastRevision[id]!);
      while (place < events.next && !this.#isAfterLast(id, events.at(place))) place++;
      this.#places[i] = place;
    }
  }

  #scan(id: number): number {
    for (let budget = SCAN_EVENTS_MAX; ; budget--) {
      let best = -1;
      let bestRef = 0;
      for (let i = 0; i < this.#scanClasses.length; i++) {
        const klass = this.#scanClasses[i]!;
        if (this.#places[i]! >= klass.publishedPosition) continue;
        const ref = klass.events.at(this.#places[i]!);
        if (best < 0 || this.#isBefore(ref, bestRef)) {
          best = i;
          bestRef = ref;
        }
      }
      if (best < 0) {
        this.#states[id] = LIVE;
        this.#scanned = 0;
        return 0;
      }
      // Never in the middle of a revision of which something was told: it is told as a whole.
      const revision = this.#arenas.modRevision(bestRef);
      if (budget <= 0 && revision !== this.#scanReturned) break;
      this.#places[best]!++;
      this.#looked++;
      this.#take(id, bestRef);
      const at = this.#arenas.keyAt(bestRef);
      const to = at + this.#arenas.keySize(bestRef);
      if (isInside(this.#arenas.buffer(bestRef), at, to, this.#scanStart, this.#scanEnd)) {
        this.#scanReturned = revision;
        return bestRef;
      }
    }
    this.#restless.push(id);
    return 0;
  }

  /**
   * Watching one key, the chain of its versions is the history: walked once, from the newest on,
   * for it leads that way only. False when it is too long for that.
   */
  #gatherChain(id: number, key: Buffer): boolean {
    this.#keys.load(key, 0, key.length);
    const keyId = this.#keys.find();
    let size = 0;
    let ref = keyId === 0 ? 0 : this.#keys.head(keyId);
    for (; ref !== 0 && this.#isAfterLast(id, ref); ref = this.#arenas.previous(ref)) {
      if (this.#arenas.modRevision(ref) > this.#published) continue;
      if (size === CHAIN_VERSIONS_MAX) return false;
      this.#chain[size++] = ref;
    }
    this.#looked += size;
    this.#chainSize = size;
    return true;
  }

  #nextOfChain(id: number): number {
    if (this.#chainSize === 0) {
      this.#states[id] = LIVE;
      this.#scanned = 0;
      return 0;
    }
    const ref = this.#chain[--this.#chainSize]!;
    this.#take(id, ref);
    return ref;
  }

  /** Events up to here were handed to the watchers. */
  get published(): number {
    return this.#published;
  }

  isCurrent(id: number): boolean {
    return (
      this.#states[id] === LIVE &&
      this.#entryOf[id] === 0 &&
      this.#lastRevision[id]! <= this.#published
    );
  }

  /** Calls watchers that have history to read, as many as a turn bears; see `hasRestless`. */
  wakeRestless(): void {
    const ids = this.#restless;
    if (ids.length === 0) return;
    this.#restless = [];
    const end = this.#looked + WAKE_EVENTS_MAX;
    let count = 0;
    for (; count < ids.length && this.#looked < end; count++) {
      const id = ids[count]!;
      this.#looked += WAKE_WATCHER_EVENTS;
      if (this.#states[id] === LAGGING) this.#owners.get(this.#ownerOf[id]!).onEvents(id);
    }
    if (count === ids.length) return;
    // The others are the first of the next turn.
    const rest = ids.slice(count);
    for (const id of this.#restless) rest.push(id);
    this.#restless = rest;
  }

  /** Forgets the scan under way: positions or refs have changed. */
  reset(): void {
    this.#scanned = 0;
    this.#reading.forget();
  }

  /** The boundary that a compacted watcher fell behind. */
  boundaryOf(id: number): number {
    const { start, end } = this.#ranges.bounds(this.#rangeOf[id]!);
    const both = Buffer.concat([start, end]);
    let boundary = 0;
    for (const klass of this.#classes.all) {
      if (klass.boundary <= boundary) continue;
      if (this.#classes.overlaps(klass, both, 0, start.length, start.length, both.length)) {
        boundary = klass.boundary;
      }
    }
    return boundary;
  }
}

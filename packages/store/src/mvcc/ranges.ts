// data plane: reads of ranges, now and in the past
/**
 * Now: the place of both ends in the list of live keys gives the count, the ids between them the
 * page. In the past: live keys and tombstoned ones are merged in key order, each key's chain is
 * followed back to the revision asked for, and the count is today's minus what changed since.
 */
import type { KeyClass } from '../record/classes.ts';
import { FAILURE, type Page } from '../contract.ts';
import type { StoreParts } from './store-parts.ts';

const PAGE_REFS_MIN = 16;

/** An empty page to be reused by `range`. */
export function newPage(): Page {
  return { refs: new Uint32Array(PAGE_REFS_MIN), length: 0, count: 0, more: false };
}

export class Ranges {
  readonly #store: StoreParts;

  constructor(store: StoreParts) {
    this.#store = store;
  }

  getAt(bytes: Buffer, at: number, to: number, revision: number): number {
    const store = this.#store;
    const failure = this.#check(bytes, at, to, 0, 0, revision);
    if (failure !== 0) return failure;
    if (!this.#isPast(revision)) return store.get(bytes, at, to);
    store.keys.load(bytes, at, to);
    const id = store.keys.find();
    return id === 0 ? 0 : this.#recordAt(id, revision);
  }

  /** Inside a transaction that has changed something, even the newest revision is the past. */
  #isPast(revision: number): boolean {
    const store = this.#store;
    return revision > 0 && (revision !== store.appliedRevision || store.hasUncommitted);
  }

  /** The record of a key that was live at a revision, 0 for none. */
  #recordAt(id: number, revision: number): number {
    const arenas = this.#store.arenas;
    let ref = this.#store.keys.head(id);
    while (ref !== 0 && arenas.modRevision(ref) > revision) ref = arenas.previous(ref);
    return ref === 0 || arenas.isTombstone(ref) ? 0 : ref;
  }

  #check(
    bytes: Buffer,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): number {
    if (revision <= 0) return 0;
    if (revision > this.#store.appliedRevision) return FAILURE.futureRevision;
    if (revision >= this.#highestBoundary()) return 0;
    return revision < this.boundary(bytes, at, to, endAt, endTo) ? FAILURE.compacted : 0;
  }

  #highestBoundary(): number {
    let highest = 0;
    const classes = this.#store.classes.all;
    for (let i = 0; i < classes.length; i++) {
      if (classes[i]!.boundary > highest) highest = classes[i]!.boundary;
    }
    return highest;
  }

  /** See RevisionedStore.compactRevisionOf. */
  boundary(bytes: Buffer, at: number, to: number, endAt: number, endTo: number): number {
    let boundary = this.#store.compactRevision;
    const { classes } = this.#store;
    for (const klass of classes.all) {
      if (klass.boundary <= boundary) continue;
      if (classes.overlaps(klass, bytes, at, to, endAt, endTo)) boundary = klass.boundary;
    }
    return boundary;
  }

  count(
    bytes: Buffer,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): number {
    const failure = this.#check(bytes, at, to, endAt, endTo, revision);
    if (failure !== 0) return failure;
    if (endAt === endTo) return this.getAt(bytes, at, to, revision) > 0 ? 1 : 0;
    return this.#count(bytes, at, to, endAt, endTo, revision);
  }

  #count(
    bytes: Buffer,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): number {
    const { keys, live, classes } = this.#store;
    const isOpenEnd = endTo - endAt === 1 && bytes[endAt] === 0;
    const isPast = this.#isPast(revision);
    let upper = live.size;
    let upperChange = 0;
    if (!isOpenEnd) {
      keys.load(bytes, endAt, endTo);
      live.seek();
      upper = live.rank();
      if (isPast) upperChange = this.#changes(classes.all, revision);
    }
    keys.load(bytes, at, to);
    live.seek();
    const count = upper - live.rank();
    if (!isPast) return Math.max(0, count);
    return Math.max(0, count - this.#changes(classes.all, revision) + upperChange);
  }

  #changes(classes: readonly KeyClass[], revision: number): number {
    let sum = 0;
    for (let i = 0; i < classes.length; i++) {
      sum += classes[i]!.liveness.changesFromLoaded(revision);
    }
    return sum;
  }

  read(
    bytes: Buffer,
    at: number,
    to: number,
    endAt: number,
    endTo: number,
    revision: number,
    limit: number,
    page: Page,
  ): number {
    page.length = 0;
    page.count = 0;
    page.more = false;
    const failure = this.#check(bytes, at, to, endAt, endTo, revision);
    if (failure !== 0) return failure;
    if (endAt === endTo) {
      const ref = this.getAt(bytes, at, to, revision);
      if (ref > 0) {
        page.refs[0] = ref;
        page.length = 1;
        page.count = 1;
      }
      return 0;
    }
    page.count = this.#count(bytes, at, to, endAt, endTo, revision);
    const wanted = limit > 0 && limit < page.count ? limit : page.count;
    if (page.refs.length < wanted) page.refs = new Uint32Array(Math.max(wanted, PAGE_REFS_MIN));
    page.more = wanted < page.count;
    // Both lists' places are found from the first key, which `#count` has left loaded.
    if (!this.#isPast(revision)) this.#fillNow(page, wanted);
    else this.#fillPast(page, wanted, revision);
    return 0;
  }

  #fillNow(page: Page, wanted: number): void {
    const { keys, live } = this.#store;
    for (let i = 0; i < wanted; i++) {
      page.refs[i] = keys.head(live.current());
      live.slot++;
    }
    page.length = wanted;
  }

  #fillPast(page: Page, wanted: number, revision: number): void {
    const { keys, live, graves } = this.#store;
    graves.seek();
    let length = 0;
    while (length < wanted) {
      const liveId = live.current();
      const graveId = graves.current();
      if (liveId === 0 && graveId === 0) break;
      const isLive = graveId === 0 || (liveId !== 0 && keys.compareIds(liveId, graveId) < 0);
      if (isLive) live.slot++;
      else graves.slot++;
      const ref = this.#recordAt(isLive ? liveId : graveId, revision);
      if (ref !== 0) page.refs[length++] = ref;
    }
    page.length = length;
  }
}

// data plane: gives memory back behind the boundaries of history, in slices
/**
 * Compaction is a moved number; memory follows here. Each class's events are walked in order up
 * to its boundary: an event's previous record is garbage then, and a tombstone below the boundary
 * takes its key along. So the work is in proportion to the garbage, not to the keys. Arenas that
 * hold nothing alive are free at once; arenas that are mostly garbage, and old enough that no
 * event names them, are emptied into a survivors' arena, and the refs in chains follow.
 */
import { assertWhole } from '@megaplane/base/assert';
import { BoundedHistogram } from '@megaplane/base/histogram';
import { ARENA_BYTES, FLAG_GARBAGE, arenaOf, refAt } from '../record/arenas.ts';
import type { KeyClass } from '../record/classes.ts';
import { Mover } from './moving.ts';
import { Resting } from './resting.ts';
import type { StoreParts } from './store-parts.ts';

/** Events looked at per class and slice: about a millisecond, where each is a cache miss or two. */
const SWEEP_EVENTS_MAX = 1024;
/** Records of an arena looked at per slice, and moved. */
const EVACUATE_RECORDS_MAX = 1024;
/** The same where they are packed as they move. */
const PACK_RECORDS_MAX = 128;
/** Share of an arena that must be garbage before its survivors are moved. */
const GARBAGE_SHARE_MIN = 0.4;
/**
 * The same where history has a budget, for so long: what is written there may be replaced soon, as
 * leases are every 10 s, and waiting empties most of an arena for nothing.
 */
const CHURN_SHARE_MIN = 0.8;
const CHURN_MS_MAX = 20_000;
/** Arenas that waited so long are emptied over about this time: nobody is in a hurry for them. */
const PACE_MS = 120_000;
/** The same when an operator asks for memory back. */
const DEFRAGMENT_SHARE_MIN = 0.02;
/** Bounds of etcd's metrics of compactions, in milliseconds. */
const COMPACTION_BOUNDS_MS = Array.from({ length: 14 }, (_, n) => 100 * 2 ** n);
const SLICE_BOUNDS_MS = Array.from({ length: 13 }, (_, n) => 2 ** n);

export class Sweep {
  readonly #store: StoreParts;
  /** How many read records over several turns: meanwhile nothing moves and nothing is freed. */
  #holders = 0;
  /** Arenas that may be worth emptying, and when they are for certain. */
  readonly #candidates: Map<number, number> = new Map();
  #nowMs = 0;
  /** When the next one may be emptied that waited for its records to be replaced. */
  #nextMs = -Infinity;
  /** When the compaction was first seen that is being worked on, -Infinity when none is. */
  #compactingMs = -Infinity;
  #isAsked = false;
  /** Compactions, from the first slice to the last. */
  readonly compactions: BoundedHistogram = new BoundedHistogram(COMPACTION_BOUNDS_MS);
  /** Slices with something to do; whoever calls `step` has the clock. */
  readonly slices: BoundedHistogram = new BoundedHistogram(SLICE_BOUNDS_MS);
  /** When the last compaction was done, -Infinity before the first. */
  compactedMs: number = -Infinity;
  /** Versions that were dropped. */
  dropped = 0;
  /** The arena that is being emptied, 0 when none is, and how far. */
  #leaving = 0;
  #leftUpTo = 0;

  readonly #mover: Mover;
  readonly #resting: Resting;

  constructor(store: StoreParts) {
    this.#store = store;
    this.#mover = new Mover(store);
    this.#resting = new Resting(store, this.#mover);
  }

  /** True while packing goes on, which does not wait for the usual tick. */
  get isPacking(): boolean {
    return this.#holders === 0 && this.#resting.isBusy;
  }

  /** Keeps refs good over turns until `release`. */
  hold(): void {
    this.#holders++;
  }

  release(): void {
    assertWhole(this.#holders > 0, 'the sweep is released more often than held');
    this.#holders--;
  }

  /** True while there is garbage that may be collected now. */
  get hasWork(): boolean {
    return this.#holders === 0 && this.hasGarbage;
  }

  /** True while there is garbage to collect, now or once nobody holds it. */
  get hasGarbage(): boolean {
    return this.isBehind || this.#leaving !== 0 || this.#ripe() !== 0;
  }

  /** True while something beyond the boundaries of history is still kept. */
  get isBehind(): boolean {
    for (const klass of this.#store.classes.all) {
      if (this.#isOverBudget(klass)) return true;
      if (klass.sweepPosition >= klass.events.next) continue;
      const { arenas } = this.#store;
      const ref = klass.events.at(klass.sweepPosition);
      if (arenas.modRevision(ref) < klass.boundary) return true;
      const cleared = this.#clearedOf(klass);
      if (cleared >= klass.publishedPosition) continue;
      if (arenas.modRevision(klass.events.at(cleared)) === klass.boundary) return true;
    }
    return false;
  }

  #isOverBudget(klass: KeyClass): boolean {
    const { historyBytes, holds } = klass;
    if (historyBytes <= klass.historyBytesMax) return false;
    return klass.sweepPosition < klass.publishedPosition && !holds.isStopping(historyBytes);
  }

  /** Lists every arena that is worth emptying when memory matters more than work. */
  defragment(): void {
    const { arenas, classes } = this.#store;
    for (let arena = 1; arena < arenas.used.length; arena++) {
      const used = arenas.used[arena]!;
      if (arenas.span[arena] !== 1 || used === 0 || arenas.isOpen(arena)) continue;
      const klass = classes.all[arenas.classOf[arena]!]!;
      if (arenas.lastRevision[arena]! >= this.#sweptRevision(klass)) continue;
      if (arenas.live[arena]! < used * (1 - DEFRAGMENT_SHARE_MIN)) this.#candidates.set(arena, 0);
    }
  }

  /** A compaction was asked for. */
  compact(): void {
    this.#isAsked = true;
  }

  #noteCompaction(): void {
    if (this.#isAsked && this.#compactingMs < 0) this.#compactingMs = this.#nowMs;
    this.#isAsked = false;
    if (this.#compactingMs < 0 || this.isBehind) return;
    this.compactions.record(this.#nowMs - this.#compactingMs);
    this.#compactingMs = -Infinity;
    this.compactedMs = this.#nowMs;
  }

  /** One slice of work. */
  step(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#noteCompaction();
    if (this.#holders > 0) return;
    this.#judgeClosed();
    for (const klass of this.#store.classes.all) {
      this.#cutHistory(klass);
      this.#sweepClass(klass);
      if (klass.liveness.sortNext()) return;
    }
    this.#evacuateSome();
    if (this.#leaving !== 0) return;
    const packed = this.#resting.step(nowMs);
    if (packed !== 0) this.#release(packed);
  }

  /**
   * Over budget: moves the boundary over published events, oldest first, until the history that
   * they keep would fit, or up to what somebody reads.
   */
  #cutHistory(klass: KeyClass): void {
    if (!this.#isOverBudget(klass)) return;
    const { arenas } = this.#store;
    let excess = klass.historyBytes - klass.historyBytesMax;
    let position = Math.max(klass.sweepPosition, klass.events.seek(klass.boundary + 1));
    const end = Math.min(klass.publishedPosition, position + SWEEP_EVENTS_MAX);
    let boundary = klass.boundary;
    const held = klass.holds.revision;
    for (; position < end && excess > 0; position++) {
      const ref = klass.events.at(position);
      if (arenas.modRevision(ref) > held) {
        klass.holds.stop();
        break;
      }
      const previous = arenas.previous(ref);
      if (previous !== 0) excess -= arenas.rawSize(previous);
      boundary = arenas.modRevision(ref);
    }
    if (boundary === klass.boundary) return;
    klass.boundary = boundary;
    this.#store.hub.reset();
  }

  #sweepClass(klass: KeyClass): void {
    const { arenas } = this.#store;
    const { events, boundary } = klass;
    const end = Math.min(klass.publishedPosition, klass.sweepPosition + SWEEP_EVENTS_MAX);
    let position = klass.sweepPosition;
    for (; position < end; position++) {
      const ref = events.at(position);
      if (arenas.modRevision(ref) >= boundary) break;
      this.#forgetBefore(klass, ref);
      if (arenas.isTombstone(ref)) this.#forgetKey(klass, ref);
    }
    this.#clearBoundary(klass, position, SWEEP_EVENTS_MAX - (position - klass.sweepPosition));
    if (position === klass.sweepPosition) return;
    klass.sweepPosition = position;
    events.cut(position);
    klass.liveness.cut(boundary);
    this.#store.hub.reset();
  }

  #clearedOf(klass: KeyClass): number {
    return Math.max(klass.clearedPosition, klass.sweepPosition);
  }

  /**
   * The events of the boundary's own revision stay, for watches that begin there; what they
   * replaced does not: a compaction right after a large delete must give its memory back.
   */
  #clearBoundary(klass: KeyClass, from: number, eventsMax: number): void {
    const { arenas } = this.#store;
    let position = Math.max(klass.clearedPosition, from);
    const end = Math.min(klass.publishedPosition, position + eventsMax);
    for (; position < end; position++) {
      const ref = klass.events.at(position);
      if (arenas.modRevision(ref) !== klass.boundary) break;
      this.#forgetBefore(klass, ref);
    }
    klass.clearedPosition = position;
  }

  /** What an event replaced is out of reach. */
  #forgetBefore(klass: KeyClass, ref: number): void {
    const { arenas } = this.#store;
    const previous = arenas.previous(ref);
    if (previous === 0) return;
    arenas.setPrevious(ref, 0);
    this.#markGarbage(klass, previous);
  }

  /** A tombstone below the boundary goes, with its key unless that was put again. */
  #forgetKey(klass: KeyClass, ref: number): void {
    const { arenas, keys, graves } = this.#store;
    const id = arenas.keyId(ref);
    if (keys.head(id) !== ref) return;
    keys.loadRecord(ref);
    graves.remove();
    keys.remove(id);
    this.#markGarbage(klass, ref);
  }

  #markGarbage(klass: KeyClass, ref: number): void {
    const { arenas } = this.#store;
    const arena = arenaOf(ref);
    klass.historyBytes -= arenas.rawSize(ref);
    const isEmpty = arenas.markGarbage(ref);
    this.dropped++;
    if (arenas.isOpen(arena)) return;
    if (isEmpty) this.#release(arena);
    else this.#judge(arena, klass);
  }

  /** Is it worth emptying? */
  #judge(arena: number, klass: KeyClass): void {
    const { arenas } = this.#store;
    if (
      arena !== this.#leaving &&
      !this.#resting.isPacking(arena) &&
      arenas.live[arena]! < arenas.used[arena]! * (1 - GARBAGE_SHARE_MIN) &&
      arenas.used[arena]! <= ARENA_BYTES &&
      !this.#candidates.has(arena)
    ) {
      const isChurn = klass.historyBytesMax !== Infinity;
      this.#candidates.set(arena, isChurn ? this.#nowMs + CHURN_MS_MAX : 0);
    }
  }

  /** What became garbage in an arena while it was being filled counts when it is full. */
  #judgeClosed(): void {
    const { arenas, classes } = this.#store;
    for (const arena of arenas.closed) {
      // It may have been given back since, and taken again.
      if (arenas.span[arena] === 0 || arenas.isOpen(arena)) continue;
      if (arenas.live[arena] === 0) this.#release(arena);
      else {
        this.#resting.note(arena, this.#nowMs);
        this.#judge(arena, classes.all[arenas.classOf[arena]!]!);
      }
    }
    arenas.closed.length = 0;
  }

  /** A candidate whose records are all older than its class's events, 0 when there is none. */
  #ripe(): number {
    const { arenas, classes } = this.#store;
    for (const [arena, certainMs] of this.#candidates) {
      const klass = classes.all[arenas.classOf[arena]!]!;
      if (arenas.isOpen(arena)) {
        this.#candidates.delete(arena);
      } else if (
        (certainMs === 0 ||
          this.#nowMs >= Math.max(certainMs, this.#nextMs) ||
          this.#isMostlyGone(arena)) &&
        arenas.lastRevision[arena]! < this.#sweptRevision(klass)
      ) {
        return arena;
      }
    }
    return 0;
  }

  #isMostlyGone(arena: number): boolean {
    const { live, used } = this.#store.arenas;
    return live[arena]! < used[arena]! * (1 - CHURN_SHARE_MIN);
  }

  #release(arena: number): void {
    this.#candidates.delete(arena);
    this.#resting.forget(arena);
    if (arena === this.#leaving) this.#leaving = 0;
    this.#store.arenas.release(arena);
  }

  #evacuateSome(): void {
    if (this.#leaving === 0) {
      this.#leaving = this.#ripe();
      this.#leftUpTo = 0;
      if (this.#leaving === 0) return;
      const isPaced =
        this.#candidates.get(this.#leaving) !== 0 && !this.#isMostlyGone(this.#leaving);
      if (isPaced) this.#nextMs = this.#nowMs + PACE_MS / this.#candidates.size;
      this.#candidates.delete(this.#leaving);
      this.#resting.forget(this.#leaving);
    }
    this.#evacuate(this.#leaving);
    this.#store.hub.reset();
  }

  /** Events at or after this revision are still in the class's log. */
  #sweptRevision(klass: KeyClass): number {
    if (klass.sweepPosition >= klass.events.next) return Infinity;
    return this.#store.arenas.modRevision(klass.events.at(klass.sweepPosition));
  }

  /** Moves some of the arena's survivors; behind the last of them the arena is free. */
  #evacuate(arena: number): void {
    const { arenas, classes } = this.#store;
    const klass = classes.all[arenas.classOf[arena]!]!;
    const end = arenas.used[arena]!;
    // What is replaced all the time rests nowhere.
    const packs = klass.packAfterMs <= CHURN_MS_MAX;
    const most = packs ? PACK_RECORDS_MAX : EVACUATE_RECORDS_MAX;
    for (let count = 0; count < most && this.#leftUpTo < end; count++) {
      const ref = refAt(arena, this.#leftUpTo);
      this.#leftUpTo += arenas.size(ref);
      if ((arenas.flags(ref) & FLAG_GARBAGE) === 0) this.#mover.move(ref, klass, packs);
    }
    if (this.#leftUpTo >= end) this.#release(arena);
  }
}

// data plane: packs what has not changed for a while, in slices
/**
 * Which arenas are worth packing: full ones, of classes that say so, some time after they were
 * filled, with records that nobody has tried to pack and that are not about to be dropped. An
 * arena of which most records were replaced since is left alone: it will be emptied when history
 * lets go of them, and what survives is packed then.
 */
import { FLAG_GARBAGE, refAt } from '../record/arenas.ts';
import type { Mover } from './moving.ts';
import type { StoreParts } from './store-parts.ts';

/** Records of a slice, half a millisecond of work. */
const SLICE_RECORDS_MAX = 96;
/** Pauses between slices while others write, and while nobody does. */
const BUSY_PAUSE_MS = 20;
const IDLE_PAUSE_MS = 4;
/** Pause after which arenas are looked at again when none was due. */
const LOOK_PAUSE_MS = 200;
/** Arenas whose records are sampled at one look. */
const SAMPLES_MAX = 8;
/** Writes since the last slice up to which nobody does. */
const IDLE_WRITES_MAX = 8;
/** Records that tell how many of an arena were replaced. */
const SAMPLE_RECORDS = 64;

export class Resting {
  readonly #store: StoreParts;
  readonly #mover: Mover;
  /** Full arenas, and when that was noticed or they were last found to be in motion. */
  readonly #since: Map<number, number> = new Map();
  /** The arena that is being packed, 0 when none is, and how far. */
  #arena = 0;
  #upTo = 0;
  #nextMs = -Infinity;
  #writes = 0;

  constructor(store: StoreParts, mover: Mover) {
    this.#store = store;
    this.#mover = mover;
  }

  /** True while slices are worth more than the usual pace. */
  get isBusy(): boolean {
    return this.#arena !== 0;
  }

  isPacking(arena: number): boolean {
    return arena === this.#arena;
  }

  /** An arena is full. */
  note(arena: number, nowMs: number): void {
    const { arenas, classes } = this.#store;
    const { packAfterMs } = classes.all[arenas.classOf[arena]!]!;
    if (packAfterMs === Infinity || arenas.isFresh[arena] !== true) return;
    // A giant has its memory for itself.
    if (arenas.span[arena] === 1) this.#since.set(arena, nowMs);
  }

  /** It is given back, or about to be emptied. */
  forget(arena: number): void {
    this.#since.delete(arena);
    if (this.#arena === arena) this.#arena = 0;
  }

  /** One slice. The arena that was emptied by it, or 0. */
  step(nowMs: number): number {
    if (nowMs < this.#nextMs) return 0;
    const { arenas, classes, hub, puts, deletes } = this.#store;
    if (this.#arena === 0) {
      this.#arena = this.#due(nowMs);
      this.#upTo = 0;
      if (this.#arena === 0) {
        this.#nextMs = nowMs + LOOK_PAUSE_MS;
        return 0;
      }
    }
    const isIdle = puts + deletes - this.#writes <= IDLE_WRITES_MAX;
    this.#writes = puts + deletes;
    this.#nextMs = nowMs + (isIdle ? IDLE_PAUSE_MS : BUSY_PAUSE_MS);
    const arena = this.#arena;
    const klass = classes.all[arenas.classOf[arena]!]!;
    const end = arenas.used[arena]!;
    for (let count = 0; count < SLICE_RECORDS_MAX && this.#upTo < end; count++) {
      const ref = refAt(arena, this.#upTo);
      this.#upTo += arenas.size(ref);
      if ((arenas.flags(ref) & FLAG_GARBAGE) === 0) this.#mover.move(ref, klass, true);
    }
    hub.reset();
    return this.#upTo >= end ? arena : 0;
  }

  /** The next arena that rests, 0 when there is none. */
  #due(nowMs: number): number {
    const { arenas, classes, publishedRevision } = this.#store;
    let samples = 0;
    for (const [arena, sinceMs] of this.#since) {
      const klass = classes.all[arenas.classOf[arena]!]!;
      if (nowMs - sinceMs < klass.packAfterMs) continue;
      // The log takes records from where they lie.
      if (arenas.lastRevision[arena]! > publishedRevision) continue;
      this.#since.delete(arena);
      if (arenas.isOpen(arena)) continue;
      if (!this.#isInMotion(arena)) return arena;
      this.#since.set(arena, nowMs);
      if (++samples === SAMPLES_MAX) return 0;
    }
    return 0;
  }

  /** True where most of the first records were replaced. */
  #isInMotion(arena: number): boolean {
    const { arenas, keys } = this.#store;
    const end = arenas.used[arena]!;
    let seen = 0;
    let replaced = 0;
    for (let at = 0; at < end && seen < SAMPLE_RECORDS; seen++) {
      const ref = refAt(arena, at);
      at += arenas.size(ref);
      const isGarbage = (arenas.flags(ref) & FLAG_GARBAGE) !== 0;
      if (isGarbage || keys.head(arenas.keyId(ref)) !== ref) replaced++;
    }
    return replaced * 2 > seen;
  }
}

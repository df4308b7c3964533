/**
 * Readers that need several turns for one revision, and the history that they keep from being cut.
 *
 * History that is over its budget is cut up to the oldest revision that somebody holds, and no
 * further. What was alive when it was taken costs nothing: it had its memory before. What was
 * written since is bounded by `HELD_BYTES_MAX`; beyond it, and where memory is short, the oldest
 * holds are broken, and who reads on finds its revision compacted. A compaction is not held up.
 */

/** Bytes of newer history of a class that its oldest hold may keep beyond the budget. */
const HELD_BYTES_MAX: number = 1024 * 1024 * 1024;
/** Share of the memory limit from which on nothing is held. */
const MEMORY_SHARE_MAX = 0.9;

/** One reader of one class. */
interface HistoryHold {
  readonly revision: number;
  /** Bytes of history that the class may have meanwhile. */
  readonly historyBytesMax: number;
}

/** Holds of one class, and whether they have stopped a cut since one of them ended. */
export class HistoryHolds {
  readonly #holds = new Set<HistoryHold>();
  #hasStopped = false;
  readonly #isShort: () => boolean;

  /** `isShort`: whether memory is too short for history that is over its budget. */
  constructor(isShort: () => boolean) {
    this.#isShort = isShort;
  }

  /** The oldest revision that somebody reads; Infinity where nobody does. */
  get revision(): number {
    let oldest = Infinity;
    for (const { revision } of this.#holds) oldest = Math.min(oldest, revision);
    return oldest;
  }

  /** Keeps what is read at `revision`, until the call of what it returns. The class has `bytes`. */
  take(revision: number, bytes: number): () => void {
    const historyBytesMax = bytes + HELD_BYTES_MAX;
    const hold = { revision, historyBytesMax };
    this.#holds.add(hold);
    return () => {
      if (this.#holds.delete(hold)) this.#hasStopped = false;
    };
  }

  /** A cut would have to go beyond `revision`. */
  stop(): void {
    this.#hasStopped = true;
  }

  /** Whether there is nothing to cut; breaks the holds that keep too much. */
  isStopping(historyBytes: number): boolean {
    if (!this.#hasStopped) return false;
    const isShort = this.#isShort();
    for (const hold of this.#holds) {
      if (!isShort && historyBytes <= hold.historyBytesMax) continue;
      this.#holds.delete(hold);
      this.#hasStopped = false;
    }
    return this.#hasStopped;
  }
}

/** Whether so much is allotted that nothing more can be held. */
export function isMemoryShort(allocatedBytes: number, memoryBytesMax: number): boolean {
  return allocatedBytes > memoryBytesMax * MEMORY_SHARE_MAX;
}

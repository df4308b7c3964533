/**
 * Whether somebody else renews the leases that we renew, as a second simulator of the same shard
 * does. One conflict is nothing; when many of the leases conflict period after period, it is told.
 */

/** Conflicts of one period among so many leases are a sign. */
const LEASES_PER_CONFLICT = 4;
/** So many periods in a row: nodes that go from one simulator to another conflict in one. */
const PERIODS = 3;
/** It is told again after so long. */
const SILENCE_MS = 600_000;

export class LeaseContention {
  readonly #periodMs: number;
  readonly #tell: (conflicts: number) => void;
  #conflicts = 0;
  #periods = 0;
  #endMs = 0;
  #toldMs = -Infinity;
  /** Rows that conflict: in how many periods in a row, and when last. Quiet ones are forgotten. */
  readonly #rows: Map<number, { periods: number; lastMs: number }> = new Map();

  /** `tell` hears how many leases have conflicted in one period. */
  constructor(periodMs: number, tell: (conflicts: number) => void) {
    this.#periodMs = periodMs;
    this.#tell = tell;
  }

  /**
   * The lease of a row was changed by somebody else. True when that has been so period after
   * period: somebody renews it, and we are not the one who keeps this node.
   */
  conflict(id: number, nowMs: number): boolean {
    this.#conflicts++;
    const row = this.#rows.get(id) ?? { periods: 0, lastMs: -Infinity };
    const agoMs = nowMs - row.lastMs;
    // two within half a period are one: a renewal and its repetition
    if (agoMs < this.#periodMs / 2) return row.periods >= PERIODS;
    row.periods = agoMs < 2 * this.#periodMs ? row.periods + 1 : 1;
    row.lastMs = nowMs;
    this.#rows.set(id, row);
    return row.periods >= PERIODS;
  }

  /** Somebody else has the row now, or nobody. */
  forget(id: number): void {
    this.#rows.delete(id);
  }

  /** Call it often, with the number of leases. */
  tick(nowMs: number, leases: number): void {
    if (nowMs < this.#endMs) return;
    const conflicts = this.#conflicts;
    this.#endMs = nowMs + this.#periodMs;
    this.#conflicts = 0;
    for (const [id, { lastMs }] of this.#rows) {
      if (nowMs - lastMs >= 2 * this.#periodMs) this.#rows.delete(id);
    }
    const isSign = conflicts > 0 && conflicts * LEASES_PER_CONFLICT >= leases;
    this.#periods = isSign ? this.#periods + 1 : 0;
    if (this.#periods < PERIODS || nowMs - this.#toldMs < SILENCE_MS) return;
    this.#toldMs = nowMs;
    this.#tell(conflicts);
  }
}

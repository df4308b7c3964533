/**
 * etcd's automatic compaction as a state machine: told the time and the revision at each look, it
 * says which revision to compact. Time and revisions are kept by nobody else.
 *
 * - `revision`: every five minutes, all but the last `keep` revisions.
 * - `periodic`: revisions are noted ten times per period (of an hour at most); the first compaction
 *   comes after a whole period, later ones once per period or hour, each up to the revision that
 *   was current a period ago.
 */

export type AutoCompactionPolicy =
  | { readonly mode: 'periodic'; readonly periodMs: number }
  | { readonly mode: 'revision'; readonly keep: number };

const HOUR_MS = 3_600_000;
const REVISION_LOOK_MS = 300_000;
const LOOKS_PER_INTERVAL = 10;

export class AutoCompaction {
  readonly #policy: AutoCompactionPolicy;
  /** How often to call `look`. */
  readonly lookMs: number;
  #revisions: number[] = [];
  #lastRevision = 0;
  #lastMs: number;
  #isFirst = true;

  constructor(policy: AutoCompactionPolicy, nowMs: number, revision: number) {
    this.#policy = policy;
    this.#lastMs = nowMs;
    this.lookMs =
      policy.mode === 'revision'
        ? REVISION_LOOK_MS
        : Math.max(1, Math.min(policy.periodMs, HOUR_MS) / LOOKS_PER_INTERVAL);
    if (policy.mode === 'periodic') this.#revisions.push(revision);
  }

  /** The revision to compact now, 0 for none. */
  look(nowMs: number, revision: number): number {
    const policy = this.#policy;
    if (policy.mode === 'revision') {
      const target = revision - policy.keep;
      return target <= 0 || target === this.#lastRevision ? 0 : target;
    }
    // The revision of this look counts from the next one on, as in etcd.
    const target = this.#revisions[0] ?? 0;
    this.#revisions.push(revision);
    const kept = Math.floor(policy.periodMs / this.lookMs) + 1;
    if (this.#revisions.length > kept) this.#revisions.shift();
    const interval = this.#isFirst ? policy.periodMs : Math.min(policy.periodMs, HOUR_MS);
    if (nowMs - this.#lastMs < interval || target === this.#lastRevision) return 0;
    this.#isFirst = false;
    return target;
  }

  /** It was compacted, or had been before. */
  done(nowMs: number, revision: number): void {
    this.#lastMs = nowMs;
    this.#lastRevision = revision;
  }
}

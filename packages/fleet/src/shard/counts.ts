/** What a shard counts, by the names of its metrics. */

import { BucketHistogram, exponential } from '@megaplane/client/bucket-histogram';

/** From a tenth of a second to an hour. */
const WAIT_SECONDS = exponential(0.1, 16);
/** From a millisecond to a minute. */
const CYCLE_SECONDS = exponential(0.001, 17);

/** Values of one label that are told apart; those beyond count together, under `other`. */
const LABELS_MAX = 1000;

/** A counter with one or two labels: values joined by a NUL. */
export class LabelledCount {
  readonly values: Map<string, number> = new Map();

  add(by: number, ...labels: readonly string[]): void {
    const key = labels.join('\0');
    const isKnown = this.values.has(key) || this.values.size < LABELS_MAX;
    const name = isKnown ? key : labels.map(() => 'other').join('\0');
    this.values.set(name, (this.values.get(name) ?? 0) + by);
  }

  get(...labels: readonly string[]): number {
    return this.values.get(labels.join('\0')) ?? 0;
  }
}

export class Counts {
  readonly actions: LabelledCount = new LabelledCount();
  readonly outcomes: LabelledCount = new LabelledCount();
  readonly suppressed: LabelledCount = new LabelledCount();
  readonly dryRun: LabelledCount = new LabelledCount();
  readonly machinesRejected: LabelledCount = new LabelledCount();
  readonly rollupsRejected: LabelledCount = new LabelledCount();
  readonly sessions: LabelledCount = new LabelledCount();
  /** Cluster -> how many reports in a row were held; 0: none. */
  readonly quarantined: Map<string, number> = new Map();
  deferred = 0;
  dropped = 0;
  deduped = 0;
  capped = 0;
  idleReleases = 0;
  identityRejected = 0;
  /** Processor time of cycles. */
  readonly cycleSeconds: BucketHistogram = new BucketHistogram(CYCLE_SECONDS);
  /** From a request for a blob to its answer. */
  readonly bootstrapSeconds: BucketHistogram = new BucketHistogram(WAIT_SECONDS);
  /** From the provider's word that a machine joins to its word that it has. */
  readonly configureSeconds: BucketHistogram = new BucketHistogram(WAIT_SECONDS);
}

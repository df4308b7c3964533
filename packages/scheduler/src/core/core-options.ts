/** What the machine is made of. */
import type { ExtenderConfiguration } from '../config/configuration.ts';
import type { ProfileOptions } from '../placement/active-profiles.ts';
import type { QueueLimits } from '../queue/scheduling-queue.ts';

export interface CoreOptions extends ProfileOptions {
  readonly queueLimits?: QueueLimits;
  readonly indexBytesMax?: number;
  readonly searchedNodesMin?: number;
  readonly checkedEvery?: number;
  /** Clusters of fewer nodes are no matter for shards. */
  readonly scatteredNodesMin?: number | undefined;
  readonly extenders?: readonly ExtenderConfiguration[];
  readonly seed: number;
  /** `namespace/name` of a pod's row. */
  keyOf(id: number): string;
}

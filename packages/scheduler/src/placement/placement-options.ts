/** What placement is made of, and what it counts. */
import type { Random } from '@megaplane/base/random';
import type { ClusterView } from '../view/cluster-view.ts';
import type { Extender } from '../extenders/extender.ts';
import type { FastProfile } from './topology/fast-profile.ts';
import type { Identities } from '../cache/identities.ts';
import type { ShelfLimits } from './index-shelf.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Nominator } from './topology/nominator.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { PodTable } from '../cache/pod-table.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { TermWatch } from './topology/term-watch.ts';
import type { Tie } from '../collections/tie-walk.ts';

export interface ActiveProfile {
  readonly profile: Profile;
  readonly fast: FastProfile | null;
}

export interface PlacementOptions {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly terms: TermWatch;
  readonly view: ClusterView;
  readonly nominator: Nominator;
  readonly objects: ObjectStore;
  /** `namespace/name` of a pod's row. */
  keyOf(id: number): string;
  readonly profiles: ReadonlyMap<string, ActiveProfile>;
  readonly percentageOfNodesToScore: number;
  readonly extenders: readonly Extender[];
  readonly random: Random;
  readonly tie: Tie;
  readonly indexes: ShelfLimits;
  /** Every so many decisions of the index one is compared with full evaluation; 0: none. */
  readonly checkedEvery: number;
  /** Clusters of fewer nodes are no matter for shards. */
  readonly scatteredNodesMin?: number | undefined;
}

export interface PlacementMetrics {
  indexed: number;
  searched: number;
  scanned: number;
  evaluated: number;
  /** Of those the ones about which shards were asked. */
  scattered: number;
  /** Decisions that were compared with full evaluation, and those that differed. */
  checked: number;
  mismatched: number;
}

export const NO_DECISIONS: PlacementMetrics = {
  ...{ indexed: 0, searched: 0, scanned: 0, evaluated: 0, scattered: 0 },
  ...{ checked: 0, mismatched: 0 },
};

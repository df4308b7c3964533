/** Who is to be placed, and by which rules. */
import type { ClaimObject } from '../framework/volumes.ts';
import type { PodClass } from '../cache/pod-class.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Constraints } from './topology/constraints.ts';
import type { FastProfile } from './topology/fast-profile.ts';

export interface Task {
  readonly id: number;
  readonly podClass: PodClass;
  readonly profile: Profile;
  readonly fast: FastProfile;
  readonly constraints: Constraints;
  /** The node that the pod waits for, or -1. */
  readonly own: number;
  /** Others wait for nodes that the pod must leave to them. */
  readonly hasRivals: boolean;
  /** Nodes that the pod's volumes keep it from; null: it has none. */
  readonly withoutRoom: ReadonlySet<number> | null;
  /** Claims for which volumes are to be made where the pod goes. */
  readonly delayed: readonly ClaimObject[];
}

/** No node: full evaluation must decide. */
export const NOT_SO_EASY = -2;
/** No node: shards have to be asked (`Placement.decideAsking`). */
export const SCATTERED = -3;

/**
 * What a plugin of the evaluator is. A cycle asks each plugin once for a filter (which holds what
 * the plugin found out about the pod) and runs that over the nodes; then once for a scorer.
 */
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import type { ObjectWrite, Reservation } from './reservation.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * Why not. `unresolvable`: evicting pods would not help either. `error`: not the cluster's state
 * but the pod or the configuration is at fault; it ends the cycle.
 */
export interface Rejection {
  readonly code: 'unschedulable' | 'unresolvable' | 'error';
  readonly reasons: readonly string[];
}

export function unschedulable(...reasons: string[]): Rejection {
  return { code: 'unschedulable', reasons };
}

export function unresolvable(...reasons: string[]): Rejection {
  return { code: 'unresolvable', reasons };
}

/** A filter for one pod. `addPod` and `removePod` try what-ifs on a copy (`clone`). */
export interface Filter {
  /** Null if the node will do. */
  filter(node: NodeInfo): Rejection | null;
  /** `pod` now counts as running on `node`. */
  addPod?(pod: PodInfo, node: NodeInfo): void;
  removePod?(pod: PodInfo, node: NodeInfo): void;
  clone?(): Filter;
  /**
   * What is to be done before the pod may be bound to a node that passed; null: nothing. Others see
   * it as done at once.
   */
  reserve?(node: NodeInfo): Reservation | Rejection | null;
  /** What was learnt at nodes that matters later; where nodes are shared out it travels. */
  findings?(): readonly Finding[];
  /** Takes in what the filters of shares found, in the order of the nodes. */
  learn?(findings: readonly Finding[]): void;
}

/** Something that a filter found out at a node, in a text of the plugin's own. */
export interface Finding {
  readonly node: string;
  readonly text: string;
}

export type PreFilterOutcome =
  | {
      readonly kind: 'run';
      readonly filter: Filter;
      /** Only these nodes can do. */
      readonly nodeNames?: ReadonlySet<string>;
    }
  | { readonly kind: 'skip' }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

export const SKIP = { kind: 'skip' } as const;

/**
 * What a plugin counts over nodes: amounts by a text of its own. Where nodes are shared out over
 * processes, the tallies of all shares are added up, so each amount must be a sum over nodes.
 */
export type Tally = ReadonlyMap<string, number>;

/** The least and the greatest raw score. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** A scorer for one pod over its feasible nodes. */
export interface Scorer {
  /** A raw score. Without `normalize` it is final and from 0 to 100. */
  score(node: NodeInfo): number;
  /**
   * From raw scores, in the order of the feasible nodes, to scores from 0 to 100. `range`: of the
   * raw scores of all feasible nodes, where these are some of them.
   */
  normalize?(raw: readonly number[], range?: Range): number[];
  /** Of those raw scores that count for `normalize`; by default all. */
  range?(raw: readonly number[]): Range;
}

export function rangeOf(raw: readonly number[]): Range {
  let min = Infinity;
  let max = -Infinity;
  for (const value of raw) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

export type PreScoreOutcome =
  | { readonly kind: 'run'; readonly scorer: Scorer }
  | { readonly kind: 'skip' }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

/** What a failed cycle may ask for: pods to evict, and a node to wait for. */
export type PostFilterOutcome =
  | { readonly kind: 'nominated'; readonly nomination: Nomination }
  /** The cheapest of these, after extenders have had their say. */
  | { readonly kind: 'candidates'; readonly candidates: readonly Candidate[] }
  | {
      readonly kind: 'rejected';
      readonly rejection: Rejection;
      /** The pod's earlier nomination is of no use any more. */
      readonly clearsNomination?: boolean;
      /** What may help a later try. */
      readonly writes?: readonly ObjectWrite[];
    };

export interface Nomination {
  readonly node: string;
  readonly victims: readonly PodInfo[];
}

/** A node that evictions would free. */
export interface Candidate extends Nomination {
  /** Victims whose eviction a PodDisruptionBudget would not allow. */
  readonly violations: number;
}

export interface Plugin {
  readonly name: string;
  /** Keeps a pod out of the queue: the reason, or null. */
  preEnqueue?(pod: PodInfo, snapshot: Snapshot): string | null;
  postFilter?(cycle: FailedCycle): PostFilterOutcome;
  /** How many nodes that evictions would free `postFilter` will look for; 0: none. */
  candidatesWanted?(cycle: FailedCycle): number;
  /** What `preFilter` counts over the nodes of a snapshot; null: nothing, for this pod. */
  tally?(pod: PodInfo, snapshot: Snapshot): Tally | null;
  /**
   * What the plugin knows before nodes are looked at; all that filter have it. With a `tally` it
   * takes that for what is counted over nodes, and looks at none itself.
   */
  preFilter?(pod: PodInfo, snapshot: Snapshot, tally?: Tally): PreFilterOutcome;
  /** What `preScore` counts over nodes, of which `feasible` are those that passed. */
  scoreTally?(pod: PodInfo, snapshot: Snapshot, feasible: readonly NodeInfo[]): Tally | null;
  /** `filter`: what `preFilter` of the same plugin gave for the pod, or null. */
  preScore?(
    pod: PodInfo,
    snapshot: Snapshot,
    feasible: readonly NodeInfo[],
    filter: Filter | null,
    tally?: Tally,
  ): PreScoreOutcome;
  /** Instead of `preScore` where the profile has the plugin score but not prepare it. */
  scoreAnyway?(pod: PodInfo, snapshot: Snapshot): PreScoreOutcome;
}

/** Runs on every node of a filter without preparation. */
export function filterEach(filter: (node: NodeInfo) => Rejection | null): PreFilterOutcome {
  return { kind: 'run', filter: { filter } };
}

export function scoreEach(score: (node: NodeInfo) => number): PreScoreOutcome {
  return { kind: 'run', scorer: { score } };
}

export const SCORE_MAX = 100;

/** To 0..100 by the greatest raw score; reversed, the greatest gets 0. Integer division. */
export function normalizeByMax(
  raw: readonly number[],
  isReversed: boolean,
  range: Range = rangeOf(raw),
): number[] {
  const max = Math.max(range.max, 0);
  if (max === 0) return raw.map(() => (isReversed ? SCORE_MAX : 0));
  return raw.map((value) => {
    const score = Math.trunc((SCORE_MAX * value) / max);
    return isReversed ? SCORE_MAX - score : score;
  });
}

export interface ActiveFilter {
  readonly plugin: string;
  readonly filter: Filter;
}

/** The verdict on a node, and whose it is. */
export interface Verdict extends Rejection {
  readonly plugin: string;
}

/** What plugins of PostFilter may ask of the cycle (upstream's framework.Handle). */
export interface CycleHandle {
  readonly pod: PodInfo;
  readonly snapshot: Snapshot;
  readonly filters: readonly ActiveFilter[];
  /** What a plugin found out about the pod; null if it had nothing to do. */
  filterOf(plugin: string): Filter | null;
  /**
   * Null if the pod may go there: with the pods that are nominated to the node and not less
   * important counted in, and without them too.
   */
  filterNode(node: NodeInfo, filters?: readonly ActiveFilter[]): Verdict | null;
}

/** What a cycle that found no node hands to the plugins of PostFilter. */
export interface FailedCycle {
  readonly cycle: CycleHandle;
  /** Nodes that were looked at. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Goes for all other nodes. */
  readonly absent: Verdict | null;
  /** A plugin ended the preparation, so that plugins after it know nothing of the pod. */
  readonly isCutShort: boolean;
  /** What evictions on a node would give, where somebody else has tried it. */
  dryRun?(node: NodeInfo): Candidate | Rejection;
}

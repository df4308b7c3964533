import { backedResources, isDelegated } from '../devices/extended-resources.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo } from '../pod-info.ts';
import {
  filterEach,
  scoreEach,
  type Plugin,
  type PreFilterOutcome,
  type PreScoreOutcome,
  type Rejection,
} from '../plugin.ts';
import { amountIn, isExtended, isScalar, podRequestsForScore } from '../resources.ts';
import type { Resources } from '../resources.ts';
import type { Snapshot } from '../snapshot.ts';
import { allocationScore, type ScoringStrategy, type Usage } from '../allocation-score.ts';

export interface NodeResourcesFitArgs {
  readonly ignoredResources?: readonly string[];
  readonly ignoredResourceGroups?: readonly string[];
  readonly scoringStrategy?: ScoringStrategy;
}

interface Shortage {
  readonly reason: string;
  /** More than the whole node has. */
  readonly isHopeless: boolean;
}

const LEFT_OUT: Usage = { requested: 0, capacity: 0, weight: 0 };
const TOO_MANY_PODS: Shortage = { reason: 'Too many pods', isHopeless: false };
const DEFAULT_STRATEGY: ScoringStrategy = {
  type: 'LeastAllocated',
  resources: [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ],
};

function shortageOf(name: string, wanted: number, node: NodeInfo): Shortage | null {
  const capacity = amountIn(node.allocatable, name);
  if (wanted <= capacity - amountIn(node.requested, name)) return null;
  return { reason: `Insufficient ${name}`, isHopeless: wanted > capacity };
}

/** All that is short on a node, not only the first. */
function shortages(
  request: Resources,
  node: NodeInfo,
  isIgnored: (name: string) => boolean,
): Shortage[] {
  const found: (Shortage | null)[] = [];
  if (node.pods.length + 1 > node.allocatablePods) found.push(TOO_MANY_PODS);
  const { milliCpu, memory, ephemeral, scalars } = request;
  if (milliCpu > 0) found.push(shortageOf('cpu', milliCpu, node));
  if (memory > 0) found.push(shortageOf('memory', memory, node));
  if (ephemeral > 0) found.push(shortageOf('ephemeral-storage', ephemeral, node));
  for (const [name, wanted] of scalars) {
    if (wanted !== 0 && !isIgnored(name)) found.push(shortageOf(name, wanted, node));
  }
  return found.filter((shortage) => shortage !== null);
}

export class NodeResourcesFit implements Plugin {
  readonly name = 'NodeResourcesFit';
  readonly #ignored: ReadonlySet<string>;
  readonly #ignoredGroups: ReadonlySet<string>;
  readonly #strategy: ScoringStrategy;

  constructor(args: NodeResourcesFitArgs) {
    this.#ignored = new Set(args.ignoredResources);
    this.#ignoredGroups = new Set(args.ignoredResourceGroups);
    this.#strategy = args.scoringStrategy ?? DEFAULT_STRATEGY;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const backed = backedResources(pod, snapshot);
    return filterEach((node) => this.filter(pod.requests, node, backed));
  }

  /** Null if what is asked for is left on the node; devices are for others to look at. */
  filter(
    request: Resources,
    node: NodeInfo,
    backed: ReadonlyMap<string, unknown> = new Map(),
  ): Rejection | null {
    const found = shortages(
      request,
      node,
      (name) => this.isIgnored(name) || isDelegated(name, node, backed),
    );
    if (found.length === 0) return null;
    return {
      code: found.some(({ isHopeless }) => isHopeless) ? 'unresolvable' : 'unschedulable',
      reasons: found.map(({ reason }) => reason),
    };
  }

  isIgnored(name: string): boolean {
    if (!isExtended(name)) return false;
    return this.#ignored.has(name) || this.#ignoredGroups.has(name.slice(0, name.indexOf('/')));
  }

  preScore({ pod }: PodInfo): PreScoreOutcome {
    const request = podRequestsForScore(pod);
    const resources = this.#strategy.resources ?? DEFAULT_STRATEGY.resources ?? [];
    return scoreEach((node) => {
      const usages = resources.map(({ name, weight }): Usage => {
        const wanted = amountIn(request, name);
        if (wanted === 0 && isScalar(name)) return LEFT_OUT;
        const used = name === 'cpu' || name === 'memory' ? node.requestedNonZero : node.requested;
        return {
          requested: amountIn(used, name) + wanted,
          capacity: amountIn(node.allocatable, name),
          weight: weight === undefined || weight === 0 ? 1 : weight,
        };
      });
      return allocationScore(this.#strategy, usages);
    });
  }
}

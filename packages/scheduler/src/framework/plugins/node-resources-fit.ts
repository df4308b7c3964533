import { deviceCounts } from '../../dynamicresources/device-counts.ts';
import { backedResources, isDelegated } from '../../dynamicresources/extended-resources.ts';
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
import { amountIn, isExtended, isScalar, podRequestsForScore } from '../../api/resources.ts';
import type { Resources } from '../../api/resources.ts';
import type { Snapshot } from '../snapshot.ts';
import { allocationScore, type ScoringStrategy, type Usage } from './allocation-score.ts';

export interface NodeResourcesFitArgs {
  readonly ignoredResources?: readonly string[];
  readonly ignoredResourceGroups?: readonly string[];
  readonly scoringStrategy?: ScoringStrategy;
}

/** One resource that a pod asks for. */
interface Want {
  readonly name: string;
  readonly amount: number;
  /** Why a node without it will not do. */
  readonly reason: string;
}

const LEFT_OUT: Usage = { requested: 0, capacity: 0, weight: 0 };
const TOO_MANY_PODS = 'Too many pods';
const DEFAULT_STRATEGY: ScoringStrategy = {
  type: 'LeastAllocated',
  resources: [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ],
};

/** What nodes are asked for, in the order in which shortages are told. */
function wantsOf(request: Resources, isIgnored: (name: string) => boolean): Want[] {
  const { milliCpu, memory, ephemeral, scalars } = request;
  const wants: Want[] = [];
  const want = (name: string, amount: number): void => {
    wants.push({ name, amount, reason: `Insufficient ${name}` });
  };
  if (milliCpu > 0) want('cpu', milliCpu);
  if (memory > 0) want('memory', memory);
  if (ephemeral > 0) want('ephemeral-storage', ephemeral);
  for (const [name, amount] of scalars) if (amount !== 0 && !isIgnored(name)) want(name, amount);
  return wants;
}

function areEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

/** All that is short on a node, not only the first; devices are for others to look at. */
function shortages(
  wants: readonly Want[],
  node: NodeInfo,
  backed: ReadonlyMap<string, unknown>,
): Rejection | null {
  const reasons: string[] = [];
  let isHopeless = false;
  if (node.pods.length + 1 > node.allocatablePods) reasons.push(TOO_MANY_PODS);
  for (const { name, amount, reason } of wants) {
    const capacity = amountIn(node.allocatable, name);
    if (amount <= capacity - amountIn(node.requested, name)) continue;
    if (isDelegated(name, node, backed)) continue;
    reasons.push(reason);
    // More than the whole node has.
    if (amount > capacity) isHopeless = true;
  }
  if (reasons.length === 0) return null;
  return { code: isHopeless ? 'unresolvable' : 'unschedulable', reasons };
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
    const wants = wantsOf(pod.requests, (name) => this.isIgnored(name));
    let last: readonly string[] = [];
    return filterEach((node) => {
      const found = shortages(wants, node, backed);
      // Nodes lack the same mostly, and a pod may ask for thousands of resources.
      if (found !== null && areEqual(found.reasons, last)) return { ...found, reasons: last };
      last = found?.reasons ?? last;
      return found;
    });
  }

  isIgnored(name: string): boolean {
    if (!isExtended(name)) return false;
    return this.#ignored.has(name) || this.#ignoredGroups.has(name.slice(0, name.indexOf('/')));
  }

  preScore({ pod }: PodInfo, snapshot: Snapshot): PreScoreOutcome {
    const request = podRequestsForScore(pod);
    const resources = this.#strategy.resources ?? DEFAULT_STRATEGY.resources ?? [];
    const names = resources.map(({ name }) => name).filter((name) => amountIn(request, name) > 0);
    const counts = deviceCounts(names, snapshot);
    return scoreEach((node) => {
      const usages = resources.map(({ name, weight }): Usage => {
        const wanted = amountIn(request, name);
        if (wanted === 0 && isScalar(name)) return LEFT_OUT;
        const used = name === 'cpu' || name === 'memory' ? node.requestedNonZero : node.requested;
        const devices = counts?.(name, node);
        const byDevices = devices !== undefined && devices.capacity > 0;
        return {
          requested: (byDevices ? devices.taken : amountIn(used, name)) + wanted,
          capacity: byDevices ? devices.capacity : amountIn(node.allocatable, name),
          weight: weight === undefined || weight === 0 ? 1 : weight,
        };
      });
      return allocationScore(this.#strategy, usages);
    });
  }
}

/** Why a pod of a cluster goes where it goes, or nowhere: every node, and every objection to it. */
import { Cycle, type Nominations } from '../framework/runtime/cycle.ts';
import { Evaluator } from '../placement/evaluator.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { PodInfo } from '../framework/pod-info.ts';
import type { Profile } from '../framework/runtime/profile.ts';
import type { Snapshot } from '../framework/snapshot.ts';
import type { GangReport } from './gang-report.ts';
import { remediesOf } from './remedies.ts';

export interface Objection {
  readonly plugin: string;
  readonly reasons: readonly string[];
  /** Whether evictions could help. */
  readonly isResolvable: boolean;
  /** What would have to change. */
  readonly remedies: readonly string[];
}

export interface NodeReport {
  readonly node: string;
  /** Of all plugins, not only of the first that says no; none: the node will do. */
  readonly objections: readonly Objection[];
  /** Weighted, by plugin, with `total`; null where nothing was scored. */
  readonly scores: Readonly<Record<string, number>> | null;
}

export interface PodReport {
  readonly pod: string;
  /** The node that it has, or empty. */
  readonly isOn: string;
  /** Why it is not tried at all, or empty. */
  readonly gate: string;
  /** As in the pod's condition; empty if there is a node for it. */
  readonly message: string;
  /** Equally good ones; one of them is taken. */
  readonly best: readonly string[];
  /** Where room would be made, and who would have to go. */
  readonly nomination: { readonly node: string; readonly victims: readonly string[] } | null;
  readonly nodes: readonly NodeReport[];
  /** What its pod group has to do with it; null without one. */
  readonly gang: GangReport | null;
}

const LEAVES = 'it is being deleted';

function objectionsTo(cycle: Cycle, node: NodeInfo): Objection[] {
  return cycle.filters.flatMap((active) => {
    const verdict = cycle.filterNode(node, [active]);
    if (verdict === null) return [];
    const { plugin, reasons, code } = verdict;
    const remedies = remediesOf(plugin, cycle.pod, node, cycle.snapshot);
    return [{ plugin, reasons, isResolvable: code === 'unschedulable', remedies }];
  });
}

/** `snapshot` must not count the pod itself among those that run. */
export function reportOn(
  pod: PodInfo,
  isOn: string,
  snapshot: Snapshot,
  profile: Profile,
  nominations: Nominations,
  gang: GangReport | null = null,
): PodReport {
  const isOver = isOn === '' && pod.isTerminating;
  const gate = isOver ? LEAVES : (Evaluator.gateOf(pod, snapshot, profile) ?? '');
  const decision = new Evaluator(100).decide(pod, snapshot, profile, nominations);
  const cycle = new Cycle(pod, snapshot, profile, nominations);
  const isPrepared = cycle.prepare().kind === 'ready';
  const scores = new Map<string, Record<string, number>>();
  if (decision.kind === 'placed' && decision.scores !== null) {
    for (const [index, { name }] of decision.feasible.entries()) {
      const { total = 0, plugins = new Map<string, number>() } = decision.scores[index] ?? {};
      scores.set(name, { ...Object.fromEntries(plugins), total });
    }
  }
  const nodes = snapshot.nodes.map((node): NodeReport => {
    const objections = isPrepared ? objectionsTo(cycle, node) : [];
    return { node: node.name, objections, scores: scores.get(node.name) ?? null };
  });
  const nomination = decision.kind === 'failed' ? decision.nomination : null;
  return {
    pod: pod.key,
    isOn,
    gate,
    message: decision.kind === 'failed' ? decision.message : '',
    best: decision.kind === 'placed' ? decision.best : [],
    nomination:
      nomination === null
        ? null
        : { node: nomination.node, victims: nomination.victims.map(({ key }) => key) },
    nodes,
    gang,
  };
}

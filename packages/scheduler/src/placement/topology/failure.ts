/** Why a pod has no node, and what is to be done about it. */
import { ClassRules } from './class-rules.ts';
import { fitErrorText } from '../../framework/fit-error.ts';
import type { PodClass } from '../../cache/pod-class.ts';
import type { Profile } from '../../framework/runtime/profile.ts';
import type { ObjectWrite } from '../../framework/reservation.ts';
import type { Verdict } from '../../framework/plugin.ts';

/** Objections for what other pods say, after those to the node itself. */
export const GATE = {
  open: 0,
  unlabelled: 1,
  skewed: 2,
  affinity: 3,
  antiAffinity: 4,
  existing: 5,
} as const;

interface GateFacts {
  readonly reason: string;
  readonly plugin: string;
  /** Evicting pods could change it. */
  readonly isResolvable: boolean;
}

const SKEWED = "node(s) didn't match pod topology spread constraints";
const GATES: Readonly<Record<number, GateFacts>> = {
  [GATE.unlabelled]: {
    reason: `${SKEWED} (missing required label)`,
    plugin: 'PodTopologySpread',
    isResolvable: false,
  },
  [GATE.skewed]: { reason: SKEWED, plugin: 'PodTopologySpread', isResolvable: true },
  [GATE.affinity]: {
    reason: "node(s) didn't match pod affinity rules",
    plugin: 'InterPodAffinity',
    isResolvable: false,
  },
  [GATE.antiAffinity]: {
    reason: "node(s) didn't match pod anti-affinity rules",
    plugin: 'InterPodAffinity',
    isResolvable: true,
  },
  [GATE.existing]: {
    reason: "node(s) didn't satisfy existing pods anti-affinity rules",
    plugin: 'InterPodAffinity',
    isResolvable: true,
  },
};

export function isResolvableGate(gate: number): boolean {
  return GATES[gate]?.isResolvable === true;
}

/** Nodes by verdict of the class, and by gate. */
export interface Objections {
  readonly verdicts: ReadonlyMap<number, number>;
  readonly gates: ReadonlyMap<number, number>;
}

export interface Failure {
  /** As upstream words it. */
  readonly message: string;
  /** Plugins that rejected; they decide which events wake the pod. */
  readonly rejecters: ReadonlySet<string>;
  /** Not the cluster but the pod or the configuration is at fault. */
  readonly isError: boolean;
  readonly clearsNomination: boolean;
  /** Decided by the index: any node that the index finds feasible later ends the wait. */
  readonly isIndexed: boolean;
  /** No node had room, whatever others say: a pod that goes helps on its own node alone. */
  readonly isOfNodes?: boolean;
  /** Rows of the node to wait for, and of the pods to evict from it. */
  readonly nomination: { readonly node: number; readonly victims: readonly number[] } | null;
  /** What may help a later try. */
  readonly writes?: readonly ObjectWrite[];
}

/** What became of the wish to evict somebody. */
export type Preemption =
  | { readonly kind: 'nobody' }
  | { readonly kind: 'rejected'; readonly text: string; readonly clearsNomination: boolean }
  | { readonly kind: 'nominated'; readonly node: number; readonly victims: readonly number[] };

export const NOBODY_TO_EVICT: Preemption = { kind: 'nobody' };

/** The failure of a class by the counts of its verdicts: no node is looked at. */
export function failureOf(
  podClass: PodClass,
  rules: ClassRules,
  { verdicts, gates }: Objections,
  profile: Profile,
  nodeCount: number,
  preemption: Preemption,
): Failure {
  // What a gate said goes for this pod, not for its class; so does what it evicts.
  const isIndexed = gates.size === 0 && preemption.kind === 'nobody';
  const clearsNomination =
    profile.postFilter.length === 0 ||
    (preemption.kind === 'rejected' && preemption.clearsNomination);
  const nomination = preemption.kind === 'nominated' ? preemption : null;
  const isOfNodes = gates.size === 0;
  const base = { isError: false, clearsNomination, isIndexed, isOfNodes, nomination };
  if (nodeCount === 0) {
    const message = 'no nodes available to schedule pods';
    return { ...base, clearsNomination: true, message, rejecters: new Set() };
  }
  const reasons = new Map<string, number>();
  const rejecters = new Set(podClass.nodeNames === null ? [] : ['NodeAffinity']);
  let resolvable = 0;
  for (const [verdict, nodes] of verdicts) {
    rejecters.add(ClassRules.pluginOf(verdict));
    if (ClassRules.isResolvable(verdict)) resolvable += nodes;
    for (const reason of rules.reasonsOf(verdict)) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + nodes);
    }
  }
  for (const [gate, nodes] of gates) {
    const facts = GATES[gate];
    if (facts === undefined) continue;
    rejecters.add(facts.plugin);
    if (facts.isResolvable) resolvable += nodes;
    reasons.set(facts.reason, (reasons.get(facts.reason) ?? 0) + nodes);
  }
  const after = postFilterText(podClass, profile, nodeCount, resolvable, preemption);
  return { ...base, message: fitErrorText(nodeCount, reasons, after), rejecters };
}

/** The failure of a pod that had a node, which a plugin then did not let it have. */
export function refusalOf({ code, reasons, plugin }: Verdict): Failure {
  const isError = code === 'error';
  const counts = new Map(reasons.map((reason) => [reason, 1]));
  return {
    message: isError ? reasons.join(', ') : fitErrorText(1, counts),
    rejecters: isError ? new Set() : new Set([plugin]),
    isError,
    clearsNomination: true,
    isIndexed: false,
    nomination: null,
  };
}

export const NO_VICTIMS = 'No preemption victims found for incoming pod';
const UNHELPFUL = 'Preemption is not helpful for scheduling';

/** Counts of reasons why evictions are of no use, completed to all nodes. */
export function unhelpfulText(
  reasons: Map<string, number>,
  resolvable: number,
  nodeCount: number,
): string {
  if (nodeCount > resolvable) reasons.set(UNHELPFUL, nodeCount - resolvable);
  return fitErrorText(nodeCount, reasons);
}

/** What the plugins of PostFilter say. */
function postFilterText(
  podClass: PodClass,
  profile: Profile,
  nodeCount: number,
  resolvable: number,
  preemption: Preemption,
): string {
  if (preemption.kind === 'nominated') return '';
  const texts: string[] = [];
  for (const { name } of profile.postFilter) {
    if (name === 'DynamicResources') texts.push('no new claims to deallocate');
    if (name !== 'DefaultPreemption') continue;
    if (podClass.template.spec.preemptionPolicy === 'Never') {
      texts.push('preemption: not eligible due to preemptionPolicy=Never.');
      continue;
    }
    if (preemption.kind === 'rejected') {
      texts.push(`preemption: ${preemption.text}`);
      continue;
    }
    const reasons = new Map(resolvable > 0 ? [[NO_VICTIMS, resolvable]] : []);
    texts.push(`preemption: ${unhelpfulText(reasons, resolvable, nodeCount)}`);
  }
  return texts.join(', ');
}

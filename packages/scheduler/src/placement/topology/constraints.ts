/**
 * What other pods have to say about where a pod may go: topology spread constraints (its own, or
 * the defaults) and inter-pod affinity (its own terms, and those of placed pods that select it).
 * Made ready for a decision by groups of nodes: every term is a count by domain.
 */
import { HOSTNAME_KEY, type NodeKind } from '../../cache/node-facts.ts';
import { selectorText, type LabelSelector } from '@megaplane/machinery/selectors';
import { allMatch, termMatches } from '../../framework/affinity-term.ts';
import { selects, type PodInfo, type PodTerm } from '../../framework/pod-info.ts';
import { unrolled, InterPodAffinity } from '../../framework/plugins/inter-pod-affinity.ts';
import { PodTopologySpread } from '../../framework/plugins/pod-topology-spread.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { Profile } from '../../framework/runtime/profile.ts';
import type { SpreadRule } from '../../framework/plugins/spread-rules.ts';
import { topologyValue, type DomainSums, type KindTest } from './domain-sums.ts';
import type { CounterRule, PodCounter, PodCounters } from './pod-counters.ts';
import { termText, type TermBook } from './term-book.ts';

/** Pods that are counted in the domain of a node. */
export interface DomainCount {
  readonly counter: PodCounter;
  readonly sums: DomainSums;
  /** Which of `keys` the domain is by; -1: by host name. */
  readonly key: number;
  /** Which of `hosts` the count is, where it is by host name; else -1. */
  readonly host: number;
}

export interface HardSpread extends DomainCount {
  readonly maxSkew: number;
  readonly minDomains: number;
  /** 1 if the pod counts itself. */
  readonly self: number;
}

export interface SoftSpread extends DomainCount {
  readonly maxSkew: number;
}

export interface WeightedCount extends DomainCount {
  readonly weight: number;
}

/** Counters by node that one decision may depend on. */
export const HOSTS_MAX = 6;
/** Terms and rules that one pod may have counted: more cost more than a look at all nodes. */
const COUNTS_MAX = 256;

export class Constraints {
  /** Topology keys other than the host name. */
  readonly keys: string[] = [];
  /** What is counted by host name. */
  readonly hosts: PodCounter[] = [];
  readonly hard: HardSpread[] = [];
  readonly soft: SoftSpread[] = [];
  /** Nodes without any of the keys of `soft` score nothing. */
  needsAllKeys = false;
  readonly affinity: DomainCount[] = [];
  /** The pod is one of those that it wants to be with. */
  isFirstAllowed = false;
  readonly anti: DomainCount[] = [];
  readonly existingAnti: DomainCount[] = [];
  readonly preferred: WeightedCount[] = [];
  /** Right only while no two nodes share a host name. */
  needsOwnHostnames = false;
  /** Why full evaluation must decide; empty if it need not. */
  slow = '';
  #namedAfter = -1;
  #key = '';
  #hostKey = '';

  get isEmpty(): boolean {
    const { hard, soft, affinity, anti, existingAnti, preferred } = this;
    const count = hard.length + soft.length + affinity.length + anti.length;
    return count + existingAnti.length + preferred.length === 0;
  }

  /** Whether nodes may be infeasible for what other pods say. */
  get hasGates(): boolean {
    const { hard, affinity, anti, existingAnti } = this;
    return hard.length + affinity.length + anti.length + existingAnti.length > 0;
  }

  /** Names the index of a node class that tells nodes apart by the keys. */
  keyOf(nodeClass: number): string {
    this.#nameAfter(nodeClass);
    return this.#key;
  }

  /** Names the index that tells them apart by what is counted by host name, too. */
  hostKeyOf(nodeClass: number): string {
    this.#nameAfter(nodeClass);
    return this.#hostKey;
  }

  /** Volumes and devices that a pod has got since make its node class another. */
  #nameAfter(nodeClass: number): void {
    if (this.#namedAfter === nodeClass) return;
    this.#namedAfter = nodeClass;
    this.#key = `${nodeClass} ${this.keys.join(' ')}`;
    this.#hostKey = `${this.#key} by ${this.hosts.map(({ id }) => id).join(' ')}`;
  }

  count(counter: PodCounter, topologyKey: string, testKey: string, test: KindTest): DomainCount {
    const sums = counter.sumsBy(topologyKey, testKey, test);
    if (topologyKey === HOSTNAME_KEY) {
      let host = this.hosts.indexOf(counter);
      if (host < 0) host = this.hosts.push(counter) - 1;
      return { counter, sums, key: -1, host };
    }
    let key = this.keys.indexOf(topologyKey);
    if (key < 0) key = this.keys.push(topologyKey) - 1;
    return { counter, sums, key, host: -1 };
  }

  /** Must be called before each decision: keeps the counters, and takes in changes of nodes. */
  prepare(counters: PodCounters): void {
    for (const list of [this.hard, this.soft, this.affinity, this.anti]) {
      for (const { counter, sums } of list) {
        counters.use(counter);
        sums.prepare();
      }
    }
    for (const list of [this.existingAnti, this.preferred]) {
      for (const { counter, sums } of list) {
        counters.use(counter);
        sums.prepare();
      }
    }
  }
}

export interface ConstraintSources {
  readonly counters: PodCounters;
  readonly book: TermBook;
  readonly objects: ObjectStore;
}

/** Why full evaluation decides about a pod that spreads over nodes which it names. */
export const SPREADS_OVER_CHOSEN = 'spreading over chosen nodes';
const ANY_KIND: KindTest = () => true;

/** What there is to regard for a pod. */
export function constraintsOf(
  pod: PodInfo,
  profile: Profile,
  isNameBound: boolean,
  sources: ConstraintSources,
): Constraints {
  const made = new Constraints();
  // Counters that nobody will ask are not made.
  if (ownCounts(pod) > COUNTS_MAX) {
    made.slow = 'many terms';
    return made;
  }
  addSpread(made, pod, profile, sources);
  if (isNameBound && made.hard.length + made.soft.length > 0) {
    made.slow = SPREADS_OVER_CHOSEN;
  }
  addAffinity(made, pod, profile, sources);
  if (made.hosts.length > HOSTS_MAX) made.slow = 'many terms by host name';
  return made;
}

function ownCounts(pod: PodInfo): number {
  const required = pod.requiredAffinity.length + pod.requiredAntiAffinity.length;
  const preferred = pod.preferredAffinity.length + pod.preferredAntiAffinity.length;
  return required + preferred + (pod.pod.spec.topologySpreadConstraints ?? []).length;
}

function isOn(profile: Profile, name: string): { readonly filters: boolean; scores: boolean } {
  const has = (list: readonly { readonly name: string }[]): boolean =>
    list.some((plugin) => plugin.name === name);
  return {
    filters: has(profile.filter) && has(profile.preFilter),
    scores: profile.weights.has(name) && has(profile.preScore),
  };
}

function addSpread(
  made: Constraints,
  pod: PodInfo,
  profile: Profile,
  { counters, objects }: ConstraintSources,
): void {
  const plugin = profile.plugins.get('PodTopologySpread');
  if (!(plugin instanceof PodTopologySpread)) return;
  const { filters, scores } = isOn(profile, 'PodTopologySpread');
  const hard = filters ? plugin.rulesOf(pod, objects, 'DoNotSchedule') : [];
  const soft = scores ? plugin.rulesOf(pod, objects, 'ScheduleAnyway') : [];
  for (const rule of hard) {
    const self = selects(rule.selector, pod.labels) ? 1 : 0;
    const count = spreadCount(made, pod, rule, hard, counters);
    made.hard.push({ ...count, maxSkew: rule.maxSkew, minDomains: rule.minDomains, self });
    if (count.host >= 0) made.needsOwnHostnames = true;
  }
  const hasOwn = (pod.pod.spec.topologySpreadConstraints ?? []).length > 0;
  made.needsAllKeys = hasOwn || !plugin.isSystemDefaulted;
  for (const rule of soft) {
    const count = spreadCount(made, pod, rule, made.needsAllKeys ? soft : [], counters);
    made.soft.push({ ...count, maxSkew: rule.maxSkew });
  }
}

/** Pods that a rule counts, on nodes that have the keys of all rules. */
function spreadCount(
  made: Constraints,
  pod: PodInfo,
  rule: SpreadRule,
  all: readonly SpreadRule[],
  counters: PodCounters,
): DomainCount {
  const counter = counters.counterOf(spreadCounterRule(pod.namespace, rule.selector));
  const keys = all.map(({ topologyKey }) => topologyKey);
  const test: KindTest = (kind) =>
    keys.every((key) => topologyValue(kind, key) !== undefined) && rule.includes(nodeOf(kind));
  return made.count(counter, rule.topologyKey, `${keys.join()} ${rule.policy}`, test);
}

/** A node of a kind, as far as policies of spreading look at it. */
function nodeOf({ labels, taints }: NodeKind): Parameters<SpreadRule['includes']>[0] {
  return { name: '', labels, node: { spec: { taints } } };
}

function spreadCounterRule(namespace: string, selector: LabelSelector): CounterRule {
  // A selector of everything counts nothing, as upstream has it.
  const isAll = selector.requirements.length === 0;
  const mayMatch: CounterRule['mayMatch'] = (labels) => !isAll && selects(selector, labels);
  return {
    key: `spread ${namespace} ${selectorText(selector)}`,
    isWithoutLeaving: true,
    matches: (pod) => pod.namespace === namespace && mayMatch(pod.labels),
    mayMatch,
  };
}

function addAffinity(
  made: Constraints,
  pod: PodInfo,
  profile: Profile,
  sources: ConstraintSources,
): void {
  const plugin = profile.plugins.get('InterPodAffinity');
  if (!(plugin instanceof InterPodAffinity)) return;
  const { filters, scores } = isOn(profile, 'InterPodAffinity');
  const { counters, objects, book } = sources;
  const own = (terms: readonly PodTerm[]): readonly PodTerm[] => unrolled(terms, objects, false);
  const prefers = pod.preferredAffinity.length + pod.preferredAntiAffinity.length > 0;
  const isScored = scores && (prefers || !plugin.ignoresExisting);
  const count = (counter: PodCounter, topologyKey: string): DomainCount =>
    made.count(counter, topologyKey, '', ANY_KIND);
  const countTerm = (term: PodTerm): DomainCount =>
    count(counters.counterOf(termsRule([term])), term.topologyKey);
  if (filters) {
    const together = own(pod.requiredAffinity);
    for (const { topologyKey } of together) {
      made.affinity.push(count(counters.counterOf(termsRule(together)), topologyKey));
    }
    made.isFirstAllowed = allMatch(together, pod);
    for (const term of own(pod.requiredAntiAffinity)) {
      if (made.hosts.length > HOSTS_MAX) return;
      made.anti.push(countTerm(term));
    }
  }
  const weigh = (counted: DomainCount, weight: number): void => {
    if (weight !== 0) made.preferred.push({ ...counted, weight });
  };
  if (isScored) {
    const weighed = [
      ...own(pod.preferredAffinity).map((term) => [term, term.weight] as const),
      ...own(pod.preferredAntiAffinity).map((term) => [term, -term.weight] as const),
    ];
    for (const [term, weight] of weighed) {
      if (made.hosts.length > HOSTS_MAX) return;
      weigh(countTerm(term), weight);
    }
  }
  for (const { kind, term, counter } of book.selecting(
    pod,
    objects.namespaceLabels(pod.namespace),
  )) {
    if (made.hosts.length > HOSTS_MAX) return;
    if (made.existingAnti.length + made.preferred.length > COUNTS_MAX) {
      made.slow = 'many terms';
      return;
    }
    if (kind === 'antiAffinity') {
      if (filters) made.existingAnti.push(count(counter, term.topologyKey));
    } else if (isScored) {
      const weight = kind === 'affinity' ? plugin.hardWeight : term.weight;
      weigh(count(counter, term.topologyKey), kind === 'antiPreferred' ? -weight : weight);
    }
  }
  const counts = [made.affinity, made.anti, made.existingAnti, made.preferred].flat();
  if (counts.some(({ host }) => host >= 0)) made.needsOwnHostnames = true;
  const selectsSpaces = [pod.requiredAffinity, pod.requiredAntiAffinity, pod.preferredAffinity]
    .concat([pod.preferredAntiAffinity])
    .some((terms) => terms.some(({ namespaceSelector }) => namespaceSelector !== null));
  if (plugin.keepsSelector && selectsSpaces) made.slow = 'namespace selectors as 1.35 had them';
}

/** Placed pods that all of the terms select. */
function termsRule(terms: readonly PodTerm[]): CounterRule {
  return {
    key: `terms ${terms.map(termText).join(' & ')}`,
    isWithoutLeaving: false,
    matches: (pod) => terms.every((term) => termMatches(term, pod, undefined)),
    mayMatch: (labels) => terms.every(({ selector }) => selects(selector, labels)),
  };
}

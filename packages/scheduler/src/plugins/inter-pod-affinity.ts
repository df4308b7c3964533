import type { NodeInfo } from '../node-info.ts';
import type { PodInfo, PodTerm } from '../pod-info.ts';
import { selects } from '../pod-info.ts';
import type { Filter, Plugin, PreFilterOutcome, PreScoreOutcome, Scorer } from '../plugin.ts';
import { SCORE_MAX, SKIP, unresolvable, unschedulable, type Rejection } from '../plugin.ts';
import type { Labels } from '../objects.ts';
import type { Snapshot } from '../snapshot.ts';

export interface InterPodAffinityArgs {
  readonly hardPodAffinityWeight?: number;
  readonly ignorePreferredTermsOfExistingPods?: boolean;
}

const NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules");
const ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules");
const EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");

/** Pods by topology key and value, never an entry of zero. */
class TopologyCounts {
  readonly #counts: Map<string, number>;

  constructor(counts: ReadonlyMap<string, number> = new Map()) {
    this.#counts = new Map(counts);
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  at(node: NodeInfo, topologyKey: string): number {
    const value = node.labels[topologyKey];
    return value === undefined ? 0 : (this.#counts.get(`${topologyKey}\0${value}`) ?? 0);
  }

  add(node: NodeInfo, topologyKey: string, amount: number, keepsZero = false): void {
    const value = node.labels[topologyKey];
    if (value === undefined) return;
    const key = `${topologyKey}\0${value}`;
    const sum = (this.#counts.get(key) ?? 0) + amount;
    if (sum === 0 && !keepsZero) this.#counts.delete(key);
    else this.#counts.set(key, sum);
  }

  clone(): TopologyCounts {
    return new TopologyCounts(this.#counts);
  }
}

/** Tells whether a term selects a pod; `namespaceLabels` are those of that pod's namespace. */
export function termMatches(
  term: PodTerm,
  pod: Pick<PodInfo, 'namespace' | 'labels'>,
  namespaceLabels: Labels | undefined,
): boolean {
  const { namespaces, namespaceSelector, selector } = term;
  if (!namespaces.has(pod.namespace)) {
    if (namespaceSelector === null || !selects(namespaceSelector, namespaceLabels)) return false;
  }
  return selects(selector, pod.labels);
}

/** Whether all of a pod's terms select a pod; no terms select none. */
export function allMatch(
  terms: readonly PodTerm[],
  pod: Pick<PodInfo, 'namespace' | 'labels'>,
): boolean {
  return terms.length > 0 && terms.every((term) => termMatches(term, pod, undefined));
}

/**
 * The pod's own terms with their namespace selectors unrolled to names. `keepsSelector` repeats a
 * fault of 1.35: the selector stays and is tried on a namespace without labels too.
 */
export function unrolled(
  terms: readonly PodTerm[],
  snapshot: Pick<Snapshot, 'namespaces' | 'namespaceLabels'>,
  keepsSelector: boolean,
): readonly PodTerm[] {
  return terms.map((term) => {
    const selector = term.namespaceSelector;
    if (selector === null || selector.requirements.length === 0) return term;
    const matching = [...snapshot.namespaces].filter((name) =>
      selects(selector, snapshot.namespaceLabels(name)),
    );
    const namespaces = new Set([...term.namespaces, ...matching]);
    return { ...term, namespaces, namespaceSelector: keepsSelector ? selector : null };
  });
}

class AffinityFilter implements Filter {
  readonly #pod: PodInfo;
  readonly #namespaceLabels: Labels | undefined;
  readonly #affinityTerms: readonly PodTerm[];
  readonly #antiTerms: readonly PodTerm[];
  readonly #affinity: TopologyCounts;
  readonly #anti: TopologyCounts;
  readonly #existingAnti: TopologyCounts;

  constructor(
    pod: PodInfo,
    namespaceLabels: Labels | undefined,
    terms: readonly [readonly PodTerm[], readonly PodTerm[]],
    counts: readonly [TopologyCounts, TopologyCounts, TopologyCounts],
  ) {
    this.#pod = pod;
    this.#namespaceLabels = namespaceLabels;
    [this.#affinityTerms, this.#antiTerms] = terms;
    [this.#affinity, this.#anti, this.#existingAnti] = counts;
  }

  /** Nothing to look at: no terms of the pod, and none of running pods that reject it. */
  get isIdle(): boolean {
    const terms = this.#affinityTerms.length + this.#antiTerms.length;
    return terms === 0 && this.#existingAnti.isEmpty;
  }

  filter(node: NodeInfo): Rejection | null {
    if (!this.#hasAffinity(node)) return NO_AFFINITY;
    for (const { topologyKey } of this.#antiTerms) {
      if (this.#anti.at(node, topologyKey) > 0) return ANTI_AFFINITY;
    }
    for (const topologyKey of Object.keys(node.labels)) {
      if (this.#existingAnti.at(node, topologyKey) > 0) return EXISTING;
    }
    return null;
  }

  #hasAffinity(node: NodeInfo): boolean {
    let isMet = true;
    for (const { topologyKey } of this.#affinityTerms) {
      if (node.labels[topologyKey] === undefined) return false;
      if (this.#affinity.at(node, topologyKey) <= 0) isMet = false;
    }
    // The first pod of a group that wants to be together may go anywhere.
    return isMet || (this.#affinity.isEmpty && allMatch(this.#affinityTerms, this.#pod));
  }

  addPod(pod: PodInfo, node: NodeInfo): void {
    this.count(pod, node, 1);
  }

  removePod(pod: PodInfo, node: NodeInfo): void {
    this.count(pod, node, -1);
  }

  count(pod: PodInfo, node: NodeInfo, delta: 1 | -1): void {
    for (const term of pod.requiredAntiAffinity) {
      if (!termMatches(term, this.#pod, this.#namespaceLabels)) continue;
      this.#existingAnti.add(node, term.topologyKey, delta);
    }
    if (allMatch(this.#affinityTerms, pod)) {
      for (const { topologyKey } of this.#affinityTerms) {
        this.#affinity.add(node, topologyKey, delta);
      }
    }
    for (const term of this.#antiTerms) {
      if (termMatches(term, pod, undefined)) this.#anti.add(node, term.topologyKey, delta);
    }
  }

  clone(): AffinityFilter {
    return new AffinityFilter(
      this.#pod,
      this.#namespaceLabels,
      [this.#affinityTerms, this.#antiTerms],
      [this.#affinity.clone(), this.#anti.clone(), this.#existingAnti.clone()],
    );
  }
}

class AffinityScorer implements Scorer {
  readonly #counts: TopologyCounts;
  readonly #keys: ReadonlySet<string>;

  constructor(counts: TopologyCounts, keys: ReadonlySet<string>) {
    this.#counts = counts;
    this.#keys = keys;
  }

  score(node: NodeInfo): number {
    let sum = 0;
    for (const key of this.#keys) sum += this.#counts.at(node, key);
    return sum;
  }

  normalize(raw: readonly number[]): number[] {
    const min = raw.reduce((least, value) => Math.min(least, value), Infinity);
    const max = raw.reduce((most, value) => Math.max(most, value), -Infinity);
    const spread = max - min;
    return raw.map((value) => (spread > 0 ? Math.trunc(SCORE_MAX * ((value - min) / spread)) : 0));
  }
}

export class InterPodAffinity implements Plugin {
  readonly name = 'InterPodAffinity';
  /** What a required term of a running pod weighs for pods that it selects. */
  readonly hardWeight: number;
  readonly ignoresExisting: boolean;
  readonly keepsSelector: boolean;

  constructor(args: InterPodAffinityArgs, keepsSelector: boolean) {
    this.hardWeight = args.hardPodAffinityWeight ?? 1;
    this.ignoresExisting = args.ignorePreferredTermsOfExistingPods ?? false;
    this.keepsSelector = keepsSelector;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const filter = new AffinityFilter(
      pod,
      snapshot.namespaceLabels(pod.namespace),
      [
        unrolled(pod.requiredAffinity, snapshot, this.keepsSelector),
        unrolled(pod.requiredAntiAffinity, snapshot, this.keepsSelector),
      ],
      [new TopologyCounts(), new TopologyCounts(), new TopologyCounts()],
    );
    for (const node of snapshot.nodes) {
      for (const existing of node.pods) filter.count(existing, node, 1);
    }
    return filter.isIdle ? SKIP : { kind: 'run', filter };
  }

  preScore(pod: PodInfo, snapshot: Snapshot): PreScoreOutcome {
    const hasTerms = pod.preferredAffinity.length + pod.preferredAntiAffinity.length > 0;
    if (this.ignoresExisting && !hasTerms) return SKIP;
    const affinity = unrolled(pod.preferredAffinity, snapshot, this.keepsSelector);
    const anti = unrolled(pod.preferredAntiAffinity, snapshot, this.keepsSelector);
    const labels = snapshot.namespaceLabels(pod.namespace);
    const counts = new TopologyCounts();
    const keys = new Set<string>();
    const add = (term: PodTerm, node: NodeInfo, amount: number): void => {
      counts.add(node, term.topologyKey, amount, true);
      keys.add(term.topologyKey);
    };
    for (const node of snapshot.nodes) {
      for (const existing of node.pods) {
        for (const term of affinity) {
          if (termMatches(term, existing, undefined)) add(term, node, term.weight);
        }
        for (const term of anti) {
          if (termMatches(term, existing, undefined)) add(term, node, -term.weight);
        }
        if (!existing.hasAffinityTerms) continue;
        this.#countExisting(existing, (term, amount) => {
          if (termMatches(term, pod, labels)) add(term, node, amount);
        });
      }
    }
    return counts.isEmpty ? SKIP : { kind: 'run', scorer: new AffinityScorer(counts, keys) };
  }

  /** What the terms of a running pod wish for, or against, other pods. */
  #countExisting(existing: PodInfo, count: (term: PodTerm, amount: number) => void): void {
    if (this.hardWeight > 0) {
      for (const term of existing.requiredAffinity) count(term, this.hardWeight);
    }
    for (const term of existing.preferredAffinity) count(term, term.weight);
    for (const term of existing.preferredAntiAffinity) count(term, -term.weight);
  }
}

import { allMatch, termMatches } from '../affinity-term.ts';
import type { NodeInfo } from '../node-info.ts';
import type { PodInfo, PodTerm } from '../pod-info.ts';
import { selects } from '../pod-info.ts';
import type { Filter, Plugin, PreFilterOutcome, PreScoreOutcome, Range } from '../plugin.ts';
import type { Rejection, Scorer, Tally } from '../plugin.ts';
import { rangeOf, SCORE_MAX, SKIP, unresolvable, unschedulable } from '../plugin.ts';
import type { Labels } from '../../api/objects.ts';
import type { Snapshot } from '../snapshot.ts';
import { TermIndex } from './term-index.ts';
import { TriedCounts } from './tried-counts.ts';

export interface InterPodAffinityArgs {
  readonly hardPodAffinityWeight?: number;
  readonly ignorePreferredTermsOfExistingPods?: boolean;
}

const NO_AFFINITY = unresolvable("node(s) didn't match pod affinity rules");
const ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules");
const EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");

/** What an entry of a tally counts. */
const AFFINITY = 'affinity ';
const ANTI = 'anti ';
const EXISTING_ANTI = 'existing ';

/** Pods by topology key and value. */
class TopologyCounts {
  readonly #byKey = new Map<string, TriedCounts>();
  /** Entries that are not zero, or are kept in any case. */
  #entries = 0;

  get isEmpty(): boolean {
    return this.#entries === 0;
  }

  /** Topology keys by which anything was counted. */
  get keys(): Iterable<string> {
    return this.#byKey.keys();
  }

  at(node: NodeInfo, topologyKey: string): number {
    const value = node.labels[topologyKey];
    return value === undefined ? 0 : (this.#byKey.get(topologyKey)?.get(value) ?? 0);
  }

  /** Whether anything is counted in any domain of a node. */
  isAnyAt(node: NodeInfo): boolean {
    for (const key of this.#byKey.keys()) if (this.at(node, key) > 0) return true;
    return false;
  }

  add(node: NodeInfo, topologyKey: string, amount: number, keepsZero = false): void {
    const value = node.labels[topologyKey];
    if (value !== undefined) this.addAt(topologyKey, value, amount, keepsZero);
  }

  addAt(topologyKey: string, value: string, amount: number, keepsZero = false): void {
    let byValue = this.#byKey.get(topologyKey);
    if (byValue === undefined) this.#byKey.set(topologyKey, (byValue = new TriedCounts()));
    const before = byValue.get(value);
    const sum = (before ?? 0) + amount;
    byValue.set(value, sum);
    if (keepsZero) this.#entries += before === undefined ? 1 : 0;
    else this.#entries += Number(sum !== 0) - Number((before ?? 0) !== 0);
  }

  /** Calls back with each domain, `topologyKey value`; keys hold no spaces. */
  tallyInto(tally: Map<string, number>, prefix: string): void {
    for (const [key, byValue] of this.#byKey) {
      for (const [value, count] of byValue.entries()) tally.set(`${prefix}${key} ${value}`, count);
    }
  }

  /** Takes an entry of a tally that was made with the prefix. */
  take(text: string, prefix: string, amount: number, keepsZero = false): void {
    const space = text.indexOf(' ', prefix.length);
    this.addAt(text.slice(prefix.length, space), text.slice(space + 1), amount, keepsZero);
  }

  clone(): TopologyCounts {
    const copy = new TopologyCounts();
    for (const [key, byValue] of this.#byKey) copy.#byKey.set(key, new TriedCounts(byValue));
    copy.#entries = this.#entries;
    return copy;
  }
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

/** What a pod asks for: its own terms, made ready for a look at all pods that run. */
interface Asked {
  readonly pod: PodInfo;
  readonly namespaceLabels: Labels | undefined;
  readonly affinity: readonly PodTerm[];
  readonly anti: readonly PodTerm[];
  readonly affinityKeys: ReadonlySet<string>;
  readonly antiIndex: TermIndex;
}

class AffinityFilter implements Filter {
  readonly #asked: Asked;
  readonly #affinity: TopologyCounts;
  readonly #anti: TopologyCounts;
  readonly #existingAnti: TopologyCounts;

  constructor(
    asked: Asked,
    affinity = new TopologyCounts(),
    anti = new TopologyCounts(),
    existingAnti = new TopologyCounts(),
  ) {
    this.#asked = asked;
    this.#affinity = affinity;
    this.#anti = anti;
    this.#existingAnti = existingAnti;
  }

  /** Nothing to look at: no terms of the pod, and none of running pods that reject it. */
  get isIdle(): boolean {
    const { affinity, anti } = this.#asked;
    return affinity.length + anti.length === 0 && this.#existingAnti.isEmpty;
  }

  filter(node: NodeInfo): Rejection | null {
    if (!this.#hasAffinity(node)) return NO_AFFINITY;
    // Terms of one key are counted together: any of them is reason enough.
    if (this.#anti.isAnyAt(node)) return ANTI_AFFINITY;
    return this.#existingAnti.isAnyAt(node) ? EXISTING : null;
  }

  #hasAffinity(node: NodeInfo): boolean {
    const { pod, affinity, affinityKeys } = this.#asked;
    let isMet = true;
    for (const topologyKey of affinityKeys) {
      if (node.labels[topologyKey] === undefined) return false;
      if (this.#affinity.at(node, topologyKey) <= 0) isMet = false;
    }
    // The first pod of a group that wants to be together may go anywhere.
    return isMet || (this.#affinity.isEmpty && allMatch(affinity, pod));
  }

  addPod(pod: PodInfo, node: NodeInfo): void {
    this.count(pod, node, 1);
  }

  removePod(pod: PodInfo, node: NodeInfo): void {
    this.count(pod, node, -1);
  }

  count(existing: PodInfo, node: NodeInfo, delta: 1 | -1): void {
    const { pod, namespaceLabels, affinity, antiIndex } = this.#asked;
    for (const term of existing.requiredAntiAffinity) {
      if (!termMatches(term, pod, namespaceLabels)) continue;
      this.#existingAnti.add(node, term.topologyKey, delta);
    }
    if (allMatch(affinity, existing)) {
      for (const { topologyKey } of affinity) this.#affinity.add(node, topologyKey, delta);
    }
    antiIndex.forEachSelecting(existing, ({ topologyKey }) =>
      this.#anti.add(node, topologyKey, delta),
    );
  }

  tally(): Tally {
    const tally = new Map<string, number>();
    this.#affinity.tallyInto(tally, AFFINITY);
    this.#anti.tallyInto(tally, ANTI);
    this.#existingAnti.tallyInto(tally, EXISTING_ANTI);
    return tally;
  }

  take(tally: Tally): void {
    for (const [text, count] of tally) {
      if (text.startsWith(AFFINITY)) this.#affinity.take(text, AFFINITY, count);
      else if (text.startsWith(ANTI)) this.#anti.take(text, ANTI, count);
      else this.#existingAnti.take(text, EXISTING_ANTI, count);
    }
  }

  clone(): AffinityFilter {
    const counts = [this.#affinity.clone(), this.#anti.clone(), this.#existingAnti.clone()];
    return new AffinityFilter(this.#asked, ...counts);
  }
}

class AffinityScorer implements Scorer {
  readonly #counts: TopologyCounts;

  constructor(counts: TopologyCounts) {
    this.#counts = counts;
  }

  score(node: NodeInfo): number {
    let sum = 0;
    for (const key of this.#counts.keys) sum += this.#counts.at(node, key);
    return sum;
  }

  normalize(raw: readonly number[], { min, max }: Range = rangeOf(raw)): number[] {
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

  tally(pod: PodInfo, snapshot: Snapshot): Tally {
    return this.#countedFilter(pod, snapshot).tally();
  }

  preFilter(pod: PodInfo, snapshot: Snapshot, tally?: Tally): PreFilterOutcome {
    const filter =
      tally === undefined ? this.#countedFilter(pod, snapshot) : this.#filterOf(pod, snapshot);
    if (tally !== undefined) filter.take(tally);
    return filter.isIdle ? SKIP : { kind: 'run', filter };
  }

  /** With nothing counted yet. */
  #filterOf(pod: PodInfo, snapshot: Snapshot): AffinityFilter {
    const affinity = unrolled(pod.requiredAffinity, snapshot, this.keepsSelector);
    const anti = unrolled(pod.requiredAntiAffinity, snapshot, this.keepsSelector);
    return new AffinityFilter({
      ...{ pod, affinity, anti },
      namespaceLabels: snapshot.namespaceLabels(pod.namespace),
      affinityKeys: new Set(affinity.map(({ topologyKey }) => topologyKey)),
      antiIndex: new TermIndex(anti),
    });
  }

  #countedFilter(pod: PodInfo, snapshot: Snapshot): AffinityFilter {
    const filter = this.#filterOf(pod, snapshot);
    for (const node of snapshot.nodes) {
      for (const existing of node.pods) filter.count(existing, node, 1);
    }
    return filter;
  }

  scoreTally(pod: PodInfo, snapshot: Snapshot): Tally | null {
    if (!this.#scores(pod)) return null;
    const tally = new Map<string, number>();
    this.#wishes(pod, snapshot).tallyInto(tally, '');
    return tally;
  }

  preScore(
    pod: PodInfo,
    snapshot: Snapshot,
    _feasible: readonly NodeInfo[],
    _filter: Filter | null,
    tally?: Tally,
  ): PreScoreOutcome {
    if (!this.#scores(pod)) return SKIP;
    const counts = tally === undefined ? this.#wishes(pod, snapshot) : new TopologyCounts();
    for (const [text, amount] of tally ?? []) counts.take(text, '', amount, true);
    return counts.isEmpty ? SKIP : { kind: 'run', scorer: new AffinityScorer(counts) };
  }

  #scores(pod: PodInfo): boolean {
    const hasTerms = pod.preferredAffinity.length + pod.preferredAntiAffinity.length > 0;
    return hasTerms || !this.ignoresExisting;
  }

  /** What pods on nodes and the pod itself wish for and against each other, by domain. */
  #wishes(pod: PodInfo, snapshot: Snapshot): TopologyCounts {
    const own = (terms: readonly PodTerm[]): TermIndex =>
      new TermIndex(unrolled(terms, snapshot, this.keepsSelector));
    const affinity = own(pod.preferredAffinity);
    const anti = own(pod.preferredAntiAffinity);
    const labels = snapshot.namespaceLabels(pod.namespace);
    const counts = new TopologyCounts();
    const add = (term: PodTerm, node: NodeInfo, amount: number): void =>
      counts.add(node, term.topologyKey, amount, true);
    for (const node of snapshot.nodes) {
      for (const existing of node.pods) {
        affinity.forEachSelecting(existing, (term) => add(term, node, term.weight));
        anti.forEachSelecting(existing, (term) => add(term, node, -term.weight));
        if (!existing.hasAffinityTerms) continue;
        this.#countExisting(existing, (term, amount) => {
          if (termMatches(term, pod, labels)) add(term, node, amount);
        });
      }
    }
    return counts;
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

import type { LabelSelector } from '@megaplane/machinery/selectors';
import type { NodeInfo } from '../node-info.ts';
import type { SpreadConstraint } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import { selects } from '../pod-info.ts';
import type { Filter, Plugin, PreFilterOutcome, PreScoreOutcome, Range } from '../plugin.ts';
import type { Scorer, Tally } from '../plugin.ts';
import { rangeOf, SCORE_MAX, SKIP, unresolvable, unschedulable } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import { TriedCounts } from './tried-counts.ts';
import { defaultRules, ownRules, type Siblings, type SpreadRule } from './spread-rules.ts';

export interface PodTopologySpreadArgs {
  readonly defaultConstraints?: readonly SpreadConstraint[];
  readonly defaultingType?: string;
}

/** What feasible nodes are in, in tallies: before a topology key and a value; alone, how many. */
const SCORED = 'scored ';
const HOSTNAME = 'kubernetes.io/hostname';
const SKEWED = unschedulable("node(s) didn't match pod topology spread constraints");
const UNLABELLED = unresolvable(
  "node(s) didn't match pod topology spread constraints (missing required label)",
);
const SYSTEM_DEFAULTS: readonly SpreadConstraint[] = [
  { topologyKey: HOSTNAME, whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 5 },
];

function hasAllKeys(rules: readonly SpreadRule[], { labels }: NodeInfo): boolean {
  return rules.every(({ topologyKey }) => labels[topologyKey] !== undefined);
}

/** Running pods that a rule counts; a selector of everything counts nothing, as upstream has it. */
function countPods(node: NodeInfo, selector: LabelSelector, namespace: string): number {
  if (selector.nothing !== true && selector.requirements.length === 0) return 0;
  let count = 0;
  for (const pod of node.pods) {
    if (pod.isTerminating || pod.namespace !== namespace) continue;
    if (selects(selector, pod.labels)) count++;
  }
  return count;
}

/** Calls back with the pods of each node that a rule counts, by the place of the rule. */
function tallyDomains(
  { namespace }: PodInfo,
  rules: readonly SpreadRule[],
  { nodes }: Pick<Snapshot, 'nodes'>,
  needsAllKeys: boolean,
  add: (index: number, value: string, count: number) => void,
): void {
  for (const node of nodes) {
    if (needsAllKeys && !hasAllKeys(rules, node)) continue;
    for (const [index, rule] of rules.entries()) {
      if (!rule.includes(node)) continue;
      const value = node.labels[rule.topologyKey] ?? '';
      add(index, value, countPods(node, rule.selector, namespace));
    }
  }
}

/** A domain of a rule as the text of a tally. */
const domainText = (index: number, value: string): string => `${index} ${value}`;

function domainOf(text: string): readonly [index: number, value: string] {
  const space = text.indexOf(' ');
  return [Number(text.slice(0, space)), text.slice(space + 1)];
}

/** DoNotSchedule: matching pods by domain, and the smallest of those counts. */
class SkewFilter implements Filter {
  readonly #pod: PodInfo;
  readonly #rules: readonly SpreadRule[];
  readonly #counts: readonly TriedCounts[];
  /** By rule, 1 if the pod counts itself. */
  readonly #selves: readonly number[];

  constructor(pod: PodInfo, rules: readonly SpreadRule[], counts: readonly TriedCounts[]) {
    this.#pod = pod;
    this.#rules = rules;
    this.#counts = counts;
    this.#selves = rules.map(({ selector }) => (selects(selector, pod.labels) ? 1 : 0));
  }

  static over(pod: PodInfo, rules: readonly SpreadRule[], snapshot: Snapshot): SkewFilter {
    const counts = rules.map(() => new TriedCounts());
    tallyDomains(pod, rules, snapshot, true, (index, value, count) => {
      counts[index]?.set(value, (counts[index].get(value) ?? 0) + count);
    });
    return new SkewFilter(pod, rules, counts);
  }

  static of(pod: PodInfo, rules: readonly SpreadRule[], tally: Tally): SkewFilter {
    const counts = rules.map(() => new TriedCounts());
    for (const [text, count] of tally) {
      const [index, value] = domainOf(text);
      counts[index]?.set(value, count);
    }
    return new SkewFilter(pod, rules, counts);
  }

  filter(node: NodeInfo): ReturnType<Filter['filter']> {
    for (const [index, rule] of this.#rules.entries()) {
      const value = node.labels[rule.topologyKey];
      if (value === undefined) return UNLABELLED;
      const pods = (this.#counts[index]?.get(value) ?? 0) + (this.#selves[index] ?? 0);
      if (pods - this.#least(index, rule) > rule.maxSkew) return SKEWED;
    }
    return null;
  }

  #least(index: number, { minDomains }: SpreadRule): number {
    const counts = this.#counts[index];
    return counts === undefined || counts.size < minDomains ? 0 : counts.least();
  }

  addPod(pod: PodInfo, node: NodeInfo): void {
    this.#update(pod, node, 1);
  }

  removePod(pod: PodInfo, node: NodeInfo): void {
    this.#update(pod, node, -1);
  }

  clone(): SkewFilter {
    const counts = this.#counts.map((count) => new TriedCounts(count));
    return new SkewFilter(this.#pod, this.#rules, counts);
  }

  #update(pod: PodInfo, node: NodeInfo, delta: number): void {
    if (pod.namespace !== this.#pod.namespace || !hasAllKeys(this.#rules, node)) return;
    for (const [index, rule] of this.#rules.entries()) {
      if (!selects(rule.selector, pod.labels) || !rule.includes(node)) continue;
      const value = node.labels[rule.topologyKey] ?? '';
      const counts = this.#counts[index];
      counts?.set(value, (counts.get(value) ?? 0) + delta);
    }
  }
}

/** Matching pods of the domains that feasible nodes are in, by rule. */
class SpreadCounts {
  /** Nodes that are scored. */
  readonly scored: number;
  readonly byRule: readonly ReadonlyMap<string, number>[];

  constructor(scored: number, byRule: readonly ReadonlyMap<string, number>[]) {
    this.scored = scored;
    this.byRule = byRule;
  }

  static over(
    pod: PodInfo,
    rules: readonly SpreadRule[],
    { nodes }: Pick<Snapshot, 'nodes'>,
    scored: readonly NodeInfo[],
    needsAllKeys: boolean,
  ): SpreadCounts {
    const byRule = rules.map(({ topologyKey }) => {
      const values = scored.map(({ labels }) => labels[topologyKey] ?? '');
      return new Map(topologyKey === HOSTNAME ? [] : values.map((value) => [value, 0]));
    });
    for (const node of nodes) {
      if (needsAllKeys && !hasAllKeys(rules, node)) continue;
      for (const [index, rule] of rules.entries()) {
        if (!rule.includes(node)) continue;
        const counts = byRule[index];
        const value = node.labels[rule.topologyKey] ?? '';
        const present = counts?.get(value);
        if (present === undefined) continue;
        counts?.set(value, present + countPods(node, rule.selector, pod.namespace));
      }
    }
    return new SpreadCounts(scored.length, byRule);
  }

  /** The same of a share of the nodes; whether a domain is scored at all, others may know. */
  static tally(
    pod: PodInfo,
    rules: readonly SpreadRule[],
    snapshot: Pick<Snapshot, 'nodes'>,
    scored: readonly NodeInfo[],
    needsAllKeys: boolean,
  ): Tally {
    const tally = new Map<string, number>([[SCORED, scored.length]]);
    const spread = rules.filter(({ topologyKey }) => topologyKey !== HOSTNAME);
    for (const { topologyKey } of spread) {
      for (const { labels } of scored)
        tally.set(`${SCORED}${topologyKey} ${labels[topologyKey] ?? ''}`, 1);
    }
    tallyDomains(pod, rules, snapshot, needsAllKeys, (index, value, count) => {
      if (rules[index]?.topologyKey === HOSTNAME) return;
      const text = domainText(index, value);
      tally.set(text, (tally.get(text) ?? 0) + count);
    });
    return tally;
  }

  static of(rules: readonly SpreadRule[], tally: Tally): SpreadCounts {
    const byRule = rules.map(() => new Map<string, number>());
    for (const text of tally.keys()) {
      if (text === SCORED || !text.startsWith(SCORED)) continue;
      const space = text.indexOf(' ', SCORED.length);
      const [key, value] = [text.slice(SCORED.length, space), text.slice(space + 1)];
      for (const [index, { topologyKey }] of rules.entries()) {
        if (topologyKey !== key) continue;
        byRule[index]?.set(value, tally.get(domainText(index, value)) ?? 0);
      }
    }
    return new SpreadCounts(tally.get(SCORED) ?? 0, byRule);
  }
}

/** ScheduleAnyway: the fewer matching pods in the node's domains, the better. */
class SpreadScorer implements Scorer {
  readonly #pod: PodInfo;
  readonly #rules: readonly SpreadRule[];
  readonly #counts: SpreadCounts;
  readonly #weights: readonly number[];
  readonly #isIgnored: readonly boolean[];
  readonly #needsAllKeys: boolean;

  constructor(
    pod: PodInfo,
    rules: readonly SpreadRule[],
    counts: SpreadCounts,
    isIgnored: readonly boolean[],
    needsAllKeys: boolean,
  ) {
    this.#pod = pod;
    this.#rules = rules;
    this.#needsAllKeys = needsAllKeys;
    this.#isIgnored = isIgnored;
    this.#counts = counts;
    this.#weights = rules.map(({ topologyKey }, index) => {
      const { scored, byRule } = counts;
      return Math.log((topologyKey === HOSTNAME ? scored : (byRule[index]?.size ?? 0)) + 2);
    });
  }

  score(node: NodeInfo): number {
    if (this.#needsAllKeys && !hasAllKeys(this.#rules, node)) return 0;
    let sum = 0;
    for (const [index, rule] of this.#rules.entries()) {
      const value = node.labels[rule.topologyKey];
      if (value === undefined) continue;
      const count =
        rule.topologyKey === HOSTNAME
          ? countPods(node, rule.selector, this.#pod.namespace)
          : (this.#counts.byRule[index]?.get(value) ?? 0);
      sum += count * (this.#weights[index] ?? 0) + (rule.maxSkew - 1);
    }
    return Math.round(sum);
  }

  range(raw: readonly number[]): Range {
    return rangeOf(raw.filter((_, index) => this.#isIgnored[index] === false));
  }

  normalize(raw: readonly number[], { min, max }: Range = this.range(raw)): number[] {
    return raw.map((value, index) => {
      if (this.#isIgnored[index] === true) return 0;
      return max === 0 ? SCORE_MAX : Math.trunc((SCORE_MAX * (max + min - value)) / max);
    });
  }
}

export class PodTopologySpread implements Plugin {
  readonly name = 'PodTopologySpread';
  readonly #defaults: readonly SpreadConstraint[];
  /** Pods without constraints are spread over hosts and zones, softly. */
  readonly isSystemDefaulted: boolean;

  constructor({ defaultConstraints = [], defaultingType }: PodTopologySpreadArgs) {
    this.isSystemDefaulted = defaultingType !== 'List';
    this.#defaults = this.isSystemDefaulted ? SYSTEM_DEFAULTS : defaultConstraints;
  }

  tally(pod: PodInfo, snapshot: Snapshot): Tally | null {
    const rules = this.rulesOf(pod, snapshot, 'DoNotSchedule');
    if (rules.length === 0) return null;
    const tally = new Map<string, number>();
    tallyDomains(pod, rules, snapshot, true, (index, value, count) => {
      const text = domainText(index, value);
      tally.set(text, (tally.get(text) ?? 0) + count);
    });
    return tally;
  }

  preFilter(pod: PodInfo, snapshot: Snapshot, tally?: Tally): PreFilterOutcome {
    const rules = this.rulesOf(pod, snapshot, 'DoNotSchedule');
    if (rules.length === 0) return SKIP;
    const filter =
      tally === undefined
        ? SkewFilter.over(pod, rules, snapshot)
        : SkewFilter.of(pod, rules, tally);
    return { kind: 'run', filter };
  }

  scoreTally(pod: PodInfo, snapshot: Snapshot, feasible: readonly NodeInfo[]): Tally | null {
    const rules = this.rulesOf(pod, snapshot, 'ScheduleAnyway');
    if (rules.length === 0) return null;
    const needsAllKeys = this.#needsAllKeys(pod);
    const scored = feasible.filter((node) => !needsAllKeys || hasAllKeys(rules, node));
    return SpreadCounts.tally(pod, rules, snapshot, scored, needsAllKeys);
  }

  preScore(
    pod: PodInfo,
    snapshot: Snapshot,
    feasible: readonly NodeInfo[],
    _filter: Filter | null,
    tally?: Tally,
  ): PreScoreOutcome {
    const rules = this.rulesOf(pod, snapshot, 'ScheduleAnyway');
    if (rules.length === 0) return SKIP;
    const needsAllKeys = this.#needsAllKeys(pod);
    const isIgnored = feasible.map((node) => needsAllKeys && !hasAllKeys(rules, node));
    const scored = feasible.filter((_, index) => isIgnored[index] === false);
    const counts =
      tally === undefined
        ? SpreadCounts.over(pod, rules, snapshot, scored, needsAllKeys)
        : SpreadCounts.of(rules, tally);
    const scorer = new SpreadScorer(pod, rules, counts, isIgnored, needsAllKeys);
    return { kind: 'run', scorer };
  }

  #needsAllKeys(pod: PodInfo): boolean {
    const hasOwn = (pod.pod.spec.topologySpreadConstraints ?? []).length > 0;
    return hasOwn || !this.isSystemDefaulted;
  }

  /** A pod with constraints of its own, of either kind, gets no defaults. */
  rulesOf(
    pod: PodInfo,
    snapshot: Siblings,
    action: 'DoNotSchedule' | 'ScheduleAnyway',
  ): SpreadRule[] {
    if ((pod.pod.spec.topologySpreadConstraints ?? []).length > 0) return ownRules(pod, action);
    return defaultRules(pod, snapshot, this.#defaults, action);
  }
}

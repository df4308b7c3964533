import type { LabelSelector } from '@megaplane/machinery/selectors';
import type { NodeInfo } from '../node-info.ts';
import type { SpreadConstraint } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import { selects } from '../pod-info.ts';
import type { Filter, Plugin, PreFilterOutcome, PreScoreOutcome, Scorer } from '../plugin.ts';
import { SCORE_MAX, SKIP, unresolvable, unschedulable } from '../plugin.ts';
import type { Snapshot } from '../snapshot.ts';
import { TriedCounts } from './tried-counts.ts';
import { defaultRules, ownRules, type Siblings, type SpreadRule } from './spread-rules.ts';

export interface PodTopologySpreadArgs {
  readonly defaultConstraints?: readonly SpreadConstraint[];
  readonly defaultingType?: string;
}

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
    for (const node of snapshot.nodes) {
      if (!hasAllKeys(rules, node)) continue;
      for (const [index, rule] of rules.entries()) {
        if (!rule.includes(node)) continue;
        const value = node.labels[rule.topologyKey] ?? '';
        const count = countPods(node, rule.selector, pod.namespace);
        counts[index]?.set(value, (counts[index].get(value) ?? 0) + count);
      }
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

/** ScheduleAnyway: the fewer matching pods in the node's domains, the better. */
class SpreadScorer implements Scorer {
  readonly #pod: PodInfo;
  readonly #rules: readonly SpreadRule[];
  readonly #counts: readonly Map<string, number>[];
  readonly #weights: readonly number[];
  readonly #isIgnored: readonly boolean[];
  readonly #needsAllKeys: boolean;

  constructor(
    pod: PodInfo,
    rules: readonly SpreadRule[],
    snapshot: Snapshot,
    feasible: readonly NodeInfo[],
    needsAllKeys: boolean,
  ) {
    this.#pod = pod;
    this.#rules = rules;
    this.#needsAllKeys = needsAllKeys;
    this.#isIgnored = feasible.map((node) => needsAllKeys && !hasAllKeys(rules, node));
    const scored = feasible.filter((_, index) => this.#isIgnored[index] === false);
    this.#counts = rules.map(({ topologyKey }) => {
      const values = scored.map(({ labels }) => labels[topologyKey] ?? '');
      return new Map(topologyKey === HOSTNAME ? [] : values.map((value) => [value, 0]));
    });
    this.#weights = rules.map(({ topologyKey }, index) => {
      const size = topologyKey === HOSTNAME ? scored.length : (this.#counts[index]?.size ?? 0);
      return Math.log(size + 2);
    });
    for (const node of snapshot.nodes) this.#count(node);
  }

  #count(node: NodeInfo): void {
    if (this.#needsAllKeys && !hasAllKeys(this.#rules, node)) return;
    for (const [index, rule] of this.#rules.entries()) {
      if (!rule.includes(node)) continue;
      const counts = this.#counts[index];
      const value = node.labels[rule.topologyKey] ?? '';
      const present = counts?.get(value);
      if (present === undefined) continue;
      counts?.set(value, present + countPods(node, rule.selector, this.#pod.namespace));
    }
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
          : (this.#counts[index]?.get(value) ?? 0);
      sum += count * (this.#weights[index] ?? 0) + (rule.maxSkew - 1);
    }
    return Math.round(sum);
  }

  normalize(raw: readonly number[]): number[] {
    const scored = raw.filter((_, index) => this.#isIgnored[index] === false);
    const min = scored.reduce((least, value) => Math.min(least, value), Infinity);
    const max = scored.reduce((most, value) => Math.max(most, value), -Infinity);
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

  preFilter(pod: PodInfo, snapshot: Snapshot): PreFilterOutcome {
    const rules = this.rulesOf(pod, snapshot, 'DoNotSchedule');
    if (rules.length === 0) return SKIP;
    return { kind: 'run', filter: SkewFilter.over(pod, rules, snapshot) };
  }

  preScore(pod: PodInfo, snapshot: Snapshot, feasible: readonly NodeInfo[]): PreScoreOutcome {
    const rules = this.rulesOf(pod, snapshot, 'ScheduleAnyway');
    if (rules.length === 0) return SKIP;
    const hasOwn = (pod.pod.spec.topologySpreadConstraints ?? []).length > 0;
    const needsAllKeys = hasOwn || !this.isSystemDefaulted;
    const scorer = new SpreadScorer(pod, rules, snapshot, feasible, needsAllKeys);
    return { kind: 'run', scorer };
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

/** Pods that name their nodes, as those of daemons do: no other node is looked at for them. */
import { UNNAMED, type ClassRules } from './topology/class-rules.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { PodTable } from '../cache/pod-table.ts';
import type { Identities } from '../cache/identities.ts';

interface Tables {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
}

/** What became of the nodes that a pod names. */
export interface NamedPick {
  /** Those that will do. */
  readonly feasible: number;
  /** Of them, those with the greatest score of what nodes say themselves. */
  readonly best: readonly number[];
  /** How many nodes have each verdict; all that are not named have the same. */
  readonly verdicts: ReadonlyMap<number, number>;
}

/**
 * Judges the nodes that a pod of the class names. `rules` must be prepared. `isFree`: whether a
 * node that would do is left to the pod by others.
 */
export function pickNamed(
  rules: ClassRules,
  nodes: NodeTable,
  isFree: (node: number) => boolean,
): NamedPick {
  const verdicts = new Map<number, number>();
  const found: { readonly node: number; readonly score: number; readonly pair: number }[] = [];
  let unnamed = nodes.count;
  for (const name of rules.podClass.nodeNames ?? []) {
    const node = nodes.find(name);
    if (node < 0 || !nodes.isPresent(node)) continue;
    unnamed--;
    const score = rules.judge(node);
    const { pair } = rules;
    if (score < 0) verdicts.set(score, (verdicts.get(score) ?? 0) + 1);
    else if (isFree(node)) found.push({ node, score, pair });
  }
  if (unnamed > 0) verdicts.set(UNNAMED, unnamed);
  const pairs = found.map(({ pair }) => rules.pairs[pair]);
  const softMax = Math.max(0, ...pairs.map((pair) => pair?.softTaints ?? 0));
  const affinityMax = Math.max(0, ...pairs.map((pair) => pair?.affinity ?? 0));
  const totals = found.map(({ node, score, pair }) => {
    return { node, total: score + rules.pairScore(pair, softMax, affinityMax) };
  });
  const most = Math.max(...totals.map(({ total }) => total));
  const best = totals.filter(({ total }) => total === most).map(({ node }) => node);
  return { feasible: found.length, best, verdicts };
}

/** Whether a node that a pod names has pods that are less important. */
export function hasLesser(
  names: ReadonlySet<string>,
  priority: number,
  { nodes, pods, identities }: Tables,
): boolean {
  const { classes } = identities;
  for (const name of names) {
    const node = nodes.find(name);
    if (node < 0 || !nodes.isPresent(node)) continue;
    for (let pod = nodes.firstPod.get(node); pod >= 0; pod = pods.next.get(pod)) {
      if (classes.get(pods.podClass.get(pod)).priority < priority) return true;
    }
  }
  return false;
}

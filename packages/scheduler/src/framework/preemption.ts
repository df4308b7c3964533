/** Who would have to go from a node to make room, and which node is the least bad one. */
import type { NodeInfo } from './node-info.ts';
import type { BudgetObject } from '../api/objects.ts';
import { namespaceOf } from '../api/objects.ts';
import { selectorOf, selects, type PodInfo } from './pod-info.ts';
import { unresolvable, type Candidate, type CycleHandle, type Rejection } from './plugin.ts';
import { addPod, cloneFilters, removePod } from './active-filters.ts';

const NO_VICTIMS = unresolvable('No preemption victims found for incoming pod');

/** Start of a pod that has not started: later than all others. */
const NOT_STARTED = '~';

function startTimeOf({ pod }: PodInfo): string {
  return pod.status?.startTime ?? NOT_STARTED;
}

/** Higher priority first, then the one that runs longer. */
function byImportance(left: PodInfo, right: PodInfo): number {
  if (left.priority !== right.priority) return right.priority - left.priority;
  const [one, other] = [startTimeOf(left), startTimeOf(right)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Pods whose eviction breaks a budget, in the order in which the budgets would be used up. */
function violatingPods(pods: readonly PodInfo[], budgets: readonly BudgetObject[]): Set<PodInfo> {
  const left = budgets.map(({ status }) => status?.disruptionsAllowed ?? 0);
  const found = new Set<PodInfo>();
  for (const pod of pods) {
    if (Object.keys(pod.labels).length === 0) continue;
    for (const [index, budget] of budgets.entries()) {
      if (namespaceOf(budget) !== pod.namespace) continue;
      const selector = selectorOf(budget.spec?.selector);
      if (selector.requirements.length === 0 || !selects(selector, pod.labels)) continue;
      if (Object.hasOwn(budget.status?.disruptedPods ?? {}, pod.pod.metadata.name)) continue;
      const remaining = (left[index] ?? 0) - 1;
      left[index] = remaining;
      if (remaining < 0) found.add(pod);
    }
  }
  return found;
}

/** Tries a node without its less important pods, then takes back as many as fit. */
export function dryRun(
  cycle: CycleHandle,
  original: NodeInfo,
  budgets: readonly BudgetObject[],
): Candidate | Rejection {
  const { priority } = cycle.pod;
  const potential = original.pods.filter((pod) => pod.priority < priority);
  if (potential.length === 0) return NO_VICTIMS;
  const node = original.clone();
  const filters = cloneFilters(cycle.filters);
  for (const pod of potential) removePod(filters, pod, node);
  const verdict = cycle.filterNode(node, filters);
  if (verdict !== null) return verdict;
  const sorted = potential.toSorted(byImportance);
  const violating = violatingPods(sorted, budgets);
  const victims: PodInfo[] = [];
  let violations = 0;
  const order = [
    ...sorted.filter((pod) => violating.has(pod)),
    ...sorted.filter((pod) => !violating.has(pod)),
  ];
  for (const pod of order) {
    addPod(filters, pod, node);
    if (cycle.filterNode(node, filters) === null) continue;
    removePod(filters, pod, node);
    victims.push(pod);
    if (violating.has(pod)) violations++;
  }
  return { node: original.name, victims: victims.toSorted(byImportance), violations };
}

/** Priorities are made positive before they are summed, so that more victims weigh more. */
const PRIORITY_OFFSET: number = 2 ** 31;

/** Each criterion decides only among those that the ones before left equal; less is better. */
const CRITERIA: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => victims[0]?.priority ?? -Infinity,
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority + PRIORITY_OFFSET, 0),
  ({ victims }) => victims.length,
];

/** When the first of the most important victims started. */
function earliestStart({ victims }: Candidate): string {
  const highest = victims[0]?.priority;
  return victims
    .filter(({ priority }) => priority === highest)
    .map(startTimeOf)
    .reduce((earliest, time) => (time < earliest ? time : earliest), NOT_STARTED);
}

/** The node that costs least: budgets, importance, number and age of the victims. */
export function pickCandidate(candidates: readonly Candidate[]): Candidate {
  let left = candidates;
  for (const criterion of CRITERIA) {
    const least = Math.min(...left.map(criterion));
    left = left.filter((candidate) => criterion(candidate) === least);
  }
  const latest = left.map(earliestStart).reduce((late, time) => (time > late ? time : late), '');
  const [picked] = left.filter((candidate) => earliestStart(candidate) === latest);
  if (picked === undefined) throw new Error('a node is to be picked, but there is no candidate');
  return picked;
}

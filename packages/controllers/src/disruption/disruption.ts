/**
 * The arithmetic of a PodDisruptionBudget, without world: what its status says for so many pods.
 *
 * The rules are those of upstream's disruption controller: percentages are rounded up, of the
 * scale of whoever controls the pods; a pod that is being deleted, or that an eviction has taken
 * within the last two minutes, is not healthy.
 */
import { putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import { withCondition } from '../framework/conditions.ts';

/** An evicted pod that is not deleted after this counts as healthy again. */
export const EVICTED_MS = 120_000;

export interface BudgetCounts {
  readonly expected: number;
  readonly healthy: number;
  readonly desired: number;
  /** Pods that an eviction has taken and that are still there: name and time. */
  readonly evicted: JsonObject;
}

/** Whether percentages or `maxUnavailable` need the scale of the pods' controllers. */
export function needsScale(budget: JsonObject): boolean {
  if (valueAt(budget, 'spec', 'maxUnavailable') !== undefined) return true;
  return typeof valueAt(budget, 'spec', 'minAvailable') === 'string';
}

/** A number, or a percentage of `whole` rounded up; undefined for what is neither. */
function share(value: JsonValue | undefined, whole: number): number | undefined {
  if (typeof value === 'number') return value;
  const percent = typeof value === 'string' ? /^(\d+)%$/.exec(value)?.[1] : undefined;
  return percent === undefined ? undefined : Math.ceil((whole * Number(percent)) / 100);
}

/** Pods that must stay healthy of `expected`; undefined where the budget says none of both. */
export function desiredHealthy(budget: JsonObject, expected: number): number | undefined {
  const most = valueAt(budget, 'spec', 'maxUnavailable');
  if (most !== undefined && most !== null) {
    const unavailable = share(most, expected);
    return unavailable === undefined ? undefined : Math.max(0, expected - unavailable);
  }
  const least = valueAt(budget, 'spec', 'minAvailable');
  return least === undefined || least === null ? 0 : share(least, expected);
}

/** Those of `status.disruptedPods` that still count, and when the next of them does not. */
export function stillEvicted(
  budget: JsonObject,
  isThere: (name: string) => boolean,
  nowMs: number,
): { readonly evicted: JsonObject; readonly late: readonly string[]; readonly nextMs: number } {
  const evicted: JsonObject = {};
  const late: string[] = [];
  let nextMs = Infinity;
  for (const [name, time] of Object.entries(objectAt(budget, 'status', 'disruptedPods') ?? {})) {
    if (!isThere(name)) continue;
    const since = typeof time === 'string' ? parseTime(time) : undefined;
    const untilMs = since === undefined ? 0 : since.seconds * 1000 + EVICTED_MS;
    if (untilMs <= nowMs) {
      late.push(name);
      continue;
    }
    if (time !== undefined) putMember(evicted, name, time);
    nextMs = Math.min(nextMs, untilMs);
  }
  return { evicted, late, nextMs };
}

/** The status for these counts; undefined where the budget says so already. */
export function budgetStatus(
  budget: JsonObject,
  { expected, healthy, desired, evicted }: BudgetCounts,
  now: string,
): JsonObject | undefined {
  const allowed = expected <= 0 ? 0 : Math.max(0, healthy - desired);
  const generation = numberAt(budget, 'metadata', 'generation');
  const before = objectAt(budget, 'status') ?? {};
  const condition: JsonObject = {
    type: 'DisruptionAllowed',
    status: allowed > 0 ? 'True' : 'False',
    observedGeneration: generation,
    lastTransitionTime: now,
    reason: allowed > 0 ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  };
  const after: JsonObject = {
    ...(Object.keys(evicted).length > 0 ? { disruptedPods: evicted } : {}),
    observedGeneration: generation,
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: expected,
    conditions: conditionsWith(before, condition),
  };
  return equals(before, after) ? undefined : after;
}

/** The status of a budget that cannot be worked out: nothing may be evicted. */
export function failedStatus(budget: JsonObject, message: string, now: string): JsonObject {
  const before = objectAt(budget, 'status') ?? {};
  // What was last worked out, not what failed: the budget as it is now has not been observed.
  const observed = numberAt(before, 'observedGeneration');
  const condition: JsonObject = {
    type: 'DisruptionAllowed',
    status: 'False',
    ...(observed > 0 ? { observedGeneration: observed } : {}),
    lastTransitionTime: now,
    reason: 'SyncFailed',
    message,
  };
  return {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...before,
    disruptionsAllowed: 0,
    conditions: conditionsWith(before, condition),
  };
}

/** The condition is the new one in all but its time, which tells since when its status holds. */
function conditionsWith(status: JsonObject, condition: JsonObject): JsonValue[] {
  const conditions = withCondition(listAt(status, 'conditions'), condition);
  return conditions.map((one) => {
    if (stringAt(one, 'type') !== 'DisruptionAllowed') return one;
    return { ...condition, lastTransitionTime: stringAt(one, 'lastTransitionTime') };
  });
}

/** What people are told of pods that nobody controls; the selector as Go prints it. */
export function unmanagedText(budget: JsonObject): string {
  const selector = objectAt(budget, 'spec', 'selector');
  const labels = objectAt(selector, 'matchLabels') ?? {};
  const names = Object.keys(labels).toSorted();
  const map = names.map((name) => `${name}: ${stringAt(labels, name)},`).join('');
  const list = listAt(selector, 'matchExpressions').map((one) => {
    const values = listAt(one, 'values').filter((value) => typeof value === 'string');
    const said = `Key:${stringAt(one, 'key')},Operator:${stringAt(one, 'operator')}`;
    return `LabelSelectorRequirement{${said},Values:[${values.join(' ')}],},`;
  });
  const requirements = `[]LabelSelectorRequirement{${list.join('')}}`;
  const all = `MatchLabels:map[string]string{${map}},MatchExpressions:${requirements},`;
  return (
    `Pods selected by this PodDisruptionBudget (selector: &LabelSelector{${all}}) were found to ` +
    'be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may ' +
    'result in undefined behavior. To account for these pods please set ".spec.minAvailable" ' +
    'field of the PDB to an integer value.'
  );
}

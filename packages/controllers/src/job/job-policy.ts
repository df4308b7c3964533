/** Policies of Jobs: what the failure of one pod means, and which indexes are enough. */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseIndexes } from '../columns/index-set.ts';

export type FailureAction = 'Count' | 'Ignore' | 'FailIndex' | 'FailJob';

export interface FailureVerdict {
  readonly action: FailureAction;
  /** For FailJob: what people are told. */
  readonly message: string;
}

/** The first rule that matches decides; without one the failure counts. */
export function judgeFailure(job: JsonObject, pod: JsonObject): FailureVerdict {
  const rules = listAt(job, 'spec', 'podFailurePolicy', 'rules');
  const name = `${stringAt(pod, 'metadata', 'namespace')}/${stringAt(pod, 'metadata', 'name')}`;
  for (const [index, rule] of rules.entries()) {
    const action = stringAt(rule, 'action') as FailureAction;
    const where = `matching ${action} rule at index ${index}`;
    const container = matchingContainer(rule, pod);
    if (container !== undefined) {
      const code = numberAt(container, 'state', 'terminated', 'exitCode');
      const of = stringAt(container, 'name');
      const message = `Container ${of} for pod ${name} failed with exit code ${code} ${where}`;
      return { action, message };
    }
    const condition = matchingCondition(rule, pod);
    if (condition === undefined) continue;
    return { action, message: `Pod ${name} has condition ${condition} ${where}` };
  }
  return { action: 'Count', message: '' };
}

/** The first rule of a success policy that the succeeded indexes meet; -1 for none. */
export function metSuccessRule(
  job: JsonObject,
  succeeded: ReadonlySet<number>,
  completions: number,
): number {
  return listAt(job, 'spec', 'successPolicy', 'rules').findIndex((rule) => {
    const indexes = stringAt(rule, 'succeededIndexes');
    const count = valueAt(rule, 'succeededCount');
    if (indexes === '') return typeof count === 'number' && succeeded.size >= count;
    const wanted = [...parseIndexes(indexes, completions)];
    const met = wanted.filter((index) => succeeded.has(index)).length;
    return met >= (typeof count === 'number' ? count : wanted.length);
  });
}

function matchingContainer(rule: JsonValue, pod: JsonObject): JsonValue | undefined {
  const wanted = objectAt(rule, 'onExitCodes');
  if (wanted === undefined) return undefined;
  const only = stringAt(wanted, 'containerName');
  const values = listAt(wanted, 'values');
  const isIn = stringAt(wanted, 'operator') === 'In';
  const all = ['initContainerStatuses', 'containerStatuses'].flatMap((field) => [
    ...listAt(pod, 'status', field),
  ]);
  return all.find((container) => {
    if (only !== '' && stringAt(container, 'name') !== only) return false;
    const code = numberAt(container, 'state', 'terminated', 'exitCode');
    return code !== 0 && values.includes(code) === isIn;
  });
}

function matchingCondition(rule: JsonValue, pod: JsonObject): string | undefined {
  for (const pattern of listAt(rule, 'onPodConditions')) {
    const type = stringAt(pattern, 'type');
    const status = stringAt(pattern, 'status') || 'True';
    const found = listAt(pod, 'status', 'conditions').some(
      (one) => stringAt(one, 'type') === type && stringAt(one, 'status') === status,
    );
    if (found) return type;
  }
  return undefined;
}

/** Lists of conditions in a status, by the rules of Deployments and ReplicaSets. */
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';

export function findCondition(
  conditions: readonly JsonValue[],
  type: string,
): JsonObject | undefined {
  return conditions.filter(isObject).find((one) => stringAt(one, 'type') === type);
}

export function withoutCondition(conditions: readonly JsonValue[], type: string): JsonValue[] {
  return conditions.filter((one) => stringAt(one, 'type') !== type);
}

/**
 * The list with a condition set: one of the same status and reason stays as it is, one of the
 * same status keeps the time of its last transition.
 */
export function withCondition(
  conditions: readonly JsonValue[],
  condition: JsonObject,
): readonly JsonValue[] {
  const type = stringAt(condition, 'type');
  const current = findCondition(conditions, type);
  if (current === undefined) return [...conditions, condition];
  const isSame = (field: string): boolean =>
    stringAt(current, field) === stringAt(condition, field);
  if (isSame('status') && isSame('reason')) return conditions;
  const kept = isSame('status') ? { lastTransitionTime: current['lastTransitionTime'] } : {};
  return [...withoutCondition(conditions, type), { ...condition, ...kept }];
}

/**
 * What a strategic merge patch says of a list of conditions: these are changed in their places or
 * come last. Without the order a patch puts what is new before all that is there; one whose items
 * stand in another order is refused.
 */
export function conditionsPatch(
  before: readonly JsonValue[],
  changed: readonly JsonObject[],
): JsonObject {
  const types = [...new Set([...before, ...changed].map((one) => stringAt(one, 'type')))];
  const conditions: JsonObject[] = [];
  for (const type of types) {
    const condition = findCondition(changed, type);
    if (condition !== undefined) conditions.push(condition);
  }
  return { '$setElementOrder/conditions': types.map((type) => ({ type })), conditions };
}

/**
 * A merge patch that makes `before` into `after` where they differ: what is no longer there
 * becomes null. Undefined where they are equal.
 */
export function mergeOf(
  before: JsonObject | undefined,
  after: JsonObject,
  isEqual: (left: JsonValue | undefined, right: JsonValue | undefined) => boolean,
): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const [field, value] of Object.entries(after)) {
    if (!isEqual(ownMember(before, field), value)) putMember(patch, field, value);
  }
  for (const field of Object.keys(before ?? {})) {
    if (ownMember(after, field) === undefined && ownMember(before, field) !== null)
      putMember(patch, field, null);
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

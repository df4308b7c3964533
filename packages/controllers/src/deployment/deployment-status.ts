/** The status of a Deployment: counts, conditions and their texts. */
import { putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { numberAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { formatTime, parseTime } from '@megaplane/machinery/times';
import { findCondition, withCondition, withoutCondition } from '../framework/conditions.ts';
import { conditionsOf, countOf, deadlineSeconds, maxUnavailable } from './deployment-spec.ts';
import { nameOf, wantedReplicas } from './deployment-spec.ts';
import { replicasOf } from '../replicaset/replicaset.ts';

export const PROGRESSING = 'Progressing';
export const TIMED_OUT = 'ProgressDeadlineExceeded';
const COMPLETE = 'NewReplicaSetAvailable';
const UPDATED = 'ReplicaSetUpdated';
const FAILURE = 'ReplicaFailure';
const RETRY_MS = 1_000;

export function condition(
  type: string,
  status: string,
  reason: string,
  message: string,
  nowMs: number,
): JsonObject {
  const now = formatTime(Math.floor(nowMs / 1000));
  return { type, status, lastUpdateTime: now, lastTransitionTime: now, reason, message };
}

/** Counts of all sets, and whether enough pods are available. */
export function countedStatus(
  deployment: JsonObject,
  current: JsonObject | undefined,
  sets: readonly JsonObject[],
  conditions: readonly JsonValue[],
  nowMs: number,
): JsonObject {
  const available = countOf(sets, 'availableReplicas');
  const collisions = numberAt(deployment, 'status', 'collisionCount');
  const counts = {
    observedGeneration: numberAt(deployment, 'metadata', 'generation'),
    replicas: countOf(sets, 'replicas'),
    updatedReplicas: current === undefined ? 0 : countOf([current], 'replicas'),
    readyReplicas: countOf(sets, 'readyReplicas'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, wantedReplicas(sets) - available),
    collisionCount: collisions,
  };
  const isEnough = available >= replicasOf(deployment) - maxUnavailable(deployment);
  const availability = isEnough
    ? condition(
        'Available',
        'True',
        'MinimumReplicasAvailable',
        'Deployment has minimum availability.',
        nowMs,
      )
    : condition(
        'Available',
        'False',
        'MinimumReplicasUnavailable',
        'Deployment does not have minimum availability.',
        nowMs,
      );
  const status: JsonObject = {};
  for (const [field, value] of Object.entries(counts))
    if (value !== 0) putMember(status, field, value);
  const isTold = sets.every((set) => typeof terminatingOf(set) === 'number');
  if (isTold) status['terminatingReplicas'] = countOf(sets, 'terminatingReplicas');
  status['conditions'] = [...withCondition(conditions, availability)];
  return status;
}

/** Not told while one of the sets does not tell. */
function terminatingOf(set: JsonObject): JsonValue | undefined {
  return valueAt(set, 'status', 'terminatingReplicas');
}

/** All pods are of the new template, as many as wanted, and available. */
export function isComplete(deployment: JsonObject, status: JsonObject): boolean {
  const replicas = replicasOf(deployment);
  return (
    numberAt(status, 'updatedReplicas') === replicas &&
    numberAt(status, 'replicas') === replicas &&
    numberAt(status, 'availableReplicas') === replicas &&
    numberAt(status, 'observedGeneration') >= numberAt(deployment, 'metadata', 'generation')
  );
}

function isProgress(before: JsonValue | undefined, after: JsonObject): boolean {
  const old = (status: JsonValue | undefined): number =>
    numberAt(status, 'replicas') - numberAt(status, 'updatedReplicas');
  const grows = (field: string): boolean => numberAt(after, field) > numberAt(before, field);
  return (
    grows('updatedReplicas') ||
    old(after) < old(before) ||
    grows('readyReplicas') ||
    grows('availableReplicas')
  );
}

function isTimedOut(deployment: JsonObject, current: JsonObject, nowMs: number): boolean {
  const seconds = deadlineSeconds(deployment);
  const reason = stringAt(current, 'reason');
  if (seconds === undefined || reason === COMPLETE) return false;
  return reason === TIMED_OUT || updatedMs(current) + seconds * 1000 < nowMs;
}

function updatedMs(current: JsonObject): number {
  return (parseTime(stringAt(current, 'lastUpdateTime'))?.seconds ?? 0) * 1000;
}

/** Adds what a rollout has to say: progress, completion, a missed deadline, refused pods. */
export function rolloutStatus(
  deployment: JsonObject,
  current: JsonObject | undefined,
  sets: readonly JsonObject[],
  conditions: readonly JsonValue[],
  nowMs: number,
): JsonObject {
  const status = countedStatus(deployment, current, sets, conditions, nowMs);
  let list = status['conditions'] as readonly JsonValue[];
  if (deadlineSeconds(deployment) === undefined) list = withoutCondition(list, PROGRESSING);
  else list = progressOf(deployment, current, status, list, conditions, nowMs);
  const failure = failureIn(current === undefined ? [] : [current]) ?? failureIn(sets);
  list = failure === undefined ? withoutCondition(list, FAILURE) : withCondition(list, failure);
  return { ...status, conditions: [...list] };
}

function progressOf(
  deployment: JsonObject,
  current: JsonObject | undefined,
  status: JsonObject,
  list: readonly JsonValue[],
  before: readonly JsonValue[],
  nowMs: number,
): readonly JsonValue[] {
  const known = findCondition(before, PROGRESSING);
  const isAtRest = numberAt(status, 'replicas') === numberAt(status, 'updatedReplicas');
  if (isAtRest && stringAt(known, 'reason') === COMPLETE) return list;
  const subject =
    current === undefined
      ? `Deployment "${nameOf(deployment)}"`
      : `ReplicaSet "${nameOf(current)}"`;
  if (isComplete(deployment, status)) {
    const message = `${subject} has successfully progressed.`;
    return withCondition(list, condition(PROGRESSING, 'True', COMPLETE, message, nowMs));
  }
  if (isProgress(deployment['status'], status)) {
    const message = `${subject} is progressing.`;
    const made = condition(PROGRESSING, 'True', UPDATED, message, nowMs);
    // Each step of progress starts the deadline anew, so the condition is replaced, not kept.
    if (known !== undefined && stringAt(known, 'status') === 'True') {
      made['lastTransitionTime'] = known['lastTransitionTime'];
    }
    return withCondition(withoutCondition(list, PROGRESSING), made);
  }
  if (known === undefined || !isTimedOut(deployment, known, nowMs)) return list;
  const message = `${subject} has timed out progressing.`;
  return withCondition(list, condition(PROGRESSING, 'False', TIMED_OUT, message, nowMs));
}

function failureIn(sets: readonly JsonObject[]): JsonObject | undefined {
  for (const set of sets) {
    const found = findCondition(conditionsOf(set), FAILURE);
    if (found === undefined) continue;
    const { type, status, lastTransitionTime, reason, message } = found;
    const lastUpdateTime = lastTransitionTime;
    return { type, status, lastUpdateTime, lastTransitionTime, reason, message };
  }
  return undefined;
}

/** How long until the progress deadline is to be looked at; undefined where there is none. */
export function deadlineInMs(
  deployment: JsonObject,
  status: JsonObject,
  nowMs: number,
): number | undefined {
  const seconds = deadlineSeconds(deployment);
  const known = findCondition(conditionsOf({ status }), PROGRESSING);
  if (seconds === undefined || known === undefined) return undefined;
  const reason = stringAt(known, 'reason');
  if (isComplete(deployment, status) || reason === TIMED_OUT) return undefined;
  return Math.max(RETRY_MS, updatedMs(known) + seconds * 1000 - nowMs + RETRY_MS);
}

/**
 * The decisions of a ReplicaSet or ReplicationController, without world: how many pods to make or
 * which to delete, and what the status says.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, valueAt } from '@megaplane/machinery/json';
import { labelSelectorOf, type LabelSelector, mapSelector } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import {
  findCondition,
  mergeOf,
  withCondition,
  withoutCondition,
} from '../framework/conditions.ts';
import { burstOf } from '../framework/pod-control.ts';
import { REPLICA_READY, type ReplicaPods } from '../columns/replica-pods.ts';

/** The two kinds that keep a number of equal pods. */
export const REPLICA_SET = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  root: '/apis/apps/v1',
  resource: 'replicasets',
  component: 'replicaset-controller',
} as const;
export const REPLICATION_CONTROLLER = {
  apiVersion: 'v1',
  kind: 'ReplicationController',
  root: '/api/v1',
  resource: 'replicationcontrollers',
  component: 'replication-controller',
} as const;
export type ReplicaKind = typeof REPLICA_SET | typeof REPLICATION_CONTROLLER;

/** `spec.replicas`, where absent counts as 1. */
export function replicasOf(object: JsonObject): number {
  const replicas = valueAt(object, 'spec', 'replicas');
  return typeof replicas === 'number' ? replicas : 1;
}

/** The selector; undefined where it cannot be read or would select everything. */
export function selectorOf(kind: ReplicaKind, object: JsonObject): LabelSelector | undefined {
  if (kind === REPLICATION_CONTROLLER) {
    const selector = mapSelector(objectAt(object, 'spec', 'selector'));
    return selector.requirements.length === 0 ? undefined : selector;
  }
  const parsed = labelSelectorOf(objectAt(object, 'spec', 'selector'));
  if ('error' in parsed || parsed.value.nothing === true) return undefined;
  return parsed.value.requirements.length === 0 ? undefined : parsed.value;
}

/** Pods to make (positive) or to delete (negative) in one go. */
export function replicasMissing(object: JsonObject, active: number): number {
  const wanted = replicasOf(object);
  const burst = burstOf(Math.max(wanted, active));
  return Math.max(-burst, Math.min(burst, wanted - active));
}

export interface ReplicaCounts {
  readonly replicas: number;
  readonly fullyLabeled: number;
  readonly ready: number;
  readonly available: number;
  /** Pods being deleted that have not ended; undefined where the status does not count them. */
  readonly terminating: number | undefined;
  /** When the next ready pod becomes available, seconds since 1970; Infinity if none does. */
  readonly nextS: number;
}

/** The pods of an owner. */
export interface OwnedPods {
  /** Rows of those that count as replicas. */
  readonly active: readonly number[];
  readonly terminating: number | undefined;
}

/** Counts the active pods of an owner by what the status shows of them. */
export function countReplicas(
  object: JsonObject,
  pods: ReplicaPods,
  { active: rows, terminating }: OwnedPods,
  nowMs: number,
): ReplicaCounts {
  const minReadyS = numberAt(object, 'spec', 'minReadySeconds');
  const template = mapSelector(objectAt(object, 'spec', 'template', 'metadata', 'labels'));
  const program = new LabelProgram(template);
  const labelled: Map<number, boolean> = new Map();
  const counts = {
    replicas: rows.length,
    fullyLabeled: 0,
    ready: 0,
    available: 0,
    terminating,
    nextS: Infinity,
  };
  for (const row of rows) {
    const labels = pods.labelsOf(row);
    let isLabelled = labelled.get(labels);
    if (isLabelled === undefined) {
      isLabelled = labels >= 0 && pods.matches(labels, program);
      labelled.set(labels, isLabelled);
    }
    if (isLabelled) counts.fullyLabeled++;
    if ((pods.flags.get(row) & REPLICA_READY) === 0) continue;
    counts.ready++;
    const availableS = pods.readyS.get(row) + minReadyS;
    if (minReadyS === 0 || availableS * 1000 <= nowMs) counts.available++;
    else counts.nextS = Math.min(counts.nextS, availableS);
  }
  assertCounts(counts);
  return counts;
}

/** Held where pods are counted, and where the status is made of it: API servers refuse others. */
function assertCounts({ replicas, fullyLabeled, ready, available }: ReplicaCounts): void {
  assert(
    available <= ready && ready <= replicas,
    'an available pod is ready, a ready one is there',
  );
  assert(fullyLabeled <= replicas, 'no more pods have the labels than there are');
}

/** Why pods could not be made or deleted. */
export interface ReplicaFailure {
  readonly reason: 'FailedCreate' | 'FailedDelete';
  readonly message: string;
}

/**
 * A merge patch for the status, or undefined where it says the truth already. `failure` is null
 * where nothing failed.
 */
export function replicaStatusPatch(
  object: JsonObject,
  counts: ReplicaCounts,
  failure: ReplicaFailure | null,
  now: string,
): JsonObject | undefined {
  assertCounts(counts);
  const before = objectAt(object, 'status');
  let conditions = listAt(before, 'conditions');
  const reported = findCondition(conditions, 'ReplicaFailure');
  if (failure !== null && reported === undefined) {
    conditions = withCondition(conditions, {
      type: 'ReplicaFailure',
      status: 'True',
      lastTransitionTime: now,
      reason: failure.reason,
      message: failure.message,
    });
  } else if (failure === null && reported !== undefined) {
    conditions = withoutCondition(conditions, 'ReplicaFailure');
  }
  const status: JsonObject = {
    replicas: counts.replicas,
    observedGeneration: numberAt(object, 'metadata', 'generation'),
  };
  if (counts.fullyLabeled > 0) status['fullyLabeledReplicas'] = counts.fullyLabeled;
  if (counts.ready > 0) status['readyReplicas'] = counts.ready;
  if (counts.available > 0) status['availableReplicas'] = counts.available;
  if (counts.terminating !== undefined) status['terminatingReplicas'] = counts.terminating;
  if (conditions.length > 0) status['conditions'] = [...conditions];
  return mergeOf(before, status, equals);
}

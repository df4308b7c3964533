/** What controllers report of workloads: counts that fit each other, and never fall below zero. */
import { ownMember } from '@megaplane/base/members';
import { invalidValue } from '../../meta/fielderrors.ts';
import { numberAt, objectAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { nonNegative, type Findings } from '../field/validation-rules.ts';

/** Counts of a kind's status in upstream's order, and those that are parts of `replicas`. */
interface StatusCounts {
  readonly counts: readonly string[];
  readonly parts: readonly string[];
  /** What available replicas are called parts of; absent: of nothing. */
  readonly ready?: string;
}

const SHARED = ['availableReplicas', 'observedGeneration'];
const OF_REPLICAS = 'cannot be greater than status.replicas';

export const DEPLOYMENT_COUNTS: StatusCounts = {
  counts: [
    'observedGeneration',
    'replicas',
    'updatedReplicas',
    'readyReplicas',
    'availableReplicas',
    'unavailableReplicas',
    'terminatingReplicas',
    'collisionCount',
  ],
  parts: ['updatedReplicas', 'readyReplicas', 'availableReplicas'],
  ready: 'readyReplicas',
};
export const REPLICA_SET_COUNTS: StatusCounts = {
  counts: ['replicas', 'fullyLabeledReplicas', 'readyReplicas', ...SHARED, 'terminatingReplicas'],
  parts: ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'],
  ready: 'readyReplicas',
};
export const STATEFUL_SET_COUNTS: StatusCounts = {
  counts: [
    'replicas',
    'readyReplicas',
    'currentReplicas',
    'updatedReplicas',
    ...SHARED,
    'collisionCount',
  ],
  parts: ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'],
  ready: 'status.readyReplicas',
};
export const DAEMON_SET_COUNTS: StatusCounts = {
  counts: [
    'currentNumberScheduled',
    'numberMisscheduled',
    'desiredNumberScheduled',
    'numberReady',
    'observedGeneration',
    'updatedNumberScheduled',
    'numberAvailable',
    'numberUnavailable',
    'collisionCount',
  ],
  parts: [],
};

/** The counts of a status; collisions, where they are counted at all, only go up. */
export function checkCounts(
  kind: StatusCounts,
  found: Findings,
  next: JsonObject,
  previous: JsonObject,
): void {
  const status = objectAt(next, 'status');
  for (const field of kind.counts) nonNegative(found, `status.${field}`, ownMember(status, field));
  const replicas = numberAt(status, 'replicas');
  for (const field of kind.parts) {
    const count = numberAt(status, field);
    if (count > replicas) found.push(invalidValue(`status.${field}`, count, OF_REPLICAS));
  }
  const available = numberAt(status, 'availableReplicas');
  if (kind.ready !== undefined && available > numberAt(status, 'readyReplicas')) {
    const text = `cannot be greater than ${kind.ready}`;
    found.push(invalidValue('status.availableReplicas', available, text));
  }
  const collisions = objectAt(previous, 'status')?.['collisionCount'];
  if (!kind.counts.includes('collisionCount') || typeof collisions !== 'number') return;
  const count = numberAt(status, 'collisionCount');
  if (count >= collisions) return;
  found.push(invalidValue('status.collisionCount', count, 'cannot be decremented'));
}

/** Sizes of a Deployment's ReplicaSets. */
import { assert } from '@megaplane/base/assert';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt } from '@megaplane/machinery/json';
import { maximumAnnotation } from './deployment-revisions.ts';
import { byAge, isRecreate, maxSurge, wantedReplicas } from './deployment-spec.ts';
import { replicasOf } from '../replicaset/replicaset.ts';

/** The size that the new set may have now, next to what the old ones still hold. */
export function newSetReplicas(
  deployment: JsonObject,
  all: readonly JsonObject[],
  current: JsonObject,
): number {
  const replicas = replicasOf(deployment);
  const own = replicasOf(current);
  if (isRecreate(deployment) || own >= replicas) return replicas;
  const room = replicas + maxSurge(deployment) - wantedReplicas(all);
  const size = room <= 0 ? own : own + Math.min(room, replicas - own);
  assert(size >= own && size <= replicas, 'the new set grows, up to what is wanted');
  return size;
}

/**
 * Spreads a change of size in the middle of an update over the active sets, in proportion to their
 * sizes; the rest of the division goes to the largest (of equal ones: the newest when it grows,
 * the oldest when it shrinks). Every set is in the answer.
 */
export function proportionalSizes(
  deployment: JsonObject,
  active: readonly JsonObject[],
): Map<JsonObject, number> {
  const replicas = replicasOf(deployment);
  const allowed = replicas > 0 ? replicas + maxSurge(deployment) : 0;
  const change = allowed - wantedReplicas(active);
  const sets = active.toSorted(
    (a, b) => replicasOf(b) - replicasOf(a) || (change > 0 ? byAge(b, a) : byAge(a, b)),
  );
  const sizes: Map<JsonObject, number> = new Map();
  let done = 0;
  for (const set of sets) {
    const share = change === 0 ? 0 : shareOf(deployment, set, change, done);
    sizes.set(set, replicasOf(set) + share);
    done += share;
  }
  assert(change < 0 ? done >= change : done <= change, 'sets share what there is, not more');
  const [largest] = sets;
  if (largest !== undefined && change !== 0) {
    sizes.set(largest, Math.max(0, (sizes.get(largest) ?? 0) + change - done));
  }
  return sizes;
}

function shareOf(deployment: JsonObject, set: JsonObject, change: number, done: number): number {
  if (replicasOf(set) === 0 || change === done) return 0;
  const fraction = fractionOf(deployment, set);
  return change > 0 ? Math.min(fraction, change - done) : Math.max(fraction, change - done);
}

/** By how much a set changes if all sets keep their proportions. */
function fractionOf(deployment: JsonObject, set: JsonObject): number {
  const own = replicasOf(set);
  if (replicasOf(deployment) === 0) return -own;
  const before = maximumAnnotation(set) || numberAt(deployment, 'status', 'replicas');
  if (before === 0) return 0;
  const size = (own * (replicasOf(deployment) + maxSurge(deployment))) / before;
  return Math.floor(size + 0.5) - own;
}

/**
 * Whom the claims of a StatefulSet's pods go with, by its retention policy: the rules of
 * upstream's stateful_set_utils.go (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod).
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { controllerReference, type PodOwner } from '../framework/pod-control.ts';

/** The pod of a claim. `uid` is empty where only its name is known. */
export interface ClaimPod {
  readonly name: string;
  readonly uid: string;
  /** Its ordinal is not among those that the set wants. */
  readonly isScaledAway: boolean;
}

export interface ClaimVerdict {
  /** What the references must become; undefined where they are as they should be. */
  readonly owners: readonly JsonValue[] | undefined;
  /** Somebody else controls the claim, so that the policy is not followed. */
  readonly hasConflict: boolean;
}

/** Whether a reference names that object by its kind and name; its uid may be another. */
function isNamed(one: JsonValue, apiVersion: string, kind: string, name: string): boolean {
  return (
    stringAt(one, 'apiVersion') === apiVersion &&
    stringAt(one, 'kind') === kind &&
    stringAt(one, 'name') === name
  );
}

/** Whether claims are deleted with pods that are scaled away. */
export function goWithPods(set: JsonObject): boolean {
  return stringAt(policyOf(set), 'whenScaled') === 'Delete';
}

/** Whether a claim names a pod as an owner, of whatever uid. */
export function namesPod(references: readonly JsonValue[], pod: string): boolean {
  return references.some((one) => isNamed(one, 'v1', 'Pod', pod));
}

/** What the references of a claim should be. A stale one, of an earlier object, is not touched. */
export function judgeClaim(
  references: readonly JsonValue[],
  set: JsonObject,
  owner: PodOwner,
  pod: ClaimPod,
): ClaimVerdict {
  const isOfSet = (one: JsonValue): boolean => isNamed(one, 'apps/v1', owner.kind, owner.name);
  const isOfPod = (one: JsonValue): boolean => isNamed(one, 'v1', 'Pod', pod.name);
  const isStale = (one: JsonValue): boolean =>
    (isOfSet(one) && stringAt(one, 'uid') !== owner.uid) ||
    (isOfPod(one) && pod.uid !== '' && stringAt(one, 'uid') !== pod.uid);
  const ours = references.filter((one) => isOfSet(one) || isOfPod(one));
  const others = references.filter((one) => !isOfSet(one) && !isOfPod(one));
  const isKept = !goWithPods(set) && !goWithSet(set);
  const hasConflict = !isKept && (others.some(isControlling) || ours.some(isStale));
  if (ours.some(isStale)) return { owners: undefined, hasConflict };
  if (hasConflict) return { owners: ours.length > 0 ? others : undefined, hasConflict };
  const wanted = wantedOwner(set, owner, pod);
  const isRight =
    wanted === undefined
      ? ours.length === 0
      : ours.length === 1 && ours.every((one) => one !== undefined && isSame(one, wanted));
  if (isRight) return { owners: undefined, hasConflict };
  return { owners: wanted === undefined ? others : [...others, wanted], hasConflict };
}

/** The one owner that the policy wants; none where the claim outlives both. */
function wantedOwner(set: JsonObject, owner: PodOwner, pod: ClaimPod): JsonObject | undefined {
  if (goWithPods(set) && pod.isScaledAway) {
    const { name, uid } = pod;
    const { namespace } = owner;
    return controllerReference({ apiVersion: 'v1', kind: 'Pod', namespace, name, uid });
  }
  return goWithSet(set) ? controllerReference(owner) : undefined;
}

function isSame(one: JsonValue, wanted: JsonObject): boolean {
  const isOne = stringAt(one, 'kind') === stringAt(wanted, 'kind');
  return isOne && isControlling(one);
}

function isControlling(one: JsonValue): boolean {
  return valueAt(one, 'controller') === true;
}

function goWithSet(set: JsonObject): boolean {
  return stringAt(policyOf(set), 'whenDeleted') === 'Delete';
}

function policyOf(set: JsonObject): JsonObject | undefined {
  return objectAt(set, 'spec', 'persistentVolumeClaimRetentionPolicy');
}

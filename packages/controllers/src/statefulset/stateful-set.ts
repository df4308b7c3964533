/**
 * The decisions of a StatefulSet, without world: the next step for its pods, the pod and the claims
 * of an ordinal, and who owns a claim. The rules are upstream's.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { controllerReference, type PodOwner } from '../framework/pod-control.ts';
import { judgeClaim } from './claim-owners.ts';
import { HASH_LABEL } from '../columns/pod-revisions.ts';
import { replicasOf } from '../replicaset/replicaset.ts';

export const POD_NAME_LABEL = 'statefulset.kubernetes.io/pod-name';
const INDEX_LABEL = 'apps.kubernetes.io/pod-index';

/** One pod of a set as the decisions need it. */
export interface StatefulPod {
  readonly ordinal: number;
  readonly name: string;
  /** Name of the revision that it is of. */
  readonly revision: string;
  readonly isDeleting: boolean;
  readonly isPending: boolean;
  readonly isFailed: boolean;
  readonly isSucceeded: boolean;
  readonly isReady: boolean;
  readonly isAvailable: boolean;
  /** Whether its label tells its name. */
  readonly isNamed: boolean;
}

export interface StatefulView {
  readonly set: JsonObject;
  readonly pods: readonly StatefulPod[];
  readonly current: string;
  readonly update: string;
}

export type StatefulStep =
  | { readonly kind: 'create'; readonly ordinal: number; readonly isUpdate: boolean }
  | { readonly kind: 'delete'; readonly pod: StatefulPod; readonly isScaleDown: boolean }
  | { readonly kind: 'recreate'; readonly pod: StatefulPod };

/** Ordinals that the set wants, from the first. */
function ordinalsOf(set: JsonObject): { readonly start: number; readonly end: number } {
  const start = numberAt(set, 'spec', 'ordinals', 'start');
  return { start, end: start + replicasOf(set) };
}

export function isParallel(set: JsonObject): boolean {
  return stringAt(set, 'spec', 'podManagementPolicy') === 'Parallel';
}

function isRolling(set: JsonObject): boolean {
  return stringAt(set, 'spec', 'updateStrategy', 'type') !== 'OnDelete';
}

/** Pods below this ordinal stay at the old revision. */
function partitionOf(set: JsonObject): number {
  const { start } = ordinalsOf(set);
  return start + numberAt(set, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
}

/** The pods of the ordinals that the set wants, and those of others, from the first. */
export function splitPods({ set, pods }: StatefulView): [StatefulPod[], StatefulPod[]] {
  const { start, end } = ordinalsOf(set);
  const isWanted = ({ ordinal }: StatefulPod): boolean => ordinal >= start && ordinal < end;
  return [pods.filter((pod) => isWanted(pod)), pods.filter((pod) => !isWanted(pod))];
}

/**
 * Pods that lack the labels that they are known by, as those do that were adopted. In order it is
 * none's turn before all lower ones are well, and it is itself.
 */
export function unnamedPods(view: StatefulView): readonly StatefulPod[] {
  const { start } = ordinalsOf(view.set);
  const [wanted] = splitPods(view);
  if (isParallel(view.set)) {
    return wanted.filter((pod) => !pod.isNamed && !pod.isFailed && !pod.isSucceeded);
  }
  const isUnwell = (pod: StatefulPod, index: number): boolean =>
    pod.ordinal !== start + index || pod.isDeleting || !pod.isReady || !pod.isAvailable;
  const first = wanted.findIndex(isUnwell);
  return (first < 0 ? wanted : wanted.slice(0, first)).filter((pod) => !pod.isNamed);
}

/** The steps that may be taken now, in their order; those of one list may be taken together. */
export function nextSteps(view: StatefulView): readonly StatefulStep[] {
  const steps = stepsNow(view);
  assert(isParallel(view.set) || steps.length <= 1, 'in order one pod changes at a time');
  return steps;
}

function stepsNow(view: StatefulView): readonly StatefulStep[] {
  const { set, pods } = view;
  const { start, end } = ordinalsOf(set);
  const inOrder = !isParallel(set);
  const steps: StatefulStep[] = [];
  const byOrdinal = new Map(pods.map((pod) => [pod.ordinal, pod]));
  for (let ordinal = start; ordinal < end; ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) {
      const isUpdate = !isRolling(set) || ordinal >= partitionOf(set);
      steps.push({ kind: 'create', ordinal, isUpdate });
      if (inOrder) return steps;
      continue;
    }
    if (pod.isFailed || pod.isSucceeded) {
      if (!pod.isDeleting) steps.push({ kind: 'recreate', pod });
      if (inOrder) return steps;
      continue;
    }
    if (inOrder && (pod.isDeleting || !pod.isReady || !pod.isAvailable)) return steps;
  }
  const condemned = pods
    .filter(({ ordinal }) => ordinal < start || ordinal >= end)
    .toSorted((a, b) => b.ordinal - a.ordinal);
  const unhealthy = condemned.findLast((pod) => pod.isDeleting || !pod.isReady);
  for (const pod of condemned) {
    if (pod.isDeleting) {
      if (inOrder) return steps;
      continue;
    }
    const isWell = pod.isReady && pod.isAvailable;
    if (inOrder && !isWell && pod !== unhealthy) return steps;
    steps.push({ kind: 'delete', pod, isScaleDown: true });
    if (inOrder) return steps;
  }
  return steps.length > 0 ? steps : updateSteps(view);
}

/**
 * A rolling update: from the last ordinal down, one pod at a time, past none that is not available,
 * in order or not (v1.36.1; before v1.35 readiness was enough).
 */
function updateSteps({ set, pods, update }: StatefulView): readonly StatefulStep[] {
  if (!isRolling(set)) return [];
  const { end } = ordinalsOf(set);
  const least = partitionOf(set);
  const byOrdinal = new Map(pods.map((pod) => [pod.ordinal, pod]));
  for (let ordinal = end - 1; ordinal >= least; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) return [];
    if (pod.revision !== update && !pod.isDeleting) {
      return [{ kind: 'delete', pod, isScaleDown: false }];
    }
    if (pod.isDeleting || !pod.isReady || !pod.isAvailable) return [];
  }
  return [];
}

/** The status for what there is. */
export function statefulStatus(view: StatefulView, collisions: number): JsonObject {
  const { set, pods, update } = view;
  let { current } = view;
  const count = (test: (pod: StatefulPod) => boolean): number => pods.filter(test).length;
  const ready = count((pod) => pod.isReady);
  const updated = count((pod) => !pod.isDeleting && pod.revision === update);
  let ofCurrent = count((pod) => !pod.isDeleting && pod.revision === current);
  assert(updated <= pods.length && ready <= pods.length, 'the status counts pods that are there');
  const isComplete = updated === pods.length && ready === pods.length;
  if (isRolling(set) && isComplete && updated === replicasOf(set)) {
    current = update;
    ofCurrent = updated;
  }
  const conditions = listAt(set, 'status', 'conditions');
  return {
    observedGeneration: numberAt(set, 'metadata', 'generation'),
    replicas: pods.length,
    ...(ready > 0 ? { readyReplicas: ready } : {}),
    ...(ofCurrent > 0 ? { currentReplicas: ofCurrent } : {}),
    ...(updated > 0 ? { updatedReplicas: updated } : {}),
    currentRevision: current,
    updateRevision: update,
    collisionCount: collisions,
    ...(conditions.length > 0 ? { conditions: [...conditions] } : {}),
    availableReplicas: count((pod) => pod.isAvailable),
  };
}

/** The name of the claim that an ordinal has of a template. */
function claimName(template: JsonValue, set: string, ordinal: number): string {
  return `${stringAt(template, 'metadata', 'name')}-${set}-${ordinal}`;
}

/** Labels that tell which of a set's pods one is, by its name. */
export function identityOf(name: string): JsonObject {
  return { [POD_NAME_LABEL]: name, [INDEX_LABEL]: name.slice(name.lastIndexOf('-') + 1) };
}

/** The pod of an ordinal; `template` is that of the revision which it is of. */
export function podOfOrdinal(
  set: JsonObject,
  template: JsonObject,
  owner: PodOwner,
  ordinal: number,
  revision: string,
): JsonObject {
  const name = `${owner.name}-${ordinal}`;
  const given = objectAt(template, 'metadata') ?? {};
  const labels: JsonObject = { ...objectAt(given, 'labels'), ...identityOf(name) };
  labels[HASH_LABEL] = revision;
  const metadata: JsonObject = {
    name,
    generateName: `${owner.name}-`,
    namespace: owner.namespace,
    labels,
    ownerReferences: [controllerReference(owner)],
  };
  for (const field of ['annotations', 'finalizers']) {
    const value = given[field];
    if (value !== undefined && value !== null) metadata[field] = value;
  }
  const spec = objectAt(template, 'spec') ?? {};
  const claims = listAt(set, 'spec', 'volumeClaimTemplates');
  const own = claims.map((claim) => ({
    name: stringAt(claim, 'metadata', 'name'),
    persistentVolumeClaim: { claimName: claimName(claim, owner.name, ordinal) },
  }));
  const names = new Set(own.map((volume) => volume.name));
  const others = listAt(spec, 'volumes').filter((volume) => !names.has(stringAt(volume, 'name')));
  const subdomain = stringAt(set, 'spec', 'serviceName');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: {
      ...spec,
      hostname: name,
      ...(subdomain === '' ? {} : { subdomain }),
      ...(own.length + others.length > 0 ? { volumes: [...own, ...others] } : {}),
    },
  };
}

/** The claims of an ordinal; labels are those of the set's selector. */
export function claimsOfOrdinal(set: JsonObject, owner: PodOwner, ordinal: number): JsonObject[] {
  const selected = objectAt(set, 'spec', 'selector', 'matchLabels') ?? {};
  return listAt(set, 'spec', 'volumeClaimTemplates')
    .filter((template) => isObject(template))
    .map((template) => {
      const given = objectAt(template, 'metadata') ?? {};
      const labels = { ...objectAt(given, 'labels'), ...selected };
      const metadata: JsonObject = {
        name: claimName(template, owner.name, ordinal),
        namespace: owner.namespace,
        labels,
      };
      const annotations = objectAt(given, 'annotations');
      if (annotations !== undefined) metadata['annotations'] = annotations;
      const pod = { name: `${owner.name}-${ordinal}`, uid: '', isScaledAway: false };
      const { owners } = judgeClaim([], set, owner, pod);
      if (owners !== undefined) metadata['ownerReferences'] = [...owners];
      const spec = objectAt(template, 'spec') ?? {};
      return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec };
    });
}

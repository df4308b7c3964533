/**
 * The decisions of a DaemonSet for its nodes and pods, without world: which pods to make and which
 * to delete, whether an update may go on, and what the status says. The rules are upstream's.
 */
import { assert } from '@megaplane/base/assert';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { scaled } from '../deployment/deployment-spec.ts';
import { controllerReference, type PodOwner } from '../framework/pod-control.ts';
import { HASH_LABEL } from '../columns/pod-revisions.ts';
import { daemonTolerations } from './node-fit.ts';

export const GENERATION = 'deprecated.daemonset.template.generation';
export const GENERATION_LABEL = 'pod-template-generation';

/** One pod of a DaemonSet as the decisions need it. */
export interface DaemonPod {
  readonly row: number;
  readonly createdS: number;
  readonly isBound: boolean;
  readonly isDeleting: boolean;
  readonly isFailed: boolean;
  readonly isSucceeded: boolean;
  readonly isReady: boolean;
  readonly isAvailable: boolean;
  /** Of the present template. */
  readonly isUpdated: boolean;
}

/** A node that has pods of the set, or should have one. */
export interface DaemonPlace {
  readonly node: number;
  readonly shouldRun: boolean;
  readonly mayStay: boolean;
  readonly pods: readonly DaemonPod[];
}

export interface DaemonPlan {
  /** Nodes that need a pod. */
  readonly create: readonly number[];
  /** Rows of pods to delete. */
  readonly remove: readonly number[];
  /** Those among them that have ended, with the node: people are told. */
  readonly failed: readonly (readonly [row: number, node: number])[];
  readonly succeeded: readonly (readonly [row: number, node: number])[];
}

/**
 * Bound ones first, then the oldest: the first of several is the one that stays. Of two of one
 * second the one of the older template came first.
 */
function byAge(left: DaemonPod, right: DaemonPod): number {
  if (left.isBound !== right.isBound) return left.isBound ? -1 : 1;
  const byTemplate = Number(left.isUpdated) - Number(right.isUpdated);
  return left.createdS - right.createdS || byTemplate || left.row - right.row;
}

/** What keeps one pod on each node, apart from updates. */
export function planPlaces(places: readonly DaemonPlace[], surges: boolean): DaemonPlan {
  const create: number[] = [];
  const remove: number[] = [];
  const failed: [number, number][] = [];
  const succeeded: [number, number][] = [];
  for (const { node, shouldRun, mayStay, pods } of places) {
    if (!mayStay) {
      for (const pod of pods) if (!pod.isDeleting) remove.push(pod.row);
      continue;
    }
    if (pods.length === 0) {
      if (shouldRun) create.push(node);
      continue;
    }
    const running: DaemonPod[] = [];
    for (const pod of pods) {
      if (pod.isDeleting) continue;
      if (pod.isFailed) failed.push([pod.row, node]);
      else if (pod.isSucceeded) succeeded.push([pod.row, node]);
      else running.push(pod);
    }
    // One on its way out does not keep a set that surges from having another.
    if (surges && shouldRun && running.length === 0) create.push(node);
    remove.push(...surplus(running, surges).map((pod) => pod.row));
  }
  remove.push(...failed.map(([row]) => row), ...succeeded.map(([row]) => row));
  return { create, remove, failed, succeeded };
}

/** All but one pod of a node; while a surge replaces one, the old and the new one stay. */
function surplus(running: readonly DaemonPod[], surges: boolean): readonly DaemonPod[] {
  if (running.length <= 1) return [];
  const ordered = running.toSorted(byAge);
  if (!surges) return ordered.slice(1);
  const updated = ordered.filter((pod) => pod.isUpdated);
  const old = ordered.filter((pod) => !pod.isUpdated);
  const isUseless = old[0]?.isReady === false && updated.length > 0;
  const isReplaced = isUseless || updated[0]?.isAvailable === true;
  return [...updated.slice(1), ...(isReplaced ? old : old.slice(1))];
}

export interface UpdateLimits {
  readonly surge: number;
  readonly unavailable: number;
}

/** `maxSurge` and `maxUnavailable` of a rolling update, of so many wanted pods. */
export function updateLimits(set: JsonObject, desired: number): UpdateLimits {
  const rolling = objectAt(set, 'spec', 'updateStrategy', 'rollingUpdate');
  const surge = scaled(rolling?.['maxSurge'] ?? 0, desired, true);
  const unavailable = scaled(rolling?.['maxUnavailable'] ?? 1, desired, true);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** The old and the new pod of a node that stay; undefined where there is more to tidy up first. */
function pairOf(
  pods: readonly DaemonPod[],
): { readonly old: DaemonPod | undefined; readonly updated: DaemonPod | undefined } | undefined {
  const staying = pods.filter((pod) => !pod.isDeleting);
  const old = staying.filter((pod) => !pod.isUpdated);
  const updated = staying.filter((pod) => pod.isUpdated);
  if (old.length > 1 || updated.length > 1) return undefined;
  return { old: old[0], updated: updated[0] };
}

/** Old pods that a rolling update may delete now; those too that only may stay where they are. */
export function planUpdate(
  places: readonly DaemonPlace[],
  { unavailable }: UpdateLimits,
): number[] {
  let down = 0;
  const broken: number[] = [];
  const candidates: number[] = [];
  for (const { pods } of places) {
    const pair = pairOf(pods);
    const isAlone = pair !== undefined && (pair.old === undefined) !== (pair.updated === undefined);
    if (!isAlone) down++;
    else if (pair.updated !== undefined) {
      if (!pair.updated.isAvailable) down++;
    } else if (pair.old?.isAvailable === true) candidates.push(pair.old.row);
    else if (pair.old !== undefined) {
      // it goes whatever the limit says, and is one of those that are down
      broken.push(pair.old.row);
      down++;
    }
  }
  return [...broken, ...candidates.slice(0, Math.max(0, unavailable - down))];
}

/**
 * For an update that surges: nodes that get a new pod beside the old, and old pods to delete. Where
 * an old one only may stay it goes when as many are available elsewhere as are wanted.
 */
export function planSurge(
  places: readonly DaemonPlace[],
  { surge }: UpdateLimits,
): { readonly create: number[]; readonly remove: number[] } {
  let used = 0;
  let available = 0;
  const remove: number[] = [];
  const leaving: number[] = [];
  const broken: number[] = [];
  const candidates: number[] = [];
  for (const { node, shouldRun, pods } of places) {
    const pair = pairOf(pods);
    if (pair === undefined) {
      used++;
      continue;
    }
    const { old, updated } = pair;
    if ((old ?? updated)?.isAvailable === true) available++;
    if (old === undefined) continue;
    if (updated?.isAvailable === true) remove.push(old.row);
    else if (updated !== undefined) used++;
    else if (shouldRun) (old.isAvailable ? candidates : broken).push(node);
    else (old.isAvailable ? leaving : remove).push(old.row);
  }
  const desired = places.filter(({ shouldRun }) => shouldRun).length;
  return {
    create: [...broken, ...candidates.slice(0, Math.max(0, surge - used))],
    remove: [...remove, ...leaving.slice(0, Math.max(0, available - desired))],
  };
}

/** The status for what there is. */
export function daemonStatus(
  set: JsonObject,
  places: readonly DaemonPlace[],
  collisions: number,
): JsonObject {
  let desired = 0;
  let current = 0;
  let misscheduled = 0;
  let ready = 0;
  let available = 0;
  let updated = 0;
  for (const { shouldRun, pods } of places) {
    if (!shouldRun) {
      if (pods.length > 0) misscheduled++;
      continue;
    }
    desired++;
    const [first] = pods.toSorted(byAge);
    if (first === undefined) continue;
    current++;
    if (first.isReady) ready++;
    if (first.isAvailable) available++;
    if (first.isUpdated) updated++;
  }
  assert(current <= desired, 'one pod counts for each node that should have one');
  assert(Math.max(ready, available, updated) <= current, 'what is counted is there');
  const unavailable = desired - available;
  const conditions = listAt(set, 'status', 'conditions');
  return {
    currentNumberScheduled: current,
    numberMisscheduled: misscheduled,
    desiredNumberScheduled: desired,
    numberReady: ready,
    observedGeneration: numberAt(set, 'metadata', 'generation'),
    ...(updated > 0 ? { updatedNumberScheduled: updated } : {}),
    ...(available > 0 ? { numberAvailable: available } : {}),
    ...(unavailable > 0 ? { numberUnavailable: unavailable } : {}),
    ...(collisions > 0 ? { collisionCount: collisions } : {}),
    ...(conditions.length > 0 ? { conditions: [...conditions] } : {}),
  };
}

/** Number of a template, of a set's annotation or a pod's label; 0 where that is none. */
export function templateNumber(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
}

/** Makes the text of the pod for each node: they differ in nothing but its name. */
export function podTextOf(
  set: JsonObject,
  owner: PodOwner,
  hash: string,
): (node: string) => string {
  const template = objectAt(set, 'spec', 'template') ?? {};
  const spec = objectAt(template, 'spec') ?? {};
  const given = objectAt(template, 'metadata') ?? {};
  const labels: JsonObject = { ...objectAt(given, 'labels') };
  const generation = stringAt(set, 'metadata', 'annotations', GENERATION);
  if (generation !== '') labels[GENERATION_LABEL] = generation;
  if (hash !== '') labels[HASH_LABEL] = hash;
  const metadata: JsonObject = {
    generateName: `${owner.name}-`,
    labels,
    ownerReferences: [controllerReference(owner)],
  };
  for (const field of ['annotations', 'finalizers']) {
    const value = given[field];
    if (value !== undefined && value !== null) metadata[field] = value;
  }
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { ...spec, affinity: pinned(spec), tolerations: daemonTolerations(spec) },
  };
  const [before = '', after = ''] = JSON.stringify(pod).split(MARK_TEXT);
  return (node) => before + JSON.stringify(node).slice(1, -1) + after;
}

const MARK = '\u0001node\u0001';
const MARK_TEXT = JSON.stringify(MARK).slice(1, -1);

/** The affinity, with the node's name in place of whatever nodes it requires. */
function pinned(spec: JsonObject): JsonObject {
  const affinity = objectAt(spec, 'affinity') ?? {};
  const requirement = { key: 'metadata.name', operator: 'In', values: [MARK] };
  return {
    ...affinity,
    nodeAffinity: {
      ...objectAt(affinity, 'nodeAffinity'),
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [requirement] }],
      },
    },
  };
}

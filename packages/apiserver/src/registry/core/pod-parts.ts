/**
 * What an update of a pod's part keeps as it was: all else, metadata included. What a pod is sized
 * by comes with the new one, and so do containers that were added to look into it.
 */
import { ownMember } from '@megaplane/base/members';
import {
  keepsEmptyCollections,
  markEmptyCollections,
} from '@megaplane/machinery/empty-collections';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { orderedMetadata } from '../rest/object-meta.ts';
import { refitted } from '../rest/schema-gate.ts';
import type { RuleContext } from '../rest/behaviour.ts';

const KEPT_METADATA = ['labels', 'annotations', 'finalizers', 'ownerReferences'];
const SIZES = ['resources', 'resizePolicy'];

/** Of an update by way of `ephemeralcontainers`. */
export function keepAllButEphemeral(
  next: JsonObject,
  previous: JsonObject,
  context: RuleContext,
): void {
  const ephemeralContainers = listAt(next, 'spec', 'ephemeralContainers');
  const spec: JsonObject = { ...objectAt(previous, 'spec') };
  if (ephemeralContainers.length === 0) delete spec['ephemeralContainers'];
  else spec['ephemeralContainers'] = [...ephemeralContainers];
  keepRest(next, previous, spec, context);
}

/**
 * Of an update by way of `resize`. Other containers than there were are left for validation to
 * refuse.
 */
export function keepAllButSizes(
  next: JsonObject,
  previous: JsonObject,
  context: RuleContext,
): void {
  const sent = objectAt(next, 'spec') ?? {};
  const stored = objectAt(previous, 'spec') ?? {};
  const fields = ['containers', 'initContainers'];
  if (fields.some((field) => listAt(sent, field).length !== listAt(stored, field).length)) return;
  const spec: JsonObject = { ...stored };
  for (const field of ['resources', ...fields]) {
    const value = field === 'resources' ? sent[field] : resized(sent, stored, field);
    if (value === undefined) delete spec[field];
    else spec[field] = value;
  }
  keepRest(next, previous, spec, context);
}

function resized(sent: JsonObject, stored: JsonObject, field: string): JsonValue | undefined {
  const [after, before] = [listAt(sent, field), listAt(stored, field)];
  const isSame = before.every((old, at) => stringAt(old, 'name') === stringAt(after[at], 'name'));
  if (!isSame || after.length === 0) return ownMember(sent, field);
  return before.map((old, at) => {
    const container: JsonObject = { ...(isObject(old) ? old : {}) };
    for (const name of SIZES) {
      const value = objectAt(after[at])?.[name];
      if (value === undefined) delete container[name];
      else container[name] = value;
    }
    return container;
  });
}

function keepRest(
  next: JsonObject,
  previous: JsonObject,
  spec: JsonObject,
  { served }: RuleContext,
): void {
  const stored = objectAt(previous, 'metadata') ?? {};
  const metadata: JsonObject = { ...objectAt(next, 'metadata') };
  for (const field of KEPT_METADATA) {
    const value = stored[field];
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  }
  const form = refitted(served, { ...next, spec }, false);
  next['spec'] = form?.ok === true ? (form.object['spec'] ?? spec) : spec;
  if (form?.ok === true && keepsEmptyCollections(form.object)) markEmptyCollections(next);
  next['metadata'] = orderedMetadata(metadata);
  const status = previous['status'];
  if (status === undefined) delete next['status'];
  else next['status'] = status;
}

const STATUSES = [
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
] as const;

/**
 * What a report of a pod leaves out and may not take away: the class that its amounts put it in,
 * and which generation was observed.
 */
export function keepReported(next: JsonObject, previous: JsonObject): void {
  const before = objectAt(previous, 'status');
  const sent = objectAt(next, 'status');
  if (before === undefined && sent === undefined) return;
  const { nodeAllocatableResourceClaimStatuses: _, ...status } = sent ?? {};
  if (stringAt(status, 'qosClass') === '') status['qosClass'] = stringAt(before, 'qosClass');
  if (status['qosClass'] === '') delete status['qosClass'];
  const observed = numberAt(before, 'observedGeneration');
  if (numberAt(status, 'observedGeneration') === 0 && observed !== 0) {
    status['observedGeneration'] = observed;
  }
  dropVolumeStatus(status, before);
  const conditions = withGenerations(listAt(status, 'conditions'), listAt(before, 'conditions'));
  if (conditions !== null) status['conditions'] = conditions;
  next['status'] = status;
}

/** What runs of a volume made of an image is off by default: told only where it has been before. */
function dropVolumeStatus(status: JsonObject, before: JsonObject | undefined): void {
  const isTold = (mount: JsonValue): boolean => isObject(mount) && 'volumeStatus' in mount;
  const tells = (one: JsonValue): boolean => listAt(one, 'volumeMounts').some(isTold);
  if (STATUSES.some((field) => listAt(before, field).some(tells))) return;
  for (const field of STATUSES) {
    const list = listAt(status, field);
    if (!list.some(tells)) continue;
    status[field] = list.map((one) => (tells(one) && isObject(one) ? withoutTold(one) : one));
  }
}

function withoutTold(container: JsonObject): JsonObject {
  const mounts = listAt(container, 'volumeMounts').map((mount) => {
    if (!isObject(mount)) return mount;
    const { volumeStatus: _, ...rest } = mount;
    return rest;
  });
  return { ...container, volumeMounts: mounts };
}

/** Conditions of one type may come more than once: each goes on from its own place among them. */
function withGenerations(
  conditions: readonly JsonValue[],
  before: readonly JsonValue[],
): JsonValue[] | null {
  const generations = new Map<string, number[]>();
  for (const old of before) {
    const type = stringAt(old, 'type');
    const known = generations.get(type) ?? [];
    generations.set(type, [...known, numberAt(old, 'observedGeneration')]);
  }
  let isChanged = false;
  const all = conditions.map((condition) => {
    const generation = generations.get(stringAt(condition, 'type'))?.shift() ?? 0;
    if (generation === 0 || numberAt(condition, 'observedGeneration') !== 0) return condition;
    isChanged = true;
    return isObject(condition) ? { ...condition, observedGeneration: generation } : condition;
  });
  return isChanged ? all : null;
}

/**
 * Who owns what in an object's metadata: what the server sets at create, what an update may not
 * change, and the order in which the fields are stored.
 */
import { equals, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { badRequest, unclassified, type Status } from '@megaplane/machinery/status';
import { timestamp } from '../../timestamp.ts';

/**
 * The fields of ObjectMeta in upstream's order, but for managedFields: they lie first, where
 * readers look for them. Others are dropped.
 */
const FIELDS = [
  'managedFields',
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
] as const;

const GENERATED_SUFFIX_LENGTH = 5;
const GENERATED_BASE_LENGTH_MAX = 58;
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/** Characters of a generated name, one per draw of `below(27)`. */
export function generatedName(base: string, below: (n: number) => number): string {
  let name = base.slice(0, GENERATED_BASE_LENGTH_MAX);
  for (let index = 0; index < GENERATED_SUFFIX_LENGTH; index++) {
    name += SUFFIX_LETTERS[below(SUFFIX_LETTERS.length)] ?? '';
  }
  return name;
}

/** A copy of metadata with known fields only, in order, without what is empty. */
export function orderedMetadata(metadata: JsonObject): JsonObject {
  const ordered: JsonObject = {};
  for (const field of FIELDS) {
    const value = metadata[field];
    if (value === undefined || value === null || value === '') continue;
    if (field === 'generation' && value === 0) continue;
    if (typeof value === 'object' && Object.keys(value).length === 0) continue;
    ordered[field] = value;
  }
  return ordered;
}

/** What decides the metadata of a new object. */
export interface CreateFacts {
  /** From the URL; '' at cluster scope. */
  readonly namespace: string;
  readonly namespaced: boolean;
  readonly uid: string;
  readonly nowMs: number;
  /** The kind counts generations: a new object starts at 1. */
  readonly counted: boolean;
}

/** Namespace of the body against that of the URL; null where they agree. */
export function checkNamespace(object: JsonObject, urlNamespace: string): Status | null {
  const own = stringAt(object, 'metadata', 'namespace');
  if (own === '' || own === urlNamespace) return null;
  return badRequest(
    'the namespace of the provided object does not match the namespace sent on the request',
  );
}

/** Name of the body against that of the URL of an update; null where they agree. */
export function checkName(object: JsonObject, urlName: string): Status | null {
  const own = stringAt(object, 'metadata', 'name');
  if (own === urlName) return null;
  if (own === '') {
    return badRequest(
      `the name of the object (${urlName} based on URL) was undeterminable: name must be provided`,
    );
  }
  return badRequest(
    `the name of the object (${own}) does not match the name on the URL (${urlName})`,
  );
}

/** A new object may not say which revision it has; null where it does not. */
export function checkNewRevision(object: JsonObject): Status | null {
  // what is no revision is none
  if (!/^0*[1-9][0-9]*$/.test(stringAt(object, 'metadata', 'resourceVersion'))) return null;
  return unclassified('resourceVersion should not be set on objects to be created');
}

/** Metadata of a new object: the client's own fields and the server's. */
export function createMetadata(object: JsonObject, facts: CreateFacts): JsonObject {
  const sent = objectAt(object, 'metadata') ?? {};
  const generation = facts.counted ? 1 : numberAt(sent, 'generation');
  const metadata: JsonObject = {
    ...sent,
    uid: facts.uid,
    creationTimestamp: timestamp(facts.nowMs),
    generation,
  };
  if (facts.namespaced) metadata['namespace'] = facts.namespace;
  else delete metadata['namespace'];
  delete metadata['selfLink'];
  delete metadata['deletionTimestamp'];
  delete metadata['deletionGracePeriodSeconds'];
  delete metadata['managedFields'];
  return orderedMetadata(metadata);
}

/**
 * Metadata of an update: system fields come back from the stored object. What a client sends for an
 * end that is not decided yet stays: validation refuses it.
 */
export function updateMetadata(next: JsonObject, previous: JsonObject): JsonObject {
  const sent = objectAt(next, 'metadata') ?? {};
  const stored = objectAt(previous, 'metadata') ?? {};
  const metadata: JsonObject = { ...sent };
  // a uid that was sent is kept for validation, which refuses one that is not the stored one
  metadata['uid'] = sent['uid'] ?? stored['uid'];
  for (const field of ['generation', 'creationTimestamp', 'namespace', 'managedFields']) {
    const value = stored[field];
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  }
  metadata['deletionTimestamp'] = stored['deletionTimestamp'] ?? sent['deletionTimestamp'];
  metadata['deletionGracePeriodSeconds'] =
    sent['deletionGracePeriodSeconds'] ?? stored['deletionGracePeriodSeconds'];
  return orderedMetadata(metadata);
}

/** An object with its metadata replaced, in the order of stored objects. */
export function assemble(object: JsonObject, metadata: JsonObject): JsonObject {
  const { kind, apiVersion, metadata: _, ...rest } = object;
  return { kind: kind ?? '', apiVersion: apiVersion ?? '', metadata, ...rest };
}

/** The uid in a body, which is a precondition of updates; '' where there is none. */
export function sentUid(object: JsonObject): string {
  return stringAt(object, 'metadata', 'uid');
}

/** True where the object is on its way out. */
export function isDeleting(object: JsonObject): boolean {
  return valueAt(object, 'metadata', 'deletionTimestamp') !== undefined;
}

/**
 * Drops owner references that stand there a second time. Returns the text of the warning that this
 * deserves, or ''; it says whether the request had them, or admission left them there.
 */
export function dedupeOwners(object: JsonObject, isAdmitted: boolean): string {
  const metadata = objectAt(object, 'metadata') ?? {};
  const owners = metadata['ownerReferences'];
  if (!Array.isArray(owners) || owners.length < 2) return '';
  const doubled: string[] = [];
  const kept: JsonValue[] = [];
  for (const owner of owners) {
    if (kept.some((other) => equals(other, owner))) doubled.push(stringAt(owner, 'uid'));
    else kept.push(owner);
  }
  if (doubled.length === 0) return '';
  object['metadata'] = { ...metadata, ownerReferences: kept };
  const when = isAdmitted ? ' after mutating admission happens' : '';
  return (
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner ` +
    'references in 1.20+, and may reject such requests as early as 1.24; ' +
    `please fix your requests; duplicate UID(s) observed: ${doubled.join(', ')}`
  );
}

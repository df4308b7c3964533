/**
 * The entries of `metadata.managedFields`: who wrote by which way and when, and what it owns.
 * Order, identity and limits are those of upstream's field manager.
 */

import { parseJson } from '../json/json-text.ts';
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { decodeFields, encodeFields } from './field-set-codec.ts';
import type { FieldSet } from './field-set.ts';
import { compareText, goJson } from './path-element.ts';
import type { Owned, Owners } from './ownership.ts';

export type Operation = 'Apply' | 'Update';

/** Who writes. */
export interface Manager {
  readonly name: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  /** '' for the object itself. */
  readonly subresource: string;
}

/** Owners, and when each of them last changed something: seconds since 1970. */
export interface Managed {
  readonly owners: Owners;
  readonly times: Map<string, number>;
}

/** Updaters of an object that are told apart; the oldest of more are put together. */
export const UPDATE_MANAGERS_MAX = 10;
const BUCKET_NAME = 'ancient-changes';
export const NO_MANAGER = 'unknown';

export function emptyManaged(): Managed {
  return { owners: new Map(), times: new Map() };
}

/**
 * What tells managers apart: name, operation, subresource and, for updates, the version. Its text
 * also orders conflicts.
 */
export function managerId(manager: Manager): string {
  const { operation, subresource } = manager;
  let id = `{"manager":${goJson(manager.name)},"operation":"${operation}"`;
  if (operation === 'Update') id += `,"apiVersion":${goJson(manager.apiVersion)}`;
  if (subresource !== '') id += `,"subresource":${goJson(subresource)}`;
  return `${id}}`;
}

const managers = new Map<string, Manager>();
const MANAGERS_KEPT_MAX = 65_536;

/** The manager of an identifier; for Apply without its version. */
export function managerOf(id: string): Manager {
  const known = managers.get(id);
  if (known !== undefined) return known;
  const fields = parseJson(id) as JsonObject;
  const text = (name: string): string => {
    const value = ownMember(fields, name);
    return typeof value === 'string' ? value : '';
  };
  const manager: Manager = {
    name: text('manager'),
    operation: text('operation') === 'Apply' ? 'Apply' : 'Update',
    apiVersion: text('apiVersion'),
    subresource: text('subresource'),
  };
  if (managers.size >= MANAGERS_KEPT_MAX) managers.clear();
  managers.set(id, manager);
  return manager;
}

/** Reads the list; a text says what is wrong with it. */
export function decodeManaged(list: JsonValue | undefined): Managed | string {
  const managed = emptyManaged();
  if (list === undefined || list === null) return managed;
  if (!Array.isArray(list)) return 'managedFields must be a list';
  for (const [index, entry] of list.entries()) {
    const fault = decodeEntry(isObject(entry) ? entry : {}, index, managed);
    if (fault !== '') return fault;
  }
  return managed;
}

function decodeEntry(entry: JsonObject, index: number, managed: Managed): string {
  const { operation, apiVersion, fieldsType, manager, subresource, time } = entry;
  if (operation !== 'Apply' && operation !== 'Update') {
    return 'operation must be `Apply` or `Update`';
  }
  if (typeof apiVersion !== 'string' || apiVersion === '') return 'apiVersion must not be empty';
  if (typeof fieldsType !== 'string' || fieldsType === '') {
    return `missing fieldsType in managed fields entry ${index}`;
  }
  if (fieldsType !== 'FieldsV1') {
    return `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`;
  }
  const fields = decodeFields(entry['fieldsV1']);
  if (fields === null) return `error decoding set: entry ${index}`;
  const id = managerId({
    name: typeof manager === 'string' ? manager : '',
    operation,
    apiVersion,
    subresource: typeof subresource === 'string' ? subresource : '',
  });
  managed.owners.set(id, { apiVersion, isApplied: operation === 'Apply', fields });
  const timeMs = typeof time === 'string' ? Date.parse(time) : NaN;
  if (!Number.isNaN(timeMs)) managed.times.set(id, Math.floor(timeMs / 1000));
  return '';
}

/** One entry, ready to be written. */
export interface Entry {
  readonly manager: Manager;
  /** Null where nobody knows. */
  readonly seconds: number | null;
  readonly set: FieldSet;
}

/** The entries in the order in which they are stored. */
export function entriesOf(managed: Managed): Entry[] {
  const entries: Entry[] = [];
  for (const [id, owned] of managed.owners) entries.push(entryOf(id, owned, managed));
  return entries.sort(compareEntries);
}

function entryOf(id: string, owned: Owned, { times }: Managed): Entry {
  const manager: Manager = {
    ...managerOf(id),
    apiVersion: owned.apiVersion,
    ...(owned.isApplied ? { operation: 'Apply' as const } : {}),
  };
  return { manager, seconds: times.get(id) ?? null, set: owned.fields };
}

/** Applied first, then by age, name, version and subresource. */
export function compareEntries(left: Entry, right: Entry): number {
  const a = left.manager;
  const b = right.manager;
  return (
    compareText(a.operation, b.operation) ||
    (left.seconds ?? 0) - (right.seconds ?? 0) ||
    compareText(a.name, b.name) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  );
}

/** The entry as the API shows it. */
export function entryJson({ manager, seconds, set }: Entry): JsonObject {
  const entry: JsonObject = {};
  if (manager.name !== '') entry['manager'] = manager.name;
  entry['operation'] = manager.operation;
  entry['apiVersion'] = manager.apiVersion;
  if (seconds !== null) entry['time'] = timeText(seconds);
  entry['fieldsType'] = 'FieldsV1';
  entry['fieldsV1'] = parseJson(encodeFields(set)) as JsonObject;
  if (manager.subresource !== '') entry['subresource'] = manager.subresource;
  return entry;
}

export function timeText(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** Puts the oldest updaters together, by version, until there are no more than the limit. */
export function capUpdaters(managed: Managed): void {
  const { owners, times } = managed;
  const updaters = [...owners].filter(([, { isApplied }]) => !isApplied).map(([id]) => id);
  if (updaters.length <= UPDATE_MANAGERS_MAX) return;
  updaters.sort((a, b) => (times.get(a) ?? 0) - (times.get(b) ?? 0) || compareText(a, b));
  const firstOf = new Map<string, string>();
  let count = updaters.length;
  for (const id of updaters) {
    if (count <= UPDATE_MANAGERS_MAX) return;
    const owned = owners.get(id);
    if (owned === undefined) continue;
    const { apiVersion } = owned;
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, id);
      continue;
    }
    const bucket = managerId({
      name: BUCKET_NAME,
      operation: 'Update',
      apiVersion,
      subresource: '',
    });
    const oldest = owners.get(bucket) ?? owners.get(first);
    if (!owners.has(bucket)) owners.delete(first);
    const fields = oldest === undefined ? owned.fields : owned.fields.union(oldest.fields);
    owners.set(bucket, { ...owned, fields });
    owners.delete(id);
    count--;
    // the younger of the two: what is put together is sorted by age
    const seconds = times.get(id);
    if (seconds === undefined) times.delete(bucket);
    else times.set(bucket, seconds);
  }
}

/**
 * Keeps `metadata.managedFields` over writes, as upstream's field manager does: what is never
 * tracked, when tracking starts, when an entry's time moves, how many updaters are told apart, what
 * becomes of kubectl's client-side annotation.
 */

import { objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import {
  applyConflict,
  badRequest,
  failed,
  success,
  unclassified,
  type Result,
} from '../meta/status.ts';
import { quoted } from '../json/quoting.ts';
import { FieldSet } from './field-set.ts';
import { newFields, UNTRACKED_METADATA } from './new-fields.ts';
import type { Holed } from './field-placeholders.ts';
import { lastAppliedFields, LAST_APPLIED_MANAGER, withLastApplied } from './last-applied.ts';
import {
  capUpdaters,
  emptyManaged,
  managerId,
  managerOf,
  NO_MANAGER,
  type Managed,
  type Manager,
} from './managed-fields.ts';
import {
  applyConfig,
  ownersAfterUpdate,
  type Applied,
  type Conflict,
  type Owners,
  type Versions,
} from './ownership.ts';
import { printPath } from './path-element.ts';
import { faultsText, fitsForms, typedFaults, type TypedFault } from './typed-faults.ts';

const BEFORE_FIRST_APPLY = 'before-first-apply';
const FIRST_FAILED = 'failed to create manager for existing fields';
/** Nobody's name: the operation is its own manager until it is known what it changed. */
const OPERATION = '';

/** What nobody owns: the server writes it, or it says which object this is. */
const UNTRACKED = FieldSet.of(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...UNTRACKED_METADATA.map((name) => ['f:metadata', `f:${name}`]),
);

/** One write: by whom, of which kind, when. */
export interface FieldScope {
  readonly versions: Versions;
  readonly manager: Manager;
  readonly nowSeconds: number;
  /** The object without anything in it, as it is written. */
  readonly empty: JsonObject;
  /** Objects up to this revision may have been written under another schema; -1: none was. */
  readonly formedSince: number;
}

function strip(owners: Owners, id: string): void {
  const owned = owners.get(id);
  if (owned === undefined) return;
  const fields = owned.fields.difference(UNTRACKED);
  if (fields.isEmpty) owners.delete(id);
  else owners.set(id, { ...owned, fields });
}

/**
 * Where a stored object does not fit its schema, because that has changed since. What was written
 * later fits, unless nobody tracks it: then it may have been left as it was in what did not fit.
 */
function misfits(
  { versions, formedSince }: FieldScope,
  live: JsonObject,
  managed: Managed,
): readonly TypedFault[] {
  const isOlder = Number(stringAt(live, 'metadata', 'resourceVersion')) <= formedSince;
  const isUntracked = formedSince >= 0 && managed.owners.size === 0;
  if (!isOlder && !isUntracked) return [];
  // they may be there as they are kept, which is no form of theirs
  const { managedFields: _, ...metadata } = objectAt(live, 'metadata') ?? {};
  return typedFaults(versions.schema, { ...live, metadata }, true);
}

/** Rules of custom kinds let values pass that are not of their type: lists where texts stand. */
function isUntyped({ versions, formedSince }: FieldScope, next: JsonObject): boolean {
  if (formedSince < 0) return false;
  const { managedFields: _, ...metadata } = objectAt(next, 'metadata') ?? {};
  return !fitsForms(versions.schema, { ...next, metadata });
}

/** Versions with schemas of their own: what one has, another may not know, and cannot compare. */
function isUnknownElsewhere(
  { versions, formedSince }: FieldScope,
  next: JsonObject,
  managed: Managed,
): boolean {
  if (formedSince !== Infinity) return false;
  const others = new Set(Array.from(managed.owners.values(), ({ apiVersion }) => apiVersion));
  others.delete(versions.apiVersion);
  const { managedFields: _, ...metadata } = objectAt(next, 'metadata') ?? {};
  for (const apiVersion of others) {
    const found = versions.convert({ ...next, metadata }, apiVersion);
    if (found !== null && typedFaults(found.schema, found.value, true).length > 0) return true;
  }
  return false;
}

/**
 * Who owns what after `next` was made of `live` (null: the object is new). Both without
 * managedFields. An object that nobody tracks stays untracked; of one that does not fit its schema
 * all owners are forgotten, as by upstream's UpdateNoErrors.
 */
export function trackUpdate(
  scope: FieldScope,
  live: JsonObject | null,
  next: JsonObject,
  managed: Managed,
): Managed {
  if (managed.owners.size === 0 && live !== null) return managed;
  if (live !== null && misfits(scope, live, managed).length > 0) return emptyManaged();
  if (live !== null && isUnknownElsewhere(scope, next, managed)) return emptyManaged();
  if (isUntyped(scope, next)) return emptyManaged();
  return update(scope, live ?? scope.empty, next, managed, scope.manager);
}

/** The fields of a new object that nobody owned before; null where there are none to own. */
export function trackNewObject({ versions, empty }: FieldScope, object: JsonObject): Holed | null {
  return newFields(versions.schema, empty, object, versions.ignored);
}

function update(
  { versions, nowSeconds }: FieldScope,
  live: JsonObject,
  next: JsonObject,
  managed: Managed,
  manager: Manager,
): Managed {
  const id = managerId({ ...manager, name: nameOf(manager), operation: 'Update' });
  const owners = ownersAfterUpdate(versions, live, next, managed.owners, OPERATION);
  strip(owners, OPERATION);
  const result: Managed = { owners, times: new Map(managed.times) };
  const own = owners.get(OPERATION);
  if (own !== undefined) {
    owners.delete(OPERATION);
    const before = owners.get(id);
    const fields = before === undefined ? own.fields : own.fields.union(before.fields);
    owners.set(id, { ...own, fields });
    result.times.set(id, nowSeconds);
  }
  capUpdaters(result);
  return result;
}

function nameOf({ name }: Manager): string {
  return name === '' ? NO_MANAGER : name;
}

/** An apply that went through. */
export interface ApplyResult {
  /** Null where the live object stays as it is, but perhaps for its owners. */
  readonly object: JsonObject | null;
  readonly managed: Managed;
}

/**
 * Applies `config` to `live` (null: there is no object yet). `kind` is what the request's path
 * names. Fails as upstream does: 400 for another kind or for managedFields in the configuration,
 * 500 where it does not fit its type, 409 for fields of others unless `force`.
 */
export function trackApply(
  scope: FieldScope,
  live: JsonObject | null,
  config: JsonObject,
  managed: Managed,
  kind: string,
  force: boolean,
): Result<ApplyResult> {
  const { versions, manager } = scope;
  const named = kindText(stringAt(config, 'apiVersion'), stringAt(config, 'kind'));
  if (named !== kindText(versions.apiVersion, kind)) {
    return failed(badRequest(`invalid object type: ${named}`));
  }
  const own = live ?? scope.empty;
  let base = managed;
  if (managed.owners.size === 0) {
    const foreign = live === null ? [] : misfits(scope, live, managed);
    if (foreign.length > 0) return failed(untypable('first', own, named, foreign));
    const first = { ...manager, name: BEFORE_FIRST_APPLY };
    base = update(scope, scope.empty, own, managed, first);
  }
  const { managedFields } = objectAt(config, 'metadata') ?? {};
  if (managedFields !== undefined && managedFields !== null) {
    return failed(badRequest('metadata.managedFields must be nil'));
  }
  const faults = typedFaults(versions.schema, config, false);
  if (faults.length > 0) {
    return failed(untypable('patch', config, named, faults));
  }
  const foreign = live === null ? [] : misfits(scope, live, base);
  if (foreign.length > 0) return failed(untypable('live', own, named, foreign));
  return applyChecked(scope, own, config, base, force);
}

/** `first`: who owned what before the first apply. */
function untypable(
  which: 'patch' | 'live' | 'first',
  object: JsonObject,
  named: string,
  faults: readonly TypedFault[],
): ReturnType<typeof unclassified> {
  const name = stringAt(object, 'metadata', 'name');
  const who = `(${stringAt(object, 'metadata', 'namespace')}/${name}; ${named})`;
  const head =
    which === 'first'
      ? `${FIRST_FAILED}: failed to convert new object ${who} to smd typed`
      : `failed to create typed ${which} object ${who}`;
  return unclassified(`${head}: ${faultsText(faults)}`);
}

function applyChecked(
  scope: FieldScope,
  live: JsonObject,
  config: JsonObject,
  managed: Managed,
  force: boolean,
): Result<ApplyResult> {
  const { versions, manager } = scope;
  const id = managerId({ ...manager, name: nameOf(manager), operation: 'Apply' });
  const run = (isForced: boolean): Applied =>
    applyConfig(versions, live, config, managed.owners, id, isForced);
  let applied = run(force);
  const isKubectl = manager.name === LAST_APPLIED_MANAGER;
  if (applied.kind === 'conflicts' && isKubectl) {
    const allowed = lastAppliedFields(versions, live);
    if (allowed !== null) {
      const left = applied.conflicts.filter(({ path }) => !allowed.has(path));
      applied = left.length > 0 ? { kind: 'conflicts', conflicts: left } : run(true);
    }
  }
  if (applied.kind === 'conflicts') return failed(conflictStatus(applied.conflicts));
  const { owners, value } = applied;
  strip(owners, id);
  const times = new Map(managed.times);
  if (value !== null) times.set(id, scope.nowSeconds);
  const object = value as JsonObject | null;
  const current = isKubectl ? withLastApplied(object ?? live, config) : object;
  return success({ object: current === live ? null : current, managed: { owners, times } });
}

function conflictStatus(conflicts: readonly Conflict[]): ReturnType<typeof applyConflict> {
  const sorted = [...conflicts].sort((a, b) =>
    a.manager < b.manager ? -1 : Number(a.manager > b.manager),
  );
  return applyConflict(
    sorted.map(({ manager, path }) => ({ manager: managerText(manager), field: printPath(path) })),
  );
}

function managerText(id: string): string {
  const { name, operation, apiVersion, subresource } = managerOf(id);
  let text = quoted(name);
  if (subresource !== '') text += ` with subresource ${quoted(subresource)}`;
  return operation === 'Update' ? `${text} using ${apiVersion}` : text;
}

/** As Go prints a group, version and kind. */
function kindText(apiVersion: string, kind: string): string {
  const slash = apiVersion.indexOf('/');
  const group = apiVersion.slice(0, Math.max(0, slash));
  return `${group}/${apiVersion.slice(slash + 1)}, Kind=${kind}`;
}

/**
 * Who owns which fields of an object, and how that changes with an update and with an apply: the
 * algorithm of structured-merge-diff over sets of fields. No texts, no times and no object metadata
 * here; see `field-manager.ts`.
 */

import { equals } from '../json/json.ts';
import type { JsonValue } from '../json/json-value.ts';
import { compareFields, type Comparison } from './compare.ts';
import type { FieldSchema } from './field-schema.ts';
import { FieldSet, type FieldPath } from './field-set.ts';
import { fieldsOf, withNamedFields } from './field-walk.ts';
import { mergeValues } from './merge.ts';
import { reconcileFields } from './reconcile.ts';
import { removeFields } from './remove.ts';

/** What one manager owns, in the version in which it wrote. */
export interface Owned {
  readonly apiVersion: string;
  readonly isApplied: boolean;
  readonly fields: FieldSet;
}

/** By manager's identifier. */
export type Owners = Map<string, Owned>;

/** A value and the schema that it fits. */
export interface Typed {
  readonly schema: FieldSchema;
  readonly value: JsonValue;
}

/** What the algorithm asks of the kind it runs for. */
export interface Versions {
  /** The version of the objects that are given to it. */
  readonly apiVersion: string;
  readonly schema: FieldSchema;
  /** The schema of a version; null where there is none of that name any more. */
  schemaOf(apiVersion: string): FieldSchema | null;
  /**
   * The object in another version of its kind; null where there is no such version any more, whose
   * owners are then forgotten.
   */
  convert(value: JsonValue, apiVersion: string): Typed | null;
  /** The other way: a value of `apiVersion` in the version of the objects. */
  convertBack(value: JsonValue, apiVersion: string): JsonValue;
  /** Fields that writes by this way do not change: nobody comes to own them. */
  readonly ignored: FieldSet;
  /** Of these, what is left out in other versions, too: upstream lists versions one by one. */
  readonly ignoredElsewhere: FieldSet;
}

export interface Conflict {
  readonly manager: string;
  readonly path: FieldPath;
}

const NOTHING = new FieldSet();

/** Forgets owners of versions that are gone, fits the others to today's schema. */
function reconciled(owners: Owners, versions: Versions): Owners {
  const result: Owners = new Map();
  for (const [manager, owned] of owners) {
    const schema = versions.schemaOf(owned.apiVersion);
    if (schema === null) continue;
    const fields = reconcileFields(owned.fields, schema);
    result.set(manager, fields === owned.fields ? owned : { ...owned, fields });
  }
  return result;
}

function without(comparison: Comparison, ignored: FieldSet): Comparison {
  if (ignored.isEmpty) return comparison;
  return {
    added: comparison.added.recursiveDifference(ignored),
    modified: comparison.modified.recursiveDifference(ignored),
    removed: comparison.removed.recursiveDifference(ignored),
  };
}

/**
 * What changed from `live` to `next`, as one version after another asks for it. Changes to
 * `compared`, for the version of the objects, come from the caller where it knows them.
 */
class Changes {
  readonly #versions: Versions;
  readonly #live: JsonValue;
  readonly #next: JsonValue;
  readonly #known = new Map<string, Comparison | null>();
  readonly isUntyped: boolean;

  constructor(versions: Versions, live: JsonValue, next: JsonValue) {
    this.#versions = versions;
    this.#live = live;
    this.#next = next;
    const whole = compareFields(versions.schema, live, next);
    this.isUntyped = whole.isUntyped === true;
    this.#known.set(versions.apiVersion, without(whole, versions.ignored));
  }

  /** Null where there is no such version. */
  at(apiVersion: string): Comparison | null {
    const known = this.#known.get(apiVersion);
    if (known !== undefined) return known;
    const live = this.#versions.convert(this.#live, apiVersion);
    const next = this.#versions.convert(this.#next, apiVersion);
    const changes =
      live === null || next === null
        ? null
        : without(
            compareFields(live.schema, live.value, next.value),
            this.#versions.ignoredElsewhere,
          );
    this.#known.set(apiVersion, changes);
    return changes;
  }
}

/**
 * Takes from all managers but `self` what changed. Gives the conflicts, which are taken only with
 * `force`, in the order of the managers.
 */
function takeChanges(
  changes: Changes,
  owners: Owners,
  self: string,
  force: boolean,
): readonly Conflict[] {
  const conflicts: Conflict[] = [];
  const after: Owners = new Map();
  for (const [manager, owned] of owners) {
    if (manager === self) continue;
    const change = changes.at(owned.apiVersion);
    if (change === null) {
      owners.delete(manager);
      continue;
    }
    const taken = owned.fields.intersection(change.modified.union(change.added));
    for (const path of taken.paths()) conflicts.push({ manager, path });
    const left = owned.fields.difference(taken).difference(change.removed);
    if (left !== owned.fields) after.set(manager, { ...owned, fields: left });
  }
  if (!force && conflicts.length > 0) return conflicts;
  for (const [manager, owned] of after) owners.set(manager, owned);
  for (const [manager, owned] of owners) if (owned.fields.isEmpty) owners.delete(manager);
  return [];
}

/**
 * The owners after `self` has made `next` of `live`: what it changed is its own, and nobody's that
 * is gone.
 */
export function ownersAfterUpdate(
  versions: Versions,
  live: JsonValue,
  next: JsonValue,
  given: Owners,
  self: string,
): Owners {
  const owners = reconciled(given, versions);
  const { apiVersion, ignored } = versions;
  const changes = new Changes(versions, live, next);
  if (changes.isUntyped) return new Map();
  takeChanges(changes, owners, self, true);
  const change = changes.at(apiVersion);
  if (change === null) return owners;
  const before = owners.get(self)?.fields ?? NOTHING;
  const fields = before
    .difference(change.removed)
    .union(change.modified)
    .union(change.added)
    .recursiveDifference(ignored);
  if (fields.isEmpty) owners.delete(self);
  else owners.set(self, { apiVersion, isApplied: false, fields });
  return owners;
}

export type Applied =
  | { readonly kind: 'conflicts'; readonly conflicts: readonly Conflict[] }
  /** `value` is null where the live object stays as it is. */
  | { readonly kind: 'done'; readonly value: JsonValue | null; readonly owners: Owners };

/**
 * Applies `config` over `live` for `self`: merged, and without what `self` applied before, does not
 * apply any more and nobody else owns.
 */
export function applyConfig(
  versions: Versions,
  live: JsonValue,
  config: JsonValue,
  given: Owners,
  self: string,
  force: boolean,
): Applied {
  const owners = reconciled(given, versions);
  const { apiVersion, schema, ignored } = versions;
  const merged = mergeValues(schema, live, config) ?? null;
  const last = owners.get(self);
  const fields = fieldsOf(schema, config).recursiveDifference(ignored);
  owners.set(self, { apiVersion, isApplied: true, fields });
  const isAgain = last !== undefined && isAppliedAgain(last, fields, owners, apiVersion);
  const next = isAgain ? merged : prune(versions, merged, owners, last);
  const conflicts = takeChanges(new Changes(versions, live, next), owners, self, force);
  if (conflicts.length > 0) return { kind: 'conflicts', conflicts };
  return { kind: 'done', value: equals(live, next) ? null : next, owners };
}

/**
 * Whether all that was applied last time is applied again, so that nothing is to be pruned. Where
 * others wrote in other versions, the way there and back may change something.
 */
function isAppliedAgain(
  last: Owned,
  fields: FieldSet,
  owners: Owners,
  apiVersion: string,
): boolean {
  for (const owned of [last, ...owners.values()]) if (owned.apiVersion !== apiVersion) return false;
  return last.fields.difference(fields).isEmpty;
}

function prune(
  versions: Versions,
  merged: JsonValue,
  owners: Owners,
  last: Owned | undefined,
): JsonValue {
  if (last === undefined || last.fields.isEmpty) return merged;
  const from = typedAt(versions, merged, last.apiVersion);
  if (from === null) return merged;
  const { schema } = from;
  const lastNamed = withNamedFields(last.fields, schema);
  const cut = removeFields(schema, from.value, lastNamed);
  const owned = addBackOwned(versions, from, cut, last.apiVersion, owners);
  const mergedFields = withNamedFields(fieldsOf(schema, from.value), schema);
  const keptFields = withNamedFields(fieldsOf(schema, owned), schema);
  const gone = mergedFields.difference(keptFields).intersection(lastNamed);
  const pruned = removeFields(schema, from.value, gone);
  return last.apiVersion === versions.apiVersion
    ? pruned
    : versions.convertBack(pruned, last.apiVersion);
}

function typedAt(versions: Versions, value: JsonValue, apiVersion: string): Typed | null {
  if (apiVersion === versions.apiVersion) return { schema: versions.schema, value };
  return versions.convert(value, apiVersion);
}

/** What was cut although some manager (this one, too, now) owns it comes back. */
function addBackOwned(
  versions: Versions,
  from: Typed,
  cut: JsonValue,
  cutVersion: string,
  owners: Owners,
): JsonValue {
  const byVersion = new Map<string, FieldSet>([[cutVersion, NOTHING]]);
  for (const { apiVersion, fields } of owners.values()) {
    byVersion.set(apiVersion, (byVersion.get(apiVersion) ?? NOTHING).union(fields));
  }
  let pruned = cut;
  for (const [apiVersion, managed] of byVersion) {
    const isHome = apiVersion === cutVersion;
    const whole = isHome ? from : crossed(versions, from.value, cutVersion, apiVersion);
    const rest = isHome
      ? { ...from, value: pruned }
      : crossed(versions, pruned, cutVersion, apiVersion);
    if (whole === null || rest === null) continue;
    const { schema } = whole;
    const wholeFields = withNamedFields(fieldsOf(schema, whole.value), schema);
    const kept = withNamedFields(fieldsOf(schema, rest.value), schema).union(
      withNamedFields(managed, schema),
    );
    const next = removeFields(schema, whole.value, wholeFields.difference(kept));
    pruned = isHome ? next : backTo(versions, next, apiVersion, cutVersion);
  }
  return pruned;
}

function crossed(versions: Versions, value: JsonValue, from: string, to: string): Typed | null {
  const home = from === versions.apiVersion ? value : versions.convertBack(value, from);
  return typedAt(versions, home, to);
}

function backTo(versions: Versions, value: JsonValue, from: string, to: string): JsonValue {
  const home = from === versions.apiVersion ? value : versions.convertBack(value, from);
  return typedAt(versions, home, to)?.value ?? value;
}

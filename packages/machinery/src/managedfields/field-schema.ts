/**
 * What apply has to know of a type: which fields there are, which lists and maps are one value, and
 * by what the items of a list are told apart. The built-in types bring it from the tables
 * (`builtin-schema.ts`); a custom resource brings its own.
 *
 * The shape follows structured-merge-diff: a value of a schema may be allowed to be of several
 * forms (an arbitrary JSON value is a scalar, a list or a map), and which one counts is seen from
 * the value.
 */

import type { JsonValue } from '../json/json-value.ts';

/** `untyped`: any scalar. */
export type ScalarForm = 'string' | 'numeric' | 'boolean' | 'untyped';

/** The forms that a value may have; null where it may not have that form. */
export interface FieldSchema {
  readonly scalar: ScalarForm | null;
  readonly list: ListForm | null;
  readonly map: MapForm | null;
}

export interface ListForm {
  /** The list is one value. Else its items have owners of their own. */
  readonly isAtomic: boolean;
  /** Fields that tell the items apart; none: the items are scalars and tell themselves apart. */
  readonly keys: readonly string[];
  readonly items: FieldSchema;
}

export interface MapForm {
  /** The map, or struct, is one value. */
  readonly isAtomic: boolean;
  /** The schema of a declared field; undefined where there is none of that name. */
  field(name: string): FieldSchema | undefined;
  /** What stands for a field that an item of a keyed list leaves out; undefined: nothing does. */
  defaultOf(name: string): JsonValue | undefined;
  /** All declared fields, where they are few and all there are: sorted, with their steps' texts. */
  sorted?(): SortedFields;
  /** The schema of fields that are not declared; null where there may be none. */
  readonly elements: FieldSchema | null;
}

/** Three columns. */
export interface SortedFields {
  readonly names: readonly string[];
  /** `"f:name"` */
  readonly steps: readonly string[];
  readonly schemas: readonly FieldSchema[];
}

const NO_KEYS: readonly string[] = [];

/** A map without declared fields. */
export function plainMap(elements: FieldSchema, isAtomic: boolean): MapForm {
  return { isAtomic, elements, field: () => undefined, defaultOf: () => undefined };
}

export function scalarSchema(scalar: ScalarForm): FieldSchema {
  return { scalar, list: null, map: null };
}

export function listSchema(
  items: FieldSchema,
  isAtomic: boolean,
  keys: readonly string[] = NO_KEYS,
): FieldSchema {
  return { scalar: null, list: { isAtomic, keys, items }, map: null };
}

export function mapSchema(map: MapForm): FieldSchema {
  return { scalar: null, list: null, map };
}

/** Any JSON value, owned as a whole wherever it is no scalar. */
export const ATOMIC_SCHEMA: FieldSchema = selfContained(true);

/** Any JSON value: lists are owned as a whole, maps field by field. */
export const DEDUCED_SCHEMA: FieldSchema = selfContained(false);

function selfContained(isAtomic: boolean): FieldSchema {
  const schema: { -readonly [K in keyof FieldSchema]: FieldSchema[K] } = {
    scalar: 'untyped',
    list: null,
    map: null,
  };
  const items = isAtomic ? schema : ATOMIC_SCHEMA;
  schema.list = { isAtomic: true, keys: NO_KEYS, items };
  schema.map = plainMap(schema, isAtomic);
  return schema;
}

/** The form that counts for a value: the one that it has, or the first that the schema names. */
export type FormKind = 'map' | 'scalar' | 'list';

export function formOf(schema: FieldSchema, value: JsonValue | undefined): FormKind {
  if (value !== undefined && value !== null) {
    if (typeof value !== 'object') {
      if (schema.scalar !== null) return 'scalar';
    } else if (Array.isArray(value)) {
      if (schema.list !== null) return 'list';
    } else if (schema.map !== null) return 'map';
  }
  if (schema.map !== null) return 'map';
  return schema.scalar !== null ? 'scalar' : 'list';
}

/** The schema of a member of a map; undefined where the map has no such member. */
export function memberSchema(map: MapForm, name: string): FieldSchema | undefined {
  return map.field(name) ?? map.elements ?? undefined;
}

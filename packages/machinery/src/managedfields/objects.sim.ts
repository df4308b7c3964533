/**
 * Random objects of built-in kinds, for the properties of apply: small, and alike enough to meet.
 */

import fc from 'fast-check';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { builtinSchema } from './builtin-schema.ts';
import type { FieldSchema, ListForm, MapForm, ScalarForm } from './field-schema.ts';

/** Kinds that have every sort of list and map between them. */
export const KINDS: readonly (readonly [apiVersion: string, kind: string])[] = [
  ['v1', 'ConfigMap'],
  ['v1', 'Pod'],
  ['v1', 'Service'],
  ['v1', 'Node'],
  ['apps/v1', 'Deployment'],
  ['rbac.authorization.k8s.io/v1', 'Role'],
  ['resource.k8s.io/v1', 'ResourceClaim'],
];

const FIELDS_MAX = 4;
const DEPTH_MAX = 7;

export interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly schema: FieldSchema;
}

export function kindOf([apiVersion, kind]: readonly [string, string]): Kind {
  const schema = builtinSchema(apiVersion, kind);
  if (schema === undefined) throw new Error(`no schema of ${kind}`);
  return { apiVersion, kind, schema };
}

/**
 * Without empty lists and maps. Upstream takes those for leaves where nobody has filled them and
 * for nothing where somebody has, so the laws of apply hold around them only up to their being
 * there.
 */
export function filled(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(filled).filter((item) => !isHollow(item));
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [name, inner] of Object.entries(value)) {
    const own = filled(inner ?? null);
    if (!isHollow(own)) kept[name] = own;
  }
  return kept;
}

function isHollow(value: JsonValue): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** Objects of a kind, without doubled keys; `count` of them. */
export function objectsOf(one: Kind, count: number): fc.Arbitrary<JsonObject[]> {
  const objects = valueOf(one.schema, 0).map((value) => ({
    ...(value as JsonObject),
    apiVersion: one.apiVersion,
    kind: one.kind,
  }));
  return fc.array(objects, { minLength: count, maxLength: count });
}

function valueOf(schema: FieldSchema, depth: number): fc.Arbitrary<JsonValue> {
  const { scalar, list, map } = schema;
  if (scalar !== null && map !== null) return fc.constantFrom<JsonValue>('1', 2, 'x');
  if (map !== null) return map.sorted === undefined ? plainMap(map, depth) : struct(map, depth);
  if (list !== null) return items(list, depth);
  return scalarOf(scalar);
}

function scalarOf(form: ScalarForm | null): fc.Arbitrary<JsonValue> {
  if (form === 'numeric') return fc.constantFrom<JsonValue>(0, 80, 443);
  if (form === 'boolean') return fc.boolean();
  return fc.constantFrom<JsonValue>('a', 'b', 'c/d', '');
}

function plainMap(map: MapForm, depth: number): fc.Arbitrary<JsonValue> {
  if (map.elements === null || depth >= DEPTH_MAX) return fc.constant({});
  const keys = fc.constantFrom('k', 'l', 'm.n/o');
  return fc.dictionary(keys, valueOf(map.elements, depth + 1), {
    maxKeys: 2,
    noNullPrototype: true,
  });
}

function struct(map: MapForm, depth: number): fc.Arbitrary<JsonValue> {
  const names = (map.sorted?.().names ?? []).filter((name) => name !== 'managedFields');
  if (depth >= DEPTH_MAX || names.length === 0) return fc.constant({});
  const first = depth === 0 ? names : names.slice(0, FIELDS_MAX * 3);
  return fc.subarray(first, { maxLength: Math.min(FIELDS_MAX, first.length) }).chain((chosen) => {
    const fields: Record<string, fc.Arbitrary<JsonValue>> = {};
    for (const name of chosen) {
      const schema = map.field(name);
      if (schema !== undefined) fields[name] = valueOf(schema, depth + 1);
    }
    return fc.record(fields, { noNullPrototype: true });
  });
}

function items(list: ListForm, depth: number): fc.Arbitrary<JsonValue> {
  if (depth >= DEPTH_MAX) return fc.constant([]);
  if (list.isAtomic) return fc.array(valueOf(list.items, depth + 1), { maxLength: 2 });
  if (list.keys.length === 0) return fc.uniqueArray(fc.constantFrom('x', 'y', 'z'));
  const keyed = fc.tuple(
    valueOf(list.items, depth + 1),
    ...list.keys.map((key) => keyOf(list, key)),
  );
  const one = keyed.map(([item, ...keys]) => ({
    ...(item as JsonObject),
    ...Object.fromEntries(list.keys.map((key, at) => [key, keys[at] ?? null])),
  }));
  const selector = (item: JsonObject): string =>
    JSON.stringify(list.keys.map((key) => item[key] ?? null));
  return fc.uniqueArray(one, { maxLength: 3, selector });
}

function keyOf(list: ListForm, key: string): fc.Arbitrary<JsonValue> {
  const isNumber = list.items.map?.field(key)?.scalar === 'numeric';
  return isNumber ? fc.constantFrom(80, 443, 8080) : fc.constantFrom('a', 'b', 'c');
}

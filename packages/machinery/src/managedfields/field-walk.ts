/** The set of all fields that a value names: its leaves, and the items of its keyed lists. */

import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
} from './field-schema.ts';
import { FieldSet } from './field-set.ts';
import { stepOfItem } from './path-element.ts';

/** `value` was checked: items that have no key are not met. */
export function fieldsOf(schema: FieldSchema, value: JsonValue): FieldSet {
  const set = new FieldSet();
  collect(schema, value, [], set);
  return set;
}

function collect(schema: FieldSchema, value: JsonValue, path: string[], set: FieldSet): void {
  switch (formOf(schema, value)) {
    case 'scalar':
      set.insert(path, path.length);
      return;
    case 'list':
      if (schema.list === null) return;
      if (schema.list.isAtomic) set.insert(path, path.length);
      else if (Array.isArray(value)) collectItems(schema.list, value, path, set);
      return;
    case 'map':
      if (schema.map === null) return;
      if (schema.map.isAtomic) set.insert(path, path.length);
      else if (isObject(value)) collectMembers(schema.map, value, path, set);
  }
}

/** Items that share a key are owned as one, without what is in them. */
function collectItems(
  list: ListForm,
  items: readonly JsonValue[],
  path: string[],
  set: FieldSet,
): void {
  const steps = items.map((item) => {
    const found = stepOfItem(list, item);
    return 'step' in found ? found.step : '';
  });
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(step, (counts.get(step) ?? 0) + 1);
  for (const [index, step] of steps.entries()) {
    if (step === '') continue;
    path.push(step);
    if (counts.get(step) === 1) collect(list.items, items[index] ?? null, path, set);
    set.insert(path, path.length);
    path.pop();
  }
}

function collectMembers(map: MapForm, object: JsonObject, path: string[], set: FieldSet): void {
  for (const name of Object.keys(object)) {
    const schema = memberSchema(map, name);
    if (schema === undefined) continue;
    const value = object[name] ?? null;
    path.push(`f:${name}`);
    collect(schema, value, path, set);
    const isBare = value === null || (isObject(value) && Object.keys(value).length === 0);
    if (isBare || map.field(name) === undefined) set.insert(path, path.length);
    path.pop();
  }
}

/**
 * The set and, beside the leaves, the named fields that lead to them: with `a.b.c` also `a`, but
 * not `a.b` where `b` is a member of a map. What is removed by its leaves is then removed whole.
 */
export function withNamedFields(set: FieldSet, schema: FieldSchema | null): FieldSet {
  const full = new FieldSet();
  for (const [step, { isMember, below }] of set.entries()) {
    const isField = step.startsWith('f:');
    const name = step.slice(2);
    const map = schema?.map ?? null;
    let inner: FieldSchema | null = null;
    if (isField && map !== null) inner = memberSchema(map, name) ?? null;
    else if (step.startsWith('k:')) inner = schema?.list?.items ?? null;
    const isNamed = below !== null && isField && map?.field(name) !== undefined;
    full.put(step, isMember || isNamed, below === null ? null : withNamedFields(below, inner));
  }
  return full;
}

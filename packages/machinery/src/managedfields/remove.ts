/** Takes fields and items out of a value. */

import { isObject, type JsonObject, type JsonValue, setMember } from '../json/json-value.ts';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
} from './field-schema.ts';
import type { FieldSet } from './field-set.ts';
import { stepOfItem } from './path-element.ts';

/**
 * `value` without what is in `fields`. A container that loses what was in it stays, empty; null
 * stands for nothing being left.
 */
export function removeFields(schema: FieldSchema, value: JsonValue, fields: FieldSet): JsonValue {
  switch (formOf(schema, value)) {
    case 'scalar':
      return value;
    case 'list':
      if (schema.list === null || !Array.isArray(value)) return null;
      return removeItems(schema.list, value, fields);
    case 'map':
      if (schema.map === null || !isObject(value)) return null;
      return removeMembers(schema.map, value, fields);
  }
}

function removeItems(list: ListForm, items: readonly JsonValue[], fields: FieldSet): JsonValue {
  if (list.isAtomic) return null;
  const kept: JsonValue[] = [];
  let isTouched = false;
  for (const item of items) {
    const found = stepOfItem(list, item);
    const step = 'step' in found ? found.step : '';
    if (fields.hasStep(step)) continue;
    const below = fields.below(step);
    if (below === null) kept.push(item);
    else {
      isTouched = true;
      kept.push(removeInside(list.items, item, below));
    }
  }
  return kept.length > 0 || isTouched ? kept : null;
}

function removeMembers(map: MapForm, object: JsonObject, fields: FieldSet): JsonValue {
  if (map.isAtomic) return null;
  const kept: JsonObject = {};
  let hasAny = false;
  for (const name of Object.keys(object)) {
    const step = `f:${name}`;
    if (fields.hasStep(step)) continue;
    const below = fields.below(step);
    const schema = memberSchema(map, name);
    const value = object[name] ?? null;
    hasAny = true;
    setMember(
      kept,
      name,
      below === null || schema === undefined ? value : removeInside(schema, value, below),
    );
  }
  return hasAny ? kept : null;
}

function removeInside(schema: FieldSchema, value: JsonValue, fields: FieldSet): JsonValue {
  const left = removeFields(schema, value, fields);
  if (left !== null) return left;
  if (Array.isArray(value)) return [];
  return isObject(value) ? {} : null;
}

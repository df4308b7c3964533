/**
 * The fields of a new object, written at once: what comparing it with the empty object, taking out
 * what is never tracked and writing the set would give, in one walk without a set in between. Most
 * writes of a cluster create objects, and this is nearly all that tracking costs them.
 */

import { ownMember } from '@megaplane/base/members';
import { equals } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { stepText } from './field-set-codec.ts';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
} from './field-schema.ts';
import type { FieldSet } from './field-set.ts';
import { HOLE, holedStep, type Holed } from './field-placeholders.ts';
import { compareSteps, compareText, stepOfItem } from './path-element.ts';
import { fitsScalar } from './typed-faults.ts';

/** Members of metadata that nobody owns, see the field manager. */
export const UNTRACKED_METADATA: readonly string[] = [
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
];

const METADATA_SKIPPED: ReadonlySet<string> = new Set(UNTRACKED_METADATA);
const NOTHING_SKIPPED: ReadonlySet<string> = new Set();

type Value = JsonValue | undefined;

/**
 * The text of the fields that `object` has and `empty` has not, or has otherwise; null where there
 * are none. `ignored` fields are at the root.
 */
export function newFields(
  schema: FieldSchema,
  empty: JsonObject,
  object: JsonObject,
  ignored: FieldSet,
): Holed | null {
  const walk = new Walk();
  const skipped = new Set(['apiVersion', 'kind']);
  for (const [step] of ignored.entries()) skipped.add(step.slice(2));
  const { map } = schema;
  if (map === null) return null;
  const text = walk.members(map, empty, object, skipped, true);
  return text === '' || walk.isUntyped ? null : { text: `{${text}}`, fills: walk.fills };
}

class Walk {
  readonly fills: string[] = [];
  /**
   * An item has no key, a value is not of its type: nobody owns anything of an object that does not
   * fit its schema.
   */
  isUntyped = false;

  /** What stands for a field or an item; '' where it is not in the set. */
  #node(schema: FieldSchema, before: Value, after: JsonValue): string {
    const form = formOf(schema, after);
    if (form === 'map' && schema.map !== null) return this.#map(schema.map, before, after);
    if (form === 'list' && schema.list !== null) return this.#list(schema.list, before, after);
    if (schema.scalar !== null && !fitsScalar(schema.scalar, after)) this.isUntyped = true;
    return leaf(before, after);
  }

  #map(map: MapForm, before: Value, after: JsonValue): string {
    const own = isObject(after) ? after : NO_MEMBERS;
    const old = isObject(before) ? before : NO_MEMBERS;
    if (map.isAtomic || (isBare(own) && isBare(old))) return leaf(before, after);
    return braced(this.members(map, old, own, NOTHING_SKIPPED, false), before === undefined);
  }

  members(
    map: MapForm,
    before: JsonObject,
    after: JsonObject,
    skipped: ReadonlySet<string>,
    isRoot: boolean,
  ): string {
    let text = '';
    const declared = map.sorted?.();
    const names = declared?.names ?? sortedNames(after);
    for (let index = 0; index < names.length; index++) {
      const name = names[index] ?? '';
      const value = ownMember(after, name);
      if (value === undefined || skipped.has(name)) continue;
      const schema = declared?.schemas[index] ?? memberSchema(map, name);
      if (schema === undefined) continue;
      const isMetadata = isRoot && name === 'metadata';
      const inner = isMetadata
        ? this.#metadata(schema, before[name], value)
        : this.#node(schema, ownMember(before, name), value);
      if (inner === '') continue;
      const step = declared?.steps[index] ?? fieldStep(name);
      text += text === '' ? `${step}:${inner}` : `,${step}:${inner}`;
    }
    return text;
  }

  #metadata(schema: FieldSchema, before: Value, after: JsonValue): string {
    if (schema.map === null || !isObject(after)) return '';
    const old = isObject(before) ? before : NO_MEMBERS;
    return braced(this.members(schema.map, old, after, METADATA_SKIPPED, false), false);
  }

  #list(list: ListForm, before: Value, after: JsonValue): string {
    const own = Array.isArray(after) ? after : NO_ITEMS;
    const old = Array.isArray(before) ? before : NO_ITEMS;
    if (list.isAtomic || (own.length === 0 && old.length === 0)) return leaf(before, after);
    return braced(this.#items(list, own), before === undefined);
  }

  /** New objects have no items before. Items of one key are owned as one. */
  #items(list: ListForm, items: readonly JsonValue[]): string {
    if (list.keys.length === 0 && items.every(isPlainText)) return this.#texts(items);
    const byStep = new Map<string, JsonValue | undefined>();
    for (const item of items) {
      const found = stepOfItem(list, item);
      if ('fault' in found) this.isUntyped = true;
      else byStep.set(found.step, byStep.has(found.step) ? undefined : item);
    }
    const steps = [...byStep.keys()];
    if (steps.length > 1) steps.sort(compareSteps);
    let text = '';
    for (const step of steps) {
      const name = holedStep(step, this.fills);
      const item = byStep.get(step);
      const inner = item === undefined ? '{}' : this.#node(list.items, undefined, item);
      text += text === '' ? `${name}:${inner}` : `,${name}:${inner}`;
    }
    return text;
  }

  /** The items of a set of plain texts: what the general way makes of them. */
  #texts(items: readonly string[]): string {
    const sorted = items.length > 1 ? items.toSorted() : items;
    let text = '';
    let previous: string | undefined;
    for (const item of sorted) {
      if (item === previous) continue;
      previous = item;
      this.fills.push(item);
      text += text === '' ? PLAIN_ITEM : `,${PLAIN_ITEM}`;
    }
    return text;
  }
}

const PLAIN_ITEM = `"v:\\"${HOLE}\\"":{}`;
/** Neither JSON nor Go escapes anything in it, and all ways to order it are the same. */
const PLAIN_TEXT = /^[A-Za-z0-9.:/_-]*$/;

function isPlainText(item: JsonValue): item is string {
  return typeof item === 'string' && PLAIN_TEXT.test(item);
}

/** Names of fields as steps that are remembered; beyond it they are made again. */
const FIELD_STEPS_MAX = 16_384;
const fieldSteps = new Map<string, string>();

function fieldStep(name: string): string {
  let step = fieldSteps.get(name);
  if (step === undefined) {
    step = stepText(`f:${name}`);
    if (fieldSteps.size >= FIELD_STEPS_MAX) fieldSteps.clear();
    fieldSteps.set(name, step);
  }
  return step;
}

const NO_MEMBERS: JsonObject = {};
const NO_ITEMS: readonly JsonValue[] = [];

function leaf(before: Value, after: JsonValue): string {
  return before === undefined || !equals(before, after) ? '{}' : '';
}

function braced(inner: string, isMember: boolean): string {
  if (inner === '') return isMember ? '{}' : '';
  return isMember ? `{".":{},${inner}}` : `{${inner}}`;
}

function isBare(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}

function sortedNames(object: JsonObject): readonly string[] {
  const names = Object.keys(object);
  for (let at = 1; at < names.length; at++) {
    if (compareText(names[at - 1] ?? '', names[at] ?? '') > 0) return names.sort(compareText);
  }
  return names;
}

/** How two values of one schema differ, as sets of fields. */

import { ownMember } from '@megaplane/base/members';
import { equals } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type FormKind,
  type ListForm,
  type MapForm,
} from './field-schema.ts';
import { FieldSet } from './field-set.ts';
import { stepOfItem } from './path-element.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
  /** Items that changed have no key: the new value does not fit its schema. */
  readonly isUntyped?: boolean;
}

/** Both were checked against the schema; undefined is "no value". */
export function compareFields(
  schema: FieldSchema,
  left: JsonValue | undefined,
  right: JsonValue | undefined,
): Comparison {
  const walk = new ComparingWalk();
  walk.compare(schema, left, right);
  return walk;
}

type Value = JsonValue | undefined;

class ComparingWalk implements Comparison {
  readonly added = new FieldSet();
  readonly modified = new FieldSet();
  readonly removed = new FieldSet();
  isUntyped = false;
  /** Names of fields, and steps to items; they become a path only where something differs. */
  readonly #names: string[] = [];
  readonly #isField: boolean[] = [];

  compare(schema: FieldSchema, left: Value, right: Value): void {
    if (left === right) return;
    if (right === undefined) {
      if (!this.#form(schema, formOf(schema, left), left, right)) this.#insert(this.removed);
    } else if (left === undefined) {
      if (!this.#form(schema, formOf(schema, right), left, right)) this.#insert(this.added);
    } else {
      const form = formOf(schema, right);
      const other = formOf(schema, left);
      // null goes with whatever form the other side has
      if (other !== form) this.#form(schema, other, left, right);
      this.#form(schema, form, left, right);
    }
  }

  /** True where the values were looked at as one. */
  #form(schema: FieldSchema, form: FormKind, left: Value, right: Value): boolean {
    if (form === 'map' && schema.map !== null) return this.#maps(schema.map, left, right);
    if (form === 'list' && schema.list !== null) return this.#lists(schema.list, left, right);
    return this.#leaf(left, right);
  }

  #leaf(left: Value, right: Value): true {
    if (left === undefined) this.#insert(this.added);
    else if (right === undefined) this.#insert(this.removed);
    else if (!equals(left, right)) this.#insert(this.modified);
    return true;
  }

  #maps(map: MapForm, left: Value, right: Value): boolean {
    const one = isObject(left) ? left : undefined;
    const two = isObject(right) ? right : undefined;
    // empty and null are told apart only as a whole
    if (map.isAtomic || (isBare(one) && isBare(two))) return this.#leaf(left, right);
    if (one !== undefined) {
      for (const name in one) this.#member(map, name, one[name], ownMember(two, name));
    }
    if (two !== undefined) {
      for (const name in two) {
        if (one === undefined || ownMember(one, name) === undefined) {
          this.#member(map, name, undefined, two[name]);
        }
      }
    }
    return false;
  }

  #member(map: MapForm, name: string, left: Value, right: Value): void {
    if (left === right) return;
    const schema = memberSchema(map, name);
    if (schema === undefined) return;
    this.#names.push(name);
    this.#isField.push(true);
    this.compare(schema, left, right);
    this.#names.pop();
    this.#isField.pop();
  }

  #lists(list: ListForm, left: Value, right: Value): boolean {
    const one = Array.isArray(left) ? left : undefined;
    const two = Array.isArray(right) ? right : undefined;
    const isEmpty =
      (one === undefined || one.length === 0) && (two === undefined || two.length === 0);
    if (list.isAtomic || isEmpty) return this.#leaf(left, right);
    const before = itemsByStep(list, one ?? []);
    const after = itemsByStep(list, two ?? []);
    let keyed = 0;
    for (const items of after.values()) keyed += items.length;
    if (two !== undefined && keyed < two.length) this.isUntyped = true;
    for (const [step, items] of before) this.#items(list, step, items, after.get(step) ?? NONE);
    for (const [step, items] of after) {
      if (!before.has(step)) this.#items(list, step, NONE, items);
    }
    return false;
  }

  /** Items of one key. Several of them are owned as one, by the key alone. */
  #items(
    list: ListForm,
    step: string,
    before: readonly JsonValue[],
    after: readonly JsonValue[],
  ): void {
    this.#names.push(step);
    this.#isField.push(false);
    if (before.length <= 1 && after.length <= 1) this.compare(list.items, before[0], after[0]);
    else if (before.length > 1 && after.length > 1) {
      if (!equals([...before], [...after])) this.#insert(this.modified);
    } else if (before.length > 1) {
      if (after.length > 0) this.compare(list.items, undefined, after[0]);
      this.#insert(this.removed);
    } else {
      if (before.length > 0) this.compare(list.items, before[0], undefined);
      this.#insert(this.added);
    }
    this.#names.pop();
    this.#isField.pop();
  }

  #insert(set: FieldSet): void {
    const path = this.#names.map((name, at) => (this.#isField[at] === true ? `f:${name}` : name));
    set.insert(path, path.length);
  }
}

const NONE: readonly JsonValue[] = [];

function isBare(object: JsonObject | undefined): boolean {
  if (object === undefined) return true;
  for (const _ in object) return false;
  return true;
}

function itemsByStep(list: ListForm, items: readonly JsonValue[]): Map<string, JsonValue[]> {
  const found = new Map<string, JsonValue[]>();
  for (const item of items) {
    const step = stepOfItem(list, item);
    if (!('step' in step)) continue;
    const same = found.get(step.step);
    if (same === undefined) found.set(step.step, [item]);
    else same.push(item);
  }
  return found;
}

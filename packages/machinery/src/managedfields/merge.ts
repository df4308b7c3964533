/**
 * Puts an applied configuration over the live object: what is applied wins, keyed lists and sets
 * grow together, nothing goes away.
 */

import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue, setMember } from '../json/json-value.ts';
import {
  formOf,
  memberSchema,
  type FieldSchema,
  type ListForm,
  type MapForm,
} from './field-schema.ts';
import { stepOfItem } from './path-element.ts';

type Value = JsonValue | undefined;

/** Undefined where nothing is left to write: both empty containers, or no value at all. */
export function mergeValues(schema: FieldSchema, live: Value, applied: Value): Value {
  if (applied === undefined && live === undefined) return undefined;
  const form = formOf(schema, applied === undefined ? live : applied);
  if (form === 'map' && schema.map !== null) return mergeMaps(schema.map, live, applied);
  if (form === 'list' && schema.list !== null) return mergeLists(schema.list, live, applied);
  return applied === undefined ? live : applied;
}

function mergeMaps(map: MapForm, live: Value, applied: Value): Value {
  const one = isObject(live) ? live : undefined;
  const two = isObject(applied) ? applied : undefined;
  if (map.isAtomic || (count(one) === 0 && count(two) === 0)) {
    return applied === undefined ? live : applied;
  }
  const merged: JsonObject = {};
  if (one !== undefined) {
    for (const name of Object.keys(one))
      putMerged(map, merged, name, one[name], ownMember(two, name));
  }
  if (two !== undefined) {
    for (const name of Object.keys(two)) {
      if (one === undefined || !Object.hasOwn(one, name)) {
        putMerged(map, merged, name, undefined, two[name]);
      }
    }
  }
  return count(merged) === 0 ? undefined : merged;
}

function putMerged(
  map: MapForm,
  merged: JsonObject,
  name: string,
  live: Value,
  applied: Value,
): void {
  const schema = memberSchema(map, name);
  const value = schema === undefined ? (applied ?? live) : mergeValues(schema, live, applied);
  if (value !== undefined) setMember(merged, name, value);
}

function count(object: JsonObject | undefined): number {
  return object === undefined ? 0 : Object.keys(object).length;
}

/**
 * The order of the result: applied items stand as they were applied; live items that are not
 * applied stay between those that they stood between, as far as both orders agree.
 */
function mergeLists(list: ListForm, live: Value, applied: Value): Value {
  const one = Array.isArray(live) ? live : [];
  const two = Array.isArray(applied) ? applied : [];
  if (list.isAtomic || (one.length === 0 && two.length === 0)) {
    return applied === undefined ? live : applied;
  }
  return new ListMerge(list, one, two).run();
}

class ListMerge {
  readonly #list: ListForm;
  readonly #live: readonly JsonValue[];
  readonly #liveSteps: readonly string[];
  readonly #appliedSteps: readonly string[];
  /** Live items by step; null where several share one: they are not merged, but replaced. */
  readonly #liveBy = new Map<string, JsonValue | null>();
  readonly #appliedBy = new Map<string, JsonValue>();
  readonly #shared: string[];
  readonly #merged = new Set<string>();
  readonly #out: JsonValue[] = [];

  constructor(list: ListForm, live: readonly JsonValue[], applied: readonly JsonValue[]) {
    this.#list = list;
    this.#live = live;
    this.#liveSteps = live.map((item) => stepOf(list, item));
    this.#appliedSteps = applied.map((item) => stepOf(list, item));
    for (const [at, step] of this.#liveSteps.entries()) {
      this.#liveBy.set(step, this.#liveBy.has(step) ? null : (live[at] ?? null));
    }
    for (const [at, step] of this.#appliedSteps.entries()) {
      this.#appliedBy.set(step, applied[at] ?? null);
    }
    this.#shared = this.#appliedSteps.filter((step) => this.#liveBy.has(step));
  }

  run(): JsonValue | undefined {
    let nextShared = this.#shared.shift();
    let left = 0;
    let right = 0;
    while (left < this.#liveSteps.length || right < this.#appliedSteps.length) {
      const liveStep = this.#liveSteps[left];
      const appliedStep = this.#appliedSteps[right];
      if (liveStep !== undefined && appliedStep !== undefined) {
        if (liveStep === appliedStep) {
          this.#take(liveStep);
          left++;
          right++;
          nextShared = this.#shared.shift();
          continue;
        }
        if (this.#appliedBy.has(liveStep) && nextShared !== undefined && nextShared !== liveStep) {
          // a shared item, but not the one whose turn it is
          left++;
          continue;
        }
      }
      if (liveStep !== undefined) {
        if (!this.#appliedBy.has(liveStep)) {
          this.#push(this.#live[left], undefined);
          left++;
          continue;
        }
        if (this.#merged.has(liveStep)) left++;
      }
      if (appliedStep !== undefined) {
        this.#take(appliedStep);
        right++;
        if (nextShared === appliedStep) nextShared = this.#shared.shift();
      }
    }
    return this.#out.length > 0 ? this.#out : undefined;
  }

  #take(step: string): void {
    this.#merged.add(step);
    this.#push(this.#liveBy.get(step), this.#appliedBy.get(step));
  }

  #push(live: Value, applied: Value): void {
    const merged = mergeValues(this.#list.items, live, applied);
    if (merged !== undefined) this.#out.push(merged);
  }
}

/** Checked before: every item has a step. */
function stepOf(list: ListForm, item: JsonValue): string {
  const found = stepOfItem(list, item);
  return 'step' in found ? found.step : '';
}

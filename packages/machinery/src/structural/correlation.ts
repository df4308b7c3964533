/**
 * A value and the one that it replaces, walked together: members by name, items of lists of type
 * map by their keys, items of other lists not at all. What is equal on both sides may stay wrong
 * (KEP-4008).
 */
import { ownMember } from '@megaplane/base/members';
import { equals } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { memberNode, type SchemaNode } from './schema/schema-node.ts';

/** A key of an item as text; null where it has none. */
export function itemKey(keys: readonly string[], item: JsonValue | undefined): string | null {
  if (!isObject(item)) return null;
  let text = '';
  for (const name of keys) {
    const value = ownMember(item, name);
    if (value === undefined || value === null || typeof value === 'object') return null;
    text += `${JSON.stringify(value)}\n`;
  }
  return text;
}

/** The first item of each key, for lists of type map; null for other lists. */
export function keyedItems(
  node: SchemaNode,
  items: readonly JsonValue[],
): ReadonlyMap<string, JsonObject> | null {
  if (node.type !== 'array' || node.listType !== 'map' || node.mapKeys.length === 0) return null;
  const byKey = new Map<string, JsonObject>();
  for (const item of items) {
    const key = itemKey(node.mapKeys, item);
    if (key !== null && isObject(item) && !byKey.has(key)) byKey.set(key, item);
  }
  return byKey;
}

export class Correlation {
  readonly #node: SchemaNode;
  readonly #value: JsonValue;
  readonly #old: JsonValue;
  readonly #children = new Map<string | number, Correlation | null>();
  #oldItems: ReadonlyMap<string, JsonObject> | null | undefined;
  #equality: boolean | undefined;

  constructor(node: SchemaNode, value: JsonValue, old: JsonValue) {
    this.#node = node;
    this.#value = value;
    this.#old = old;
  }

  /** The member on both sides; null where one has none, or the schema knows nothing of it. */
  member(name: string): Correlation | null {
    const known = this.#children.get(name);
    if (known !== undefined) return known;
    let found: Correlation | null = null;
    if (isObject(this.#value) && isObject(this.#old)) {
      const value = ownMember(this.#value, name);
      const old = ownMember(this.#old, name);
      const node = memberNode(this.#node, name);
      if (value !== undefined && old !== undefined && node !== null) {
        found = new Correlation(node, value, old);
      }
    }
    this.#children.set(name, found);
    return found;
  }

  /** The item, and the old one of its key. */
  item(index: number): Correlation | null {
    const known = this.#children.get(index);
    if (known !== undefined) return known;
    let found: Correlation | null = null;
    const { items } = this.#node;
    if (Array.isArray(this.#value) && Array.isArray(this.#old) && items !== null) {
      this.#oldItems ??= keyedItems(this.#node, this.#old);
      const value = this.#value[index];
      const key = this.#oldItems === null ? null : itemKey(this.#node.mapKeys, value);
      const old = key === null ? undefined : this.#oldItems?.get(key);
      if (value !== undefined && old !== undefined) found = new Correlation(items, value, old);
    }
    this.#children.set(index, found);
    return found;
  }

  /** Lists of type map are equal in any order. */
  isEqual(): boolean {
    return (this.#equality ??= this.#compare());
  }

  #compare(): boolean {
    const value = this.#value;
    const old = this.#old;
    if (Array.isArray(value) && Array.isArray(old)) return this.#compareItems(value, old);
    if (!isObject(value) || !isObject(old)) return equals(value, old);
    const names = Object.keys(value);
    if (names.length !== Object.keys(old).length) return false;
    return names.every((name) => {
      const both = this.member(name);
      return both !== null && both.isEqual();
    });
  }

  #isKeyed(): boolean {
    return this.#oldItems !== undefined && this.#oldItems !== null;
  }

  #compareItems(value: readonly JsonValue[], old: readonly JsonValue[]): boolean {
    if (value.length !== old.length) return false;
    for (let i = 0; i < value.length; i++) {
      const both = this.item(i);
      if (both === null) return !this.#isKeyed() && equals([...value], [...old]);
      if (!both.isEqual()) return false;
    }
    return true;
  }
}

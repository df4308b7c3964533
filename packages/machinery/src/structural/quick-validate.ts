/**
 * Whether a value is right by its schema: yes or no, without a path, a text or an allocation.
 * Nearly all values that come are right, and only the others are looked at again by
 * `openapi-faults.ts`, which must judge alike (a property test holds them together).
 */
import { ownMember } from '@megaplane/base/members';
import { matchesRe2 } from '../cel/library/regex-library.ts';
import { runeCount } from '../cel/values/values.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { numberFaults } from './number-rule.ts';
import { TYPE_BITS, type SchemaNode } from './schema/schema-node.ts';
import { isGoInt, toInt64 } from '../json/go-integers.ts';

const STRINGS_ANYHOW = TYPE_BITS.number | TYPE_BITS.integer;

/** What upstream's type check says of a value that is not null. */
export function isOfType(node: SchemaNode, value: JsonValue): boolean {
  const { typeBits, format } = node;
  if (typeBits === 0 && format === '') return true;
  if (typeof value === 'string') {
    if ((typeBits & TYPE_BITS.string) !== 0) return true;
    return format !== '' && (typeBits & STRINGS_ANYHOW) === 0;
  }
  if (isNumber(value)) {
    if ((typeBits & TYPE_BITS.number) !== 0) return true;
    return (typeBits & TYPE_BITS.integer) !== 0 && isJsonInteger(value);
  }
  if (typeof value === 'boolean') return (typeBits & TYPE_BITS.boolean) !== 0;
  if (!Array.isArray(value)) return (typeBits & TYPE_BITS.object) !== 0;
  if ((typeBits & TYPE_BITS.array) !== 0) return true;
  // a declared format of strings opens the door to lists, too
  return format !== '' && (typeBits & STRINGS_ANYHOW) === 0;
}

/** An int64, or a float of the size of one that JSON can hold exactly. */
function isJsonInteger(value: number | bigint): boolean {
  if (typeof value === 'bigint') return true;
  if (!Number.isInteger(value)) return false;
  return (value < 2 ** 63 && value >= -(2 ** 63)) || Number.isSafeInteger(value);
}

/** Go compares after converting the value to the type of the listed one. */
export function isListed(listed: readonly JsonValue[], value: JsonValue): boolean {
  if (typeof value === 'string' || (typeof value === 'object' && value !== null)) {
    return keysOf(listed).has(keyOf(value));
  }
  for (const one of listed) {
    if (one === null) continue;
    if (one === value) return true;
    if (isNumber(one) && isNumber(value) && isSameWhole(one, value)) return true;
  }
  return false;
}

/** Lists of thousands are legal, and are asked about each item of an object. */
const listedKeys = new WeakMap<readonly JsonValue[], ReadonlySet<string>>();

/** By the list, which belongs to its schema. */
function keysOf(listed: readonly JsonValue[]): ReadonlySet<string> {
  let keys = listedKeys.get(listed);
  if (keys === undefined) listedKeys.set(listed, (keys = new Set(listed.map(keyOf))));
  return keys;
}

/** The same text for what is equal, whatever the order of members. */
function keyOf(value: JsonValue): string {
  return typeof value === 'string' ? `"${value}` : JSON.stringify(inOrder(value));
}

function inOrder(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  const names = Object.keys(value).sort();
  return names.map((name) => [name, inOrder(ownMember(value, name) ?? null)]).concat([['{']]);
}

/** Beside a listed integer what is compared is cut to one. */
function isSameWhole(listed: number | bigint, value: number | bigint): boolean {
  if (typeof listed === 'number' && typeof value === 'number') {
    return Number.isInteger(listed) && Math.trunc(value) === listed;
  }
  return isGoInt(listed) && toInt64(value) === toInt64(listed);
}

export function isTooLong(text: string, lengthMax: number): boolean {
  return text.length > lengthMax && runeCount(text) > lengthMax;
}

export function isTooShort(text: string, lengthMin: number): boolean {
  return text.length < 2 * lengthMin && runeCount(text) < lengthMin;
}

export function accepts(node: SchemaNode, value: JsonValue): boolean {
  if (value === null) {
    return (node.isNullable || node.typeBits === 0) && node.enum === null;
  }
  if (!isOfType(node, value)) return false;
  if (node.enum !== null && !isListed(node.enum, value)) return false;
  if (typeof value === 'string') {
    if (!acceptsText(node, value)) return false;
  } else if (isNumber(value)) {
    if (node.number !== null && numberFaults(node.number, value, '').length > 0) return false;
  } else if (Array.isArray(value)) {
    if (!acceptsItems(node, value)) return false;
  } else if (typeof value === 'object' && !acceptsMembers(node, value)) return false;
  return acceptsJunctors(node, value);
}

function acceptsText(node: SchemaNode, text: string): boolean {
  if (isTooLong(text, node.lengthMax) || isTooShort(text, node.lengthMin)) return false;
  if (node.pattern !== '' && !matchesRe2(text, node.pattern)) return false;
  return node.checkFormat === null || node.checkFormat(text);
}

function acceptsItems(node: SchemaNode, items: readonly JsonValue[]): boolean {
  if (items.length < node.itemsMin || items.length > node.itemsMax) return false;
  const schema = node.items;
  if (schema === null) return true;
  for (const item of items) if (!accepts(schema, item)) return false;
  return true;
}

function acceptsMembers(node: SchemaNode, object: JsonObject): boolean {
  const { properties, additional, additionalKind, required } = node;
  let count = 0;
  for (const name in object) {
    const value = object[name];
    if (value === undefined) continue;
    count++;
    const property = properties?.get(name);
    if (property !== undefined) {
      if (!accepts(property, value)) return false;
    } else if (additional !== null) {
      if (!accepts(additional, value)) return false;
    } else if (additionalKind === 'denied') return false;
  }
  if (count < node.propertiesMin || count > node.propertiesMax) return false;
  for (const name of required) if (ownMember(object, name) === undefined) return false;
  return true;
}

function acceptsJunctors({ anyOf, oneOf, allOf, not }: SchemaNode, value: JsonValue): boolean {
  for (const node of allOf) if (!accepts(node, value)) return false;
  if (anyOf.length > 0 && !anyOf.some((node) => accepts(node, value))) return false;
  if (oneOf.length > 0) {
    let count = 0;
    for (const node of oneOf) if (accepts(node, value)) count++;
    if (count !== 1) return false;
  }
  return not === null || !accepts(not, value);
}

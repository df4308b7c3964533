/** Lists of type set have no item twice, lists of type map no key twice. */
import { ownMember, putMember } from '@megaplane/base/members';
import { duplicate, invalidValue, printed, type FieldError } from '../meta/fielderrors.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { child, childKey, item } from './schema/field-path.ts';
import { goJson, goNumber } from '../gotext/go-texts.ts';
import { memberNode, type SchemaNode } from './schema/schema-node.ts';

function shown(value: JsonValue): string | ReturnType<typeof printed> {
  if (typeof value === 'string') return value;
  return printed(isNumber(value) ? goNumber(value) : goJson(value));
}

/** What tells scalars apart, and composites by their content. */
function identity(value: JsonValue): JsonValue {
  return typeof value === 'object' && value !== null ? `{${goJson(value)}` : value;
}

const NONE: readonly number[] = [];
/** Items that are compared each with each, which is quicker than a table of them. */
const SHORT_LIST = 8;

function isShortAndUnique(identities: readonly JsonValue[]): boolean {
  if (identities.length > SHORT_LIST) return false;
  for (let i = 1; i < identities.length; i++) {
    for (let j = 0; j < i; j++) if (identities[i] === identities[j]) return false;
  }
  return true;
}

/** Indices at which something appears for the second time; later repetitions do not count. */
function repeated(identities: readonly JsonValue[]): readonly number[] {
  if (isShortAndUnique(identities)) return NONE;
  const times = new Map<JsonValue, number>();
  const found: number[] = [];
  for (const [i, value] of identities.entries()) {
    const count = (times.get(value) ?? 0) + 1;
    times.set(value, count);
    if (count === 2) found.push(i);
  }
  return found;
}

/** Adds what is double anywhere in a value. */
export function checkUniqueness(
  node: SchemaNode,
  value: JsonValue,
  path: string,
  found: FieldError[],
): void {
  if (!node.hasUniqueLists || typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    if (node.listType === 'set') checkSet(value, path, found);
    else if (node.listType === 'map') checkMap(node.mapKeys, value, path, found);
    const { items } = node;
    if (items === null || !items.hasUniqueLists) return;
    for (const [i, one] of value.entries()) checkUniqueness(items, one, item(path, i), found);
    return;
  }
  for (const name in value) {
    const member = memberNode(node, name);
    if (member === null || !member.hasUniqueLists) continue;
    const isDeclared = node.properties?.has(name) === true;
    const at = isDeclared ? child(path, name) : childKey(path, name);
    checkUniqueness(member, value[name] ?? null, at, found);
  }
}

function checkSet(items: readonly JsonValue[], path: string, found: FieldError[]): void {
  for (const i of repeated(items.map(identity))) {
    found.push(duplicate(item(path, i), shown(items[i] ?? null)));
  }
}

function checkMap(
  keys: readonly string[],
  items: readonly JsonValue[],
  path: string,
  found: FieldError[],
): void {
  for (const [i, one] of items.entries()) {
    if (one === null || isObject(one)) continue;
    const text = 'must be an object for an array of list-type map';
    found.push(invalidValue(item(path, i), shown(one), text));
    return;
  }
  for (const i of repeated(items.map((one) => keyIdentity(keys, one)))) {
    found.push(duplicate(item(path, i), printed(goJson(keyOf(keys, items[i] ?? null)))));
  }
}

/** What tells keys apart: texts as they are, with their lengths; all else as JSON. */
function keyIdentity(keys: readonly string[], one: JsonValue): string {
  let identity = '';
  for (const name of keys) {
    const value = isObject(one) ? ownMember(one, name) : undefined;
    if (value === undefined) identity += '\n';
    else identity += typeof value === 'string' ? `${value.length}"${value}` : `${goJson(value)}\n`;
  }
  return identity;
}

function keyOf(keys: readonly string[], one: JsonValue): JsonObject {
  const key: JsonObject = {};
  if (!isObject(one)) return key;
  for (const name of keys) {
    const value = ownMember(one, name);
    if (value !== undefined) putMember(key, name, value);
  }
  return key;
}

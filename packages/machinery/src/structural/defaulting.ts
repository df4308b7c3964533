/** Defaults of a schema, filled into an object in place. Runs after pruning. */
import { ownMember, putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { isObject } from '../json/json-value.ts';
import { memberNode, type SchemaNode } from './schema/schema-node.ts';

/** A copy that shares nothing: what is filled in may be changed later. */
function copyOf(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const name in value) putMember(copy, name, copyOf(value[name] ?? null));
  return copy;
}

/**
 * Fills in what is absent and has a default, and what is null, may not be, and has one. Defaults
 * that are objects get the defaults of their own members.
 */
export function fillDefaults(node: SchemaNode, value: JsonValue): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === null || !items.hasDefaults) return;
    for (let i = 0; i < value.length; i++) {
      const item = replaced(items, value[i] ?? null);
      value[i] = item;
      fillDefaults(items, item);
    }
    return;
  }
  for (const [name, member] of node.defaulted) {
    const found = ownMember(value, name);
    if (found !== undefined && (found !== null || member.isNullable)) continue;
    if (member.defaultValue !== undefined) putMember(value, name, copyOf(member.defaultValue));
  }
  for (const name in value) {
    const member = memberNode(node, name);
    if (member === null || !member.hasDefaults) continue;
    const found = replaced(member, value[name] ?? null);
    value[name] = found;
    if (typeof found === 'object') fillDefaults(member, found);
  }
}

function replaced(node: SchemaNode, value: JsonValue): JsonValue {
  if (value !== null || node.isNullable || node.defaultValue === undefined) return value;
  return copyOf(node.defaultValue);
}

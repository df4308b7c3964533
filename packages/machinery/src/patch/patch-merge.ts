import { ownMember, putMember } from '@megaplane/base/members';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { equals } from '../json/json.ts';

/**
 * JSON merge patch (RFC 7386): members replace members, null removes, lists are replaced whole.
 *
 * As in upstream's library, null members of objects inside a new list are dropped too.
 */
export function applyMergePatch(original: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = { ...original };
  for (const [member, value] of Object.entries(patch)) {
    const current = Object.hasOwn(original, member) ? original[member] : undefined;
    if (value === null || value === undefined) delete merged[member];
    else if (isObject(current))
      putMember(merged, member, isObject(value) ? applyMergePatch(current, value) : value);
    else putMember(merged, member, withoutNulls(value));
  }
  return merged;
}

function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [member, inner] of Object.entries(value)) {
    if (inner !== null && inner !== undefined) putMember(kept, member, withoutNulls(inner));
  }
  return kept;
}

/** The smallest merge patch that turns one object into the other; empty if they are equal. */
export function createMergePatch(from: JsonObject, to: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const member of Object.keys(from)) {
    if (ownMember(to, member) === undefined) putMember(patch, member, null);
  }
  for (const [member, value] of Object.entries(to)) {
    const current = ownMember(from, member);
    if (equals(current, value)) continue;
    putMember(
      patch,
      member,
      isObject(current) && isObject(value) ? createMergePatch(current, value) : value,
    );
  }
  return patch;
}

/** Members of JSON values, each of the type that is wanted or empty. */
import { ownMember } from '@megaplane/base/members';
import {
  isNumber,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@megaplane/machinery/json-value';

export function memberAt(parent: JsonValue | undefined, member: string): JsonValue | undefined {
  return isObject(parent) ? ownMember(parent, member) : undefined;
}

export function objectAt(parent: JsonValue | undefined, member: string): JsonObject {
  const value = memberAt(parent, member);
  return isObject(value) ? value : {};
}

export function listAt(parent: JsonValue | undefined, member: string): readonly JsonValue[] {
  const value = memberAt(parent, member);
  return Array.isArray(value) ? value : [];
}

/** Items that are objects; decoding has made sure that all are. */
export function objectsAt(parent: JsonValue | undefined, member: string): readonly JsonObject[] {
  return listAt(parent, member).filter(isObject);
}

export function textAt(parent: JsonValue | undefined, member: string): string {
  const value = memberAt(parent, member);
  return typeof value === 'string' ? value : '';
}

/** With all digits: an integer that a double would round is a bigint. */
export function numberAt(parent: JsonValue | undefined, member: string): number | bigint {
  const value = memberAt(parent, member);
  return isNumber(value) ? value : 0;
}

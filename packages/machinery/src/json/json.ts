import { isNumber, isObject, type JsonObject, type JsonValue } from './json-value.ts';
import { ownMember } from '@megaplane/base/members';

/** The object at a path of field names, or undefined where a step is absent or of another type. */
export function objectAt(value: JsonValue | undefined, ...path: string[]): JsonObject | undefined {
  const found = valueAt(value, ...path);
  return isObject(found) ? found : undefined;
}

/** The list at a path, or an empty one. */
export function listAt(value: JsonValue | undefined, ...path: string[]): readonly JsonValue[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The string at a path, or "", which is how Kubernetes reads an absent string. */
export function stringAt(value: JsonValue | undefined, ...path: string[]): string {
  const found = valueAt(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path, or 0; one that a double does not hold is rounded. */
export function numberAt(value: JsonValue | undefined, ...path: string[]): number {
  const found = valueAt(value, ...path);
  return isNumber(found) ? Number(found) : 0;
}

/** The value at a path, or undefined where a step is absent or no object. */
export function valueAt(value: JsonValue | undefined, ...path: string[]): JsonValue | undefined {
  let found = value;
  for (const field of path) {
    if (!isObject(found) || !Object.hasOwn(found, field)) return undefined;
    found = found[field];
  }
  return found;
}

/** Deep equality; the order of an object's fields does not count. */
export function equals(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object') return false;
  if (left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => equals(item, right[index]));
  }
  const fields = Object.keys(left);
  if (fields.length !== Object.keys(right).length) return false;
  return fields.every(
    (field) => Object.hasOwn(right, field) && equals(ownMember(left, field), right[field]),
  );
}

/** The object model of the whole API: plain values as JSON has them. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [field: string]: Json;
}

/** True for a JSON object: not null and not a list. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object at a path of field names, or undefined where a step is absent or of another type. */
export function objectAt(value: Json | undefined, ...path: string[]): JsonObject | undefined {
  const found = valueAt(value, ...path);
  return isObject(found) ? found : undefined;
}

/** The list at a path, or an empty one. */
export function listAt(value: Json | undefined, ...path: string[]): readonly Json[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The string at a path, or "", which is how Kubernetes reads an absent string. */
export function stringAt(value: Json | undefined, ...path: string[]): string {
  const found = valueAt(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The number at a path, or 0. */
export function numberAt(value: Json | undefined, ...path: string[]): number {
  const found = valueAt(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** The value at a path, or undefined where a step is absent or no object. */
export function valueAt(value: Json | undefined, ...path: string[]): Json | undefined {
  let found = value;
  for (const field of path) {
    if (!isObject(found) || !Object.hasOwn(found, field)) return undefined;
    found = found[field];
  }
  return found;
}

/** Deep equality; the order of an object's fields does not count. */
export function equals(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object') return false;
  if (left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => equals(item, right[index]));
  }
  const fields = Object.keys(left);
  if (fields.length !== Object.keys(right).length) return false;
  return fields.every((field) => Object.hasOwn(right, field) && equals(left[field], right[field]));
}

/**
 * What JSON can hold; every Kubernetes object in code is a plain value of this shape. A bigint is
 * an integer of 64 bits that a double would round (`json-text.ts`), and nothing smaller.
 */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject;

/** An object of the API, or a part of one. An absent member is `undefined` when read. */
export interface JsonObject {
  [member: string]: JsonValue | undefined;
}

/** True for a JSON object: not null and not a list. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a number of any size. */
export function isNumber(value: JsonValue | undefined): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

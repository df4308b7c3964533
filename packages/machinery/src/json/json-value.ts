import { putMember } from '@megaplane/base/members';

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

/** Sets a member whose name the caller does not control: `__proto__` is a name like any other. */
export function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== '__proto__') {
    putMember(object, name, value);
    return;
  }
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

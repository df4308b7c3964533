/**
 * Members of plain objects by names that come from data.
 *
 * A plain object inherits from `Object.prototype`: `object['constructor']` is a function whatever
 * was put in, and `object['__proto__'] = value` replaces what the object inherits from. So no plain
 * object is indexed by a text that the program does not know (`tools/keys.ts` looks for it): these
 * functions treat each name as a name like any other. They cost one look-up more.
 */

declare const BARE: unique symbol;

/** What inherits nothing: any text may index it, and none sets what it inherits from. */
export interface Bare {
  readonly [BARE]: true;
}

/** An object that inherits nothing, with the members of another. Slower to make than plain ones. */
export function bareOf<T extends object>(object: T): T & Bare {
  const bare: unknown = Object.assign(Object.create(null) as object, object);
  return bare as T & Bare;
}

/** The member that the object has itself; undefined where it has none, or where there is none. */
export function ownMember<T extends object>(
  object: T | null | undefined,
  name: string,
): T[keyof T] | undefined {
  if (object === null || object === undefined || !Object.hasOwn(object, name)) return undefined;
  return object[name as keyof T];
}

/** Sets the object's own member, as `JSON.parse` does. */
export function putMember<T>(object: { [name: string]: T }, name: string, value: T): void {
  if (name !== '__proto__') object[name] = value;
  else {
    const enumerable = true;
    Object.defineProperty(object, name, { value, enumerable, configurable: true, writable: true });
  }
}

/** Adds to the list that the object's own member is, or begins one. */
export function addToMember<T>(object: { [name: string]: T[] }, name: string, value: T): void {
  const list = ownMember(object, name);
  if (list === undefined) putMember(object, name, [value]);
  else list.push(value);
}

/** Sets all members of another object, as `Object.assign` does for names that are known. */
export function putMembers<T>(
  object: { [name: string]: T },
  from: { readonly [name: string]: T } | undefined,
): void {
  if (from === undefined) return;
  for (const name of Object.keys(from)) putMember(object, name, from[name] as T);
}

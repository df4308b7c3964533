/** Simple paths (`.spec.replicas`) of selectable fields and of the scale subresource. */
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';

/** The names on a simple path; null where it is none. */
export function parseSimplePath(path: string): string[] | null {
  return path.startsWith('.') ? path.slice(1).split('.') : null;
}

/** What stands at a path; undefined where a step is absent or leads through something else. */
export function readPath(object: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** A selectable field as selectors compare it: Go's `%v` of the value, absent as ''. */
export function selectableText(object: JsonObject, path: readonly string[]): string {
  const value = readPath(object, path);
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Defaults and rules of kinds, as the writers use them. */
import type { FieldError } from '@megaplane/machinery/fielderrors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from './served.ts';

/** A copy of the object with the defaults of its kind filled in. */
export function withDefaults(_served: Served, object: JsonObject): JsonObject {
  return object;
}

/** What is wrong with a new object. */
export function newFaults(_served: Served, _object: JsonObject): readonly FieldError[] {
  return [];
}

/** What is wrong with a change; `subresource` is '' for the object itself. */
export function changeFaults(
  _served: Served,
  _next: JsonObject,
  _previous: JsonObject,
  _subresource: string,
): readonly FieldError[] {
  return [];
}

/** Defaults and rules of kinds, as the writers use them. */
import { applyDefaults } from '@megaplane/machinery/defaulting';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from './served.ts';

/** Fills in the defaults of the object's kind, in place. */
export function withDefaults(object: JsonObject): JsonObject {
  applyDefaults(object);
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

/** Defaults and rules of kinds, as the writers use them. */
import { applyDefaults, applyTypeDefaults } from '@megaplane/machinery/defaulting';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { validateCreate, validateUpdate } from '@megaplane/machinery/validation';
import type { FieldError } from '@megaplane/machinery/fielderrors';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Served } from './served.ts';

/** Fills in the defaults of the object's kind, in place. */
export function withDefaults(object: JsonObject): JsonObject {
  applyDefaults(object);
  return object;
}

/** Fills in the defaults of the object's status alone, in place. */
export function withStatusDefaults(served: Served, object: JsonObject): void {
  const { apiVersion, kind } = served.resource;
  const shape = findTypeOfKind(apiVersion, kind)?.field('status')?.shape;
  const status = objectAt(object, 'status');
  if (shape?.kind === 'object' && status !== undefined) applyTypeDefaults(shape.type, status);
}

/** What is wrong with a new object. */
export function newFaults(served: Served, object: JsonObject): readonly FieldError[] {
  return validateCreate(served.resource, object);
}

/**
 * What is wrong with a change; `subresource` is '' for the object itself. The revision is stripped
 * from objects that are to be stored, and looked for by the rules.
 */
export function changeFaults(
  served: Served,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
): readonly FieldError[] {
  const resourceVersion = stringAt(previous, 'metadata', 'resourceVersion');
  const revised = { ...next, metadata: { ...objectAt(next, 'metadata'), resourceVersion } };
  return validateUpdate(served.resource, revised, previous, subresource);
}

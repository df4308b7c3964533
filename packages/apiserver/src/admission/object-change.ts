/** Objects that admission replaces by others. */
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { withDefaults } from '../schema-gate.ts';
import type { Served } from '../served.ts';

/** Makes `object` what `next` is; who owns which fields stays as it was found out before. */
export function replaceObject(served: Served, object: JsonObject, next: JsonObject): void {
  const managed = objectAt(object, 'metadata')?.['managedFields'];
  for (const field of Object.keys(object)) delete object[field];
  Object.assign(object, next);
  const { managedFields: _, ...metadata } = objectAt(next, 'metadata') ?? {};
  object['metadata'] = managed === undefined ? metadata : { managedFields: managed, ...metadata };
  withDefaults(served, object);
}

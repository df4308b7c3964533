/**
 * What a write may not change, whatever admission makes of it: upstream's strategies come after the
 * plugins that change objects.
 */
import { putMember } from '@megaplane/base/members';
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';

/** What a write of the status may change; metadata of some kinds is not among it. */
const OF_STATUS: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'metadata', 'status']);

/** Of a write of the status: all else is as it was. */
export function keepAllButStatus(next: JsonObject, previous: JsonObject): void {
  for (const field of Object.keys(next)) if (!OF_STATUS.has(field)) delete next[field];
  for (const [field, value] of Object.entries(previous)) {
    if (!OF_STATUS.has(field)) putMember(next, field, value);
  }
}

/** A field as it was, or gone where it was not. */
export function keepField(next: JsonObject, field: string, value: JsonValue | undefined): void {
  if (value === undefined) delete next[field];
  else putMember(next, field, value);
}

/** What is in no namespace stays so. */
export function dropNamespace(object: JsonObject): void {
  const { namespace, ...metadata } = objectAt(object, 'metadata') ?? {};
  if (namespace !== undefined) object['metadata'] = metadata;
}

/** Whether admission has put another object in the place of the one with this metadata. */
export function isReplaced(object: JsonObject, metadata: JsonValue | undefined): boolean {
  return object['metadata'] !== metadata;
}

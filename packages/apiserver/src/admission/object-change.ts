/** Objects that admission replaces by others. */
import { ownMember, putMember, putMembers } from '@megaplane/base/members';
import { objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { withDefaults } from '../registry/rest/schema-gate.ts';
import { badRequest, type Status } from '@megaplane/machinery/status';
import type { Admitted } from '../registry/rest/admitted.ts';

type Change = Pick<Admitted, 'operation' | 'subresource' | 'served'>;

/** Metadata that is the server's own, whatever a mutation says. */
const OWN_AT_CREATION: readonly string[] = ['uid', 'creationTimestamp', 'generation'];
const OWN_LATER: readonly string[] = ['generation'];

/**
 * Makes the object of the write `next`; who owns which fields stays as it was found out before, and
 * so does what the server gives to objects after upstream's admission. The other object may not be
 * in another namespace.
 */
export function replaceObject(
  { operation, subresource, served }: Change,
  object: JsonObject,
  next: JsonObject,
): Status | null {
  const before = objectAt(object, 'metadata') ?? {};
  const { managedFields: _, selfLink: __, ...metadata } = objectAt(next, 'metadata') ?? {};
  const { namespace } = before;
  const changed = metadata['namespace'] ?? '';
  if (namespace !== undefined && changed !== '' && changed !== namespace) {
    return badRequest(OTHER_NAMESPACE);
  }
  if (namespace !== undefined) metadata['namespace'] = namespace;
  const own = operation === 'CREATE' ? OWN_AT_CREATION : OWN_LATER;
  for (const field of subresource === '' ? own : []) {
    const value = ownMember(before, field);
    if (value !== undefined) putMember(metadata, field, value);
    else if (operation !== 'CREATE') delete metadata[field];
  }
  if (operation === 'UPDATE' && subresource === '') restore(metadata, before);
  const { managedFields } = before;
  for (const field of Object.keys(object)) delete object[field];
  putMembers(object, next);
  object['metadata'] = managedFields === undefined ? metadata : { managedFields, ...metadata };
  const kind = served.resource.subresources.get(subresource)?.kind ?? served.resource.kind;
  if (kind === served.resource.kind) withDefaults(served, object);
  return null;
}

/** What webhooks are not shown of an update: it is as it was, unless they gave it. */
function restore(metadata: JsonObject, before: JsonObject): void {
  const known = ['uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'];
  for (const field of known) {
    const value = before[field];
    if (metadata[field] === undefined && value !== undefined) metadata[field] = value;
  }
}

const OTHER_NAMESPACE =
  'the namespace of the provided object does not match the namespace sent on the request';

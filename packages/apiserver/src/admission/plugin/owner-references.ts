/**
 * OwnerReferencesPermissionEnforcement: who sets owners must be allowed to delete the object, and
 * who blocks an owner's deletion must be allowed to set its finalizers. Off unless enabled.
 */
import { equals, listAt, stringAt } from '@megaplane/machinery/json';
import type { Status } from '@megaplane/machinery/status';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { refuse, writtenName } from '../../registry/rest/refusal.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';
import { withDecisions, type Decide } from '../with-decisions.ts';

interface Wanted {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
}

/** '' where it is allowed, else the reason. */
function refusedFor(
  { call }: Admitted,
  decide: Decide,
  wanted: Wanted,
  isNamespaced: boolean,
): string | null {
  const decision = decide({
    ...wanted,
    isResource: true,
    path: '',
    version: '*',
    namespace: isNamespaced ? call.info.namespace : '',
  });
  return decision.allowed ? null : decision.reason;
}

function ownersOf(object: JsonObject | null): readonly JsonValue[] {
  return listAt(object ?? {}, 'metadata', 'ownerReferences');
}

function withoutBlocks(owners: readonly JsonValue[]): JsonValue[] {
  return owners.map((owner) => {
    if (!isObject(owner)) return owner;
    const { blockOwnerDeletion: _, ...rest } = owner;
    return rest;
  });
}

export const ownerReferences: AdmissionPlugin = {
  name: 'OwnerReferencesPermissionEnforcement',
  handles: (_, operation) => operation === 'CREATE' || operation === 'UPDATE',
  validate: (write) => withDecisions(write, (decide) => judge(write, decide)),
};

function judge(write: Admitted, decide: Decide): Status | null {
  const next = ownersOf(write.object);
  const before = ownersOf(write.previous);
  if (next.length === 0 && before.length === 0) return null;
  const { resource } = write.served;
  if (write.operation === 'UPDATE' && !equals(withoutBlocks(next), withoutBlocks(before))) {
    const wanted: Wanted = {
      verb: 'delete',
      group: resource.group,
      resource: resource.resource,
      subresource: write.subresource,
      name: writtenName(write),
    };
    const reason = refusedFor(write, decide, wanted, resource.namespaced);
    if (reason !== null) {
      const text = "cannot set an ownerRef on a resource you can't delete";
      return refuse(write, `${text}: ${reason}, <nil>`);
    }
  }
  for (const owner of newlyBlocking(next, before)) {
    const apiVersion = stringAt(owner, 'apiVersion');
    const kind = write.world.kinds.findKind(apiVersion, stringAt(owner, 'kind'))?.resource;
    const text =
      'cannot set blockOwnerDeletion if an ownerReference refers to a resource you ' +
      "can't set finalizers on";
    if (kind === undefined) return refuse(write, `${text}: no RESTMapping found`);
    const wanted: Wanted = {
      verb: 'update',
      group: kind.group,
      resource: kind.resource,
      subresource: 'finalizers',
      name: stringAt(owner, 'name'),
    };
    const reason = refusedFor(write, decide, wanted, kind.namespaced);
    if (reason !== null) return refuse(write, `${text}: ${reason}, <nil>`);
  }
  return null;
}

function newlyBlocking(
  next: readonly JsonValue[],
  before: readonly JsonValue[],
): readonly JsonValue[] {
  const isBlocking = (owner: JsonValue): boolean =>
    isObject(owner) && owner['blockOwnerDeletion'] === true;
  const known = new Set(before.filter(isBlocking).map((owner) => stringAt(owner, 'uid')));
  return next.filter((owner) => isBlocking(owner) && !known.has(stringAt(owner, 'uid')));
}

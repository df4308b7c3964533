/** The scale subresource: the replicas of a workload as an autoscaling/v1 Scale. */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { applyPatch, parsePatch, patchKindOf } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import {
  conflict,
  failed,
  invalid,
  notFound,
  success,
  unsupportedPatchType,
  type Result,
} from '@megaplane/machinery/status';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { trackApply, trackUpdate } from '@megaplane/machinery/apply/field-manager';
import { unpackManaged } from '@megaplane/machinery/apply/field-templates';
import type { Managed } from '@megaplane/machinery/apply/managed-fields';
import type { Admitted } from './admission/admission.ts';
import { mediaTypeOf } from './body.ts';
import { APPLY_TYPE, readConfig } from './managed/applying.ts';
import { scaleScope } from './managed/field-scope.ts';
import { parentOwners, scaleOwners } from './managed/scale-owners.ts';
import { setManaged } from './managed/tracking.ts';
import { keyOf } from './served.ts';
import { defineSubresource, type SubresourceContext } from './subresource.ts';
import { readStored, refusedWrite } from './writing.ts';

const TRIES_MAX = 5;
const SCALED = [
  'deployments.apps',
  'replicasets.apps',
  'statefulsets.apps',
  'replicationcontrollers',
];
const KIND = { group: 'autoscaling', name: 'Scale' } as const;

/** A Scale that a client wants, and who owns its replicas then. */
interface Wanted {
  readonly scale: JsonObject;
  readonly owners: Managed;
  readonly isApplied: boolean;
}

/** Makes the new Scale from the present one and its owners. */
type NextScale = (scale: JsonObject, owners: Managed) => Result<Wanted>;

/** Registers the scale of every workload that has one. */
export function defineScales(): void {
  for (const name of SCALED) {
    const path = `${name}/scale`;
    defineSubresource(path, 'get', (context) => {
      const stored = readStored(context.world, context.call, context.served);
      if (stored === null)
        context.call.fail(notFound(context.served.plural, context.call.info.name));
      else context.call.sendObject(200, scaleOf(stored.object, stored.revision));
    });
    defineSubresource(path, 'update', (context) => {
      change(context, (scale, owners) => success(updated(context, scale, context.body, owners)), 1);
    });
    defineSubresource(path, 'patch', (context) => {
      const isApply = mediaTypeOf(context.call) === APPLY_TYPE;
      change(context, isApply ? applied(context) : patched(context), 1);
    });
  }
}

function patched(context: SubresourceContext): NextScale {
  const { call } = context;
  const kind = patchKindOf(mediaTypeOf(call));
  const patch = kind === undefined ? null : parsePatch(kind, call.body.toString('utf8'));
  const type = findTypeOfKind('autoscaling/v1', 'Scale');
  return (scale, owners) => {
    if (patch === null) return failed(unsupportedPatchType());
    const next = patch.ok ? applyPatch(patch.value, scale, type) : patch;
    return next.ok ? success(updated(context, scale, next.value, owners)) : next;
  };
}

function updated(
  { call }: SubresourceContext,
  live: JsonObject,
  scale: JsonObject,
  owners: Managed,
): Wanted {
  const next = trackUpdate(scaleScope(call, 'Update'), live, scale, owners);
  return { scale, owners: next, isApplied: false };
}

function applied(context: SubresourceContext): NextScale {
  const config = readConfig(context.call.body.toString('utf8'));
  return (scale, owners) => {
    if (!config.ok) return config;
    const scope = scaleScope(context.call, 'Apply');
    const { force } = context.options;
    const result = trackApply(scope, scale, config.value, owners, 'Scale', force);
    if (!result.ok) return result;
    const { object, managed } = result.value;
    return success({ scale: object ?? scale, owners: managed, isApplied: true });
  };
}

function change(context: SubresourceContext, nextScale: NextScale, attempt: number): void {
  const { call, served, world } = context;
  const { name } = call.info;
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const { object, revision } = stored;
  const parent = unpackManaged(objectAt(object, 'metadata')?.['managedFields']);
  const next = nextScale(scaleOf(object, revision), scaleOwners(parent));
  if (!next.ok) {
    call.fail(next.status);
    return;
  }
  const { scale } = next.value;
  const wanted = stringAt(scale, 'metadata', 'resourceVersion');
  if (wanted !== '' && wanted !== String(revision)) {
    call.fail(conflict(served.plural, name));
    return;
  }
  const write: Admitted = {
    ...context,
    operation: 'UPDATE',
    subresource: 'scale',
    object: scale,
    previous: scaleOf(object, revision),
  };
  context.admission.admit(write, (refusal) => {
    if (refusal !== null) {
      call.fail(refusal);
      return;
    }
    const retry = (): boolean => {
      if (wanted !== '' || attempt >= TRIES_MAX) return false;
      change(context, nextScale, attempt + 1);
      return true;
    };
    storeScale(context, stored, next.value, retry);
  });
}

function storeScale(
  context: SubresourceContext,
  { object, revision }: { readonly object: JsonObject; readonly revision: number },
  { scale, owners, isApplied }: Wanted,
  retry: () => boolean,
): void {
  const { call, served, world, isDryRun } = context;
  const { namespace, name } = call.info;
  const parent = unpackManaged(objectAt(object, 'metadata')?.['managedFields']);
  const replicas = numberAt(scale, 'spec', 'replicas');
  if (replicas < 0) {
    const text = 'must be greater than or equal to 0';
    call.fail(invalid(KIND, name, [invalidValue('spec.replicas', replicas, text)]));
    return;
  }
  const { apiVersion } = served.resource;
  const scaled = withReplicas(object, replicas);
  setManaged(scaled, parentOwners(parent, owners, apiVersion));
  const isSame = replicas === numberAt(object, 'spec', 'replicas');
  if (isDryRun || (isSame && (!isApplied || equals(scaled, object)))) {
    call.sendObject(200, scaleOf(scaled, revision));
    return;
  }
  const key = keyOf(served, namespace, name);
  world.storage.put(key, encodeCanonical(scaled), revision, (outcome) => {
    if (outcome.kind === 'done') call.sendObject(200, scaleOf(scaled, outcome.revision));
    else if (outcome.kind !== 'conflict' || !retry()) {
      call.fail(refusedWrite(served, name, outcome));
    }
  });
}

function withReplicas(object: JsonObject, replicas: number): JsonObject {
  const metadata = { ...objectAt(object, 'metadata') };
  const isChanged = replicas !== numberAt(object, 'spec', 'replicas');
  const generation = numberAt(metadata, 'generation');
  if (isChanged && generation > 0) metadata['generation'] = generation + 1;
  return { ...object, metadata, spec: { ...objectAt(object, 'spec'), replicas } };
}

/** The Scale of a workload at a revision. */
export function scaleOf(object: JsonObject, revision: number): JsonObject {
  const metadata = objectAt(object, 'metadata') ?? {};
  const selector = selectorText(object);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name: metadata['name'] ?? '',
      namespace: metadata['namespace'] ?? '',
      uid: metadata['uid'] ?? '',
      resourceVersion: String(revision),
      creationTimestamp: metadata['creationTimestamp'] ?? null,
    },
    spec: { replicas: numberAt(object, 'spec', 'replicas') },
    status: {
      replicas: numberAt(object, 'status', 'replicas'),
      ...(selector === '' ? {} : { selector }),
    },
  };
}

function selectorText(object: JsonObject): string {
  const isPlain = object['kind'] === 'ReplicationController';
  const labels = isPlain
    ? objectAt(object, 'spec', 'selector')
    : objectAt(object, 'spec', 'selector', 'matchLabels');
  return Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : ''}`)
    .sort()
    .join(',');
}

/** The scale subresource: the replicas of a workload as an autoscaling/v1 Scale. */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { applyPatch, parsePatch, patchKindOf } from '@megaplane/machinery/patch';
import { findTypeOfKind } from '@megaplane/machinery/schema';
import { conflict, invalid, notFound, unsupportedPatchType } from '@megaplane/machinery/status';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { mediaTypeOf } from './body.ts';
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

/** Makes the new Scale from the present one, or answers and returns null. */
type NextScale = (scale: JsonObject) => JsonObject | null;

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
    defineSubresource(path, 'update', (context) => change(context, () => context.body, 1));
    defineSubresource(path, 'patch', (context) => change(context, patched(context), 1));
  }
}

function patched({ call }: SubresourceContext): NextScale {
  const kind = patchKindOf(mediaTypeOf(call));
  const patch = kind === undefined ? null : parsePatch(kind, call.body.toString('utf8'));
  const type = findTypeOfKind('autoscaling/v1', 'Scale');
  return (scale) => {
    if (patch === null) {
      call.fail(unsupportedPatchType());
      return null;
    }
    const next = patch.ok ? applyPatch(patch.value, scale, type) : patch;
    if (next.ok) return next.value;
    call.fail(next.status);
    return null;
  };
}

function change(context: SubresourceContext, nextScale: NextScale, attempt: number): void {
  const { call, served, world, isDryRun } = context;
  const { namespace, name } = call.info;
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const { object, revision } = stored;
  const scale = nextScale(scaleOf(object, revision));
  if (scale === null) return;
  const wanted = stringAt(scale, 'metadata', 'resourceVersion');
  if (wanted !== '' && wanted !== String(revision)) {
    call.fail(conflict(served.plural, name));
    return;
  }
  const replicas = numberAt(scale, 'spec', 'replicas');
  if (replicas < 0) {
    const text = 'must be greater than or equal to 0';
    call.fail(invalid(KIND, name, [invalidValue('spec.replicas', replicas, text)]));
    return;
  }
  const next = withReplicas(object, replicas);
  if (isDryRun || replicas === numberAt(object, 'spec', 'replicas')) {
    call.sendObject(200, scaleOf(next, revision));
    return;
  }
  const key = keyOf(served, namespace, name);
  world.storage.put(key, encodeCanonical(next), revision, (outcome) => {
    if (outcome.kind === 'done') call.sendObject(200, scaleOf(next, outcome.revision));
    else if (outcome.kind === 'conflict' && wanted === '' && attempt < TRIES_MAX) {
      change(context, nextScale, attempt + 1);
    } else call.fail(refusedWrite(served, name, outcome));
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

/** Namespaces: their life, and what may be created in them. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { pathSegmentErrors } from '@megaplane/machinery/names';
import { findFirst, pathOf } from '@megaplane/machinery/scan';
import { forbidden, internalError, notFound } from '@megaplane/machinery/status';
import { writtenName } from '../rest/refusal.ts';
import { defineBehaviour } from '../rest/behaviour.ts';
import {
  finalizersOf,
  FOREGROUND_FINALIZER,
  ORPHAN_FINALIZER,
  withMetadata,
} from '../rest/deletion.ts';
import { checkName } from '../rest/object-meta.ts';
import { emptyRow } from '../../storage/storage.ts';
import { defineSubresource } from '../../handlers/subresource.ts';
import { updateObject } from '../../handlers/updating.ts';
import type { World } from '../../lister/world.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { DeleteOptions } from '../../request/options/delete-options.ts';
import { timestamp } from '../../timestamp.ts';
import type { AdmissionPlugin } from '../../admission/admission-plugin.ts';

/** Namespaces that may not be deleted. */
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public']);
const NAMESPACES = { group: '', name: 'namespaces' } as const;
const NAME_LABEL = 'kubernetes.io/metadata.name';
const FINALIZER = 'kubernetes';

const row = emptyRow();
const DELETION = pathOf('metadata', 'deletionTimestamp');

/**
 * NamespaceLifecycle: nothing new in a namespace that is missing or on its way out. Reviews are
 * asked about namespaces that need not exist.
 */
export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  repeats: () => true,
  mutate: (write) => {
    const { served, call, world, operation } = write;
    if (!served.resource.namespaced || operation !== 'CREATE' || !served.stored) return null;
    const { namespace } = call.info;
    // what is nowhere is told by those who look at the object
    if (namespace === '' || isNamespaceOpen(world, namespace)) return null;
    const [fault] = pathSegmentErrors(namespace);
    // upstream asks itself for the namespace, and cannot
    if (fault !== undefined) {
      return internalError(`invalid resource name ${JSON.stringify(namespace)}: [${fault}]`);
    }
    const found = readNamespace(world, namespace);
    if (found === null) return notFound(NAMESPACES, namespace);
    if (stringAt(found, 'metadata', 'deletionTimestamp') === '') return null;
    return forbidden(
      served.plural,
      writtenName(write),
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    );
  },
};

/** Whether a namespace is there and not on its way out. */
export function isNamespaceOpen(world: World, name: string): boolean {
  if (!world.storage.get(namespaceKey(name), row)) return false;
  return findFirst(row.bytes, row.start, row.end, DELETION) < 0;
}

function namespaceKey(name: string): Buffer {
  return Buffer.from(`/registry/namespaces/${name}`);
}

/** A namespace carries its name as a label. */
function labelName(object: JsonObject): void {
  const name = stringAt(object, 'metadata', 'name');
  if (name === '') return;
  const metadata = objectAt(object, 'metadata') ?? {};
  const labels: JsonObject = { ...objectAt(metadata, 'labels'), [NAME_LABEL]: name };
  object['metadata'] = { ...metadata, labels };
}

/** What a namespace does beyond being stored. */
export function defineNamespaces(): void {
  defineBehaviour('namespaces', {
    startCreate: labelName,
    prepareCreate: (object) => {
      // it may have got its name since
      labelName(object);
      const spec = objectAt(object, 'spec') ?? {};
      const finalizers = listAt(spec, 'finalizers');
      const added = finalizers.includes(FINALIZER) ? [] : [FINALIZER];
      object['spec'] = { ...spec, finalizers: [...finalizers, ...added] };
      object['status'] = { phase: 'Active' };
    },
    prepareUpdate: (next, previous) => {
      next['spec'] = withFinalizers(objectAt(next, 'spec') ?? {}, specFinalizers(previous));
    },
    admitDelete: (object) => {
      const name = stringAt(object, 'metadata', 'name');
      if (!IMMORTAL.has(name)) return null;
      return forbidden(NAMESPACES, name, 'this namespace may not be deleted');
    },
    terminate: (object, options, nowMs) => {
      if (stringAt(object, 'metadata', 'deletionTimestamp') !== '') {
        if (specFinalizers(object).length > 0 || finalizersOf(object).length > 0) return object;
        return null;
      }
      // the first deletion always marks, even where nothing holds the namespace
      const finalizers = propagationFinalizers(finalizersOf(object), options);
      const marked = withMetadata(object, { deletionTimestamp: timestamp(nowMs), finalizers });
      return { ...marked, status: { ...objectAt(object, 'status'), phase: 'Terminating' } };
    },
    endsAfterUpdate: (previous, next) =>
      stringAt(previous, 'metadata', 'deletionTimestamp') !== '' &&
      specFinalizers(next).length === 0 &&
      finalizersOf(next).length === 0,
    returnsDeleted: true,
  });
  defineSubresource('namespaces/finalize', 'update', (context) => {
    const { body, call } = context;
    const mismatch = checkName(body, call.info.name);
    if (mismatch !== null) {
      call.fail(mismatch);
      return;
    }
    updateObject(context, {
      subresource: 'finalize',
      isPut: true,
      change: (previous) => ({
        ok: true,
        value: {
          ...previous,
          metadata: objectAt(body, 'metadata') ?? objectAt(previous, 'metadata') ?? {},
          spec: withFinalizers(
            objectAt(previous, 'spec') ?? {},
            listAt(body, 'spec', 'finalizers'),
          ),
        },
      }),
    });
  });
}

function withFinalizers(spec: JsonObject, finalizers: readonly JsonValue[]): JsonObject {
  const { finalizers: _, ...rest } = spec;
  return finalizers.length === 0 ? rest : { ...rest, finalizers: [...finalizers] };
}

/** Upstream's own rule for namespaces: what dependents need is kept, added or taken away. */
function propagationFinalizers(current: readonly string[], options: DeleteOptions): string[] {
  const { orphanDependents, propagationPolicy } = options;
  const wanted = new Set(current);
  const settle = (finalizer: string, isWanted: boolean): void => {
    if (isWanted) wanted.add(finalizer);
    else wanted.delete(finalizer);
  };
  if (orphanDependents !== null) {
    settle(ORPHAN_FINALIZER, orphanDependents);
    settle(FOREGROUND_FINALIZER, !orphanDependents);
  } else if (propagationPolicy !== '') {
    settle(ORPHAN_FINALIZER, propagationPolicy === 'Orphan');
    settle(FOREGROUND_FINALIZER, propagationPolicy === 'Foreground');
  }
  return Array.from(wanted);
}

function specFinalizers(object: JsonObject): readonly string[] {
  return listAt(object, 'spec', 'finalizers').filter((one) => typeof one === 'string');
}

/** What objects are made with, so that nobody takes them for more, or for less, than they are. */
import { ownMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { withMetadata } from '../registry/rest/deletion.ts';
import type { AdmissionPlugin } from './admission-plugin.ts';

/** A new node takes no pods before it reports that it is ready. */
export const taintNodes: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'nodes' && operation === 'CREATE' && subresource === '',
  mutate: ({ object }) => {
    if (object !== null) taintNewNode(object);
    return null;
  },
};

/** Finalizers of what is not to go while it is in use. */
const FINALIZERS: Readonly<Record<string, string>> = {
  persistentvolumes: 'kubernetes.io/pv-protection',
  persistentvolumeclaims: 'kubernetes.io/pvc-protection',
  'volumeattributesclasses.storage.k8s.io': 'kubernetes.io/vac-protection',
};

/** Volumes and claims stay until nobody uses them. */
export const storageProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) =>
    Object.hasOwn(FINALIZERS, resource.storage.name) &&
    operation === 'CREATE' &&
    subresource === '',
  mutate: ({ object, served }) => {
    const finalizer = ownMember(FINALIZERS, served.resource.storage.name);
    if (object !== null && finalizer !== undefined) addFinalizer(object, finalizer);
    return null;
  },
};

function taintNewNode(object: JsonObject): void {
  const spec = objectAt(object, 'spec') ?? {};
  const taints = listAt(spec, 'taints');
  const key = 'node.kubernetes.io/not-ready';
  const has = taints.some(
    (taint) => stringAt(taint, 'key') === key && stringAt(taint, 'effect') === 'NoSchedule',
  );
  if (!has) object['spec'] = { ...spec, taints: [...taints, { key, effect: 'NoSchedule' }] };
}

function addFinalizer(object: JsonObject, finalizer: string): void {
  const finalizers = listAt(object, 'metadata', 'finalizers');
  if (finalizers.includes(finalizer)) return;
  const next = withMetadata(object, { finalizers: [...finalizers, finalizer] });
  object['metadata'] = next['metadata'] ?? {};
}

/**
 * NamespaceAutoProvision makes the namespace of a new object, NamespaceExists wants it to be there
 * for every write. Both are off unless enabled.
 */
import { invalid, notFound } from '@megaplane/machinery/status';
import { newFaults } from '../../registry/rest/schema-gate.ts';
import { findServed } from '../../storage/served.ts';
import { ensure } from '../../registry/rest/missing-objects.ts';
import { refuse } from '../../registry/rest/refusal.ts';
import { readNamespace, newNamespace } from '../../lister/stored-namespaces.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const NAMESPACES = { group: '', name: 'namespaces' } as const;

export const namespaceAutoProvision: AdmissionPlugin = {
  name: 'NamespaceAutoProvision',
  handles: ({ resource }, operation) => resource.namespaced && operation === 'CREATE',
  mutate: (write) => {
    const { world, call, isDryRun } = write;
    const { namespace } = call.info;
    if (isDryRun || namespace === '' || readNamespace(world, namespace) !== null) return null;
    const served = findServed('', 'v1', 'namespaces');
    const made = newNamespace(namespace);
    const faults = served === undefined ? [] : newFaults(served, made, () => {});
    if (faults.length > 0) {
      const kind = { group: '', name: 'Namespace' };
      return refuse(write, invalid(kind, namespace, faults).message ?? '');
    }
    // one that somebody else made in between will do as well
    return (then) => ensure(world, made, () => then(null));
  },
  repeats: ({ world, call }) => readNamespace(world, call.info.namespace) !== null,
};

export const namespaceExists: AdmissionPlugin = {
  name: 'NamespaceExists',
  handles: ({ resource }, operation) => resource.namespaced && operation !== 'CONNECT',
  validate: ({ world, call }) => {
    const { namespace } = call.info;
    if (namespace === '' || readNamespace(world, namespace) !== null) return null;
    return notFound(NAMESPACES, namespace);
  },
  repeats: () => true,
};

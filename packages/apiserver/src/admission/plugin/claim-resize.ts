/** PersistentVolumeClaimResize: claims grow only where their class says that they can. */
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { amountsOf } from '@megaplane/machinery/quota/pod-resources';
import { refuse } from '../../registry/rest/refusal.ts';
import { readStoredObject } from '../../lister/stored-object.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

export const claimResize: AdmissionPlugin = {
  name: 'PersistentVolumeClaimResize',
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'persistentvolumeclaims' &&
    operation === 'UPDATE' &&
    subresource === '',
  validate: (write) => {
    const { object, previous, world } = write;
    if (object === null || previous === null) return null;
    const sizeOf = (claim: typeof object): ReturnType<typeof amountsOf> =>
      amountsOf(objectAt(claim, 'spec', 'resources', 'requests'));
    const next = sizeOf(object).get('storage');
    const before = sizeOf(previous).get('storage');
    if (next === undefined || before === undefined || next.compare(before) <= 0) return null;
    if (stringAt(previous, 'status', 'phase') !== 'Bound') {
      return refuse(write, 'Only bound persistent volume claims can be expanded');
    }
    const name = stringAt(object, 'spec', 'storageClassName');
    const found = readStoredObject(world, 'storage.k8s.io', 'storageclasses', '', name);
    if (found?.['allowVolumeExpansion'] === true) return null;
    return refuse(
      write,
      'only dynamically provisioned pvc can be resized and the storageclass that provisions ' +
        'the pvc must support resize',
    );
  },
};

/** DenyServiceExternalIPs: services get no addresses from outside that they do not have already. */
import { listAt } from '@megaplane/machinery/json';
import { refuse } from '../../registry/rest/refusal.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

export const externalAddresses: AdmissionPlugin = {
  name: 'DenyServiceExternalIPs',
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'services' &&
    (operation === 'CREATE' || operation === 'UPDATE') &&
    subresource === '',
  validate: (write) => {
    const { object, previous } = write;
    const before = new Set(listAt(previous, 'spec', 'externalIPs'));
    const isNew = listAt(object, 'spec', 'externalIPs').some((address) => !before.has(address));
    return isNew ? refuse(write, 'Use of external IPs is denied by admission control') : null;
  },
  repeats: () => true,
};

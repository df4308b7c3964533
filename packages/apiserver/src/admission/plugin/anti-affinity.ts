/**
 * LimitPodHardAntiAffinityTopology: who must not share a place with others may ask for a node of
 * its own, not for a zone. Off unless enabled.
 */
import { listAt, stringAt } from '@megaplane/machinery/json';
import { forbidden } from '@megaplane/machinery/status';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const HOSTNAME = 'kubernetes.io/hostname';

export const hardAntiAffinity: AdmissionPlugin = {
  name: 'LimitPodHardAntiAffinityTopology',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' &&
    (operation === 'CREATE' || operation === 'UPDATE') &&
    subresource === '',
  validate: ({ served, object }) => {
    const rules = 'requiredDuringSchedulingIgnoredDuringExecution';
    const terms = listAt(object, 'spec', 'affinity', 'podAntiAffinity', rules);
    const other = terms.find((term) => stringAt(term, 'topologyKey') !== HOSTNAME);
    if (other === undefined) return null;
    return forbidden(
      served.plural,
      stringAt(object, 'metadata', 'name'),
      'affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ' +
        `${stringAt(other, 'topologyKey')} but only key ${HOSTNAME} is allowed`,
    );
  },
};

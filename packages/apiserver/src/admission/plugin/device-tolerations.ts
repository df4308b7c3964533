/**
 * ExtendedResourceToleration: nodes with devices are tainted by the names of their resources, and
 * pods that ask for those tolerate the taints.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isExtendedResource } from '@megaplane/machinery/resource-names';
import type { AdmissionPlugin } from '../admission-plugin.ts';

export const deviceTolerations: AdmissionPlugin = {
  name: 'ExtendedResourceToleration',
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' &&
    (operation === 'CREATE' || operation === 'UPDATE') &&
    subresource === '',
  mutate: ({ object }) => {
    const spec = objectAt(object, 'spec');
    if (spec === undefined) return null;
    const names = new Set<string>();
    for (const list of ['containers', 'initContainers']) {
      for (const container of listAt(spec, list)) {
        const asked = objectAt(container, 'resources', 'requests') ?? {};
        for (const name of Object.keys(asked)) if (isExtendedResource(name)) names.add(name);
      }
    }
    for (const key of Array.from(names).toSorted()) tolerate(spec, key);
    return null;
  },
  repeats: () => true,
};

/** One toleration of the taint, in the place of those that say the same for some time only. */
function tolerate(spec: JsonObject, key: string): void {
  const own = { key, operator: 'Exists', effect: 'NoSchedule' };
  const isSame = (one: JsonValue): boolean =>
    stringAt(one, 'key') === key &&
    stringAt(one, 'operator') === own.operator &&
    stringAt(one, 'effect') === own.effect &&
    stringAt(one, 'value') === '';
  const before = listAt(spec, 'tolerations');
  const isThere = before.some(isSame);
  const next = before.map((one) => (isSame(one) ? own : one));
  spec['tolerations'] = isThere ? next : [...next, own];
}

/** RuntimeClass: pods of a class cost its overhead and go where it runs. */
import { ownMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { unclassified, type Status } from '@megaplane/machinery/status';
import { amountsOf } from '@megaplane/machinery/quota/pod-resources';
import { mergedTolerations } from './merged-tolerations.ts';
import { refuse } from '../../registry/rest/refusal.ts';
import { pathNameFault, readStoredObject } from '../../lister/stored-object.ts';
import { quoted } from '@megaplane/machinery/quoting';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

export const runtimeClass: AdmissionPlugin = {
  name: 'RuntimeClass',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' && operation === 'CREATE' && subresource === '',
  mutate: (write) => {
    const { object } = write;
    const spec = objectAt(object ?? {}, 'spec');
    if (object === null || spec === undefined) return null;
    const name = stringAt(spec, 'runtimeClassName');
    if (spec['runtimeClassName'] === undefined) return null;
    const fault = pathNameFault(name);
    if (fault !== '') return unclassified(fault);
    const found = readStoredObject(write.world, 'node.k8s.io', 'runtimeclasses', '', name);
    if (found === null)
      return refuse(write, `pod rejected: RuntimeClass ${quoted(name)} not found`);
    return setOverhead(write, spec, found) ?? setScheduling(write, spec, found);
  },
  validate: (write) => {
    const spec = objectAt(write.object ?? {}, 'spec');
    if (spec === undefined || objectAt(spec, 'overhead') === undefined) return null;
    const name = stringAt(spec, 'runtimeClassName');
    const found = readStoredObject(write.world, 'node.k8s.io', 'runtimeclasses', '', name);
    if (name !== '' && objectAt(found ?? {}, 'overhead') !== undefined) return null;
    const why = 'Pod Overhead set without corresponding RuntimeClass defined Overhead';
    return refuse(write, `pod rejected: ${why}`);
  },
};

function setOverhead(write: Admitted, spec: JsonObject, found: JsonObject): Status | null {
  const fixed = objectAt(found, 'overhead', 'podFixed');
  const own = objectAt(spec, 'overhead');
  if (fixed === undefined) return null;
  if (own !== undefined && !isSame(own, fixed)) {
    const why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    return refuse(write, `pod rejected: ${why}`);
  }
  spec['overhead'] = { ...fixed };
  return null;
}

function isSame(left: JsonObject, right: JsonObject): boolean {
  const one = amountsOf(left);
  const other = amountsOf(right);
  if (one.size !== other.size) return false;
  return Array.from(one).every(([name, amount]) => {
    const twin = other.get(name);
    return twin !== undefined && amount.compare(twin) === 0;
  });
}

function setScheduling(write: Admitted, spec: JsonObject, found: JsonObject): Status | null {
  if (objectAt(found, 'scheduling') === undefined) return null;
  const wanted = objectAt(found, 'scheduling', 'nodeSelector') ?? {};
  const own = objectAt(spec, 'nodeSelector') ?? {};
  for (const [key, value] of Object.entries(wanted)) {
    const present = ownMember(own, key);
    if (present === undefined || present === value) continue;
    const text =
      `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${textOf(value)}; ` +
      `pod.spec.nodeSelector[${key}] = ${textOf(present)}`;
    return refuse(write, text);
  }
  if (Object.keys(wanted).length > 0) spec['nodeSelector'] = { ...own, ...wanted };
  const more = listAt(found, 'scheduling', 'tolerations');
  const tolerations = mergedTolerations(listAt(spec, 'tolerations'), more);
  if (tolerations.length > 0) spec['tolerations'] = tolerations;
  return null;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

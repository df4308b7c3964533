/**
 * PodResizeValidator and NodeDeclaredFeatureValidator: pods that run are changed only as their node
 * can follow.
 */
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { Quantity } from '@megaplane/machinery/quantity';
import { amountsOf, podAmounts } from '@megaplane/machinery/quota/pod-resources';
import { forbidden, type Status } from '@megaplane/machinery/status';
import { refuse, writtenName } from '../../registry/rest/refusal.ts';
import { readStoredObject } from '../../lister/stored-object.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const NOTHING = new Quantity(0n, 0, 'DecimalSI');
const OS_LABEL = 'kubernetes.io/os';

/** The node of a pod whose spec changes; null where there is nothing to ask of one. */
function nodeOf(write: Admitted): JsonObject | Status | null {
  const { object, previous, world } = write;
  const name = stringAt(object, 'spec', 'nodeName');
  const generation = (pod: JsonObject | null): JsonValue | undefined =>
    objectAt(pod, 'metadata')?.['generation'];
  if (name === '' || generation(object) === generation(previous)) return null;
  const found = readStoredObject(world, '', 'nodes', '', name);
  return found ?? refuse(write, `node ${JSON.stringify(name)} not found`);
}

function isStatus(found: JsonObject | Status): found is Status {
  return found['kind'] === 'Status';
}

function refuseBecause(write: Admitted, why: string, reason: string): Status {
  return forbidden(write.served.plural, writtenName(write), why, [{ reason }]);
}

/** Resizes go to nodes of Linux that have what is asked for. */
export const podResize: AdmissionPlugin = {
  name: 'PodResizeValidator',
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' && operation === 'UPDATE' && subresource === 'resize',
  validate: (write) => {
    const node = nodeOf(write);
    if (node === null || isStatus(node)) return node;
    const system = objectAt(node, 'metadata', 'labels')?.[OS_LABEL];
    if (typeof system === 'string' && system !== 'linux') {
      const name = JSON.stringify(stringAt(node, 'metadata', 'name'));
      const text = `pod resize is only supported on linux nodes, node ${name} is `;
      return refuseBecause(write, text + JSON.stringify(system), 'UnsupportedPlatform');
    }
    const asked = podAmounts(write.object ?? {}, 'requests');
    const has = amountsOf(objectAt(node, 'status', 'allocatable'));
    const texts = ['cpu', 'memory'].flatMap((name) => {
      const wanted = asked.get(name) ?? NOTHING;
      const limit = has.get(name) ?? NOTHING;
      if (wanted.compare(limit) <= 0) return [];
      const shown = (amount: Quantity): string =>
        String(name === 'cpu' ? amount.milliValue : amount.value);
      return [`${name}, requested: ${shown(wanted)}, allocatable: ${shown(limit)}`];
    });
    if (texts.length === 0) return null;
    const text = `node didn't have enough allocatable resources: ${texts.join('; ')}`;
    return refuseBecause(write, text, 'NodeCapacity');
  },
};

const POD_LEVEL = 'InPlacePodLevelResourcesVerticalScaling';
const INIT_CONTAINERS = 'InPlacePodVerticalScalingInitContainers';

/** Features that the change needs, by name. */
function neededFeatures(before: JsonValue, after: JsonValue): string[] {
  const needed: string[] = [];
  if (!equals(objectAt(before, 'resources'), objectAt(after, 'resources'))) needed.push(POD_LEVEL);
  const next = listAt(after, 'initContainers');
  const isInit = listAt(before, 'initContainers').some(
    (container, index) =>
      stringAt(container, 'restartPolicy') !== 'Always' &&
      !equals(objectAt(container, 'resources'), objectAt(next[index] ?? null, 'resources')),
  );
  if (isInit) needed.push(INIT_CONTAINERS);
  return needed;
}

/** What a node must be able to do is in its `status.declaredFeatures`. */
export const declaredFeatures: AdmissionPlugin = {
  name: 'NodeDeclaredFeatureValidator',
  handles: ({ resource }, operation, subresource) =>
    resource.storage.name === 'pods' &&
    operation === 'UPDATE' &&
    (subresource === 'resize' || subresource === ''),
  validate: (write) => {
    const { object, previous } = write;
    const needed = neededFeatures(
      objectAt(previous, 'spec') ?? null,
      objectAt(object, 'spec') ?? null,
    );
    if (needed.length === 0) return null;
    const node = nodeOf(write);
    if (node === null || isStatus(node)) return node;
    const has = listAt(node, 'status', 'declaredFeatures');
    const missing = needed.filter((feature) => !has.includes(feature));
    if (missing.length === 0) return null;
    const name = JSON.stringify(stringAt(node, 'metadata', 'name'));
    const text = `pod update requires features ${missing.join(', ')} which are not available on`;
    return refuse(write, `${text} node ${name}`);
  },
  repeats: () => true,
};

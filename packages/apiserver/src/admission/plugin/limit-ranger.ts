/** LimitRanger: what containers, pods and claims ask for by default, at least and at most. */
import { ownMember, putMember, putMembers } from '@megaplane/base/members';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { Quantity } from '@megaplane/machinery/quantity';
import { withDefaults } from '../../registry/rest/schema-gate.ts';
import { NamespacedObjects } from '../../lister/namespaced-objects.ts';
import {
  amountsOf,
  containerAmounts,
  podSpecAmounts,
  type Amounts,
} from '@megaplane/machinery/quota/pod-resources';
import { refuse } from '../../registry/rest/refusal.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const ANNOTATION = 'kubernetes.io/limit-ranger';
const ranges = new NamespacedObjects('', 'limitranges');

/** What is being deleted is left alone. */
function isGoing({ previous }: Admitted): boolean {
  return stringAt(previous ?? {}, 'metadata', 'deletionTimestamp') !== '';
}

export const limitRanger: AdmissionPlugin = {
  name: 'LimitRanger',
  repeats: () => true,
  handles: ({ resource }, operation, subresource) => {
    const { name } = resource.storage;
    if (subresource === 'resize') return name === 'pods' && operation === 'UPDATE';
    if (subresource !== '') return false;
    if (name === 'pods') return operation === 'CREATE';
    return name === 'persistentvolumeclaims' && (operation === 'CREATE' || operation === 'UPDATE');
  },
  mutate: (write) => {
    const { object, served } = write;
    const isPod = served.resource.storage.name === 'pods';
    if (!isPod || object === null || isGoing(write)) return null;
    const { namespace } = write.call.info;
    let isChanged = false;
    for (const { object: range } of ranges.of(write.world, namespace)) {
      if (setDefaults(object, range)) isChanged = true;
    }
    // what upstream reads back from its storage has the defaults that follow from these
    if (isChanged) putMembers(object, withDefaults(served, object));
    return null;
  },
  validate: (write) => {
    const { object, served } = write;
    if (object === null || isGoing(write)) return null;
    const isPod = served.resource.storage.name === 'pods';
    // the first range that has something against it speaks for itself
    for (const { object: range } of ranges.of(write.world, write.call.info.namespace)) {
      const faults = listAt(range, 'spec', 'limits').flatMap((limit) => {
        if (!isObject(limit)) return [];
        return isPod ? podFaults(object, limit) : claimFaults(object, limit);
      });
      if (faults.length > 0) return refuse(write, aggregate(faults));
    }
    return null;
  },
};

/** Sets what containers leave out; whether there was something. */
function setDefaults(pod: JsonObject, range: JsonObject): boolean {
  const limits: JsonObject = {};
  const requests: JsonObject = {};
  for (const limit of listAt(range, 'spec', 'limits')) {
    if (stringAt(limit, 'type') !== 'Container') continue;
    putMembers(limits, objectAt(limit, 'default'));
    putMembers(requests, objectAt(limit, 'defaultRequest'));
  }
  const notes: string[] = [];
  for (const [field, label] of [
    ['containers', 'container'],
    ['initContainers', 'init container'],
  ] as const) {
    for (const container of listAt(pod, 'spec', field)) {
      if (!isObject(container)) continue;
      const name = `${label} ${stringAt(container, 'name')}`;
      const asked = fill(container, 'requests', requests);
      const bound = fill(container, 'limits', limits);
      if (asked.length > 0) notes.push(`${asked.join(', ')} request for ${name}`);
      if (bound.length > 0) notes.push(`${bound.join(', ')} limit for ${name}`);
    }
  }
  if (notes.length === 0) return false;
  const metadata = objectAt(pod, 'metadata') ?? {};
  const annotations = objectAt(metadata, 'annotations') ?? {};
  annotations[ANNOTATION] = `LimitRanger plugin set: ${notes.join('; ')}`;
  metadata['annotations'] = annotations;
  pod['metadata'] = metadata;
  return true;
}

/** Sets what is missing; the names of what was set, sorted. */
function fill(container: JsonObject, side: string, defaults: JsonObject): string[] {
  const names = Object.keys(defaults);
  const own = objectAt(container, 'resources', side) ?? {};
  const missing = names.filter((name) => ownMember(own, name) === undefined).toSorted();
  if (missing.length === 0) return missing;
  const filled: JsonObject = { ...own };
  for (const name of missing) putMember(filled, name, ownMember(defaults, name));
  const resources = { ...objectAt(container, 'resources'), [side]: filled };
  const { limits, requests, ...rest } = resources;
  container['resources'] = {
    ...(limits === undefined ? {} : { limits }),
    ...(requests === undefined ? {} : { requests }),
    ...rest,
  };
  return missing;
}

function podFaults(pod: JsonObject, limit: JsonObject): string[] {
  const type = stringAt(limit, 'type');
  if (type === 'Pod') {
    const spec = objectAt(pod, 'spec') ?? {};
    return boundFaults(
      type,
      limit,
      podSpecAmounts(spec, 'requests'),
      podSpecAmounts(spec, 'limits'),
    );
  }
  if (type !== 'Container') return [];
  const containers = [
    ...listAt(pod, 'spec', 'containers'),
    ...listAt(pod, 'spec', 'initContainers'),
  ];
  return containers.flatMap((container) => {
    const requests = containerAmounts(container, 'requests');
    return boundFaults(type, limit, requests, containerAmounts(container, 'limits'));
  });
}

function boundFaults(
  type: string,
  limit: JsonObject,
  requests: Amounts,
  limits: Amounts,
): string[] {
  const faults: string[] = [];
  for (const [name, bound] of sorted(limit['min'])) {
    const head = `minimum ${name} usage per ${type} is ${bound.toString()}`;
    const request = requests.get(name);
    const own = limits.get(name);
    if (request === undefined) faults.push(`${head}.  No request is specified`);
    else if (request.compare(bound) < 0)
      faults.push(`${head}, but request is ${request.toString()}`);
    else if (own !== undefined && own.compare(bound) < 0) {
      faults.push(`${head}, but limit is ${own.toString()}`);
    }
  }
  for (const [name, bound] of sorted(limit['max'])) {
    const head = `maximum ${name} usage per ${type} is ${bound.toString()}`;
    const request = requests.get(name);
    const own = limits.get(name);
    if (own === undefined) faults.push(`${head}.  No limit is specified`);
    else if (own.compare(bound) > 0) faults.push(`${head}, but limit is ${own.toString()}`);
    else if (request !== undefined && request.compare(bound) > 0) {
      faults.push(`${head}, but request is ${request.toString()}`);
    }
  }
  for (const [name, bound] of sorted(limit['maxLimitRequestRatio'])) {
    const fault = ratioFault(type, name, bound, requests.get(name), limits.get(name));
    if (fault !== '') faults.push(fault);
  }
  return faults;
}

function ratioFault(
  type: string,
  name: string,
  bound: Quantity,
  request: Quantity | undefined,
  limit: Quantity | undefined,
): string {
  const head = `${name} max limit to request ratio per ${type} is ${bound.toString()}`;
  if (request === undefined || request.sign === 0) {
    return `${head}, but no request is specified or request is 0`;
  }
  if (limit === undefined || limit.sign === 0) {
    return `${head}, but no limit is specified or limit is 0`;
  }
  const ratio = limit.milliValue / request.milliValue;
  if (ratio <= bound.milliValue / 1000) return '';
  return `${head}, but provided ratio is ${ratio.toFixed(6)}`;
}

function claimFaults(claim: JsonObject, limit: JsonObject): string[] {
  const type = stringAt(limit, 'type');
  if (type !== 'PersistentVolumeClaim') return [];
  const requests = amountsOf(objectAt(claim, 'spec', 'resources', 'requests'));
  const faults: string[] = [];
  for (const side of ['min', 'max'] as const) {
    const word = side === 'min' ? 'minimum' : 'maximum';
    for (const [name, bound] of sorted(limit[side])) {
      const head = `${word} ${name} usage per ${type} is ${bound.toString()}`;
      const request = requests.get(name);
      if (request === undefined) {
        faults.push(`${head}.  No request is specified`);
        continue;
      }
      const sign = request.compare(bound);
      if (side === 'min' ? sign < 0 : sign > 0) {
        faults.push(`${head}, but request is ${request.toString()}`);
      }
    }
  }
  return faults;
}

function sorted(value: JsonValue | undefined): [string, Quantity][] {
  return Array.from(amountsOf(value)).toSorted(([left], [right]) => (left < right ? -1 : 1));
}

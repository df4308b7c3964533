/** What an object counts for in quotas, and which quotas it falls under. */
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import { isNumber, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { parseQuantity, Quantity } from '../meta/quantity.ts';
import type { Resource } from '../scheme/kinds.ts';
import {
  containerAmounts,
  hasWholeAmounts,
  podAmounts,
  qosClassOf,
  type Amounts,
} from '../meta/pod-resources.ts';

const ONE = new Quantity(1n, 0, 'DecimalSI');

function count(amount: number): Quantity {
  return new Quantity(BigInt(amount), 0, 'DecimalSI');
}

/** `count/deployments.apps`, `count/pods`. */
export function countName({ group, resource }: Resource): string {
  return group === '' ? `count/${resource}` : `count/${resource}.${group}`;
}

/** Kinds of the core group that are counted under their bare name too. */
const BARE: ReadonlySet<string> = new Set([
  'configmaps',
  'secrets',
  'replicationcontrollers',
  'resourcequotas',
]);

/**
 * What the object uses of each resource that a quota may name. Claims of devices also use the
 * extended resources that their classes stand for: `extendedNameOf` a class tells which, or ''.
 */
export function usageOf(
  resource: Resource,
  object: JsonObject,
  extendedNameOf: (className: string) => string = () => '',
): Amounts {
  const { name } = resource.storage;
  const usage: Amounts = new Map([[countName(resource), ONE]]);
  switch (name) {
    case 'pods':
      addPod(usage, object);
      break;
    case 'services':
      addService(usage, object);
      break;
    case 'persistentvolumeclaims':
      addClaim(usage, object);
      break;
    case DEVICE_CLAIMS:
      addDevices(usage, object, extendedNameOf);
      break;
    default:
      if (BARE.has(name)) usage.set(name, ONE);
  }
  return usage;
}

const POD_RESOURCES: ReadonlySet<string> = new Set([
  ...['pods', 'count/pods', 'cpu', 'memory', 'ephemeral-storage'],
  ...['requests.cpu', 'requests.memory', 'requests.ephemeral-storage'],
  ...['limits.cpu', 'limits.memory', 'limits.ephemeral-storage'],
]);
const SERVICE_RESOURCES: ReadonlySet<string> = new Set([
  ...['services', 'count/services', 'services.nodeports', 'services.loadbalancers'],
]);
const CLASSED = String.raw`(.*\.storageclass\.storage\.k8s\.io/)?`;
const CLAIM_RESOURCES: RegExp = new RegExp(
  `^(count/persistentvolumeclaims|${CLASSED}(persistentvolumeclaims|requests\\.storage))$`,
);

/** Whether objects of the kind can use a resource of a quota, by upstream's evaluators. */
export function isCounted(resource: Resource, name: string): boolean {
  switch (resource.storage.name) {
    case 'pods':
      if (POD_RESOURCES.has(name) || /^(requests\.)?hugepages-/.test(name)) return true;
      return isExtendedRequest(name);
    case 'services':
      return SERVICE_RESOURCES.has(name);
    case 'persistentvolumeclaims':
      return CLAIM_RESOURCES.test(name);
    case DEVICE_CLAIMS:
      return name === countName(resource) || countsDevices(name);
    default:
      return name === countName(resource) || (BARE.has(name) && name === resource.resource);
  }
}

/** Whether a pod ends by itself some day: the scope Terminating. */
export function isTerminating(pod: JsonObject): boolean {
  const deadline = objectAt(pod, 'spec')?.['activeDeadlineSeconds'];
  return isNumber(deadline) && deadline >= 0;
}

/** A pod that has ended uses nothing but its place in storage. */
function isOver(pod: JsonObject): boolean {
  const phase = stringAt(pod, 'status', 'phase');
  return phase === 'Failed' || phase === 'Succeeded';
}

function addPod(usage: Amounts, pod: JsonObject): void {
  if (isOver(pod)) return;
  usage.set('pods', ONE);
  addCompute(usage, podAmounts(pod, 'requests'), podAmounts(pod, 'limits'));
}

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];

function addCompute(usage: Amounts, requests: Amounts, limits: Amounts): void {
  for (const name of COMPUTE) {
    const request = requests.get(name);
    const limit = limits.get(name);
    if (request !== undefined) {
      usage.set(name, request);
      usage.set(`requests.${name}`, request);
    }
    if (limit !== undefined) usage.set(`limits.${name}`, limit);
  }
  for (const [name, request] of requests) {
    if (name.startsWith('hugepages-')) usage.set(name, request);
    if (name.startsWith('hugepages-') || isExtended(name)) usage.set(`requests.${name}`, request);
  }
}

const DEVICE_CLAIMS = 'resourceclaims.resource.k8s.io';
/** What a pod asks for where it names a class of devices in place of a resource. */
const CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/';
const CLASS_SUFFIX = '.deviceclass.resource.k8s.io/devices';
/** Whoever asks for all devices may get so many: upstream's AllocationResultsMaxSize. */
const DEVICES_MAX = 32;

/** `vendor.example/thing`: of no group of Kubernetes itself, or a class of devices. */
function isExtended(name: string): boolean {
  if (name.startsWith(CLASS_PREFIX)) return true;
  return name.includes('/') && !name.slice(0, name.indexOf('/')).endsWith('kubernetes.io');
}

function isExtendedRequest(name: string): boolean {
  return name.startsWith('requests.') && isExtended(name.slice('requests.'.length));
}

/** Whether claims of devices use the resource of a quota by what they ask for. */
export function countsDevices(name: string): boolean {
  return name.endsWith(CLASS_SUFFIX) || isExtendedRequest(name);
}

/**
 * Each request counts by its class; of alternatives each class counts as often as the one that asks
 * for the most of it, whatever will be chosen.
 */
function addDevices(
  usage: Amounts,
  claim: JsonObject,
  extendedNameOf: (className: string) => string,
): void {
  const devices = new Map<string, number>();
  for (const request of listAt(claim, 'spec', 'devices', 'requests')) {
    const largest = new Map<string, number>();
    const exactly = objectAt(request, 'exactly');
    const parts = exactly === undefined ? listAt(request, 'firstAvailable') : [exactly];
    for (const part of parts) {
      const className = stringAt(part, 'deviceClassName');
      const isAll = stringAt(part, 'allocationMode') === 'All';
      const asked = isAll ? DEVICES_MAX : numberAt(part, 'count');
      largest.set(className, Math.max(asked, largest.get(className) ?? 0));
    }
    for (const [name, asked] of largest) devices.set(name, asked + (devices.get(name) ?? 0));
  }
  for (const [className, asked] of devices) {
    usage.set(`${className}${CLASS_SUFFIX}`, count(asked));
    usage.set(`requests.${CLASS_PREFIX}${className}`, count(asked));
    const extended = extendedNameOf(className);
    if (extended === '') continue;
    const name = `requests.${extended}`;
    usage.set(name, usage.get(name)?.add(count(asked)) ?? count(asked));
  }
}

function addService(usage: Amounts, service: JsonObject): void {
  usage.set('services', ONE);
  const type = stringAt(service, 'spec', 'type');
  const ports = listAt(service, 'spec', 'ports');
  const given = ports.filter((port) => numberAt(port, 'nodePort') > 0).length;
  if (type === 'NodePort') {
    usage.set('services.nodeports', count(ports.length));
    return;
  }
  if (type !== 'LoadBalancer') return;
  const isAllocated = objectAt(service, 'spec')?.['allocateLoadBalancerNodePorts'] !== false;
  usage.set('services.nodeports', count(isAllocated ? ports.length : given));
  usage.set('services.loadbalancers', ONE);
}

function addClaim(usage: Amounts, claim: JsonObject): void {
  usage.set('persistentvolumeclaims', ONE);
  const asked = objectAt(claim, 'spec', 'resources', 'requests')?.['storage'];
  const parsed = typeof asked === 'string' ? parseQuantity(asked) : 'format';
  if (typeof parsed !== 'string') usage.set('requests.storage', parsed);
  const annotation = objectAt(claim, 'metadata', 'annotations')?.[
    'volume.beta.kubernetes.io/storage-class'
  ];
  const named =
    typeof annotation === 'string' ? annotation : stringAt(claim, 'spec', 'storageClassName');
  if (named === '') return;
  const prefix = `${named}.storageclass.storage.k8s.io`;
  usage.set(`${prefix}/persistentvolumeclaims`, ONE);
  if (typeof parsed !== 'string') usage.set(`${prefix}/requests.storage`, parsed);
}

/** Of these a quota wants each container to say what it asks for. */
const SPOKEN: ReadonlySet<string> = new Set([
  'cpu',
  'memory',
  'requests.cpu',
  'requests.memory',
  'limits.cpu',
  'limits.memory',
]);

/**
 * `must specify limits.cpu for: a,b; ...`, or '' where every container says enough, or something is
 * said of the pod as a whole.
 */
export function unsaid(resource: Resource, object: JsonObject, names: readonly string[]): string {
  if (resource.storage.name !== 'pods' || hasWholeAmounts(object)) return '';
  const wanted = names.filter((name) => SPOKEN.has(name)).toSorted();
  if (wanted.length === 0) return '';
  const silent = new Map<string, string[]>();
  const containers = [
    ...listAt(object, 'spec', 'containers'),
    ...listAt(object, 'spec', 'initContainers'),
  ];
  for (const container of containers) {
    const own: Amounts = new Map();
    addCompute(own, containerAmounts(container, 'requests'), containerAmounts(container, 'limits'));
    for (const name of wanted) {
      if (own.has(name)) continue;
      const list = silent.get(name) ?? [];
      list.push(stringAt(container, 'name'));
      silent.set(name, list);
    }
  }
  if (silent.size === 0) return '';
  const parts = wanted.flatMap((name) => {
    const list = silent.get(name);
    return list === undefined ? [] : [`${name} for: ${list.toSorted().join(',')}`];
  });
  return `must specify ${parts.join('; ')}`;
}

/** Whether the quota's scopes are those of the object; a quota without scopes is for all. */
export function isInScope(resource: Resource, object: JsonObject, quota: JsonObject): boolean {
  const plain = listAt(quota, 'spec', 'scopes').map((scopeName): JsonValue => ({ scopeName }));
  const selected = listAt(quota, 'spec', 'scopeSelector', 'matchExpressions');
  const { name } = resource.storage;
  return [...plain, ...selected].every((selector) => {
    if (name === 'pods') return podMatches(object, selector);
    if (name === 'persistentvolumeclaims') return claimMatches(object, selector);
    return false;
  });
}

function podMatches(pod: JsonObject, selector: JsonValue): boolean {
  const spec = objectAt(pod, 'spec') ?? {};
  switch (stringAt(selector, 'scopeName')) {
    case 'Terminating':
      return isTerminating(pod);
    case 'NotTerminating':
      return !isTerminating(pod);
    case 'BestEffort':
      return qosClassOf(pod) === 'BestEffort';
    case 'NotBestEffort':
      return qosClassOf(pod) !== 'BestEffort';
    case 'CrossNamespacePodAffinity':
      return crossesNamespaces(spec);
    case 'PriorityClass':
      return namedMatches(stringAt(spec, 'priorityClassName'), selector);
    default:
      return false;
  }
}

function claimMatches(claim: JsonObject, selector: JsonValue): boolean {
  if (stringAt(selector, 'scopeName') !== 'VolumeAttributesClass') return false;
  return namedMatches(stringAt(claim, 'spec', 'volumeAttributesClassName'), selector);
}

function namedMatches(name: string, selector: JsonValue): boolean {
  const values = listAt(selector, 'values');
  switch (stringAt(selector, 'operator')) {
    case 'In':
      return values.includes(name);
    case 'NotIn':
      return !values.includes(name);
    case 'DoesNotExist':
      return name === '';
    default:
      return name !== '';
  }
}

const TERMS = [
  'requiredDuringSchedulingIgnoredDuringExecution',
  'preferredDuringSchedulingIgnoredDuringExecution',
];

function crossesNamespaces(spec: JsonObject): boolean {
  return ['podAffinity', 'podAntiAffinity'].some((kind) =>
    TERMS.some((field) =>
      listAt(spec, 'affinity', kind, field).some((entry) => {
        const term = objectAt(entry, 'podAffinityTerm') ?? entry;
        return (
          listAt(term, 'namespaces').length > 0 || objectAt(term, 'namespaceSelector') !== undefined
        );
      }),
    ),
  );
}

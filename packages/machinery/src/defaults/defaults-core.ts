/** Defaults of the core group. */

import { ownMember, putMember } from '@megaplane/base/members';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { containersAmounts } from '../meta/pod-resources.ts';
import { isVoid } from '../scheme/empty-collections.ts';
import type { DefaultRules } from './default-rules.ts';

const FILE_MODE = 0o644;
const HOUR_SECONDS = 3600;
const WHOLE_RESOURCES = ['cpu', 'memory'];
const CLIENT_IP_TIMEOUT_SECONDS = 10800;

const CONTAINER = {
  values: { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
  step: (container: JsonObject): void => {
    container['imagePullPolicy'] ??= pullPolicy(stringAt(container, 'image'));
  },
};

const SOURCE_KINDS = ['PersistentVolumeClaim.', 'VolumeSnapshot.snapshot.storage.k8s.io'];

export const CORE_DEFAULTS: DefaultRules = {
  'core.v1.Pod': { step: defaultPod },
  'core.v1.PodStatus': { step: mirrorPodIp },
  'core.v1.PodSpec': {
    values: {
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: 'default-scheduler',
    },
    step: mirrorServiceAccount,
  },
  'core.v1.Container': CONTAINER,
  'core.v1.EphemeralContainer': CONTAINER,
  'core.v1.ContainerPort': { values: { protocol: 'TCP' } },
  'core.v1.Probe': {
    values: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  },
  'core.v1.HTTPGetAction': { values: { path: '/', scheme: 'HTTP' } },
  'core.v1.GRPCAction': { values: { service: '' } },
  'core.v1.ObjectFieldSelector': { values: { apiVersion: 'v1' } },
  'core.v1.FileKeySelector': { values: { optional: false } },
  'core.v1.Volume': { step: defaultVolume },
  'core.v1.SecretVolumeSource': { values: { defaultMode: FILE_MODE } },
  'core.v1.ConfigMapVolumeSource': { values: { defaultMode: FILE_MODE } },
  'core.v1.DownwardAPIVolumeSource': { values: { defaultMode: FILE_MODE } },
  'core.v1.ProjectedVolumeSource': { values: { defaultMode: FILE_MODE } },
  'core.v1.ServiceAccountTokenProjection': { values: { expirationSeconds: HOUR_SECONDS } },
  'core.v1.HostPathVolumeSource': { values: { type: '' } },
  'core.v1.ISCSIVolumeSource': { values: { iscsiInterface: 'default' } },
  'core.v1.ISCSIPersistentVolumeSource': { values: { iscsiInterface: 'default' } },
  'core.v1.RBDVolumeSource': {
    values: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  },
  'core.v1.RBDPersistentVolumeSource': {
    values: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  },
  'core.v1.AzureDiskVolumeSource': {
    values: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
  },
  'core.v1.ScaleIOVolumeSource': {
    values: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
  },
  'core.v1.ScaleIOPersistentVolumeSource': {
    values: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
  },
  'core.v1.Service': { step: defaultService },
  'core.v1.ServicePort': { values: { protocol: 'TCP' } },
  'core.v1.Secret': { values: { type: 'Opaque' }, step: encodeStringData },
  'core.v1.PersistentVolume': { step: defaultVolumeObject },
  'core.v1.PersistentVolumeClaim': {
    step: (claim) => {
      const status = objectAt(claim, 'status') ?? {};
      status['phase'] ??= 'Pending';
      claim['status'] = status;
    },
  },
  'core.v1.PersistentVolumeClaimSpec': { values: { volumeMode: 'Filesystem' } },
  'core.v1.EndpointPort': { values: { protocol: 'TCP' } },
  'core.v1.Namespace': { step: labelNamespace },
  'core.v1.NamespaceStatus': { values: { phase: 'Active' } },
  'core.v1.NodeSpec': { step: mirrorPodCidr },
  'core.v1.NodeStatus': {
    step: (status) => {
      const capacity = status['capacity'];
      if (isObject(capacity)) status['allocatable'] ??= { ...capacity };
    },
  },
  'core.v1.LimitRangeItem': { step: defaultLimitRange },
  'core.v1.ReplicationController': { step: defaultReplicationController },
  'core.v1.ReplicationControllerSpec': { values: { replicas: 1 } },
};

/** `Always` for images that can change under their name: without a tag, or tagged `latest`. */
function pullPolicy(image: string): string {
  return imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent';
}

const IMAGE_PATH =
  /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;

const HOST_PART = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
/** A host, perhaps with a port. */
const IMAGE_DOMAIN = new RegExp(
  `^(?:${HOST_PART}(?:\\.${HOST_PART})*|\\[[0-9a-fA-F:]+\\])(?::[0-9]+)?$`,
);

const IMAGE_NAME_LENGTH_MAX = 255;

/** Tag of an image's name: `latest` if it has neither tag nor digest, '' if it is no name. */
export function imageTag(image: string): string {
  const [name = '', digest] = image.split('@');
  if (name.length > IMAGE_NAME_LENGTH_MAX) return '';
  if (digest !== undefined && !/^[A-Za-z][A-Za-z0-9+.-]*:[0-9a-fA-F]{32,}$/.test(digest)) return '';
  const slash = name.lastIndexOf('/');
  const colon = name.indexOf(':', slash + 1);
  const tag = colon < 0 ? undefined : name.slice(colon + 1);
  if (tag !== undefined && !/^\w[\w.-]{0,127}$/.test(tag)) return '';
  const path = colon < 0 ? name : name.slice(0, colon);
  const first = path.slice(0, Math.max(path.indexOf('/'), 0));
  const isDomain = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  if (isDomain && !IMAGE_DOMAIN.test(first)) return '';
  const repository = isDomain ? path.slice(first.length + 1) : path;
  if (!IMAGE_PATH.test(repository) || /^[0-9a-f]{64}$/.test(path)) return '';
  return tag ?? (digest === undefined ? 'latest' : '');
}

/**
 * The two fields for a claim's source say the same. The elder knows claims and snapshots only;
 * sources in other namespaces are off by default, and dropped where they are.
 */
export function mirrorDataSource(claim: JsonObject): void {
  const spec = objectAt(claim, 'spec');
  if (spec === undefined) return;
  if (stringAt(spec, 'dataSourceRef', 'namespace') !== '') delete spec['dataSourceRef'];
  const source = objectAt(spec, 'dataSource');
  const reference = objectAt(spec, 'dataSourceRef');
  if (reference !== undefined) {
    // the elder has no namespace, not even the empty one that the other may keep
    const { namespace: _, ...elder } = reference;
    if (source === undefined) spec['dataSource'] = elder;
  } else if (source !== undefined) {
    const kind = `${stringAt(source, 'kind')}.${stringAt(source, 'apiGroup')}`;
    if (SOURCE_KINDS.includes(kind)) spec['dataSourceRef'] = { ...source };
    else delete spec['dataSource'];
  }
}

function mirrorServiceAccount(spec: JsonObject): void {
  const name = stringAt(spec, 'serviceAccountName') || stringAt(spec, 'serviceAccount');
  if (name === '') return;
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
}

function defaultPod(pod: JsonObject): void {
  const spec = objectAt(pod, 'spec');
  if (spec === undefined) return;
  const containers = [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')];
  for (const container of containers) {
    requestLimits(objectAt(container, 'resources'));
    if (spec['hostNetwork'] === true) openHostPorts(container);
  }
  completeWhole(spec);
  spec['enableServiceLinks'] ??= true;
  // Of pods only: templates keep it.
  if (numberAt(spec, 'terminationGracePeriodSeconds') < 0) {
    spec['terminationGracePeriodSeconds'] = 1;
  }
}

/** What a container may use at most is what it asks for, where it does not say. */
function requestLimits(resources: JsonObject | undefined): void {
  const limits = resources?.['limits'];
  if (resources === undefined || !isObject(limits)) return;
  const requests = isObject(resources['requests']) ? resources['requests'] : {};
  for (const [name, amount] of Object.entries(limits))
    if (ownMember(requests, name) === undefined) putMember(requests, name, amount);
  resources['requests'] = requests;
}

/**
 * What is said of a pod as a whole is completed from its containers: huge pages that they may use,
 * what they ask for, and at last what the pod may use at most.
 */
function completeWhole(spec: JsonObject): void {
  const resources = objectAt(spec, 'resources');
  if (resources === undefined) return;
  const limits = { ...objectAt(resources, 'limits') };
  const requests = { ...objectAt(resources, 'requests') };
  const isSaid = Object.keys(limits).length + Object.keys(requests).length > 0;
  if (!isSaid) return;
  for (const [name, sum] of containersAmounts(spec, 'limits')) {
    if (!name.startsWith('hugepages-') || ownMember(requests, name) !== undefined) continue;
    if (ownMember(limits, name) === undefined) putMember(limits, name, sum.toString());
  }
  if (Object.keys(limits).length === 0) return;
  resources['limits'] = limits;
  for (const [name, sum] of containersAmounts(spec, 'requests')) {
    if (WHOLE_RESOURCES.includes(name))
      if (ownMember(requests, name) === undefined) putMember(requests, name, sum.toString());
  }
  for (const [name, limit] of Object.entries(limits)) {
    if (WHOLE_RESOURCES.includes(name) || name.startsWith('hugepages-'))
      if (ownMember(requests, name) === undefined) putMember(requests, name, limit);
  }
  if (Object.keys(requests).length > 0) resources['requests'] = requests;
}

function openHostPorts(container: JsonValue): void {
  for (const port of listAt(container, 'ports')) {
    if (isObject(port)) port['hostPort'] ||= port['containerPort'];
  }
}

function defaultVolume(volume: JsonObject): void {
  const sources = Object.keys(volume).filter((name) => name !== 'name');
  if (sources.length === 0) volume['emptyDir'] = {};
  const image = objectAt(volume, 'image');
  if (image !== undefined) image['pullPolicy'] ??= pullPolicy(stringAt(image, 'reference'));
}

function defaultService(service: JsonObject): void {
  const spec = objectAt(service, 'spec');
  if (spec === undefined) return;
  spec['sessionAffinity'] ??= 'None';
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig'];
  if (spec['sessionAffinity'] === 'ClientIP') {
    const client = objectAt(spec, 'sessionAffinityConfig', 'clientIP');
    if (client?.['timeoutSeconds'] === undefined) {
      spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: CLIENT_IP_TIMEOUT_SECONDS } };
    }
  }
  spec['type'] ??= 'ClusterIP';
  for (const port of listAt(spec, 'ports')) {
    if (!isObject(port)) continue;
    const target = port['targetPort'];
    if (target === undefined || target === 0 || target === '') port['targetPort'] = port['port'];
  }
  const type = spec['type'];
  const isOutside =
    type === 'LoadBalancer' ||
    type === 'NodePort' ||
    (type === 'ClusterIP' && listAt(spec, 'externalIPs').length > 0);
  if (isOutside) spec['externalTrafficPolicy'] ??= 'Cluster';
  if (type !== 'ExternalName') spec['internalTrafficPolicy'] ??= 'Cluster';
  if (type !== 'LoadBalancer') return;
  spec['allocateLoadBalancerNodePorts'] ??= true;
  for (const ingress of listAt(service, 'status', 'loadBalancer', 'ingress')) {
    if (isObject(ingress) && stringAt(ingress, 'ip') !== '') ingress['ipMode'] ??= 'VIP';
  }
}

function labelNamespace(namespace: JsonObject): void {
  const metadata = objectAt(namespace, 'metadata');
  const name = stringAt(metadata, 'name');
  if (metadata === undefined || name === '') return;
  metadata['labels'] = {
    ...objectAt(metadata, 'labels'),
    'kubernetes.io/metadata.name': name,
  };
}

/** The single field and the list say the same; where both are sent and differ, the single wins. */
function mirrorPodCidr(spec: JsonObject): void {
  const [first] = listAt(spec, 'podCIDRs');
  const single = stringAt(spec, 'podCIDR');
  if (single !== '' && single !== first) spec['podCIDRs'] = [single];
  else if (typeof first === 'string') spec['podCIDR'] = first;
}

function mirrorPodIp(status: JsonObject): void {
  const first = stringAt(listAt(status, 'podIPs')[0], 'ip');
  const single = stringAt(status, 'podIP');
  if (single !== '' && single !== first) status['podIPs'] = [{ ip: single }];
  else if (first !== '') status['podIP'] = first;
}

/** `stringData` is for writing only: it is merged into `data`, and never stored. */
function encodeStringData(secret: JsonObject): void {
  const texts = objectAt(secret, 'stringData');
  if (texts === undefined) return;
  delete secret['stringData'];
  const data: JsonObject = { ...objectAt(secret, 'data') };
  for (const [key, text] of Object.entries(texts)) {
    putMember(data, key, Buffer.from(typeof text === 'string' ? text : '').toString('base64'));
  }
  // where nothing is said, nothing comes to be: none is told from an empty map
  if (Object.keys(texts).length > 0) secret['data'] = data;
}

function defaultVolumeObject(volume: JsonObject): void {
  const spec = objectAt(volume, 'spec');
  if (spec !== undefined) {
    spec['persistentVolumeReclaimPolicy'] ??= 'Retain';
    spec['volumeMode'] ??= 'Filesystem';
  }
  const status = objectAt(volume, 'status') ?? {};
  status['phase'] ??= 'Pending';
  volume['status'] = status;
}

function defaultLimitRange(item: JsonObject): void {
  if (item['type'] !== 'Container') return;
  const limits: JsonObject = { ...objectAt(item, 'max'), ...objectAt(item, 'default') };
  const requests: JsonObject = {
    ...objectAt(item, 'min'),
    ...limits,
    ...objectAt(item, 'defaultRequest'),
  };
  if (Object.keys(limits).length > 0) item['default'] = limits;
  if (Object.keys(requests).length > 0) item['defaultRequest'] = requests;
}

function defaultReplicationController(controller: JsonObject): void {
  const labels = objectAt(controller, 'spec', 'template', 'metadata', 'labels');
  const spec = objectAt(controller, 'spec');
  const metadata = objectAt(controller, 'metadata');
  if (labels === undefined || spec === undefined || metadata === undefined) return;
  if (Object.keys(objectAt(spec, 'selector') ?? {}).length === 0) spec['selector'] = { ...labels };
  if (isVoid(metadata['labels'])) metadata['labels'] = { ...labels };
}

/** NodeRestriction: a kubelet changes itself, and what belongs to pods on its node. */
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { quoted } from '@megaplane/machinery/quoting';
import { forbidden, notFound, type Status } from '@megaplane/machinery/status';
import { addPodReferences } from '../access/pod-references.ts';
import { LEASE_NAMESPACE, nodeNameOfUser } from '../access/node-identity.ts';
import type { World } from '../world.ts';
import type { AdmissionPlugin, Admitted } from './admission.ts';
import { writtenName } from './refusal.ts';
import { readStoredObject } from './stored-object.ts';

type Rule = (write: Admitted, node: string) => Status | null;

/** By the storage's name and, after a slash, the subresource. */
const RULES: Readonly<Record<string, Rule>> = {
  nodes: restrictNode,
  'nodes/status': restrictNode,
  'leases.coordination.k8s.io': restrictLease,
  pods: restrictPod,
  'pods/status': restrictPodStatus,
  'pods/eviction': restrictEviction,
  'serviceaccounts/token': restrictToken,
  'csinodes.storage.k8s.io': restrictCsiNode,
  'resourceslices.resource.k8s.io': restrictSlice,
};

export const nodeRestriction: AdmissionPlugin = {
  name: 'NodeRestriction',
  repeats: ({ call }) => nodeNameOfUser(call.identity) === '',
  handles: ({ resource }, _, subresource) =>
    ruleOf(resource.storage.name, subresource) !== undefined,
  mutate: (write) => {
    const node = nodeNameOfUser(write.call.identity);
    if (node === '') return null;
    const { served, subresource } = write;
    return ruleOf(served.resource.storage.name, subresource)?.(write, node) ?? null;
  },
};

function ruleOf(storage: string, subresource: string): Rule | undefined {
  return RULES[subresource === '' ? storage : `${storage}/${subresource}`];
}

function refuse(write: Admitted, name: string, why: string): Status {
  return forbidden(write.served.plural, name, why);
}

function restrictNode(write: Admitted, node: string): Status | null {
  const { object, previous, operation } = write;
  const name = stringAt(object ?? previous ?? {}, 'metadata', 'name');
  if (name !== node) {
    return refuse(write, name, `node "${node}" is not allowed to modify node "${name}"`);
  }
  if (object === null) return null;
  const source = objectAt(object, 'spec', 'configSource');
  if (source !== undefined && !equals(source, objectAt(previous ?? {}, 'spec', 'configSource'))) {
    const why =
      operation === 'CREATE'
        ? 'create pods with a non-nil configSource'
        : 'update configSource to a new non-nil configSource';
    return refuse(write, name, `node "${node}" is not allowed to ${why}`);
  }
  const labels = changedLabels(previous, object);
  if (labels.length > 0) {
    const why =
      operation === 'CREATE'
        ? `node "${node}" is not allowed to set the following labels: ${labels.join(', ')}`
        : `is not allowed to modify labels: ${labels.join(', ')}`;
    return refuse(write, name, why);
  }
  if (operation === 'UPDATE' && previous !== null) {
    const before = [...listAt(previous, 'spec', 'taints')];
    if (!equals(before, [...listAt(object, 'spec', 'taints')])) {
      return refuse(write, name, `node "${node}" is not allowed to modify taints`);
    }
  }
  return null;
}

const OWN_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
]);

function changedLabels(previous: JsonObject | null, next: JsonObject): string[] {
  const before = objectAt(previous ?? {}, 'metadata', 'labels') ?? {};
  const after = objectAt(next, 'metadata', 'labels') ?? {};
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name] && !isOwnLabel(name)).sort();
}

function isOwnLabel(name: string): boolean {
  const prefix = name.includes('/') ? name.slice(0, name.indexOf('/')) : '';
  const isReserved = /(^|\.)(kubernetes|k8s)\.io$/.test(prefix);
  if (prefix === 'node-restriction.kubernetes.io') return false;
  if (!isReserved || OWN_LABELS.has(name)) return true;
  return /(^|\.)(kubelet|node)\.kubernetes\.io$/.test(prefix);
}

function restrictLease(write: Admitted, node: string): Status | null {
  const { call, object, previous } = write;
  const name = stringAt(object ?? previous ?? {}, 'metadata', 'name');
  if (call.info.namespace !== LEASE_NAMESPACE) {
    const why = `can only access leases in the "${LEASE_NAMESPACE}" system namespace`;
    return refuse(write, name, why);
  }
  if (name === node) return null;
  const why = 'can only access node lease with the same name as the requesting node';
  return refuse(write, name, why);
}

const MIRROR = 'kubernetes.io/config.mirror';
/** What a mirror pod may not refer to: nobody but the kubelet has decided that it may be read. */
const REFERENCES = ['secrets', 'configmaps', 'persistentvolumeclaims', 'resourceclaims'] as const;

function restrictPod(write: Admitted, node: string): Status | null {
  const { object, previous, operation } = write;
  const pod = previous ?? object ?? {};
  const name = stringAt(pod, 'metadata', 'name');
  const isOwn = stringAt(pod, 'spec', 'nodeName') === node;
  switch (operation) {
    case 'CREATE': {
      const why = mirrorFault(write, pod, node, isOwn);
      return why === '' ? null : refuse(write, name, why);
    }
    case 'DELETE':
      if (isOwn) return null;
      return refuse(
        write,
        name,
        `node "${node}" can only delete pods with spec.nodeName set to itself`,
      );
    case 'CONNECT':
    case 'UPDATE':
      if (isOwn) return null;
      return refuse(
        write,
        name,
        `node "${node}" can only update pod status for pods with spec.nodeName set to itself`,
      );
  }
}

/** '' where the pod is a mirror of one that the kubelet runs from a file. */
function mirrorFault(write: Admitted, pod: JsonObject, node: string, isOwn: boolean): string {
  const who = `node "${node}"`;
  if (objectAt(pod, 'metadata', 'annotations')?.[MIRROR] === undefined) {
    return `pod does not have "${MIRROR}" annotation, ${who} can only create mirror pods`;
  }
  if (!isOwn) return `${who} can only create pods with spec.nodeName set to itself`;
  const owners = listAt(pod, 'metadata', 'ownerReferences');
  const [owner] = owners;
  if (owners.length > 1) {
    return `${who} can only create pods with a single owner reference set to itself`;
  }
  if (owner === undefined) {
    return `${who} can only create pods with an owner reference set to itself`;
  }
  const isNode = stringAt(owner, 'kind') === 'Node' && stringAt(owner, 'name') === node;
  if (!isNode || stringAt(owner, 'apiVersion') !== 'v1') {
    return `${who} can only create pods with an owner reference set to itself`;
  }
  const reference = owner as JsonObject;
  if (reference['controller'] !== true) {
    return `${who} can only create pods with a controller owner reference set to itself`;
  }
  if (reference['blockOwnerDeletion'] === true) {
    return `${who} must not set blockOwnerDeletion on an owner reference`;
  }
  const uid = stringAt(
    readStoredObject(write.world, '', 'nodes', '', node) ?? {},
    'metadata',
    'uid',
  );
  if (uid !== stringAt(owner, 'uid')) {
    return `node ${node} UID mismatch: expected ${stringAt(owner, 'uid')} got ${uid}`;
  }
  return referenceFault(pod, who);
}

function referenceFault(pod: JsonObject, who: string): string {
  if (stringAt(pod, 'spec', 'serviceAccountName') !== '') {
    return `${who} can not create pods that reference a service account`;
  }
  const found = new Set<string>();
  addPodReferences({ spec: objectAt(pod, 'spec') ?? {} }, found);
  const kind = REFERENCES.find((one) => [...found].some((text) => text.startsWith(`${one}/`)));
  return kind === undefined ? '' : `${who} can not create pods that reference ${kind}`;
}

function restrictPodStatus(write: Admitted, node: string): Status | null {
  const { object, previous } = write;
  const name = writtenName(write);
  const who = `node "${node}"`;
  if (stringAt(previous ?? {}, 'spec', 'nodeName') !== node) {
    const why = 'can only update pod status for pods with spec.nodeName set to itself';
    return refuse(write, name, `${who} ${why}`);
  }
  const before = objectAt(previous ?? {}, 'metadata', 'labels') ?? {};
  if (!equals(before, objectAt(object ?? {}, 'metadata', 'labels') ?? {})) {
    return refuse(write, name, `${who} cannot update labels through pod status`);
  }
  const statuses = [previous, object].map((pod) => objectAt(pod ?? {}, 'status') ?? {});
  const isKept = (field: string, empty: JsonValue): boolean => {
    const [was, is] = statuses.map((status) => status[field] ?? empty);
    return equals(was ?? empty, is ?? empty);
  };
  // upstream's spelling
  const what = 'cannot update resource claim statues';
  if (!isKept('resourceClaimStatuses', [])) return refuse(write, name, `${who} ${what}`);
  if (isKept('extendedResourceClaimStatus', null)) return null;
  return refuse(write, name, `${who} cannot update extended resource claim status`);
}

function restrictEviction(write: Admitted, node: string): Status | null {
  const { namespace, name } = write.call.info;
  const pod = readStoredObject(write.world, '', 'pods', namespace, name);
  if (pod === null || stringAt(pod, 'spec', 'nodeName') === node) return null;
  const why = `node ${node} can only evict pods with spec.nodeName set to itself`;
  return refuse(write, name, why);
}

function restrictToken(write: Admitted, node: string): Status | null {
  const { namespace, name } = write.call.info;
  const bound = objectAt(write.object ?? {}, 'spec', 'boundObjectRef');
  const isPod = stringAt(bound, 'kind') === 'Pod' && stringAt(bound, 'apiVersion') === 'v1';
  if (!isPod) return refuse(write, name, 'node requested token not bound to a pod');
  const uid = stringAt(bound, 'uid');
  if (uid === '')
    return refuse(write, name, 'node requested token with a pod binding without a uid');
  const podName = stringAt(bound, 'name');
  const pod = readStoredObject(write.world, '', 'pods', namespace, podName);
  if (pod === null) return notFound({ group: '', name: 'pod' }, podName);
  if (stringAt(pod, 'metadata', 'uid') !== uid) {
    const why =
      `the UID in the bound object reference (${uid}) does not match the UID in record. ` +
      'The object might have been deleted and then recreated';
    return refuse(write, name, why);
  }
  if (stringAt(pod, 'spec', 'nodeName') !== node) {
    const why = 'node requested token bound to a pod scheduled on a different node';
    return refuse(write, name, why);
  }
  const why = audienceFault(write, pod);
  return why === '' ? null : refuse(write, name, why);
}

/**
 * A kubelet asks for tokens that its pods mount, for nobody else: the audience is one that a volume
 * of the pod names, or whose driver does, or that the kubelet was allowed (KEP-4412). '' if so.
 */
function audienceFault(write: Admitted, pod: JsonObject): string {
  const { world, call } = write;
  const audiences = listAt(write.object ?? {}, 'spec', 'audiences');
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences';
  const [audience = ''] = audiences.filter((one) => typeof one === 'string');
  const missing: string[] = [];
  if (podAudiences(world, pod, missing).has(audience)) return '';
  if (missing.length > 0) {
    return `error validating audience ${quoted(audience)}: ${aggregate(missing)}`;
  }
  const decision = world.services?.authorize(call.identity, {
    ...{ verb: 'request-serviceaccounts-token-audience', isResource: true, path: '' },
    ...{ group: '', version: 'v1', resource: audience, subresource: '' },
    ...{ namespace: call.info.namespace, name: call.info.name },
  });
  if (decision?.allowed === true) return '';
  const who = call.identity.user;
  const why = `${who} is not authorized to request tokens for this audience`;
  return `audience ${quoted(audience)} not found in pod spec volume, ${why}`;
}

/**
 * Audiences of the tokens that the pod's volumes mount, and that drivers of its volumes ask for;
 * what cannot be looked up is told in `missing`.
 */
function podAudiences(world: World, pod: JsonObject, missing: string[]): Set<string> {
  const audiences = new Set<string>();
  const namespace = stringAt(pod, 'metadata', 'namespace');
  const read = (group: string, kind: string, where: string, name: string): JsonObject => {
    if (name === '') return {};
    const found = readStoredObject(world, group, `${kind}s`, where, name);
    const shown = group === '' ? kind : `${kind}.${group}`;
    if (found === null) missing.push(`${shown} ${quoted(name)} not found`);
    return found ?? {};
  };
  const addDriver = (name: string): void => {
    const driver = read('storage.k8s.io', 'csidriver', '', name);
    for (const one of listAt(driver, 'spec', 'tokenRequests')) {
      audiences.add(stringAt(one, 'audience'));
    }
  };
  for (const volume of listAt(pod, 'spec', 'volumes')) {
    for (const source of listAt(volume, 'projected', 'sources')) {
      const token = objectAt(source, 'serviceAccountToken');
      if (token !== undefined) audiences.add(stringAt(token, 'audience'));
    }
    addDriver(stringAt(volume, 'csi', 'driver'));
    const made = `${stringAt(pod, 'metadata', 'name')}-${stringAt(volume, 'name')}`;
    const isMade = objectAt(volume, 'ephemeral') !== undefined;
    const claimName = isMade ? made : stringAt(volume, 'persistentVolumeClaim', 'claimName');
    const claim = read('', 'persistentvolumeclaim', namespace, claimName);
    const bound = read('', 'persistentvolume', '', stringAt(claim, 'spec', 'volumeName'));
    addDriver(stringAt(bound, 'spec', 'csi', 'driver'));
  }
  return audiences;
}

function restrictCsiNode(write: Admitted, node: string): Status | null {
  const name = writtenName(write);
  if (name === node) return null;
  return refuse(write, name, 'can only access CSINode with the same name as the requesting node');
}

function restrictSlice(write: Admitted, node: string): Status | null {
  const own = stringAt(write.previous ?? write.object ?? {}, 'spec', 'nodeName');
  if (own === node) return null;
  const verb = write.operation === 'DELETE' ? 'delete' : 'create';
  const why = `can only ${verb} ResourceSlice with the same NodeName as the requesting node`;
  return refuse(write, writtenName(write), why);
}

/** The Node authorizer and NodeRestriction: what a kubelet may do, and to whom. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { equals } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { forbidden, type Status } from '@megaplane/machinery/status';
import type { Admitted, AdmissionPlugin } from './admission/admission.ts';
import { DENIED, type Authorizer } from './authorization.ts';
import type { Identity } from './identity.ts';

const USER_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
const LEASE_NAMESPACE = 'kube-node-lease';
const READ = ['get', 'list', 'watch'];

/** Name of the node that an identity is, or ''. */
export function nodeNameOfUser(identity: Identity): string {
  if (!identity.groups.includes(NODES_GROUP)) return '';
  return identity.user.startsWith(USER_PREFIX) ? identity.user.slice(USER_PREFIX.length) : '';
}

/** `resource[/subresource][.group]` -> verbs that kubelets have; who and which is admission's. */
const RULES: Readonly<Record<string, readonly string[]>> = {
  nodes: [...READ, 'create', 'update', 'patch'],
  'nodes/status': ['update', 'patch'],
  pods: [...READ, 'create', 'delete'],
  'pods/status': ['update', 'patch'],
  'pods/eviction': ['create'],
  services: READ,
  configmaps: READ,
  secrets: READ,
  persistentvolumeclaims: ['get'],
  persistentvolumes: ['get'],
  events: ['create', 'update', 'patch'],
  'events.events.k8s.io': ['create', 'update', 'patch'],
  'serviceaccounts/token': ['create'],
  'leases.coordination.k8s.io': ['get', 'create', 'update', 'patch', 'delete'],
  'csinodes.storage.k8s.io': ['get', 'create', 'update', 'patch', 'delete'],
  'csidrivers.storage.k8s.io': READ,
  'volumeattachments.storage.k8s.io': ['get'],
  'runtimeclasses.node.k8s.io': READ,
  'certificatesigningrequests.certificates.k8s.io': ['create', ...READ],
  'resourceclaims.resource.k8s.io': ['get'],
  'resourceslices.resource.k8s.io': [
    ...READ,
    'create',
    'update',
    'patch',
    'delete',
    'deletecollection',
  ],
  'tokenreviews.authentication.k8s.io': ['create'],
  'subjectaccessreviews.authorization.k8s.io': ['create'],
  'clustertrustbundles.certificates.k8s.io': READ,
};

/** Allows kubelets the verbs of their work. */
export const authorizeNodes: Authorizer = (identity, what) => {
  if (!what.isResource || nodeNameOfUser(identity) === '') return DENIED;
  const full = what.subresource === '' ? what.resource : `${what.resource}/${what.subresource}`;
  const name = what.group === '' ? full : `${full}.${what.group}`;
  return RULES[name]?.includes(what.verb) === true ? { allowed: true, reason: 'node' } : DENIED;
};

/** NodeRestriction: a kubelet changes itself, its lease and its pods. */
export const nodeRestriction: AdmissionPlugin = {
  name: 'NodeRestriction',
  repeats: ({ call }) => nodeNameOfUser(call.identity) === '',
  mutate: (write) => {
    const node = nodeNameOfUser(write.call.identity);
    if (node === '') return null;
    switch (write.served.resource.storage.name) {
      case 'nodes':
        return restrictNode(write, node);
      case 'leases.coordination.k8s.io':
        return restrictLease(write, node);
      case 'pods':
        return restrictPod(write, node);
      default:
        return null;
    }
  },
};

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

function restrictPod(write: Admitted, node: string): Status | null {
  const { object, previous, operation, subresource } = write;
  const pod = previous ?? object ?? {};
  const name = stringAt(pod, 'metadata', 'name');
  const isOwn = stringAt(pod, 'spec', 'nodeName') === node;
  if (operation === 'CREATE' && subresource === '') {
    const annotations = objectAt(pod, 'metadata', 'annotations') ?? {};
    if (annotations['kubernetes.io/config.mirror'] !== undefined && isOwn) return null;
    return refuse(
      write,
      name,
      'pod does not have "kubernetes.io/config.mirror" annotation, ' +
        `node "${node}" can only create mirror pods`,
    );
  }
  if (isOwn) return null;
  const what =
    operation === 'DELETE'
      ? 'can only delete pods with spec.nodeName set to itself'
      : 'can only update pod status for pods with spec.nodeName set to itself';
  return refuse(write, name, `node "${node}" ${what}`);
}

/** The Node authorizer: what a kubelet may do; to whom is said by NodeRestriction. */
import { DENIED, type Authorizer } from './authorization.ts';
import type { Identity } from './identity.ts';

const USER_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
/** Where the leases of nodes are. */
export const LEASE_NAMESPACE = 'kube-node-lease';
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

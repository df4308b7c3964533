/** NodeRestriction: a kubelet changes itself, and what belongs to pods on its node. */
import { ownMember } from '@megaplane/base/members';
import { equals, listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { readRequest } from '@megaplane/machinery/certificate-request';
import { aggregate } from '@megaplane/machinery/fielderrors';
import { goDiff } from '@megaplane/machinery/go-value-format';
import { quoted } from '@megaplane/machinery/quoting';
import { notFound, type Status } from '@megaplane/machinery/status';
import { apiReference } from '../../authorization/api-references.ts';
import { isNode, LEASE_NAMESPACE, nodeNameOfUser } from '../../authorization/node-identity.ts';
import type { World } from '../../lister/world.ts';
import { isOwnStatus } from './own-status.ts';
import { refuse } from '../../registry/rest/refusal.ts';
import { readStoredObject } from '../../lister/stored-object.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin, RepeatedRequest, Verdict } from '../admission-plugin.ts';
import { withDecisions, type Decide } from '../with-decisions.ts';

type Rule = (write: Admitted, node: string) => Verdict;

/** By resource and, after a slash, the subresource. */
const RULES: Readonly<Record<string, Rule>> = {
  nodes: restrictNode,
  'nodes/status': restrictNode,
  'leases.coordination.k8s.io': restrictLease,
  pods: restrictPod,
  'pods/status': restrictPodStatus,
  'pods/eviction': restrictEviction,
  'persistentvolumeclaims/status': restrictClaimStatus,
  'serviceaccounts/token': restrictToken,
  'csinodes.storage.k8s.io': restrictCsiNode,
  'resourceslices.resource.k8s.io': restrictSlice,
  'certificatesigningrequests.certificates.k8s.io': restrictRequest,
};

export const nodeRestriction: AdmissionPlugin = {
  name: 'NodeRestriction',
  repeats: (request) =>
    !isNode(request.call.identity) || isOwnLease(request) || isOwnStatus(request),
  mutate: (write) => {
    const { call, served, subresource } = write;
    if (!isNode(call.identity)) return null;
    const node = nodeNameOfUser(call.identity);
    if (node === '') {
      return refuse(write, `could not determine node from user ${quoted(call.identity.user)}`);
    }
    const { name } = served.resource.storage;
    const rule = ownMember(RULES, subresource === '' ? name : `${name}/${subresource}`);
    if (rule !== undefined) return rule(write, node);
    const why = otherwise(name, subresource);
    return why === '' ? null : refuse(write, why);
  },
};

/** What is said of kinds of which a node writes a part only. */
function otherwise(storage: string, subresource: string): string {
  if (storage === 'persistentvolumeclaims') return 'may only update PVC status';
  if (storage !== 'pods') return '';
  return (
    `unexpected pod subresource ${quoted(subresource)}, ` +
    "only 'status' and 'eviction' are allowed"
  );
}

/** The name that the request gives, of a new object that which it has; '' for collections. */
function askedName({ operation, object, call }: Admitted): string {
  if (operation !== 'CREATE') return call.info.name;
  return stringAt(object ?? {}, 'metadata', 'name') || call.info.name;
}

function restrictNode(write: Admitted, node: string): Status | null {
  const { previous, operation } = write;
  // a spec is refused with a status, though it would not be taken over
  const object = write.sent ?? write.object;
  const name = askedName(write);
  const who = `node "${node}"`;
  if (name !== node) return refuse(write, `${who} is not allowed to modify node "${name}"`);
  if (object === null) return null;
  const source = objectAt(object, 'spec', 'configSource');
  if (source !== undefined && !equals(source, objectAt(previous ?? {}, 'spec', 'configSource'))) {
    const why =
      operation === 'CREATE'
        ? 'create pods with a non-nil configSource'
        : 'update configSource to a new non-nil configSource';
    return refuse(write, `${who} is not allowed to ${why}`);
  }
  const isKept = (...path: readonly [string, string]): boolean =>
    previous === null || equals([...listAt(previous, ...path)], [...listAt(object, ...path)]);
  if (!isKept('spec', 'taints')) return refuse(write, `${who} is not allowed to modify taints`);
  if (!isKept('metadata', 'ownerReferences')) {
    return refuse(write, `${who} is not allowed to modify ownerReferences`);
  }
  const labels = changedLabels(previous, object).join(', ');
  if (labels === '') return null;
  if (operation !== 'CREATE') return refuse(write, `is not allowed to modify labels: ${labels}`);
  return refuse(write, `${who} is not allowed to set the following labels: ${labels}`);
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
  return [...names]
    .filter((name) => ownMember(before, name) !== ownMember(after, name) && !isOwnLabel(name))
    .sort();
}

function isOwnLabel(name: string): boolean {
  const prefix = name.includes('/') ? name.slice(0, name.indexOf('/')) : '';
  const isReserved = /(^|\.)(kubernetes|k8s)\.io$/.test(prefix);
  if (/(^|\.)node-restriction\.kubernetes\.io$/.test(prefix)) return false;
  if (!isReserved || OWN_LABELS.has(name)) return true;
  return /(^|\.)(kubelet|node)\.kubernetes\.io$/.test(prefix);
}

function restrictLease(write: Admitted, node: string): Status | null {
  if (write.call.info.namespace !== LEASE_NAMESPACE) {
    return refuse(write, `can only access leases in the "${LEASE_NAMESPACE}" system namespace`);
  }
  if (askedName(write) === node) return null;
  return refuse(write, 'can only access node lease with the same name as the requesting node');
}

/** A change of the node's own lease, of which the plugin looks at nothing but the name. */
function isOwnLease({ served, call }: RepeatedRequest): boolean {
  const { namespace, name } = call.info;
  const isLease = served.resource.storage.name === 'leases.coordination.k8s.io';
  if (!isLease || call.exchange.method === 'POST' || namespace !== LEASE_NAMESPACE) return false;
  const node = nodeNameOfUser(call.identity);
  return node !== '' && node === name;
}

const MIRROR = 'kubernetes.io/config.mirror';

function restrictPod(write: Admitted, node: string): Status | null {
  const { object, previous, operation } = write;
  const pod = previous ?? object ?? {};
  const isOwn = stringAt(pod, 'spec', 'nodeName') === node;
  if (operation === 'CREATE') {
    const why = mirrorFault(write, pod, node, isOwn);
    return why === '' ? null : refuse(write, why);
  }
  const who = `node "${node}"`;
  if (operation !== 'DELETE') {
    const why = `${who} can only create and delete mirror pods`;
    return refuse(write, `unexpected operation ${quoted(operation)}, ${why}`);
  }
  // of a collection upstream knows no names, and so finds none of its pods
  const { name } = write.call.info;
  if (name === '') return noPod(name);
  if (isOwn) return null;
  return refuse(write, `${who} can only delete pods with spec.nodeName set to itself`);
}

/** As upstream's caches say it. */
function noPod(name: string): Status {
  return notFound({ group: '', name: 'pod' }, name);
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
  const found = apiReference(pod);
  if (found.startsWith('unknown ')) return `error checking mirror pod for API references: ${found}`;
  return found === '' ? '' : `${who} can not create pods that reference ${found}`;
}

function restrictPodStatus(write: Admitted, node: string): Status | null {
  const { object, previous } = write;
  const who = `node "${node}"`;
  if (stringAt(previous ?? {}, 'spec', 'nodeName') !== node) {
    const why = 'can only update pod status for pods with spec.nodeName set to itself';
    return refuse(write, `${who} ${why}`);
  }
  const before = objectAt(previous ?? {}, 'metadata', 'labels') ?? {};
  if (!equals(before, objectAt(object ?? {}, 'metadata', 'labels') ?? {})) {
    return refuse(write, `${who} cannot update labels through pod status`);
  }
  const statuses = [previous, object].map((pod) => objectAt(pod ?? {}, 'status') ?? {});
  const isKept = (field: string, empty: JsonValue): boolean => {
    const [was, is] = statuses.map((status) => ownMember(status, field) ?? empty);
    return equals(was ?? empty, is ?? empty);
  };
  // upstream's spelling
  const what = 'cannot update resource claim statues';
  if (!isKept('resourceClaimStatuses', [])) return refuse(write, `${who} ${what}`);
  if (isKept('extendedResourceClaimStatus', null)) return null;
  return refuse(write, `${who} cannot update extended resource claim status`);
}

function restrictEviction(write: Admitted, node: string): Status | null {
  const { namespace, name } = write.call.info;
  const pod = readStoredObject(write.world, '', 'pods', namespace, name);
  if (pod === null) return noPod(name);
  if (stringAt(pod, 'spec', 'nodeName') === node) return null;
  const why = `node ${node} can only evict pods with spec.nodeName set to itself`;
  return refuse(write, why);
}

function restrictToken(write: Admitted, node: string): Verdict {
  const { namespace } = write.call.info;
  const bound = objectAt(write.object ?? {}, 'spec', 'boundObjectRef');
  const isPod = stringAt(bound, 'kind') === 'Pod' && stringAt(bound, 'apiVersion') === 'v1';
  if (!isPod) return refuse(write, 'node requested token not bound to a pod');
  const uid = stringAt(bound, 'uid');
  if (uid === '') return refuse(write, 'node requested token with a pod binding without a uid');
  const podName = stringAt(bound, 'name');
  const pod = readStoredObject(write.world, '', 'pods', namespace, podName);
  if (pod === null) return noPod(podName);
  if (stringAt(pod, 'metadata', 'uid') !== uid) {
    const why =
      `the UID in the bound object reference (${uid}) does not match the UID in record. ` +
      'The object might have been deleted and then recreated';
    return refuse(write, why);
  }
  if (stringAt(pod, 'spec', 'nodeName') !== node) {
    const why = 'node requested token bound to a pod scheduled on a different node';
    return refuse(write, why);
  }
  return withDecisions(write, (decide) => {
    const why = audienceFault(write, pod, decide);
    return why === '' ? null : refuse(write, why);
  });
}

/**
 * A kubelet asks for tokens that its pods mount, for nobody else: the audience is one that a volume
 * of the pod names, or whose driver does, or that the kubelet was allowed (KEP-4412). '' if so.
 */
function audienceFault(write: Admitted, pod: JsonObject, decide: Decide): string {
  const { world, call } = write;
  const audiences = listAt(write.object ?? {}, 'spec', 'audiences');
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences';
  const [audience = ''] = audiences.filter((one) => typeof one === 'string');
  const missing: string[] = [];
  if (podAudiences(world, pod, missing).has(audience)) return '';
  if (missing.length > 0) {
    return `error validating audience ${quoted(audience)}: ${aggregate(missing)}`;
  }
  const decision = decide({
    ...{ verb: 'request-serviceaccounts-token-audience', isResource: true, path: '' },
    ...{ group: '', version: 'v1', resource: audience, subresource: '' },
    ...{ namespace: call.info.namespace, name: call.info.name },
  });
  if (decision.allowed) return '';
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
  const read = (
    group: string,
    kind: string,
    where: string,
    name: string,
  ): JsonObject | undefined => {
    const found = readStoredObject(world, group, `${kind}s`, where, name);
    const shown = group === '' ? kind : `${kind}.${group}`;
    if (found === null) missing.push(`${shown} ${quoted(name)} not found`);
    return found ?? undefined;
  };
  const addDriver = (name: string): void => {
    if (name === '') return;
    const driver = read('storage.k8s.io', 'csidriver', '', name) ?? {};
    for (const one of listAt(driver, 'spec', 'tokenRequests')) {
      audiences.add(stringAt(one, 'audience'));
    }
  };
  for (const volume of listAt(pod, 'spec', 'volumes')) {
    for (const source of listAt(volume, 'projected', 'sources')) {
      const token = objectAt(source, 'serviceAccountToken');
      if (token !== undefined) audiences.add(stringAt(token, 'audience'));
    }
    addDriver(driverOf(volume));
    const made = `${stringAt(pod, 'metadata', 'name')}-${stringAt(volume, 'name')}`;
    const isMade = objectAt(volume, 'ephemeral') !== undefined;
    const claimName = isMade ? made : stringAt(volume, 'persistentVolumeClaim', 'claimName');
    if (claimName === '') continue;
    const claim = read('', 'persistentvolumeclaim', namespace, claimName);
    if (claim === undefined) continue;
    const bound = read('', 'persistentvolume', '', stringAt(claim, 'spec', 'volumeName'));
    addDriver(driverOf(objectAt(bound ?? {}, 'spec') ?? {}));
  }
  return audiences;
}

/** Status of a claim that a node does not tell: it changes how large the volume is. */
const CLAIM_STATUS: ReadonlySet<string> = new Set([
  'capacity',
  'conditions',
  'allocatedResources',
  'allocatedResourceStatuses',
]);

function restrictClaimStatus(write: Admitted, node: string): Status | null {
  const [before, after] = [write.previous, write.object].map((claim) => {
    const { kind: _, apiVersion: __, status, ...rest } = claim ?? {};
    const {
      managedFields: ___,
      resourceVersion: ____,
      ...metadata
    } = objectAt(rest, 'metadata') ?? {};
    const told = Object.entries(isObject(status) ? status : {});
    const kept = Object.fromEntries(told.filter(([field]) => !CLAIM_STATUS.has(field)));
    return { metadata, spec: objectAt(rest, 'spec') ?? {}, status: kept };
  });
  const difference = goDiff('core.v1.PersistentVolumeClaim', before, after);
  if (difference === '') return null;
  const what = 'update fields other than status.quantity and status.conditions';
  return refuse(write, `node "${node}" is not allowed to ${what}: ${difference}`);
}

/** A kubelet asks for certificates of its own: anybody else's would let it speak for them. */
function restrictRequest(write: Admitted, node: string): Status | null {
  if (write.operation !== 'CREATE') return null;
  const spec = objectAt(write.object ?? {}, 'spec') ?? {};
  if (!KUBELET_SIGNERS.has(stringAt(spec, 'signerName'))) return null;
  const pem = Buffer.from(stringAt(spec, 'request'), 'base64').toString('latin1');
  const request = readRequest(pem);
  if (typeof request === 'string') return refuse(write, `unable to parse csr: ${request}`);
  const name = `system:node:${node}`;
  if (request.commonName === name) return null;
  return refuse(write, `can only create a node CSR with CN=${name}`);
}

const KUBELET_SIGNERS: ReadonlySet<string> = new Set([
  'kubernetes.io/kubelet-serving',
  'kubernetes.io/kube-apiserver-client-kubelet',
]);

/** Drivers that took over what nodes once mounted by themselves. */
const DRIVERS: Readonly<Record<string, string>> = {
  awsElasticBlockStore: 'ebs.csi.aws.com',
  azureDisk: 'disk.csi.azure.com',
  azureFile: 'file.csi.azure.com',
  cinder: 'cinder.csi.openstack.org',
  gcePersistentDisk: 'pd.csi.storage.gke.io',
  portworxVolume: 'pxd.portworx.com',
  vsphereVolume: 'csi.vsphere.vmware.com',
};

/** The driver of a volume, '' where it has none. */
function driverOf(source: JsonValue): string {
  const moved = Object.keys(DRIVERS).find((kind) => objectAt(source, kind) !== undefined);
  return moved === undefined
    ? stringAt(source, 'csi', 'driver')
    : (ownMember(DRIVERS, moved) ?? '');
}

function restrictCsiNode(write: Admitted, node: string): Status | null {
  if (askedName(write) === node) return null;
  return refuse(write, 'can only access CSINode with the same name as the requesting node');
}

/** Which slices a node may change is said by the authorizer: their node does not change. */
function restrictSlice(write: Admitted, node: string): Status | null {
  const { operation, previous, object } = write;
  if (operation === 'UPDATE') return null;
  if (stringAt(previous ?? object ?? {}, 'spec', 'nodeName') === node) return null;
  const verb = operation === 'DELETE' ? 'delete' : 'create';
  const why = `can only ${verb} ResourceSlice with the same NodeName as the requesting node`;
  return refuse(write, why);
}

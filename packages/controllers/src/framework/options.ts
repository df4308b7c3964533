/** What `runControllers` is told; the names follow kube-controller-manager's flags. */

import { ownMember } from '@megaplane/base/members';
import type { SecureAddress } from '@megaplane/client/secure-endpoint';
import type { AutoscalerRules } from './autoscaler-rules.ts';

export type Log = (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;

/** Names for `--controllers`, as kube-controller-manager knows them. */
export const CONTROLLER_NAMES = [
  'namespace-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'root-ca-certificate-publisher-controller',
  'node-lifecycle-controller',
  'taint-eviction-controller',
  'pod-garbage-collector-controller',
  'garbage-collector-controller',
  'replicaset-controller',
  'replicationcontroller-controller',
  'deployment-controller',
  'endpointslice-controller',
  'endpoints-controller',
  'job-controller',
  'ttl-after-finished-controller',
  'cronjob-controller',
  'daemonset-controller',
  'statefulset-controller',
  'disruption-controller',
  'resourcequota-controller',
  'persistentvolumeclaim-protection-controller',
  'persistentvolume-protection-controller',
  'clusterrole-aggregation-controller',
  'persistentvolume-binder-controller',
  'endpointslice-mirroring-controller',
  'horizontal-pod-autoscaler-controller',
  'certificatesigningrequest-signing-controller',
  'certificatesigningrequest-approving-controller',
  'certificatesigningrequest-cleaner-controller',
  'ephemeral-volume-controller',
  'resourceclaim-controller',
  'node-ipam-controller',
  'token-cleaner-controller',
  'persistentvolume-attach-detach-controller',
  'service-cidr-controller',
  'bootstrap-signer-controller',
  'ttl-controller',
  'persistentvolume-expander-controller',
  'volumeattributesclass-protection-controller',
  'legacy-serviceaccount-token-cleaner-controller',
  'device-taint-eviction-controller',
] as const;
export type ControllerName = (typeof CONTROLLER_NAMES)[number];

/** Not among `*`, as upstream: whoever wants one names it. */
const UNASKED: ReadonlySet<ControllerName> = new Set([
  'token-cleaner-controller',
  'bootstrap-signer-controller',
]);

/**
 * Those of kube-controller-manager 1.36 that this program has no part for: for cloud providers, of
 * features that are off by default, or done by the API server. Naming one is no mistake.
 */
const FOREIGN_NAMES: ReadonlySet<string> = new Set([
  'cloud-node-lifecycle-controller',
  'cloud-node-lifecycle',
  'node-route-controller',
  'route',
  'service-lb-controller',
  'service',
  'kube-apiserver-serving-clustertrustbundle-publisher-controller',
  'podcertificaterequest-cleaner-controller',
  'podgroup-protection-controller',
  'resourcepoolstatusrequest-controller',
  'selinux-warning-controller',
  'storage-version-migrator-controller',
  'storageversion-garbage-collector-controller',
  'storage-version-gc',
  'validatingadmissionpolicy-status-controller',
]);

/** Older names that the flag still takes. */
const ALIASES: Readonly<Record<string, ControllerName>> = {
  namespace: 'namespace-controller',
  serviceaccount: 'serviceaccount-controller',
  'serviceaccount-token': 'serviceaccount-token-controller',
  'root-ca-cert-publisher': 'root-ca-certificate-publisher-controller',
  nodelifecycle: 'node-lifecycle-controller',
  podgc: 'pod-garbage-collector-controller',
  garbagecollector: 'garbage-collector-controller',
  replicaset: 'replicaset-controller',
  replicationcontroller: 'replicationcontroller-controller',
  deployment: 'deployment-controller',
  endpointslice: 'endpointslice-controller',
  job: 'job-controller',
  'ttl-after-finished': 'ttl-after-finished-controller',
  cronjob: 'cronjob-controller',
  daemonset: 'daemonset-controller',
  statefulset: 'statefulset-controller',
  disruption: 'disruption-controller',
  resourcequota: 'resourcequota-controller',
  'pvc-protection': 'persistentvolumeclaim-protection-controller',
  'pv-protection': 'persistentvolume-protection-controller',
  'clusterrole-aggregation': 'clusterrole-aggregation-controller',
  endpointslicemirroring: 'endpointslice-mirroring-controller',
  csrsigning: 'certificatesigningrequest-signing-controller',
  csrapproving: 'certificatesigningrequest-approving-controller',
  'ephemeral-volume': 'ephemeral-volume-controller',
  'resource-claim-controller': 'resourceclaim-controller',
  nodeipam: 'node-ipam-controller',
  bootstrapsigner: 'bootstrap-signer-controller',
  ttl: 'ttl-controller',
  tokencleaner: 'token-cleaner-controller',
  csrcleaner: 'certificatesigningrequest-cleaner-controller',
  horizontalpodautoscaling: 'horizontal-pod-autoscaler-controller',
  attachdetach: 'persistentvolume-attach-detach-controller',
  'persistentvolume-binder': 'persistentvolume-binder-controller',
  'persistentvolume-expander': 'persistentvolume-expander-controller',
  'legacy-service-account-token-cleaner': 'legacy-serviceaccount-token-cleaner-controller',
  endpoint: 'endpoints-controller',
  endpoints: 'endpoints-controller',
};

export interface ElectionTerms {
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  readonly name?: string;
  readonly namespace?: string;
}

export interface RequestRate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Of EndpointSlices, of Endpoints and of mirrored ones. */
export interface SliceRules {
  /** Default 100. */
  readonly endpointsMax?: number;
  /** Changes wait so long for others; default by the size of the service. */
  readonly batchMs?: number;
  /** Addresses of a subset that are mirrored; default 1,000. */
  readonly mirroredMax?: number;
}

/** The four signers of `kubernetes.io`, and all of them. */
export const SIGNING_PURPOSES = [
  'all',
  'kubelet-serving',
  'kubelet-client',
  'kube-apiserver-client',
  'legacy-unknown',
] as const;
export type SigningPurpose = (typeof SIGNING_PURPOSES)[number];

export interface KeyPairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Defaults of kube-controller-manager where a field is left out. */
export interface ControllersOptions {
  readonly kubeconfig: string;
  /** Kubelets' requests for serving certificates are approved where all names are the node's. */
  readonly approveKubeletServing?: boolean;
  /** `plan`: the blocks of a node follow from its number; default `range`: the next free ones. */
  readonly nodeCidrAllocator?: 'range' | 'plan';
  /** `*`, `name`, `-name`, in the order given; default all. */
  readonly controllers?: readonly string[];
  /** How often nodes are looked at; default 5 s. */
  readonly nodeMonitorPeriodMs?: number;
  /** Without a sign of life for so long a node is Unknown; default 50 s. */
  readonly nodeMonitorGracePeriodMs?: number;
  /** The same for nodes whose kubelet never posted; default 60 s. */
  readonly nodeStartupGracePeriodMs?: number;
  /** Nodes per second and zone that are tainted NoExecute; default 0.1. */
  readonly nodeEvictionRate?: number;
  /** The same in a large zone that is partly down; default 0.01. */
  readonly secondaryNodeEvictionRate?: number;
  /** Zones above this size are large; smaller ones that are partly down stop; default 50. */
  readonly largeClusterSizeThreshold?: number;
  /** Share of nodes not ready from which a zone is partly down; default 0.55. */
  readonly unhealthyZoneThreshold?: number;
  /** Ended pods above this number are deleted, oldest first; 0 = never; default 12,500. */
  readonly terminatedPodGcThreshold?: number;
  /** Legacy tokens not used for so long are marked, and so long after that deleted; a year. */
  readonly legacyTokenCleanUpPeriodMs?: number;
  /** Wait for the lease before doing anything; default true. */
  readonly leaderElect?: boolean;
  /** Of that lease; default 15 s, 10 s, 2 s, `kube-system/kube-controller-manager`. */
  readonly election?: ElectionTerms;
  /** Workers of a controller, where upstream has a flag for them; default upstream's. */
  readonly concurrentSyncs?: Partial<Record<ControllerName, number>>;
  /** Requests of each controller at most; without it there is no limit. */
  readonly requestRate?: RequestRate | undefined;
  readonly autoscaler?: AutoscalerRules;
  readonly slices?: SliceRules;
  /** How often quotas are counted without a reason; default 5 min. */
  readonly quotaSyncMs?: number;
  /** How often claims that wait are looked at again; default 15 s. */
  readonly claimSyncMs?: number;
  /** Volumes are never detached from lost nodes by time alone; default false. */
  readonly neverForcesDetach?: boolean;
  /** PEM of the key that signs tokens in Secrets; without it the API server makes them. */
  readonly tokenKeyFile?: string;
  /** PEM of the CA for `kube-root-ca.crt`; default the CA of the kubeconfig. */
  readonly rootCaFile?: string;
  /** PEM files of who signs certificate requests: for all signers, or by signer. */
  readonly clusterSigning?: Partial<Record<SigningPurpose, KeyPairFiles>>;
  /** How long its certificates live at most; default a year. */
  readonly clusterSigningDurationMs?: number;
  /** Give nodes blocks of `clusterCidr`, one of each family; default false. */
  readonly allocateNodeCidrs?: boolean;
  readonly clusterCidr?: readonly string[];
  /** Not given to nodes, where it overlaps with `clusterCidr`. */
  readonly serviceClusterIpRange?: readonly string[];
  /** Of the only family. */
  readonly nodeCidrMaskSize?: number;
  /** Of each of two families. */
  readonly nodeCidrMaskSizeIpv4?: number;
  readonly nodeCidrMaskSizeIpv6?: number;
  readonly connections?: number;
  /** `host:port` of /metrics and /healthz; default a free port of 127.0.0.1. */
  readonly metricsAddress?: string;
  /** The same over TLS, as upstream serves it; default not at all. */
  readonly secure?: SecureAddress | undefined;
  /** Values of the flags by name, for `/flagz`. */
  readonly flags?: ReadonlyMap<string, string>;
  readonly log: Log;
}

export interface ControllersService {
  /** For the ready line. */
  readonly listens: string;
  stop(): Promise<void>;
  /** Settles when the controllers cannot go on: leadership was lost. */
  readonly failure: Promise<Error>;
}

/** Names in `--controllers` that upstream does not know either, in its words. */
export function unknownControllers(list: readonly string[]): string[] {
  return list
    .map((item) => (item.startsWith('-') ? item.slice(1) : item))
    .filter((name) => name !== '*' && controllerOf(name) === undefined && !FOREIGN_NAMES.has(name))
    .map((name) => `${JSON.stringify(name)} is not in the list of known controllers`);
}

function controllerOf(written: string): ControllerName | undefined {
  return CONTROLLER_NAMES.find((one) => one === written) ?? ownMember(ALIASES, written);
}

/**
 * The controllers that `--controllers` chooses, or a text that says what is wrong with it. What the
 * list says first of a controller counts.
 */
export function chosenControllers(list: readonly string[]): ReadonlySet<ControllerName> | string {
  const unknown = unknownControllers(list);
  if (unknown.length > 0) return `--controllers: ${unknown.join(', ')}`;
  const told = new Map<ControllerName, boolean>();
  for (const item of list) {
    const isExclusion = item.startsWith('-');
    const name = controllerOf(isExclusion ? item.slice(1) : item);
    if (name !== undefined && !told.has(name)) told.set(name, !isExclusion);
  }
  const isStarred = list.includes('*');
  const isChosen = (name: ControllerName): boolean =>
    told.get(name) ?? (isStarred && !UNASKED.has(name));
  return new Set(CONTROLLER_NAMES.filter(isChosen));
}

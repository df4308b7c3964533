/**
 * What OpenAPI does not say about built-in resources: the names kubectl offers, the categories it
 * expands, and where upstream keeps them in etcd. Facts of kube-apiserver 1.36, by `resource.group`
 * (the core group has no suffix). /
 */

export const SHORT_NAMES: Readonly<Record<string, readonly string[]>> = {
  'certificatesigningrequests.certificates.k8s.io': ['csr'],
  componentstatuses: ['cs'],
  configmaps: ['cm'],
  'cronjobs.batch': ['cj'],
  'customresourcedefinitions.apiextensions.k8s.io': ['crd', 'crds'],
  'daemonsets.apps': ['ds'],
  'deployments.apps': ['deploy'],
  endpoints: ['ep'],
  events: ['ev'],
  'events.events.k8s.io': ['ev'],
  'horizontalpodautoscalers.autoscaling': ['hpa'],
  'ingresses.networking.k8s.io': ['ing'],
  'ipaddresses.networking.k8s.io': ['ip'],
  limitranges: ['limits'],
  namespaces: ['ns'],
  'networkpolicies.networking.k8s.io': ['netpol'],
  nodes: ['no'],
  persistentvolumeclaims: ['pvc'],
  persistentvolumes: ['pv'],
  'poddisruptionbudgets.policy': ['pdb'],
  pods: ['po'],
  'priorityclasses.scheduling.k8s.io': ['pc'],
  'replicasets.apps': ['rs'],
  replicationcontrollers: ['rc'],
  resourcequotas: ['quota'],
  serviceaccounts: ['sa'],
  services: ['svc'],
  'statefulsets.apps': ['sts'],
  'storageclasses.storage.k8s.io': ['sc'],
  'volumeattributesclasses.storage.k8s.io': ['vac'],
};

const ALL: readonly string[] = ['all'];
const EXTENSIONS: readonly string[] = ['api-extensions'];

export const CATEGORIES: Readonly<Record<string, readonly string[]>> = {
  'apiservices.apiregistration.k8s.io': EXTENSIONS,
  'cronjobs.batch': ALL,
  'customresourcedefinitions.apiextensions.k8s.io': EXTENSIONS,
  'daemonsets.apps': ALL,
  'deployments.apps': ALL,
  'horizontalpodautoscalers.autoscaling': ALL,
  'jobs.batch': ALL,
  'mutatingadmissionpolicies.admissionregistration.k8s.io': EXTENSIONS,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': EXTENSIONS,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': EXTENSIONS,
  pods: ALL,
  'replicasets.apps': ALL,
  replicationcontrollers: ALL,
  services: ALL,
  'statefulsets.apps': ALL,
  'validatingadmissionpolicies.admissionregistration.k8s.io': EXTENSIONS,
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': EXTENSIONS,
  'validatingwebhookconfigurations.admissionregistration.k8s.io': EXTENSIONS,
};

/** Below `/registry/`; every other resource is kept under its own plural. */
export const STORAGE_PATHS: Readonly<Record<string, string>> = {
  'apiservices.apiregistration.k8s.io': 'apiregistration.k8s.io/apiservices',
  'customresourcedefinitions.apiextensions.k8s.io':
    'apiextensions.k8s.io/customresourcedefinitions',
  endpoints: 'services/endpoints',
  'ingresses.networking.k8s.io': 'ingress',
  nodes: 'minions',
  replicationcontrollers: 'controllers',
  services: 'services/specs',
};

/** Resources of two groups that are one set of objects: the second is kept as the first. */
export const SAME_STORAGE: Readonly<Record<string, string>> = {
  'events.events.k8s.io': 'events',
};

/** The version objects are written in, where it is not simply the most stable one. */
export const STORAGE_VERSIONS: Readonly<Record<string, string>> = {
  'horizontalpodautoscalers.autoscaling': 'v2',
};

/** Order of groups in discovery, highest first; a group that is not named comes last. */
export const GROUP_PRIORITIES: Readonly<Record<string, number>> = {
  'apiregistration.k8s.io': 20001,
  '': 18000,
  apps: 17800,
  'events.k8s.io': 17750,
  'authentication.k8s.io': 17700,
  'authorization.k8s.io': 17600,
  autoscaling: 17500,
  batch: 17400,
  'certificates.k8s.io': 17300,
  'networking.k8s.io': 17200,
  policy: 17100,
  'rbac.authorization.k8s.io': 17000,
  'storage.k8s.io': 16800,
  'apiextensions.k8s.io': 16700,
  'admissionregistration.k8s.io': 16700,
  'scheduling.k8s.io': 16600,
  'coordination.k8s.io': 16500,
  'node.k8s.io': 16300,
  'discovery.k8s.io': 16200,
  'flowcontrol.apiserver.k8s.io': 16100,
  'internal.apiserver.k8s.io': 16000,
  'resource.k8s.io': 15900,
  'storagemigration.k8s.io': 15800,
};

/** Resources that answer a PUT to a missing name by creating it. */
export const CREATED_BY_PUT: readonly string[] = [
  'clusterrolebindings.rbac.authorization.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'endpoints',
  'events',
  'events.events.k8s.io',
  'leasecandidates.coordination.k8s.io',
  'leases.coordination.k8s.io',
  'limitranges',
  'rolebindings.rbac.authorization.k8s.io',
  'roles.rbac.authorization.k8s.io',
  'runtimeclasses.node.k8s.io',
  'services',
];

/** Resources that want a resourceVersion in every PUT. */
export const CONDITIONAL_UPDATE: readonly string[] = [
  'apiservices.apiregistration.k8s.io',
  'clustertrustbundles.certificates.k8s.io',
  'csidrivers.storage.k8s.io',
  'csinodes.storage.k8s.io',
  'csistoragecapacities.storage.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'leasecandidates.coordination.k8s.io',
  'leases.coordination.k8s.io',
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'podcertificaterequests.certificates.k8s.io',
  'poddisruptionbudgets.policy',
  'resourcepoolstatusrequests.resource.k8s.io',
  'runtimeclasses.node.k8s.io',
  'storageversionmigrations.storagemigration.k8s.io',
  'storageversions.internal.apiserver.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
  'volumeattachments.storage.k8s.io',
];

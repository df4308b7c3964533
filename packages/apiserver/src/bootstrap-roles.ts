/** Roles and bindings that every cluster begins with, after upstream's of the same names. */
import type { JsonObject } from '@megaplane/machinery/json-value';

const GROUP = 'rbac.authorization.k8s.io';
const READ = ['get', 'list', 'watch'];
const HEALTH = ['/healthz', '/livez', '/readyz', '/version', '/version/'];
const VERSIONS = ['/version', '/version/'];

interface Rule {
  readonly verbs: readonly string[];
  readonly groups?: readonly string[];
  readonly resources?: readonly string[];
  readonly paths?: readonly string[];
}

const ROLES: Readonly<Record<string, readonly Rule[]>> = {
  'cluster-admin': [
    { verbs: ['*'], groups: ['*'], resources: ['*'] },
    { verbs: ['*'], paths: ['*'] },
  ],
  'system:discovery': [
    {
      verbs: ['get'],
      paths: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        ...VERSIONS,
      ],
    },
  ],
  'system:basic-user': [
    {
      verbs: ['create'],
      groups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], groups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ],
  'system:public-info-viewer': [{ verbs: ['get'], paths: HEALTH }],
  'system:monitoring': [
    {
      verbs: ['get'],
      paths: [
        '/healthz',
        '/healthz/*',
        '/livez',
        '/livez/*',
        '/metrics',
        '/metrics/slis',
        '/readyz',
        '/readyz/*',
      ],
    },
  ],
  'system:auth-delegator': [
    { verbs: ['create'], groups: ['authentication.k8s.io'], resources: ['tokenreviews'] },
    { verbs: ['create'], groups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
  ],
  'system:service-account-issuer-discovery': [
    { verbs: ['get'], paths: ['/.well-known/openid-configuration', '/openid/v1/jwks'] },
  ],
  'system:node-proxier': [
    { verbs: ['list', 'watch'], groups: [''], resources: ['services'] },
    { verbs: READ, groups: [''], resources: ['nodes'] },
    { verbs: ['create', 'patch', 'update'], groups: ['', 'events.k8s.io'], resources: ['events'] },
    { verbs: ['list', 'watch'], groups: ['discovery.k8s.io'], resources: ['endpointslices'] },
    { verbs: ['list', 'watch'], groups: ['networking.k8s.io'], resources: ['servicecidrs'] },
  ],
  view: [
    {
      verbs: READ,
      groups: [
        '',
        'apps',
        'batch',
        'autoscaling',
        'policy',
        'networking.k8s.io',
        'discovery.k8s.io',
        'resource.k8s.io',
      ],
      resources: viewed(),
    },
  ],
  edit: editRules(),
  admin: [
    ...editRules(),
    {
      verbs: ['create'],
      groups: ['authorization.k8s.io'],
      resources: ['localsubjectaccessreviews'],
    },
    {
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      groups: [GROUP],
      resources: ['rolebindings', 'roles'],
    },
  ],
};

function viewed(): string[] {
  return [
    'configmaps',
    'endpoints',
    'persistentvolumeclaims',
    'persistentvolumeclaims/status',
    'pods',
    'pods/log',
    'pods/status',
    'replicationcontrollers',
    'serviceaccounts',
    'services',
    'services/status',
    'bindings',
    'events',
    'limitranges',
    'namespaces',
    'namespaces/status',
    'resourcequotas',
    'resourcequotas/status',
    'controllerrevisions',
    'daemonsets',
    'deployments',
    'deployments/scale',
    'replicasets',
    'replicasets/scale',
    'statefulsets',
    'statefulsets/scale',
    'horizontalpodautoscalers',
    'cronjobs',
    'jobs',
    'ingresses',
    'networkpolicies',
    'poddisruptionbudgets',
    'endpointslices',
    'resourceclaims',
    'resourceclaimtemplates',
  ];
}

function editRules(): Rule[] {
  const write = ['create', 'delete', 'deletecollection', 'patch', 'update'];
  const groups = [
    '',
    'apps',
    'batch',
    'autoscaling',
    'policy',
    'networking.k8s.io',
    'resource.k8s.io',
  ];
  const resources = [
    'pods',
    'pods/attach',
    'pods/exec',
    'pods/portforward',
    'pods/proxy',
    'pods/eviction',
    'configmaps',
    'events',
    'persistentvolumeclaims',
    'replicationcontrollers',
    'secrets',
    'serviceaccounts',
    'services',
    'services/proxy',
    'daemonsets',
    'deployments',
    'deployments/rollback',
    'deployments/scale',
    'replicasets',
    'replicasets/scale',
    'statefulsets',
    'statefulsets/scale',
    'horizontalpodautoscalers',
    'cronjobs',
    'jobs',
    'ingresses',
    'networkpolicies',
    'poddisruptionbudgets',
    'resourceclaims',
    'resourceclaimtemplates',
  ];
  return [
    { verbs: READ, groups: [...groups, 'discovery.k8s.io'], resources: [...viewed(), 'secrets'] },
    { verbs: write, groups, resources },
    { verbs: ['create'], groups: [''], resources: ['serviceaccounts/token'] },
    { verbs: ['impersonate'], groups: [''], resources: ['serviceaccounts'] },
  ];
}

const AUTHENTICATED = 'system:authenticated';
const BINDINGS: readonly (readonly [string, string, readonly string[]])[] = [
  ['cluster-admin', 'Group', ['system:masters']],
  ['system:discovery', 'Group', [AUTHENTICATED]],
  ['system:basic-user', 'Group', [AUTHENTICATED]],
  ['system:public-info-viewer', 'Group', [AUTHENTICATED, 'system:unauthenticated']],
  ['system:monitoring', 'Group', ['system:monitoring']],
  ['system:service-account-issuer-discovery', 'Group', ['system:serviceaccounts']],
  ['system:node-proxier', 'User', ['system:kube-proxy']],
];

/** All of them as objects. */
export function bootstrapRoles(): JsonObject[] {
  const roles = Object.entries(ROLES).map(([name, rules]) => ({
    kind: 'ClusterRole',
    apiVersion: `${GROUP}/v1`,
    metadata: bootstrapMetadata(name),
    rules: rules.map(ruleObject),
  }));
  const bindings = BINDINGS.map(([name, kind, subjects]) => ({
    kind: 'ClusterRoleBinding',
    apiVersion: `${GROUP}/v1`,
    metadata: bootstrapMetadata(name),
    subjects: subjects.map((subject) => ({ kind, apiGroup: GROUP, name: subject })),
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
  }));
  return [...roles, ...bindings];
}

function bootstrapMetadata(name: string): JsonObject {
  return {
    name,
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  };
}

function ruleObject(rule: Rule): JsonObject {
  return {
    verbs: [...rule.verbs],
    ...(rule.groups === undefined ? {} : { apiGroups: [...rule.groups] }),
    ...(rule.resources === undefined ? {} : { resources: [...rule.resources] }),
    ...(rule.paths === undefined ? {} : { nonResourceURLs: [...rule.paths] }),
  };
}

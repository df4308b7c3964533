/** Objects of each kind as people have them: what `bench objects` makes and deletes. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { definitionAt } from '../crd-shapes.ts';

/** One write: to be made by POST at `path`, deleted at `path/name`. */
export interface Made {
  readonly path: string;
  readonly name: string;
  readonly body: JsonObject;
}

export interface CountedKind {
  readonly name: string;
  /** What has to be there for an object of this number, in the order in which it is made. */
  made(index: number): readonly Made[];
}

const NAMESPACE = 'bench';
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

function groupPath(apiVersion: string, plural: string): string {
  return `/apis/${apiVersion}/namespaces/${NAMESPACE}/${plural}`;
}

function object(
  apiVersion: string,
  kind: string,
  name: string,
  rest: JsonObject,
  labels: JsonObject = { app: name },
): JsonObject {
  return { apiVersion, kind, metadata: { name, labels }, ...rest };
}

function template(name: string, more: JsonObject = {}): JsonObject {
  const resources = { requests: { cpu: '1m', memory: '1Mi' } };
  const containers = [{ name: 'c', image: 'registry.example.com/app:1', resources }];
  return {
    metadata: { labels: { app: name } },
    spec: { containers, terminationGracePeriodSeconds: 1, ...more },
  };
}

/** A workload with a selector of its own. */
function workload(kind: string, name: string, more: JsonObject): JsonObject {
  const spec = { selector: { matchLabels: { app: name } }, template: template(name), ...more };
  return object('apps/v1', kind, name, { spec });
}

/** One kind, one object a number, in the namespace of the benchmark. */
function simple(
  plural: string,
  path: string,
  body: (name: string, index: number) => JsonObject,
): CountedKind {
  return {
    name: plural,
    made(index) {
      const name = `${plural.slice(0, 20)}-${index}`;
      return [{ path, name, body: body(name, index) }];
    },
  };
}

function customResource(index: number): readonly Made[] {
  const definition = definitionAt(index, { sharing: 'shared', bytes: 2000 });
  const { metadata, spec } = definition as unknown as {
    readonly metadata: { readonly name: string };
    readonly spec: {
      readonly group: string;
      readonly scope: string;
      readonly names: { readonly plural: string; readonly kind: string };
      readonly versions: readonly { readonly name: string }[];
    };
  };
  const version = spec.versions[0]?.name ?? '';
  const scope = spec.scope === 'Namespaced' ? `/namespaces/${NAMESPACE}` : '';
  const path = `/apis/${spec.group}/${version}${scope}/${spec.names.plural}`;
  const body = object(`${spec.group}/${version}`, spec.names.kind, 'one', {
    spec: { forProvider: {}, initProvider: {} },
  });
  return [
    { path: DEFINITIONS, name: metadata.name, body: definition },
    { path, name: 'one', body },
  ];
}

const PORTS = [{ port: 80, targetPort: 8080 }];
const RULES = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }];

export const KINDS: readonly CountedKind[] = [
  { name: 'definitions', made: customResource },
  simple('configmaps', `${CORE}/configmaps`, (name) =>
    object('v1', 'ConfigMap', name, { data: { key: 'v'.repeat(500) } }),
  ),
  simple('secrets', `${CORE}/secrets`, (name) =>
    object('v1', 'Secret', name, { stringData: { key: 'v'.repeat(500) } }),
  ),
  simple('serviceaccounts', `${CORE}/serviceaccounts`, (name) =>
    object('v1', 'ServiceAccount', name, {}),
  ),
  simple('namespaces', '/api/v1/namespaces', (name) => object('v1', 'Namespace', name, {})),
  simple('nodes', '/api/v1/nodes', (name) => object('v1', 'Node', name, {})),
  simple('pods', `${CORE}/pods`, (name) => object('v1', 'Pod', name, template(name))),
  simple('services', `${CORE}/services`, (name) =>
    object('v1', 'Service', name, { spec: { selector: { app: name }, ports: PORTS } }),
  ),
  simple('events', `${CORE}/events`, (name) =>
    object('v1', 'Event', name, {
      involvedObject: { kind: 'Pod', namespace: NAMESPACE, name },
      ...{ reason: 'Bench', message: 'one of many', type: 'Normal' },
    }),
  ),
  simple('persistentvolumeclaims', `${CORE}/persistentvolumeclaims`, (name) =>
    object('v1', 'PersistentVolumeClaim', name, {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
  ),
  simple('leases', groupPath('coordination.k8s.io/v1', 'leases'), (name) =>
    object('coordination.k8s.io/v1', 'Lease', name, { spec: { holderIdentity: name } }),
  ),
  simple('roles', groupPath('rbac.authorization.k8s.io/v1', 'roles'), (name) =>
    object('rbac.authorization.k8s.io/v1', 'Role', name, { rules: RULES }),
  ),
  simple('poddisruptionbudgets', groupPath('policy/v1', 'poddisruptionbudgets'), (name) =>
    object('policy/v1', 'PodDisruptionBudget', name, {
      spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
    }),
  ),
  simple(
    'horizontalpodautoscalers',
    groupPath('autoscaling/v2', 'horizontalpodautoscalers'),
    (name) =>
      object('autoscaling/v2', 'HorizontalPodAutoscaler', name, {
        spec: {
          maxReplicas: 2,
          scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
        },
      }),
  ),
  simple('deployments', groupPath('apps/v1', 'deployments'), (name) =>
    workload('Deployment', name, { replicas: 1 }),
  ),
  simple('statefulsets', groupPath('apps/v1', 'statefulsets'), (name) =>
    workload('StatefulSet', name, { replicas: 1, serviceName: name }),
  ),
  simple('daemonsets', groupPath('apps/v1', 'daemonsets'), (name, index) => {
    const nodeSelector = { 'kubernetes.io/hostname': `node-${index % 10}` };
    return workload('DaemonSet', name, { template: template(name, { nodeSelector }) });
  }),
  simple('jobs', groupPath('batch/v1', 'jobs'), (name) =>
    object('batch/v1', 'Job', name, {
      spec: { template: template(name, { restartPolicy: 'Never' }) },
    }),
  ),
  simple('cronjobs', groupPath('batch/v1', 'cronjobs'), (name) =>
    object('batch/v1', 'CronJob', name, {
      spec: {
        schedule: '0 0 1 1 *',
        jobTemplate: { spec: { template: template(name, { restartPolicy: 'Never' }) } },
      },
    }),
  ),
];

/** The namespace in which all of them lie. */
export const HOME: Made = {
  path: '/api/v1/namespaces',
  name: NAMESPACE,
  body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
};

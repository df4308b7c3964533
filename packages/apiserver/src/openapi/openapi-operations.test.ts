/** Names, answers and media of operations, as kube-apiserver v1.36.1 publishes them. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { AccessModel } from '../testing/access.sim.ts';

interface Operation {
  readonly tags: readonly string[];
  readonly operationId: string;
  readonly responses: Readonly<Record<string, { readonly schema?: { readonly $ref?: string } }>>;
  readonly 'x-kubernetes-action': string;
}

interface Property {
  readonly default?: unknown;
}

interface Document {
  readonly info: object;
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

function documentOf(model: AccessModel, path: string): Document {
  const exchange = model.ask('GET', path);
  model.settle();
  return JSON.parse(exchange.text) as Document;
}

/** `METHOD path` and what is told: the name, the tag, and the answers by their codes. */
const PUBLISHED: readonly (readonly [string, string])[] = [
  [
    'get /api/v1/configmaps',
    'listCoreV1ConfigMapForAllNamespaces core_v1 list 200=core.v1.ConfigMapList 401',
  ],
  [
    'post /apis/apps/v1/namespaces/{namespace}/deployments',
    'createAppsV1NamespacedDeployment apps_v1 post ' +
      '200=apps.v1.Deployment 201=apps.v1.Deployment 202=apps.v1.Deployment 401',
  ],
  [
    'delete /apis/apps/v1/namespaces/{namespace}/deployments',
    'deleteAppsV1CollectionNamespacedDeployment apps_v1 deletecollection 200=meta.v1.Status 401',
  ],
  [
    'delete /apis/apps/v1/namespaces/{namespace}/deployments/{name}',
    'deleteAppsV1NamespacedDeployment apps_v1 delete 200=meta.v1.Status 202=meta.v1.Status 401',
  ],
  [
    'delete /api/v1/namespaces/{namespace}/pods/{name}',
    'deleteCoreV1NamespacedPod core_v1 delete 200=core.v1.Pod 202=core.v1.Pod 401',
  ],
  [
    'put /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale',
    'replaceAppsV1NamespacedDeploymentScale apps_v1 put ' +
      '200=autoscaling.v1.Scale 201=autoscaling.v1.Scale 401',
  ],
  [
    'patch /apis/rbac.authorization.k8s.io/v1/clusterroles/{name}',
    'patchRbacAuthorizationV1ClusterRole rbacAuthorization_v1 patch ' +
      '200=rbac.v1.ClusterRole 201=rbac.v1.ClusterRole 401',
  ],
  [
    'post /api/v1/namespaces/{namespace}/pods/{name}/exec',
    'connectCoreV1PostNamespacedPodExec core_v1 connect 200 401',
  ],
  [
    'head /api/v1/nodes/{name}/proxy/{path}',
    'connectCoreV1HeadNodeProxyWithPath core_v1 connect 200 401',
  ],
  [
    'get /api/v1/namespaces/{namespace}/pods/{name}/log',
    'readCoreV1NamespacedPodLog core_v1 get 200 401',
  ],
];

test('operations have upstream’s names, tags and answers', () => {
  const { paths, info, security } = documentOf(new AccessModel({}), '/openapi/v2');
  for (const [place, expected] of PUBLISHED) {
    const [method = '', path = ''] = place.split(' ');
    const operation = paths[path]?.[method];
    assert.ok(operation !== undefined, place);
    const answers = Object.entries(operation.responses).map(([code, { schema }]) => {
      const name = schema?.$ref?.split('.').slice(-3).join('.') ?? '';
      return name === '' ? code : `${code}=${name}`;
    });
    const { operationId, tags } = operation;
    const action = operation['x-kubernetes-action'];
    assert.equal([operationId, ...tags, action, ...answers].join(' '), expected);
  }
  assert.deepEqual(info, { title: 'Kubernetes', version: '1.36' });
  assert.deepEqual(security, [{ BearerToken: [] }]);
});

test('nothing is referred to that is not there, and no name is used twice', () => {
  const model = new AccessModel({});
  const index = model.ask('GET', '/openapi/v3').text;
  const { paths } = JSON.parse(index) as { paths: Record<string, { serverRelativeURL: string }> };
  const urls = ['/openapi/v2', ...Object.values(paths).map((one) => one.serverRelativeURL)];
  for (const url of urls) {
    const { text } = model.ask('GET', url);
    const document = JSON.parse(text) as {
      definitions?: object;
      components?: { schemas: object };
    } & Document;
    const names = new Set(Object.keys(document.definitions ?? document.components?.schemas ?? {}));
    const mentioned = [...text.matchAll(/#\/(?:definitions|components\/schemas)\/([\w.-]+)/g)];
    const missing = mentioned.filter(([, name = '']) => !names.has(name));
    assert.deepEqual(
      missing.map(([, name]) => name),
      [],
      url,
    );
    const ids = [...text.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, url);
  }
});

test('what is always written has its zero, a pointer has none, and parts are no kinds', () => {
  const { text } = new AccessModel({}).ask('GET', '/openapi/v3/apis/apps/v1');
  const { components } = JSON.parse(text) as {
    components: { schemas: Record<string, { properties: Record<string, Property> }> };
  };
  const of = (name: string): Record<string, Property> =>
    components.schemas[`io.k8s.api.core.v1.${name}`]?.properties ?? {};
  const { name, image, resources, securityContext, command } = of('Container');
  assert.deepEqual(
    [name, image, resources, securityContext].map((one) => one?.default),
    ['', undefined, {}, undefined],
  );
  assert.deepEqual((command as { items: object }).items, { type: 'string', default: '' });
  assert.deepEqual(Object.keys(of('PodTemplateSpec')), ['metadata', 'spec']);
  assert.ok(!('kind' in of('SELinuxOptions')));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { define, definitionOf, startRig, versionOf, type Rig } from '../testing/definitions.sim.ts';

interface Parameter {
  readonly name: string;
}

interface Operation {
  readonly operationId: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: object; readonly required?: boolean };
  readonly responses: Record<string, { readonly description?: string; readonly content?: object }>;
  readonly 'x-kubernetes-action': string;
}

interface Document {
  readonly paths: Record<string, Record<string, Operation> & { parameters?: readonly Parameter[] }>;
  readonly components: { readonly schemas: Record<string, Schema> };
  readonly definitions: Record<string, Schema>;
}

interface Schema {
  readonly description?: string;
  readonly properties: Record<string, object>;
}

function documentOf({ ask, settle }: Rig, path: string): Document {
  const answer = ask('GET', path);
  settle();
  return JSON.parse(answer.text) as Document;
}

const names = (parameters: readonly Parameter[] = []): string[] =>
  parameters.map(({ name }) => name);

test('operations have the names, parameters and codes that upstream gives them', () => {
  const { paths } = documentOf(startRig(), '/openapi/v3/api/v1');
  const item = paths['/api/v1/namespaces/{namespace}/configmaps/{name}'];
  assert.deepEqual(names(item?.parameters), ['name', 'namespace', 'pretty']);
  assert.deepEqual(item?.['patch']?.tags, ['core_v1']);
  assert.equal(item?.['patch']?.operationId, 'patchCoreV1NamespacedConfigMap');
  assert.deepEqual(names(item?.['patch']?.parameters), [
    ...['dryRun', 'fieldManager', 'fieldValidation', 'force'],
  ]);
  assert.deepEqual(Object.keys(item?.['delete']?.responses ?? {}), ['200', '202', '401']);
  assert.deepEqual(Object.keys(item?.['put']?.requestBody?.content ?? {}), ['*/*']);
  const ids = [
    ['/api/v1/configmaps', 'get', 'listCoreV1ConfigMapForAllNamespaces'],
    ['/api/v1/nodes/{name}/status', 'put', 'replaceCoreV1NodeStatus'],
    ['/api/v1/namespaces/{name}/finalize', 'put', 'replaceCoreV1NamespaceFinalize'],
    ['/api/v1/watch/nodes', 'get', 'watchCoreV1NodeList'],
    ['/api/v1/watch/configmaps', 'get', 'watchCoreV1ConfigMapListForAllNamespaces'],
    ['/api/v1/', 'get', 'getCoreV1APIResources'],
  ] as const;
  for (const [path, method, id] of ids) assert.equal(paths[path]?.[method]?.operationId, id);
  const exec = paths['/api/v1/namespaces/{namespace}/pods/{name}/exec'];
  assert.equal(exec?.['post']?.operationId, 'connectCoreV1PostNamespacedPodExec');
  assert.deepEqual(names(exec?.parameters), [
    ...['command', 'container', 'name', 'namespace', 'stderr', 'stdin', 'stdout', 'tty'],
  ]);
  const policies = documentOf(startRig(), '/openapi/v3/apis/rbac.authorization.k8s.io/v1').paths;
  const roles = policies['/apis/rbac.authorization.k8s.io/v1/clusterroles']?.['delete'];
  assert.equal(roles?.operationId, 'deleteRbacAuthorizationV1CollectionClusterRole');
});

test('discovery is a path of its own document', () => {
  const { paths, components } = documentOf(startRig(), '/openapi/v3/apis/apps');
  assert.deepEqual(Object.keys(paths), ['/apis/apps/']);
  assert.equal(paths['/apis/apps/']?.['get']?.operationId, 'getAppsAPIGroup');
  assert.ok('io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup' in components.schemas);
});

function wordless(schema: object = {}): object {
  const { description: _words, ...rest } = schema as { readonly description?: string };
  return rest;
}

test('types, fields and operations are told of in upstream’s words', () => {
  const rig = startRig();
  const { paths, components } = documentOf(rig, '/openapi/v3/api/v1');
  const { description, properties } = components.schemas['io.k8s.api.core.v1.PodSpec'] ?? {};
  assert.equal(description, 'PodSpec is a description of a pod.');
  assert.match(JSON.stringify(properties?.['nodeName']), /"NodeName indicates in which node this/);
  assert.match(JSON.stringify(properties?.['affinity']), /,"allOf":\[\{"\$ref":|scheduling constr/);
  const pods = '/api/v1/namespaces/{namespace}/pods';
  const words = (path: string, method: string): string | undefined =>
    paths[path]?.[method]?.description;
  assert.equal(words(pods, 'get'), 'list or watch objects of kind Pod');
  assert.equal(words(`${pods}/{name}`, 'delete'), 'delete a Pod');
  assert.equal(
    words(`${pods}/{name}/status`, 'patch'),
    'partially update status of the specified Pod',
  );
  assert.equal(words(`${pods}/{name}/eviction`, 'post'), 'create eviction of a Pod');
  assert.equal(
    words(`${pods}/{name}/proxy/{path}`, 'head'),
    'connect HEAD requests to proxy of Pod',
  );
  assert.equal(words('/api/v1/namespaces/{namespace}/endpoints', 'post'), 'create Endpoints');
  assert.equal(words('/api/v1/namespaces/{namespace}/events', 'post'), 'create an Event');
  assert.equal(words('/api/v1/componentstatuses', 'get'), 'list objects of kind ComponentStatus');
  const { responses } = paths[pods]?.['post'] ?? {};
  const answers = Object.values(responses ?? {}).map((one) => one.description);
  assert.deepEqual(answers, ['OK', 'Created', 'Accepted', 'Unauthorized']);
});

test('schemas name shared types, say which values there are and what is the default', () => {
  const { schemas } = documentOf(startRig(), '/openapi/v3/api/v1').components;
  const property = (type: string, name: string): object =>
    wordless(schemas[`io.k8s.api.core.v1.${type}`]?.properties[name]);
  const quantity = '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity';
  assert.deepEqual(property('ResourceRequirements', 'limits'), {
    type: 'object',
    additionalProperties: { $ref: quantity },
  });
  assert.deepEqual(wordless(schemas['io.k8s.apimachinery.pkg.api.resource.Quantity']), {
    oneOf: [{ type: 'string' }, { type: 'number' }],
  });
  assert.deepEqual(property('PodSpec', 'restartPolicy'), {
    type: 'string',
    enum: ['Always', 'Never', 'OnFailure'],
  });
  assert.deepEqual(property('ContainerPort', 'protocol'), {
    type: 'string',
    enum: ['SCTP', 'TCP', 'UDP'],
    default: 'TCP',
  });
  assert.deepEqual(property('Container', 'name'), { type: 'string', default: '' });
  assert.equal(
    'apiVersion' in (schemas['io.k8s.api.core.v1.PodTemplateSpec']?.properties ?? {}),
    false,
  );
});

test('custom resources have operations of the same names', () => {
  const rig = startRig();
  define(rig, definitionOf('widgets', [versionOf('v1')]));
  const { paths } = documentOf(rig, '/openapi/v3/apis/example.com/v1');
  const item = paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}'];
  assert.equal(item?.['get']?.operationId, 'readExampleComV1NamespacedWidget');
  assert.deepEqual(item?.['get']?.tags, ['exampleCom_v1']);
  assert.deepEqual(names(item?.['get']?.parameters), ['resourceVersion']);
  assert.deepEqual(Object.keys(item?.['patch']?.responses ?? {}), ['200', '401']);
  const second = documentOf(rig, '/openapi/v2');
  const create = second.paths['/apis/example.com/v1/namespaces/{namespace}/widgets']?.['post'];
  assert.deepEqual(names(create?.parameters), ['body', 'dryRun', undefined, 'fieldValidation']);
  assert.ok('io.k8s.apimachinery.pkg.apis.meta.v1.Patch' in second.definitions);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from './manager.ts';
import { WorkloadApi } from './workload-api.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const CORE = '/api/v1/namespaces/default';
const NAMES = ['garbage-collector-controller', 'namespace-controller', 'resourcequota-controller'];

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  await make(api, '/api/v1/namespaces', 'Namespace', 'default');
  startManager(api, NAMES);
  await api.advance(1_000);
  return api;
}

/** Makes an object; returns its uid. */
async function make(
  api: WorkloadApi,
  path: string,
  kind: string,
  name: string,
  more: JsonObject = {},
  metadata: JsonObject = {},
): Promise<string> {
  const apiVersion = kind === 'Widget' ? 'example.com/v1' : 'v1';
  const body = { apiVersion, kind, metadata: { name, ...metadata }, ...more };
  const answer = await api.request({ method: 'POST', path, body });
  assert(answer.ok);
  return stringAt(answer.object, 'metadata', 'uid');
}

/** A definition comes, and the kind with it. */
async function define(api: WorkloadApi): Promise<void> {
  api.served = [...api.served, ['example.com', 'widgets', 'Widget', 'Namespaced']];
  await make(api, DEFINITIONS, 'CustomResourceDefinition', 'widgets.example.com');
  await api.advance(2_000);
}

async function undefine(api: WorkloadApi): Promise<void> {
  api.served = api.served.filter(([group]) => group !== 'example.com');
  await api.request({ method: 'DELETE', path: `${DEFINITIONS}/widgets.example.com`, body: {} });
  await api.advance(2_000);
}

const owner = (uid: string, name = 'w'): JsonObject => ({
  ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Widget', name, uid }],
});

const has = (api: WorkloadApi, kind: string, name: string): boolean =>
  api.objects.has(`${kind} default/${name}`);

test('objects of a new kind own and are owned as those of any other', async () => {
  const api = await started();
  await define(api);
  const uid = await make(api, WIDGETS, 'Widget', 'w');
  await make(api, `${CORE}/configmaps`, 'ConfigMap', 'of-widget', {}, owner(uid));
  const map = await make(api, `${CORE}/configmaps`, 'ConfigMap', 'm');
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'm', uid: map }];
  await make(api, WIDGETS, 'Widget', 'of-map', {}, { ownerReferences });
  await api.advance(1_000);
  await api.request({ method: 'DELETE', path: `${WIDGETS}/w`, body: {} });
  await api.request({ method: 'DELETE', path: `${CORE}/configmaps/m`, body: {} });
  await api.advance(2_000);
  assert(!has(api, '/api/v1/configmaps', 'of-widget'));
  assert(!has(api, '/apis/example.com/v1/widgets', 'of-map'));
});

test('what a kind owned that is served no more is kept until it is served again', async () => {
  const api = await started();
  await define(api);
  const uid = await make(api, WIDGETS, 'Widget', 'w');
  await make(api, `${CORE}/configmaps`, 'ConfigMap', 'kept', {}, owner(uid));
  await make(api, `${CORE}/configmaps`, 'ConfigMap', 'lost', {}, owner('gone', 'v'));
  await api.advance(1_000);
  assert(!has(api, '/api/v1/configmaps', 'lost'));
  await undefine(api);
  const before = api.log.length;
  await api.advance(600_000);
  assert(has(api, '/api/v1/configmaps', 'kept'));
  assert.equal(api.log.length, before, 'nothing is written about it meanwhile');
  await define(api);
  await api.advance(60_000);
  assert(has(api, '/api/v1/configmaps', 'kept'));
  await api.request({ method: 'DELETE', path: `${WIDGETS}/w`, body: {} });
  await api.advance(1_000);
  assert(!has(api, '/api/v1/configmaps', 'kept'));
});

test('a namespace is emptied of the kinds that there are when it goes', async () => {
  const api = await started();
  await define(api);
  await make(api, WIDGETS, 'Widget', 'w', {}, { finalizers: ['example.com/held'] });
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/default', body: {} });
  await api.advance(2_000);
  const namespace = api.objects.get('/api/v1/namespaces /default');
  const texts = listAt(namespace, 'status', 'conditions').map((one) => stringAt(one, 'message'));
  const left = 'Some resources are remaining: widgets.example.com has 1 resource instances';
  assert(texts.includes(left), texts.join('\n'));
  const before = api.log.length;
  await api.advance(600_000);
  const writes = api.log.length - before;
  assert(writes <= 10 * 60, `${writes} changes in ten minutes`);
  const contentType = 'application/merge-patch+json';
  const body = { metadata: { finalizers: null } };
  await api.request({ method: 'PATCH', path: `${WIDGETS}/w`, contentType, body });
  await api.advance(20_000);
  assert(!api.objects.has('/api/v1/namespaces /default'));
});

test('a quota counts objects of a new kind, and gives back what goes', async () => {
  const api = await started();
  const hard = { 'count/widgets.example.com': '5', 'count/gadgets.example.com': '5', pods: '1' };
  await make(api, `${CORE}/resourcequotas`, 'ResourceQuota', 'q', { spec: { hard } });
  await api.advance(1_000);
  const used = (): JsonObject => {
    const [quota] = api.all('/api/v1/resourcequotas');
    return objectAt(quota, 'status', 'used') ?? {};
  };
  assert.deepEqual(used(), { pods: '0' }, 'names that nobody serves are not counted');
  await define(api);
  await make(api, WIDGETS, 'Widget', 'a');
  await make(api, WIDGETS, 'Widget', 'b');
  await api.advance(301_000);
  assert.deepEqual(used(), { 'count/widgets.example.com': '2', pods: '0' });
  await api.request({ method: 'DELETE', path: `${WIDGETS}/a`, body: {} });
  await api.advance(1_000);
  assert.deepEqual(used(), { 'count/widgets.example.com': '1', pods: '0' });
});

test('what discovery could not tell of at the start is collected all the same', async () => {
  const api = new WorkloadApi();
  await make(api, '/api/v1/namespaces', 'Namespace', 'default');
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u' }];
  await make(api, `${CORE}/configmaps`, 'ConfigMap', 'left', {}, { ownerReferences });
  for (const minutes of [0.2, 2]) {
    // Nothing of the core group can be found for a while: longer than anybody waits, at last.
    api.hidden = '/api';
    const manager = startManager(api, ['*']);
    await api.advance(minutes * 60_000);
    api.hidden = '';
    await api.advance(40_000);
    assert(!has(api, '/api/v1/configmaps', 'left'), `${minutes} minutes`);
    manager.stop();
    await make(api, `${CORE}/configmaps`, 'ConfigMap', 'left', {}, { ownerReferences });
  }
});

test('an owner of an unknown kind is never judged, even where its uid is gone', async () => {
  const api = await started();
  const path = `${CORE}/configmaps`;
  const uid = await make(api, path, 'ConfigMap', 'a');
  const gone = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid };
  const unknown = { apiVersion: 'no.io/v1', kind: 'Nothing', name: 'n', uid: 'other' };
  const owned = { ownerReferences: [{ ...gone, kind: 'Nothing' }] };
  await make(api, path, 'ConfigMap', 'misnamed', {}, owned);
  await make(api, path, 'ConfigMap', 'both', {}, { ownerReferences: [unknown, gone] });
  await make(api, path, 'ConfigMap', 'plain', {}, { ownerReferences: [gone] });
  await api.advance(1_000);
  await api.request({ method: 'DELETE', path: `${path}/a` });
  await api.advance(10_000);
  const names = api.all('/api/v1/configmaps').map((one) => stringAt(one, 'metadata', 'name'));
  assert.deepEqual(names, ['misnamed', 'both']);
  const both = api.objects.get('/api/v1/configmaps default/both');
  assert.equal(listAt(both, 'metadata', 'ownerReferences').length, 2);
});

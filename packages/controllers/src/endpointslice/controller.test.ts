import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/endpointslices';
const READY = [{ type: 'Ready', status: 'True' }];
const OURS = {
  'kubernetes.io/service-name': 'web',
  'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
};

async function started(...more: string[]): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['endpointslice-controller', ...more]);
  await api.advance(100);
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const answer = await api.request({ method: 'POST', path, body });
  assert(answer.ok);
}

async function postNode(api: WorkloadApi, name: string, zone: string, cpu: string): Promise<void> {
  await post(api, '/api/v1/nodes', {
    metadata: { name, labels: { 'topology.kubernetes.io/zone': zone } },
    status: { allocatable: { cpu }, conditions: READY },
  });
}

async function postPod(api: WorkloadApi, name: string, nodeName: string): Promise<void> {
  const status = { phase: 'Running', podIP: '10.0.0.1', conditions: READY };
  await post(api, `${CORE}/pods`, {
    metadata: { name, labels: { app: 'web' } },
    spec: { nodeName },
    status,
  });
}

async function postService(api: WorkloadApi, annotations: JsonObject = {}): Promise<void> {
  await post(api, `${CORE}/services`, {
    metadata: { name: 'web', annotations },
    spec: {
      ...{ selector: { app: 'web' }, clusterIP: '10.9.0.1', ipFamilies: ['IPv4'] },
      ports: [{ port: 80 }],
    },
  });
}

function zonesOf(api: WorkloadApi): string[] {
  return api
    .all(SLICES)
    .flatMap((slice) => listAt(slice, 'endpoints'))
    .map((one) => stringAt(listAt(one, 'hints', 'forZones')[0], 'name'))
    .toSorted();
}

test('hints follow the processors of the zones', async () => {
  const api = await started();
  await postNode(api, 'n1', 'za', '4');
  await postNode(api, 'n2', 'zb', '4');
  for (let i = 0; i < 4; i++) await postPod(api, `p${i}`, 'n1');
  await postService(api, { 'service.kubernetes.io/topology-mode': 'Auto' });
  await api.advance(3_000);
  assert.deepEqual(zonesOf(api), ['za', 'za', 'zb', 'zb']);
  const told = (): string[] => api.events.filter((one) => one.startsWith('TopologyAware'));
  assert.deepEqual(told(), [
    'TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4',
  ]);
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/n2' });
  await api.advance(3_000);
  assert.deepEqual(zonesOf(api), ['', '', '', '']);
  assert.match(told()[1] ?? '', /^TopologyAwareHintsDisabled: Insufficient Node information/);
});

test('a slice that is rewritten keeps its name only; edited Endpoints wait for news', async () => {
  const api = await started('endpoints-controller');
  await postNode(api, 'n1', 'za', '4');
  await postPod(api, 'p', 'n1');
  await postService(api);
  await api.advance(2_000);
  const edit = async (path: string, body: JsonObject): Promise<void> => {
    const contentType = 'application/merge-patch+json';
    assert((await api.request({ method: 'PATCH', path, contentType, body })).ok);
    await api.advance(2_000);
  };
  const address = (): string => {
    const [subset] = listAt(api.all('/api/v1/endpoints')[0], 'subsets');
    return stringAt(listAt(subset, 'addresses')[0], 'ip');
  };
  await edit(`${CORE}/endpoints/web`, { subsets: [{ addresses: [{ ip: '10.1.1.1' }] }] });
  assert.equal(address(), '10.1.1.1');
  await edit(`${CORE}/services/web`, { metadata: { labels: { a: 'b' } } });
  assert.equal(address(), '10.0.0.1');
  const name = stringAt(api.all(SLICES)[0], 'metadata', 'name');
  await edit(`/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/${name}`, {
    metadata: { annotations: { note: 'x' } },
    endpoints: [{ addresses: ['10.1.1.1'] }],
  });
  const [slice] = api.all(SLICES);
  assert.equal(stringAt(slice, 'metadata', 'name'), name);
  assert.equal(objectAt(slice, 'metadata', 'annotations')?.['note'], undefined);
  assert.deepEqual(listAt(listAt(slice, 'endpoints')[0], 'addresses'), ['10.0.0.1']);
});

test('a slice that names a service and has no owner goes', async () => {
  const api = await started();
  await postNode(api, 'n1', 'za', '4');
  await postPod(api, 'p', 'n1');
  await postService(api);
  await api.advance(2_000);
  await post(api, '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    metadata: { name: 'stray', labels: OURS },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.1.1'] }],
  });
  await api.advance(2_000);
  assert.deepEqual(
    api.all(SLICES).map((slice) => listAt(slice, 'metadata', 'ownerReferences').length),
    [1],
  );
});

test('a service that selects other pods is no news of itself', async () => {
  const api = await started();
  await postNode(api, 'n1', 'za', '4');
  await postPod(api, 'p', 'n1');
  await post(api, `${CORE}/services`, {
    metadata: { name: 'web', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { selector: { app: 'web' }, clusterIP: '10.9.0.1', ipFamilies: ['IPv4'] },
  });
  await api.advance(2_000);
  const told = (): string[] =>
    api
      .all(SLICES)
      .map((slice) => objectAt(slice, 'metadata', 'annotations') ?? {})
      .map((one) => stringAt(one, 'endpoints.kubernetes.io/last-change-trigger-time'));
  assert.deepEqual(told(), ['2026-01-01T00:00:00Z']);
  const contentType = 'application/merge-patch+json';
  const body = { spec: { selector: { app: 'none' } } };
  await api.request({ method: 'PATCH', path: `${CORE}/services/web`, contentType, body });
  await api.advance(2_000);
  assert.deepEqual(told(), ['']);
});

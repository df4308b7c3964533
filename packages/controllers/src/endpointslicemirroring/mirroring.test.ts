import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { WorkloadApi } from '../../test/workload-api.ts';
import { startManager } from '../../test/manager.ts';

const SLICES = '/apis/discovery.k8s.io/v1/endpointslices';
const ROOT = '/api/v1/namespaces/default';

async function make(api: WorkloadApi, resource: string, body: JsonObject): Promise<void> {
  assert((await api.request({ method: 'POST', path: `${ROOT}/${resource}`, body })).ok);
  await api.advance(1_000);
}

function endpoints(ips: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'svc', labels: { a: 'b' }, ...more },
    subsets: [{ addresses: ips.map((ip) => ({ ip })), ports: [{ port: 80, protocol: 'TCP' }] }],
  };
}

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'svc' },
  spec: { ports: [{ port: 80 }] },
};

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['endpointslice-mirroring-controller']);
  await api.advance(1_000);
  return api;
}

const summaries = (api: WorkloadApi): string[] =>
  api
    .all(SLICES)
    .map((slice) => {
      const ips = listAt(slice, 'endpoints').flatMap((one) => listAt(one, 'addresses'));
      return [stringAt(slice, 'addressType'), ...ips].map(String).join(' ');
    })
    .toSorted();

test('addresses of both families are copied, changed and taken away', async () => {
  const api = await started();
  await make(api, 'services', SERVICE);
  await make(api, 'endpoints', endpoints(['192.0.2.1', 'fd00::1', '192.0.2.2', 'nonsense']));
  assert.deepEqual(summaries(api), ['IPv4 192.0.2.1 192.0.2.2', 'IPv6 fd00::1']);
  const [slice] = api.all(SLICES);
  assert.deepEqual(objectAt(slice, 'metadata', 'labels'), {
    a: 'b',
    'kubernetes.io/service-name': 'svc',
    'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
  });
  assert.equal(stringAt(listAt(slice, 'metadata', 'ownerReferences')[0], 'kind'), 'Endpoints');
  const text = 'Skipped 1 invalid IP addresses when mirroring to EndpointSlices';
  assert(api.events.includes(`InvalidIPAddress: ${text}`));
  const body = { subsets: endpoints(['192.0.2.9'])['subsets'] ?? [] };
  const contentType = 'application/merge-patch+json';
  await api.request({ method: 'PATCH', path: `${ROOT}/endpoints/svc`, contentType, body });
  await api.advance(1_000);
  assert.deepEqual(summaries(api), ['IPv4 192.0.2.9']);
  const writes = api.log.length;
  await api.advance(60_000);
  assert.equal(api.log.length, writes, 'nothing more is written');
  await api.request({ method: 'DELETE', path: `${ROOT}/endpoints/svc` });
  await api.advance(1_000);
  assert.deepEqual(summaries(api), []);
});

test('Endpoints with a selector, of nobody, or marked so, are not copied', async () => {
  const api = await started();
  await make(api, 'endpoints', endpoints(['192.0.2.1']));
  assert.deepEqual(summaries(api), []);
  await make(api, 'services', { ...SERVICE, spec: { selector: { a: 'b' } } });
  assert.deepEqual(summaries(api), []);
  const labels = { 'endpointslice.kubernetes.io/skip-mirror': 'True' };
  await make(api, 'services', { ...SERVICE, metadata: { name: 'two' } });
  await make(api, 'endpoints', endpoints(['192.0.2.1'], { name: 'two', labels }));
  assert.deepEqual(summaries(api), []);
});

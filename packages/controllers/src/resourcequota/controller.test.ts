import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const CHARGES = { services: '5', 'services.loadbalancers': '2', 'services.nodeports': '3' };

test('a service that becomes of another type is given back at once', async () => {
  const api = new WorkloadApi();
  startManager(api, ['resourcequota-controller']);
  await api.advance(100);
  const post = async (kind: string, body: JsonObject): Promise<void> => {
    assert((await api.request({ method: 'POST', path: `${CORE}/${kind}`, body })).ok);
  };
  const used = () => objectAt(api.all('/api/v1/resourcequotas')[0], 'status', 'used');
  const ports = [{ port: 80, nodePort: 30_080 }];
  await post('services', { metadata: { name: 's' }, spec: { type: 'LoadBalancer', ports } });
  await post('resourcequotas', { metadata: { name: 'q' }, spec: { hard: CHARGES } });
  await api.advance(1_000);
  const before = { services: '1', 'services.loadbalancers': '1', 'services.nodeports': '1' };
  assert.deepEqual(used(), before);
  const change = (body: JsonObject) =>
    api.request({
      method: 'PATCH',
      path: `${CORE}/services/s`,
      contentType: 'application/merge-patch+json',
      body,
    });
  const reads = (): number => api.log.length;
  await change({ metadata: { labels: { a: 'b' } } });
  await api.advance(1_000);
  const asked = reads();
  await change({ spec: { type: 'ClusterIP', ports: [{ port: 80 }] } });
  await api.advance(1_000);
  const after = { services: '1', 'services.loadbalancers': '0', 'services.nodeports': '0' };
  assert.deepEqual(used(), after);
  assert.equal(reads(), asked + 2, 'the change, and the status that it asks for');
});

test('what comes while a new quota is counted is counted, an edited status is left', async () => {
  const api = new WorkloadApi();
  startManager(api, ['resourcequota-controller']);
  await api.advance(100);
  const used = () => objectAt(api.all('/api/v1/resourcequotas')[0], 'status', 'used');
  const spec = { hard: { configmaps: '5' } };
  const metadata = { name: 'q' };
  await api.request({ method: 'POST', path: `${CORE}/resourcequotas`, body: { metadata, spec } });
  await api.advance(50);
  assert.deepEqual(used(), { configmaps: '0' });
  const body = { metadata: { name: 'c' } };
  await api.request({ method: 'POST', path: `${CORE}/configmaps`, body });
  await api.advance(1_000);
  assert.deepEqual(used(), { configmaps: '1' });
  const path = `${CORE}/resourcequotas/q/status`;
  const contentType = 'application/merge-patch+json';
  const status = { hard: { configmaps: '9' }, used: { configmaps: '7' } };
  await api.request({ method: 'PATCH', path, contentType, body: { status } });
  await api.advance(1_000);
  assert.deepEqual(used(), { configmaps: '7' });
  await api.advance(300_000);
  assert.deepEqual(used(), { configmaps: '1' });
});

/** A quota hears by itself of the end of whatever it counts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';
const POD = { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '1' } } }] };

function scope(scopeName: string): JsonObject {
  return { scopeSelector: { matchExpressions: [{ scopeName, operator: 'Exists' }] } };
}

const CASES: readonly (readonly [string, string, string, JsonObject, JsonObject])[] = [
  ['replicationcontrollers', 'replicationcontrollers', CORE, {}, {}],
  ['count/replicationcontrollers', 'replicationcontrollers', CORE, {}, {}],
  ['pods', 'pods', CORE, scope('Terminating'), { ...POD, activeDeadlineSeconds: 3600 }],
  ['requests.cpu', 'pods', CORE, scope('NotTerminating'), POD],
  ['pods', 'pods', CORE, scope('NotBestEffort'), POD],
  ['count/pods', 'pods', CORE, {}, POD],
  ['secrets', 'secrets', CORE, {}, {}],
  ['persistentvolumeclaims', 'persistentvolumeclaims', CORE, {}, {}],
  ['count/deployments.apps', 'deployments', '/apis/apps/v1/namespaces/default', {}, {}],
  ['count/jobs.batch', 'jobs', '/apis/batch/v1/namespaces/default', {}, {}],
];

for (const [name, plural, path, scopes, spec] of CASES) {
  test(`${name} ${JSON.stringify(scopes)}`, async () => {
    const api = new WorkloadApi();
    startManager(api, ['resourcequota-controller']);
    await api.advance(100);
    const ask = async (method: 'POST' | 'DELETE', at: string, body?: JsonObject): Promise<void> => {
      const given = body === undefined ? {} : { body };
      assert((await api.request({ method, path: at, ...given })).ok, at);
    };
    const used = () => objectAt(api.all('/api/v1/resourcequotas')[0], 'status', 'used');
    await ask('POST', `${path}/${plural}`, { metadata: { name: 'a' }, spec });
    const quota = { hard: { [name]: '5' }, ...scopes };
    await ask('POST', `${CORE}/resourcequotas`, { metadata: { name: 'q' }, spec: quota });
    await api.advance(1_000);
    assert.deepEqual(used(), { [name]: '1' });
    await ask('DELETE', `${path}/${plural}/a`);
    await api.advance(2_000);
    assert.deepEqual(used(), { [name]: '0' });
  });
}

test('a pod that comes into another scope is charged anew', async () => {
  const api = new WorkloadApi();
  startManager(api, ['resourcequota-controller']);
  await api.advance(100);
  const quota = { hard: { pods: '5' }, ...scope('Terminating') };
  const path = `${CORE}/pods`;
  await api.request({ method: 'POST', path, body: { metadata: { name: 'a' }, spec: POD } });
  const body = { metadata: { name: 'q' }, spec: quota };
  await api.request({ method: 'POST', path: `${CORE}/resourcequotas`, body });
  await api.advance(1_000);
  const used = () => objectAt(api.all('/api/v1/resourcequotas')[0], 'status', 'used');
  assert.deepEqual(used(), { pods: '0' });
  const contentType = 'application/merge-patch+json';
  const change = async (body: JsonObject): Promise<void> => {
    await api.request({ method: 'PATCH', path: `${path}/a`, contentType, body });
    await api.advance(1_000);
  };
  await change({ spec: { activeDeadlineSeconds: 60 } });
  assert.deepEqual(used(), { pods: '1' });
  await change({ spec: { activeDeadlineSeconds: null } });
  assert.deepEqual(used(), { pods: '0' });
});

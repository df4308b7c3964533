import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const SETS = '/apis/apps/v1/namespaces/default/daemonsets';
const NODES = '/api/v1/nodes';
const MERGE = 'application/merge-patch+json';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['daemonset-controller']);
  await api.advance(100);
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const answer = await api.request({ method: 'POST', path, body });
  assert.ok(answer.ok, path);
}

async function patch(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const answer = await api.request({ method: 'PATCH', path, contentType: MERGE, body });
  assert.ok(answer.ok, path);
}

function set(name: string, spec: JsonObject): JsonObject {
  const labels = { app: name };
  return {
    metadata: { name },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
      revisionHistoryLimit: 10,
    },
  };
}

test('a refused set is not tried again as nodes change that it fits as before', async () => {
  const api = await started();
  for (const zone of ['a', 'b']) {
    await post(api, NODES, { metadata: { name: zone, labels: { zone } } });
  }
  let tries = 0;
  api.faultOf = ({ method, path, body }) => {
    if (method !== 'POST' || !path.endsWith('/pods')) return 'none';
    const pod = JSON.parse(body as string) as JsonObject;
    if (stringAt(pod, 'metadata', 'labels', 'app') === 'open') return 'none';
    tries++;
    return 'forbidden';
  };
  await post(api, SETS, set('chosen', { nodeSelector: { zone: 'a' } }));
  await post(api, SETS, set('named', { nodeSelector: { 'kubernetes.io/hostname': 'a' } }));
  await post(api, SETS, set('open', {}));
  await api.advance(30_000);
  const before = tries;
  for (let i = 0; i < 20; i++) {
    await patch(api, `${NODES}/b`, { metadata: { labels: { round: `${i}` } } });
    await patch(api, `${NODES}/a`, { metadata: { labels: { round: `${i}` } } });
    await api.advance(500);
  }
  // what waits doubles: at most one try of each in as long as it has waited
  assert.ok(tries - before <= 2, `${tries - before} tries`);
  const pods = (): number => api.all('/api/v1/pods').length;
  assert.equal(pods(), 2, 'of the set that is not refused');

  const taints = [{ key: 'k', effect: 'NoSchedule' }];
  await patch(api, `${NODES}/b`, { metadata: { labels: { zone: 'a' } } });
  await api.advance(1_000);
  assert.ok(tries - before > 2, 'a node that fits now is news');
  await patch(api, `${NODES}/b`, { spec: { taints } });
  await post(api, NODES, { metadata: { name: 'c' } });
  await api.advance(1_000);
  assert.equal(pods(), 3, 'a new node gets its pod');
  const [open] = api
    .all('/apis/apps/v1/daemonsets')
    .filter((one) => stringAt(one, 'metadata', 'name') === 'open');
  assert.deepEqual(
    { ...(open?.['status'] as JsonObject), observedGeneration: 1 },
    {
      currentNumberScheduled: 2,
      desiredNumberScheduled: 2,
      numberMisscheduled: 1,
      numberReady: 0,
      numberUnavailable: 2,
      observedGeneration: 1,
      updatedNumberScheduled: 2,
    },
  );
});

test('a pod that failed waits less where its set has a new template', async () => {
  const api = await started();
  await post(api, NODES, { metadata: { name: 'a' } });
  const rolling = { updateStrategy: { type: 'OnDelete' } };
  const made = set('web', {});
  await post(api, SETS, { ...made, spec: { ...(made['spec'] as JsonObject), ...rolling } });
  const failAll = async (): Promise<void> => {
    for (const pod of api.all('/api/v1/pods')) {
      const path = `/api/v1/namespaces/default/pods/${stringAt(pod, 'metadata', 'name')}`;
      const body = { spec: { nodeName: 'a' }, status: { phase: 'Failed' } };
      await patch(api, path, body);
    }
  };
  const killed = (): number =>
    api.log.filter((one) => one.startsWith('DELETE /api/v1/namespaces/default/pods/')).length;
  for (let i = 0; i < 600; i++) {
    await api.advance(1_000);
    await failAll();
  }
  const before = killed();
  assert.ok(before >= 8 && before <= 10, `${before} in ten minutes`);
  await patch(api, `${SETS}/web`, { spec: { template: { spec: { hostNetwork: true } } } });
  for (let i = 0; i < 15; i++) {
    await api.advance(1_000);
    await failAll();
  }
  assert.ok(killed() - before >= 3, `${killed() - before} of the new template`);
});

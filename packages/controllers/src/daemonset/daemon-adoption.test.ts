import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const SETS = '/apis/apps/v1/namespaces/default/daemonsets';
const PODS = '/api/v1/namespaces/default/pods';

/** A pod that a DaemonSet before has left on a node. */
function left(node: string, number: string): JsonObject {
  const labels = {
    app: 'a',
    'controller-revision-hash': 'other',
    'pod-template-generation': number,
  };
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  const metadata = { name: `on-${node}`, labels };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: node }, status };
}

test('pods of a set before stay if their template has the number of the new one', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api, ['daemonset-controller']);
  const create = async (path: string, body: JsonObject): Promise<void> => {
    const answer = await api.request({ method: 'POST', path, body });
    assert.ok(answer.ok, path);
  };
  for (const name of ['n', 'm']) {
    await create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  }
  await create(PODS, left('n', '3'));
  await create(PODS, left('m', '2'));
  await create(SETS, {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 's', annotations: { 'deprecated.daemonset.template.generation': '3' } },
    spec: {
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: {} },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 2 } },
      revisionHistoryLimit: 10,
    },
  });
  await api.advance(60_000);
  const pods = api.all('/api/v1/pods').map((pod) => stringAt(pod, 'metadata', 'name'));
  assert.equal(pods.length, 2, pods.join());
  assert.ok(pods.includes('on-n'), pods.join());
  assert.ok(!pods.includes('on-m'), pods.join());
  const [set] = api.all('/apis/apps/v1/daemonsets');
  assert.equal(numberAt(set, 'status', 'updatedNumberScheduled'), 2);
  for (const pod of api.all('/api/v1/pods')) {
    assert.equal(stringAt(listAt(pod, 'metadata', 'ownerReferences')[0], 'name'), 's');
  }
  manager.stop();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';

async function started(): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  startManager(api, ['disruption-controller']);
  await api.advance(100);
  return api;
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  assert((await api.request({ method: 'POST', path, body })).ok);
}

test('who was to be disrupted and was not is told so after two minutes', async () => {
  const api = await started();
  const now = new Date(api.timers.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
  for (const [name, phase, reason] of [
    ['spared', 'Running', 'PreemptionByScheduler'],
    ['ended', 'Failed', 'PreemptionByScheduler'],
    ['kubelet', 'Running', 'TerminationByKubelet'],
  ] as const) {
    const target = { type: 'DisruptionTarget', status: 'True', reason, lastTransitionTime: now };
    const conditions = [{ type: 'Ready', status: 'True' }, target];
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      status: { phase, conditions },
    };
    await post(api, `${CORE}/pods`, pod);
  }
  const told = (): string[] =>
    api.all('/api/v1/pods').map((pod) => {
      const [ready, target] = listAt(pod, 'status', 'conditions');
      assert.equal(stringAt(ready, 'status'), 'True');
      return `${stringAt(target, 'status')} ${stringAt(target, 'reason')}`;
    });
  const kept = ['True PreemptionByScheduler', 'True TerminationByKubelet'];
  await api.advance(118_000);
  assert.deepEqual(told(), ['True PreemptionByScheduler', ...kept]);
  await api.advance(4_000);
  assert.deepEqual(told(), ['False ', ...kept]);
});

test('a pod of two budgets is told which one was chosen', async () => {
  const api = await started();
  const spec = { maxUnavailable: 1, selector: { matchLabels: { app: 'x' } } };
  for (const name of ['b1', 'b2']) {
    const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    await post(api, path, { metadata: { name }, spec });
  }
  await post(api, `${CORE}/pods`, { metadata: { name: 'p', labels: { app: 'x' } } });
  await post(api, `${CORE}/pods`, { metadata: { name: 'other', labels: { app: 'y' } } });
  await api.advance(1_000);
  const told = api.events.filter((one) => one.startsWith('MultiplePod'));
  const text = 'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "b1" arbitrarily.';
  assert.deepEqual(told, [`MultiplePodDisruptionBudgets: ${text}`]);
});

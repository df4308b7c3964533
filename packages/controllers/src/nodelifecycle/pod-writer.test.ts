import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FakeApi } from '../../test/fake-api.ts';
import { PodWriter } from './pod-writer.ts';

const PODS = '/api/v1/namespaces/default/pods';

test('a pod that is driven away says of which of its generations that was decided', async () => {
  const api = new FakeApi();
  const writer = new PodWriter({
    client: api,
    announce: () => {},
    now: () => '2026-01-01T00:00:00Z',
    onError: (error) => assert.fail(String(error)),
  });
  const conditionsOf = async (name: string, act: (key: string) => void): Promise<unknown> => {
    const finalizers = ['example.com/stay'];
    const metadata = { name, finalizers, generation: 3 };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: 'Running' } };
    await api.request({ method: 'POST', path: PODS, body });
    act(`default/${name}`);
    await api.advance(1_000);
    const pod = api.objects.get(`/api/v1/pods default/${name}`);
    return listAt(pod, 'status', 'conditions').map((one) => one);
  };
  const type = 'DisruptionTarget';
  const common = { type, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
  assert.deepEqual(await conditionsOf('a', (key) => writer.evict(key, () => assert.fail())), [
    {
      ...common,
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      observedGeneration: 3,
    },
  ]);
  assert.deepEqual(await conditionsOf('b', (key) => writer.remove(key, 'orphaned')), [
    {
      ...common,
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
      observedGeneration: 3,
    },
  ]);
});

test('conditions come behind others, and pods that have ended are told nothing', async () => {
  const api = new FakeApi();
  const writer = new PodWriter({
    client: api,
    announce: () => {},
    now: () => '2026-01-01T00:00:00Z',
    onError: (error) => assert.fail(String(error)),
  });
  const statusOf = async (name: string, status: JsonObject): Promise<JsonObject | undefined> => {
    const metadata = { name, finalizers: ['example.com/stay'], generation: 2 };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata, status };
    await api.request({ method: 'POST', path: PODS, body });
    writer.remove(`default/${name}`, 'orphaned');
    await api.advance(1_000);
    return objectAt(api.objects.get(`/api/v1/pods default/${name}`), 'status');
  };
  const since = '2025-12-31T00:00:00Z';
  const ready = { type: 'Ready', status: 'True', lastTransitionTime: since };
  const failed = await statusOf('a', { phase: 'Running', conditions: [ready] });
  assert.equal(failed?.['phase'], 'Failed');
  assert.equal(failed?.['observedGeneration'], 2);
  const types = listAt(failed, 'conditions').map((one) => stringAt(one, 'type'));
  assert.deepEqual(types, ['Ready', 'DisruptionTarget']);
  // one that was told before keeps its time
  const told = { type: 'DisruptionTarget', status: 'True', lastTransitionTime: since, reason: 'x' };
  const again = listAt(
    await statusOf('b', { phase: 'Running', conditions: [told, ready] }),
    'conditions',
  );
  assert.deepEqual(
    again.map((one) => [stringAt(one, 'type'), stringAt(one, 'lastTransitionTime')]),
    [told, ready].map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
  );
  assert.equal(stringAt(again[0], 'reason'), 'DeletionByPodGC');
  const ended = await statusOf('c', { phase: 'Succeeded', conditions: [ready] });
  assert.deepEqual(ended, { phase: 'Succeeded', conditions: [ready] });
});

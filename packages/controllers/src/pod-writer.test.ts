import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt } from '@megaplane/machinery/json';
import { FakeApi } from '../test/fake-api.ts';
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

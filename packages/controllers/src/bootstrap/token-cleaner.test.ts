import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import { chosenControllers } from '../framework/options.ts';

const TYPE = 'bootstrap.kubernetes.io/token';

async function addToken(
  api: WorkloadApi,
  name: string,
  expiration: string,
  { type = TYPE, namespace = 'kube-system' } = {},
): Promise<void> {
  const data: JsonObject = expiration === '' ? {} : { expiration: btoa(expiration) };
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type, data };
  await api.request({ method: 'POST', path: `/api/v1/namespaces/${namespace}/secrets`, body });
}

test('bootstrap tokens go when their time is over, and nothing else does', async () => {
  const api = new WorkloadApi();
  startManager(api, ['tokencleaner']);
  await api.advance(100);
  const inMinutes = (minutes: number): string =>
    new Date(api.timers.nowMs() + minutes * 60_000).toISOString().replace(/\.\d+Z$/, 'Z');
  await addToken(api, 'past', inMinutes(-1));
  await addToken(api, 'soon', inMinutes(10));
  await addToken(api, 'never', '');
  await addToken(api, 'unreadable', 'tomorrow');
  await addToken(api, 'other', inMinutes(-1), { type: 'Opaque' });
  await addToken(api, 'elsewhere', inMinutes(-1), { namespace: 'default' });
  const names = (): string[] => [...api.objects.keys()].map((key) => key.split('/').at(-1) ?? '');
  await api.advance(1_000);
  assert.deepEqual(names(), ['soon', 'never', 'other', 'elsewhere']);
  await api.advance(9 * 60_000 - 3_000);
  assert(names().includes('soon'));
  await api.advance(63_000);
  assert.deepEqual(names(), ['never', 'other', 'elsewhere']);
});

test('the token cleaner works only where it is named', () => {
  const all = chosenControllers(['*']);
  const named = chosenControllers(['*', 'tokencleaner']);
  assert(typeof all !== 'string' && typeof named !== 'string');
  assert(!all.has('token-cleaner-controller') && named.has('token-cleaner-controller'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const DAY_MS = 86_400_000;
const HOME = '/api/v1/namespaces/default';
const TYPE = 'kubernetes.io/service-account-token';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';

const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  assert((await api.request({ method: 'POST', path, body })).ok);
}

/** Old Secrets of an account, of which those named `auto...` are named by it. */
async function started(...names: string[]): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  const since = { data: { since: dayOf(api.timers.nowMs()) } };
  const metadata = { name: 'kube-apiserver-legacy-service-account-token-tracking' };
  await post(api, '/api/v1/namespaces/kube-system/configmaps', { metadata, ...since });
  const secrets = names.filter((name) => name.startsWith('auto')).map((name) => ({ name }));
  await post(api, `${HOME}/serviceaccounts`, { metadata: { name: 'robot' }, secrets });
  for (const name of names) {
    const annotations = { 'kubernetes.io/service-account.name': 'robot' };
    await post(api, `${HOME}/secrets`, { metadata: { name, annotations }, type: TYPE });
  }
  const legacyTokenCleanUpPeriodMs = 10 * DAY_MS;
  startManager(api, ['legacy-service-account-token-cleaner'], { legacyTokenCleanUpPeriodMs });
  await api.advance(1_000);
  return api;
}

/** Day by day, as appointments are a day apart. */
async function live(api: WorkloadApi, days: number): Promise<void> {
  for (let day = 0; day < days; day++) await api.advance(DAY_MS);
}

const labelled = (api: WorkloadApi): string[] =>
  api
    .all('/api/v1/secrets')
    .filter((one) => stringAt(one, 'metadata', 'labels', INVALID_SINCE) !== '')
    .map((one) => stringAt(one, 'metadata', 'name'));
const names = (api: WorkloadApi): string[] =>
  api.all('/api/v1/secrets').map((one) => stringAt(one, 'metadata', 'name'));

test('a token that nobody used is marked after the period, and goes a period later', async () => {
  const api = await started('auto', 'own');
  await live(api, 9);
  assert.deepEqual(labelled(api), [], 'uses may not have been written down for so long');
  await live(api, 4);
  assert.deepEqual(labelled(api), ['auto']);
  await live(api, 8);
  assert.deepEqual(names(api), ['auto', 'own']);
  await live(api, 5);
  assert.deepEqual(names(api), ['own'], 'what a user made stays');
});

test('tokens that are used or mounted stay', async () => {
  const api = await started('auto-used', 'auto-mounted', 'auto-pulled');
  const volumes = [{ name: 'v', secret: { secretName: 'auto-mounted' } }];
  const imagePullSecrets = [{ name: 'auto-pulled' }];
  await post(api, `${HOME}/pods`, { metadata: { name: 'p' }, spec: { volumes, imagePullSecrets } });
  for (let round = 0; round < 12; round++) {
    const body = { metadata: { labels: { [LAST_USED]: dayOf(api.timers.nowMs()) } } };
    const contentType = 'application/merge-patch+json';
    await api.request({ method: 'PATCH', path: `${HOME}/secrets/auto-used`, contentType, body });
    await live(api, 3);
  }
  assert.deepEqual(labelled(api), []);
  assert.equal(names(api).length, 3);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import * as status from '@megaplane/machinery/status';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const ROLLOUTS = '/apis/example.com/v1/namespaces/default/rollouts';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

class ScaleApi extends WorkloadApi {
  hasScale = true;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    if (!this.hasScale && request.path.endsWith('/scale')) {
      const text = status.notFound({ group: 'example.com', name: 'rollouts' }, 'r');
      return { ok: false, code: 404, status: text };
    }
    return super.request(request);
  }
}

async function post(api: WorkloadApi, path: string, body: JsonObject): Promise<string> {
  const answer = await api.request({ method: 'POST', path, body });
  assert(answer.ok);
  return stringAt(answer.object, 'metadata', 'uid');
}

/** Two pods of four that a custom resource wants, and a budget for them. */
async function started(hasScale: boolean, kind = 'Rollout'): Promise<ScaleApi> {
  const api = new ScaleApi();
  api.hasScale = hasScale;
  api.served = [...api.served, ['example.com', 'rollouts', 'Rollout', 'Namespaced']];
  startManager(api, ['disruption-controller']);
  await api.advance(1_000);
  const uid = await post(api, ROLLOUTS, { metadata: { name: 'r' }, spec: { replicas: 4 } });
  const ownerReferences = [
    { apiVersion: 'example.com/v1', kind, name: 'r', uid, controller: true },
  ];
  for (const name of ['a', 'b']) {
    const metadata = { name, labels: { app: 'x' }, ownerReferences };
    await post(api, '/api/v1/namespaces/default/pods', { metadata });
  }
  const spec = { maxUnavailable: 1, selector: { matchLabels: { app: 'x' } } };
  await post(api, BUDGETS, { metadata: { name: 'p' }, spec });
  await api.advance(1_000);
  return api;
}

const statusOf = (api: WorkloadApi): JsonObject =>
  objectAt(api.all('/apis/policy/v1/poddisruptionbudgets')[0], 'status') ?? {};

test('pods of a custom resource are counted by what its scale says', async () => {
  const api = await started(true);
  assert.equal(numberAt(statusOf(api), 'expectedPods'), 4);
  assert.equal(numberAt(statusOf(api), 'desiredHealthy'), 3);
});

test('a controller without a scale, and one of an unknown kind, are told of', async () => {
  const told = (api: WorkloadApi): string => api.events[0] ?? '';
  const without = await started(false);
  assert.match(told(without), /: rollouts\.example\.com does not implement the scale subresource$/);
  await without.advance(60_000);
  assert.equal(without.events.length, 2, 'for the budget and for its status, and never again');
  const unknown = await started(true, 'Nothing');
  assert.match(told(unknown), /: no matches for kind "Nothing" in version "example\.com\/v1"$/);
});

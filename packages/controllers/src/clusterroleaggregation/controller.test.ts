import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

/** Keeps what is applied to ClusterRoles. */
class RolesApi extends WorkloadApi {
  readonly applied: ClientRequest[] = [];

  override async request(request: ClientRequest): Promise<ClientResponse> {
    if (request.contentType !== 'application/apply-patch+yaml') return super.request(request);
    this.applied.push(request);
    const [path = ''] = request.path.split('?');
    // Rules that somebody else wrote stay, and nothing changes.
    if (!('rules' in (request.body as JsonObject))) return super.request({ method: 'GET', path });
    return super.request({ ...request, path, contentType: 'application/merge-patch+json' });
  }

  async add(name: string, more: JsonObject): Promise<void> {
    const body = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', ...more };
    const metadata = { name, labels: { part: name } };
    await this.request({ method: 'POST', path: ROLES, body: { ...body, metadata } });
    await this.advance(1_000);
  }
}

test('rules of the selected roles are applied once each, in the order of names', async () => {
  const api = new RolesApi();
  startManager(api, ['clusterrole-aggregation-controller']);
  await api.advance(100);
  const rule = (resource: string): JsonObject => ({
    apiGroups: [''],
    resources: [resource],
    verbs: ['get'],
  });
  await api.add('b', { rules: [rule('pods'), rule('nodes')] });
  await api.add('a', { rules: [rule('secrets'), rule('pods')] });
  const clusterRoleSelectors = ['b', 'a'].map((part) => ({ matchLabels: { part } }));
  await api.add('sum', { aggregationRule: { clusterRoleSelectors }, rules: [] });
  const [request] = api.applied;
  assert.equal(
    request?.path,
    `${ROLES}/sum?fieldManager=clusterrole-aggregation-controller&force=true`,
  );
  assert.deepEqual((request.body as JsonObject)['rules'], [
    rule('pods'),
    rule('nodes'),
    rule('secrets'),
  ]);
  assert.equal(api.applied.length, 1, 'what is there is not applied again');
});

test('where nothing is selected the rules are given up, which keeps those of others', async () => {
  const api = new RolesApi();
  startManager(api, ['clusterrole-aggregation-controller']);
  await api.advance(100);
  const clusterRoleSelectors = [{ matchLabels: { part: 'none' } }];
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
  await api.add('sum', { aggregationRule: { clusterRoleSelectors }, rules });
  assert.equal(api.applied.length, 1);
  assert.equal((api.applied[0]?.body as JsonObject | undefined)?.['rules'], undefined);
});

test('two roles that aggregate each other come to rest', async () => {
  const api = new RolesApi();
  startManager(api, ['clusterrole-aggregation-controller']);
  await api.advance(100);
  const rules = ['x', 'y', 'z'].map((one) => ({
    apiGroups: [''],
    resources: [one],
    verbs: ['get'],
  }));
  const rule = (part: string): JsonObject => ({
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part } }] },
  });
  // in the order of the other, each: what one has read of the other it must not write over it
  const [x = {}, y = {}, z = {}] = rules;
  api.holdWatches(ROLES);
  await api.add('one', { ...rule('two'), rules: [x, y, z] });
  await api.add('two', { ...rule('one'), rules: [z, y, x] });
  api.releaseWatches();
  await api.advance(60_000);
  assert.ok(api.applied.length <= 2, `${api.applied.length} writes`);
  const orders = [...api.objects.values()]
    .filter((one) => 'aggregationRule' in one)
    .map((one) => JSON.stringify(one['rules']));
  assert.equal(new Set(orders).size, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';

const CORE = '/api/v1/namespaces/default';

function stateful(name: string): JsonObject {
  const labels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name },
    spec: {
      serviceName: name,
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: {} },
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
    },
  };
}

test('nobody is told of a name that is taken, nor of a pod that is made anew', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api, ['statefulset-controller']);
  const create = async (path: string, body: JsonObject): Promise<void> => {
    const answer = await api.request({ method: 'POST', path, body });
    assert.ok(answer.ok, path);
  };
  const stranger = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'taken-0' } };
  await create(`${CORE}/pods`, stranger);
  for (const name of ['taken', 'well']) {
    await create('/apis/apps/v1/namespaces/default/statefulsets', stateful(name));
  }
  await api.advance(20_000);
  await api.request({
    method: 'PATCH',
    path: `${CORE}/pods/well-0/status`,
    contentType: 'application/merge-patch+json',
    body: { status: { phase: 'Failed' } },
  });
  await api.advance(20_000);
  const told = api.events.map((text) => text.slice(text.indexOf(': ') + 2));
  assert.deepEqual(told, [
    'create Pod well-0 in StatefulSet well successful',
    'delete Pod well-0 in StatefulSet well successful',
    'create Pod well-0 in StatefulSet well successful',
  ]);
  const tries = api.log.filter((line) => line === `POST ${CORE}/pods`).length;
  assert.ok(tries < 40, `${tries} tries`);
  manager.stop();
});

test('a claim that somebody else controls is left alone, and that is told', async () => {
  const api = new WorkloadApi();
  const manager = startManager(api, ['statefulset-controller']);
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'own', uid: 'o', controller: true };
  const metadata = { name: 'data-web-0', ownerReferences: [owner] };
  const claims = `${CORE}/persistentvolumeclaims`;
  assert((await api.request({ method: 'POST', path: claims, body: { metadata } })).ok);
  await api.advance(1_000);
  const set = stateful('web');
  const both = { whenDeleted: 'Delete', whenScaled: 'Delete' };
  set['spec'] = {
    ...(set['spec'] as JsonObject),
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }],
    persistentVolumeClaimRetentionPolicy: both,
  };
  const sets = '/apis/apps/v1/namespaces/default/statefulsets';
  assert((await api.request({ method: 'POST', path: sets, body: set })).ok);
  await api.advance(1_000);
  const told = (): number =>
    api.events.filter((text) => text.includes('data-web-0 has a conflicting OwnerReference'))
      .length;
  const atFirst = told();
  assert(atFirst > 0);
  await api.bringUp();
  await api.advance(1_000);
  const [claim] = api.all('/api/v1/persistentvolumeclaims');
  assert.deepEqual((claim?.['metadata'] as JsonObject | undefined)?.['ownerReferences'], [owner]);
  assert.equal(told(), atFirst, 'of pods that are well it is told no more');
  manager.stop();
});

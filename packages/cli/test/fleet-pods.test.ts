import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createKubeClient } from '@megaplane/client/kube-client';
import { runPods } from '@megaplane/fleet/pods/run';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { ENTRY, SERVER_ONLY, startCluster } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 900;
const PAUSE_MS = 100;
const PODS = '/api/v1/namespaces/default/pods';
const REQUESTS = '/apis/bigfleet.lucy.sh/v1alpha1/namespaces/default/capacityrequests';

function pod(name: string, annotations: JsonObject = {}): JsonObject {
  const resources = { requests: { cpu: '250m', memory: '64Mi' } };
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, annotations } },
    spec: { containers: [{ name: 'c', image: 'i', resources }] },
  };
}

test('each pod has one request as long as it lives, also over a restart', async () => {
  const cluster = await startCluster(SERVER_ONLY);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const ask = async (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: JsonObject,
  ): Promise<JsonObject> => {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const answer = await client.request({
      ...{ method, path, contentType },
      ...(body === undefined ? {} : { body }),
    });
    assert.ok(answer.ok, `${method} ${path}: ${answer.ok ? '' : answer.status.message}`);
    return answer.object;
  };
  const requests = async (): Promise<readonly JsonValue[]> =>
    listAt(await ask('GET', REQUESTS), 'items');
  const owners = async (): Promise<string> => {
    const names = (await requests()).map((request) =>
      stringAt(listAt(request, 'metadata', 'ownerReferences')[0], 'name'),
    );
    return names.toSorted((a, b) => (a < b ? -1 : 1)).join(' ');
  };
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (let tries = 0; !(await isSo()); tries++) {
      assert.ok(tries < TRIES_MAX, `never: ${what}`);
      await setTimeout(PAUSE_MS);
    }
  };
  const reached = (expected: string): Promise<void> =>
    until(`requests of ${expected}`, async () => (await owners()) === expected);
  const log = (): void => {};
  const options = { kubeconfig: cluster.kubeconfig, penalties: { p: {} }, log };
  let service = await runPods(options);
  try {
    const definitions = execFileSync(process.execPath, [ENTRY, 'fleet', 'definitions']);
    for (const text of String(definitions).split('---\n')) {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      const answer = await client.request({
        ...{ method: 'POST', path, contentType: 'application/yaml', body: text },
      });
      assert.ok(answer.ok);
    }
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    await ask('POST', '/api/v1/namespaces/default/serviceaccounts', account);
    await ask('POST', PODS, pod('a', { 'bigfleet.lucy.sh/interruption-penalty': '8' }));
    await ask('POST', PODS, pod('b'));
    await reached('a b');
    const [first] = await requests();
    assert.equal(stringAt(first, 'spec', 'interruptionPenalty'), '8');
    assert.equal(stringAt(first, 'spec', 'resources', 'cpu'), '250m');
    await until('all are marked', async () =>
      (await requests()).every((request) => stringAt(request, 'status', 'phase') === 'Pending'),
    );

    await service.stop();
    await ask('POST', PODS, pod('c'));
    service = await runPods(options);
    await reached('a b c');
    await ask('PATCH', `${PODS}/b/status`, { status: { phase: 'Succeeded' } });
    await reached('a c');
    for (const request of await requests()) {
      await ask('DELETE', `${REQUESTS}/${stringAt(request, 'metadata', 'name')}`);
    }
    await reached('a c');
  } finally {
    await service.stop();
    client.close();
    await cluster.remove();
  }
});

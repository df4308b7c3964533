import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from './manager.ts';
import { WorkloadApi } from './workload-api.ts';
import { ClientLayer } from '../src/framework/client-layer.ts';

const MERGE = 'application/merge-patch+json';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PODS = '/api/v1/namespaces/default/pods';
const PAUSE_MS = 600_000;
const NODES: readonly string[] = Array.from({ length: 30 }, (_, i) => `n${i}`);

async function put(api: WorkloadApi, path: string, body: JsonObject): Promise<void> {
  const apiVersion = path === LEASES ? 'coordination.k8s.io/v1' : 'v1';
  const answer = await api.request({ method: 'POST', path, body: { apiVersion, ...body } });
  assert(answer.ok);
}

/** Thirty nodes in three zones, each with a pod that tolerates nothing, and all controllers. */
async function started(clientOf = (api: WorkloadApi): Client => api): Promise<WorkloadApi> {
  const api = new WorkloadApi();
  for (const [i, name] of NODES.entries()) {
    const labels = { 'topology.kubernetes.io/zone': `z${i % 3}` };
    const conditions = [{ type: 'Ready', status: 'True' }];
    const metadata = { name, labels };
    await put(api, '/api/v1/nodes', { kind: 'Node', metadata, spec: {}, status: { conditions } });
    await put(api, LEASES, { kind: 'Lease', metadata: { name }, spec: {} });
    const spec = { nodeName: name };
    await put(api, PODS, {
      kind: 'Pod',
      metadata: { name: `p${i}` },
      spec,
      status: { conditions },
    });
  }
  const names = ['node-lifecycle', 'taint-eviction', 'pod-garbage-collector'];
  startManager(
    clientOf(api),
    names.map((one) => `${one}-controller`),
  );
  await beat(api, 60_000);
  api.log.length = 0;
  return api;
}

/** Kubelets renew and report for a while, as often as they do. */
async function beat(
  api: WorkloadApi,
  durationMs: number,
  isLiving = (_node: number): boolean => true,
): Promise<void> {
  for (let ms = 0; ms < durationMs; ms += 10_000) {
    await renew(api, isLiving);
    await api.advance(10_000);
  }
}

async function renew(api: WorkloadApi, isLiving = (_node: number): boolean => true): Promise<void> {
  const renewTime = new Date(api.timers.nowMs()).toISOString().replace('Z', '000Z');
  for (const [i, name] of NODES.entries()) {
    if (!isLiving(i)) continue;
    const path = `${LEASES}/${name}`;
    await api.request({ method: 'PATCH', path, contentType: MERGE, body: { spec: { renewTime } } });
  }
}

/** What was done to nodes and pods since the start; renewals are not. */
function deeds(api: WorkloadApi): string[] {
  return api.log.filter((line) => !line.includes('/leases/'));
}

test('the server pauses for ten minutes: no node is written, no pod goes', async () => {
  const api = await started();
  api.isDown = true;
  await api.advance(PAUSE_MS);
  api.isDown = false;
  await beat(api, 180_000);
  assert.deepEqual(deeds(api), []);
});

test('the controllers pause for ten minutes: no node is written, no pod goes', async () => {
  for (const isNewsFirst of [true, false]) {
    const api = await started();
    api.jump(PAUSE_MS);
    if (isNewsFirst) await renew(api);
    await api.advance(1_000);
    await beat(api, 180_000);
    assert.deepEqual(deeds(api), [], isNewsFirst ? 'news first' : 'timers first');
  }
});

test('pauses of the controllers and of the server follow each other: nothing is done', async () => {
  const api = await started();
  for (let i = 0; i < 5; i++) {
    api.jump(45_000);
    await api.advance(3_000);
    api.isDown = true;
    await api.advance(45_000);
    api.isDown = false;
    await beat(api, 20_000);
  }
  assert.deepEqual(deeds(api), []);
});

test('all kubelets pause for ten minutes: none is evicted, and all is as before', async () => {
  const api = await started();
  const taints = (): string[] =>
    NODES.flatMap((name) => {
      const node = api.objects.get(`/api/v1/nodes /${name}`);
      return listAt(node, 'spec', 'taints').map((one) => stringAt(one, 'effect'));
    });
  await api.advance(PAUSE_MS);
  assert(!taints().includes('NoExecute'));
  assert(taints().includes('NoSchedule'), 'that they are silent is told all the same');
  const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  for (const name of NODES) {
    const path = `/api/v1/nodes/${name}/status`;
    await api.request({ method: 'PATCH', path, contentType: MERGE, body });
  }
  await beat(api, 180_000);
  assert.deepEqual(taints(), []);
  const gone = deeds(api).filter((line) => line.startsWith('DELETE'));
  assert.deepEqual(gone, []);
  assert.equal(api.all('/api/v1/pods').length, NODES.length);
});

test('a zone that pauses loses one of its ten nodes each ten seconds', async () => {
  const api = await started();
  const gone: number[] = [];
  const isDead = (i: number): boolean => i % 3 === 0;
  for (let ms = 0; ms < PAUSE_MS; ms += 10_000) {
    const before = api.all('/api/v1/pods').length;
    await beat(api, 10_000, (i) => !isDead(i));
    gone.push(before - api.all('/api/v1/pods').length);
  }
  assert.equal(gone.join('').replaceAll(/^0+|0+$/g, ''), '1'.repeat(10));
  const left = api.all('/api/v1/pods').map((pod) => stringAt(pod, 'spec', 'nodeName'));
  assert.deepEqual(
    left,
    NODES.filter((_, i) => !isDead(i)),
  );
});

for (const collection of ['/apis/coordination.k8s.io/v1/leases', '/api/v1/nodes', '']) {
  const what = collection === '' ? 'no watch says anything' : `the watch of ${collection} is mute`;
  test(`${what} for ten minutes: no node is written, no pod goes`, async () => {
    const api = await started();
    api.holdWatches(collection);
    await beat(api, PAUSE_MS);
    api.releaseWatches();
    await beat(api, 180_000);
    assert.deepEqual(deeds(api), []);
  });
}

/** A client whose answers take so long. */
class SlowClient extends ClientLayer {
  delayMs = 0;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    const answer = await super.request(request);
    if (this.delayMs === 0) return answer;
    return new Promise((resolve) => this.timers.after(this.delayMs, () => resolve(answer)));
  }
}

for (const delayMs of [1_000, 20_000, 120_000]) {
  const title = `answers take ${delayMs / 1000} s and watches say nothing for ten minutes`;
  test(`${title}: no node is written, no pod goes`, async () => {
    const slow: SlowClient[] = [];
    const api = await started((of) => {
      const client = new SlowClient(of);
      slow.push(client);
      return client;
    });
    for (const client of slow) client.delayMs = delayMs;
    api.holdWatches();
    await beat(api, PAUSE_MS);
    api.releaseWatches();
    await beat(api, 180_000);
    assert.deepEqual(deeds(api), []);
  });
}

test('the server takes no writes for ten minutes: no pod goes, and all is as before', async () => {
  const api = await started();
  api.faultOf = () => 'refused';
  await api.advance(PAUSE_MS);
  api.faultOf = () => 'none';
  await beat(api, 180_000);
  const gone = deeds(api).filter((line) => line.startsWith('DELETE'));
  assert.deepEqual(gone, []);
  for (const name of NODES) {
    const node = api.objects.get(`/api/v1/nodes /${name}`);
    const effects = listAt(node, 'spec', 'taints').map((one) => stringAt(one, 'effect'));
    assert(!effects.includes('NoExecute'), name);
  }
});

test('a pause of the server while a zone is emptied: it goes on at its pace', async () => {
  const api = await started();
  const isLiving = (i: number): boolean => i % 3 > 0;
  await beat(api, 90_000, isLiving);
  const before = api.all('/api/v1/pods').length;
  assert(before < NODES.length && before > 20, `${before} pods`);
  for (let i = 0; i < 2; i++) {
    api.isDown = true;
    await api.advance(PAUSE_MS);
    api.isDown = false;
    await beat(api, 10_000, isLiving);
    const left = api.all('/api/v1/pods').length;
    assert(left >= before - 2 * (i + 1), `${left} of ${before} pods`);
  }
  await beat(api, PAUSE_MS, isLiving);
  const left = api.all('/api/v1/pods').map((pod) => stringAt(pod, 'spec', 'nodeName'));
  assert.deepEqual(
    left,
    NODES.filter((_, i) => isLiving(i)),
  );
});

test('two zones of three pause: each loses one of its nodes each ten seconds', async () => {
  const api = await started();
  const gone: number[] = [];
  for (let ms = 0; ms < PAUSE_MS; ms += 10_000) {
    const before = api.all('/api/v1/pods').length;
    await beat(api, 10_000, (i) => i % 3 === 0);
    gone.push(before - api.all('/api/v1/pods').length);
  }
  assert.equal(gone.join('').replaceAll(/^0+|0+$/g, ''), '2'.repeat(10));
});

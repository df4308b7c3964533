/**
 * Simulated nodes in storms: while they start, while pods start and while pods go, the server
 * refuses everything for minutes. After it nothing is lost, and no object was asked for too often.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { readKwokFiles } from '@megaplane/nodes/stages/kwok-files';
import { ClusterSimulation } from './cluster-simulation.ts';
import { simulatedWorld } from './simulated-world.ts';
import { StormyClient } from './stormy-client.ts';
import type { NodesOptions } from '@megaplane/nodes/nodes-options';

const TICK_MS = 400;
const MINUTE_MS = 60_000;
const NODES = 5;
const PODS = 10;
const STORM_MS = 4 * MINUTE_MS;
/** Longest pause between tries, and one round of renewals. */
const CALM_MS = 140_000;
const FOR_ONE_A_MINUTE_MAX = 30;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PODS_PATH = '/api/v1/namespaces/default/pods';

async function objects(cluster: ClusterSimulation, path: string): Promise<readonly JsonValue[]> {
  const asked = cluster.ask('GET', path);
  await cluster.settle();
  const answer = await asked;
  assert.ok(answer.ok, path);
  return listAt(answer.object, 'items');
}

async function outlives(code: number, more: Partial<NodesOptions>): Promise<void> {
  const cluster = new ClusterSimulation(7);
  const client = new StormyClient(cluster);
  for (const name of ['default', 'kube-system', 'kube-node-lease']) {
    void cluster.ask('POST', '/api/v1/namespaces', { metadata: { name } });
  }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  void cluster.ask('POST', '/api/v1/namespaces/default/serviceaccounts', account);
  const old = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-0' } };
  void cluster.ask('POST', '/api/v1/nodes', old);
  await cluster.advance(1000);
  const world = simulatedWorld(cluster, client, { create: NODES, ...more });
  const storm = async (durationMs: number): Promise<void> => {
    client.weather = code;
    cluster.cut();
    await pass(durationMs);
    client.clear();
    await pass(CALM_MS);
  };
  const pass = async (durationMs: number): Promise<void> => {
    for (let passed = 0; passed < durationMs; passed += TICK_MS) {
      await cluster.advance(TICK_MS);
      world.tick();
    }
  };
  // the nodes are known, and their leases cannot be read
  client.lets = '/api/v1/nodes';
  client.weather = code;
  void world.start();
  // stages ask for two minutes what kinds there are
  await storm(more.files === undefined ? STORM_MS : MINUTE_MS);
  client.lets = 'nothing';
  const leases = await objects(cluster, LEASES);
  const ages = leases.map(
    (lease) => cluster.timers.nowMs() - Date.parse(stringAt(lease, 'spec', 'renewTime')),
  );
  assert.equal(ages.length, NODES);
  assert.ok(Math.max(...ages) < 20_000, `leases renewed ${ages.join(', ')} ms ago`);

  for (let id = 0; id < PODS; id++) {
    const spec = { nodeName: `node-${id % NODES}`, containers: [{ name: 'c', image: 'i' }] };
    void cluster.ask('POST', PODS_PATH, { metadata: { name: `p${id}` }, spec });
  }
  await storm(STORM_MS);
  const phases = (await objects(cluster, PODS_PATH)).map((pod) => stringAt(pod, 'status', 'phase'));
  assert.deepEqual(phases, Array(PODS).fill('Running'));

  for (let id = 0; id < PODS; id++) void cluster.ask('DELETE', `${PODS_PATH}/p${id}`);
  await storm(STORM_MS);
  assert.deepEqual(await objects(cluster, PODS_PATH), []);
  assert.ok(client.mostForOne <= FOR_ONE_A_MINUTE_MAX, `${client.mostForOne} of ${client.worst}`);
  world.stop();
  await cluster.settle();
}

for (const code of [429, 500, 403, 0]) {
  test(`nodes and pods outlive a server that answers ${code} for minutes`, async () => {
    await outlives(code, {});
  });
}

test('kubelets outlive a throttling server', async () => {
  await outlives(429, { fidelity: 'kubelet', kubeletCalls: '-token' });
});

test('stages outlive a throttling server', async () => {
  await outlives(429, { files: readKwokFiles('--config', ['general']) });
});

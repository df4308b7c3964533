import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createKubeClient } from '@megaplane/client/kube-client';
import { SHARD_DEFAULTS } from '@megaplane/fleet/engine/shard';
import { runOperator } from '@megaplane/fleet/operator/run';
import { runPods } from '@megaplane/fleet/pods/run';
import { runProvider } from '@megaplane/fleet/provider/run';
import { runShard } from '@megaplane/fleet/shard/run';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ENTRY, startCluster } from './cluster.ts';

/** Only what is broken takes so long. */
const TRIES_MAX = 900;
const PAUSE_MS = 100;
const API = '/apis/bigfleet.lucy.sh/v1alpha1';
const SLOTS = 6;
/** Requests go by the garbage collector, with their pods. */
const GARBAGE_COLLECTED = ['--nodes', '0', '--components', 'apiserver,controllers'];
const log = (): void => {};
const run = promisify(execFile);

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    assert.ok(tries < TRIES_MAX, `never: ${what}`);
    await setTimeout(PAUSE_MS);
  }
}

const CATALOGUE = {
  offers: [
    {
      ...{ instanceType: 'm4', zones: ['a'], capacityType: 'OnDemand', slots: SLOTS, price: 0.2 },
      resources: { cpu: 4, memory: '16Gi', pods: 110 },
    },
  ],
  latencies: {
    create: { minMs: 50 },
    configure: { minMs: 50 },
    drain: { minMs: 50 },
    delete: { minMs: 50 },
  },
};

function shardOptions(dataDir: string, provider: number): Parameters<typeof runShard>[0] {
  return {
    ...{ shardId: 's1', dataDir, host: '127.0.0.1', port: 0, metricsAddress: '127.0.0.1:0' },
    providers: [{ host: '127.0.0.1', port: provider, isSecure: false }],
    engine: { ...SHARD_DEFAULTS, reclaimCapFraction: 0, onDemandHoldSeconds: 1 },
    ...{ cycleMs: 200, joinMs: 60_000, concurrency: 16, isIncremental: false, log },
  };
}

/** A pod that nobody runs: that it exists is demand. */
function pod(name: string): JsonObject {
  const resources = { requests: { cpu: '3', memory: '1Gi' } };
  const containers = [{ name: 'c', image: 'i', resources }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers } };
}

test('pods make demand, machines come and are bound, pods go and so do machines', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-shard-'));
  const cluster = await startCluster(GARBAGE_COLLECTED);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig });
  const stops: (() => Promise<void>)[] = [];
  const object = async (path: string): Promise<JsonObject> => {
    const answer = await client.request({ method: 'GET', path });
    return answer.ok ? answer.object : {};
  };
  const phases = async (): Promise<string[]> => {
    const nodes = listAt(await object(`${API}/upcomingnodes`), 'items');
    return nodes.map((node) => stringAt(node, 'status', 'phase'));
  };
  const metric = async (url: string, line: RegExp): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(line.exec(text)?.[1] ?? 0);
  };
  try {
    const definitions = execFileSync(process.execPath, [ENTRY, 'fleet', 'definitions']);
    for (const body of String(definitions).split('---\n')) {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      const contentType = 'application/yaml';
      assert.ok((await client.request({ method: 'POST', path, body, contentType })).ok);
    }
    await until('the definitions are served', async () => {
      return listAt(await object(API), 'resources').length >= 3;
    });
    const provider = await runProvider({
      ...{ host: '127.0.0.1', port: 0, timeoutMs: 60_000 },
      source: { kind: 'simulated', file: CATALOGUE, seed: 1 },
    });
    stops.push(() => provider.stop());
    let shard = await runShard(shardOptions(dataDir, provider.port));
    stops.push(() => shard.stop());
    const { port } = shard;
    const { kubeconfig } = cluster;
    const pods = await runPods({ kubeconfig, log });
    stops.push(() => pods.stop());
    const operator = await runOperator({
      ...{ kubeconfig, clusterId: 'c1', host: '127.0.0.1', port, rollUpMs: 1000, log },
      ...{ groupsByNamespace: true, bootstrap: 'join {{ .ClusterID }}', bootstrapTtlSeconds: 60 },
    });
    stops.push(() => operator.stop());

    const namespace = '/api/v1/namespaces/default';
    const path = `${namespace}/pods`;
    await until('pods may be made', async () => {
      return (await object(`${namespace}/serviceaccounts/default`))['kind'] !== undefined;
    });
    for (const name of ['a', 'b', 'c']) {
      assert.ok((await client.request({ method: 'POST', path, body: pod(name) })).ok);
    }
    await until('three machines are bound', async () => {
      return (await phases()).join() === 'Ready,Ready,Ready';
    });
    const configured = /inventory_machines\{state="Configured".*\} (\d+)/;
    assert.equal(await metric(shard.metricsUrl, configured), 3);
    await until('what could still be had is told', async () => {
      const hints = listAt(await object(`${API}/availablecapacities`), 'items');
      return hints.some((hint) => stringAt(hint, 'spec', 'availability') === 'Medium');
    });

    const ctl = ['fleet', 'ctl', 'needs', '--shard-addr', `127.0.0.1:${port}`];
    const table = await run(process.execPath, [ENTRY, ...ctl]);
    assert.match(table.stdout, /^CLUSTER .*\nc1 +0 +cpu=9,memory=3Gi +- +3 +- +- +\S+:Exists\n$/);
    const json = await run(process.execPath, [ENTRY, ...ctl, '--output', 'json']);
    assert.match(json.stdout, /"totalNeeds":1.*"claimedMachineCount":3/);

    // the shard ends and comes back on its port: what is bound stays, and nothing is bought anew
    await shard.stop();
    shard = await runShard({ ...shardOptions(dataDir, provider.port), port });
    await until('the operator is back', async () => {
      return (await metric(shard.metricsUrl, /active_sessions (\d+)/)) === 1;
    });
    assert.equal((await fetch(`${shard.metricsUrl}/readyz`)).status, 200);
    await until('it has decided a few times', async () => {
      return (await metric(shard.metricsUrl, /cycle_duration_seconds_count (\d+)/)) >= 5;
    });
    assert.equal(await metric(shard.metricsUrl, configured), 3);
    assert.equal(await metric(shard.metricsUrl, /actions_total\{.*\} (\d+)/), 0);

    // graceful deletion waits for a kubelet that is not there
    for (const name of ['a', 'b', 'c']) {
      const gone = `${path}/${name}?gracePeriodSeconds=0`;
      assert.ok((await client.request({ method: 'DELETE', path: gone })).ok);
    }
    await until('no machine is the cluster’s any more', async () => (await phases()).length === 0);
    const free = /inventory_machines\{state="Speculative".*\} (\d+)/;
    await until('all are given back', async () => {
      return (await metric(shard.metricsUrl, free)) === SLOTS;
    });
  } finally {
    for (const stop of stops.toReversed()) await stop();
    client.close();
    await cluster.remove();
    rmSync(dataDir, { recursive: true, force: true });
  }
});

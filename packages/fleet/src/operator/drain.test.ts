import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import type { Timers } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ReclaimInstructionSchema } from '../contract/tables/shard.ts';
import { Drainer, graceMs } from './drain.ts';
import { FakeCluster } from './fake-cluster.sim.ts';

const PODS = '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1';

/** A clock that jumps to the next timer as soon as nothing else is to do. */
class JumpingTimers implements Timers {
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fire: () => void): () => void {
    setImmediate(() => {
      this.#nowMs += delayMs;
      fire();
    });
    return () => {};
  }
}

interface Scene {
  readonly cluster: FakeCluster;
  readonly timers: JumpingTimers;
  readonly drainer: Drainer;
}

/** Words of the drainer stand in the transcript, among its requests. */
function scene(...pods: JsonObject[]): Scene {
  const cluster = new FakeCluster();
  const timers = new JumpingTimers();
  cluster.objects.set('/api/v1/nodes/node-1', {});
  cluster.objects.set(PODS, { items: pods });
  const say = (text: string): void => void cluster.transcript.push(`${timers.nowMs()} ${text}`);
  const drainer = new Drainer({
    ...{ api: cluster, timers },
    nodeNameOf: (machineId) => machineId.replace('m', 'node'),
    mark: (machineId, phase, why) => Promise.resolve(say(`mark ${machineId} ${phase} ${why}`)),
    acknowledge: (instructionId, nodes) => say(`ack ${instructionId} ${nodes}`),
    log: (_level, message) => say(message),
  });
  return { cluster, timers, drainer };
}

function pod(name: string, more: JsonObject = {}): JsonObject {
  const { metadata, ...rest } = more;
  return { metadata: { name, namespace: 'n', uid: `u-${name}`, ...(metadata as object) }, ...rest };
}

function instruction(seconds: number, ...nodes: string[]): Parameters<Drainer['carryOut']>[0] {
  const gracePeriodSeconds = BigInt(seconds);
  return create(ReclaimInstructionSchema, { instructionId: 'i1', nodes, gracePeriodSeconds });
}

test('a node is cordoned, acknowledged, emptied and done with', async () => {
  const { cluster, drainer } = scene(
    pod('a'),
    pod('daemon', { metadata: { ownerReferences: [{ kind: 'DaemonSet', controller: true }] } }),
    pod('mirror', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }),
    pod('over', { status: { phase: 'Succeeded' } }),
    pod('going', { metadata: { deletionTimestamp: 'now' } }),
  );
  const all = drainer.carryOut(instruction(60, 'm-1'));
  setImmediate(() => cluster.objects.set(PODS, { items: [] }));
  await all;
  assert.deepEqual(cluster.transcript, [
    'PATCH /api/v1/nodes/node-1 {"spec":{"unschedulable":true}}',
    '0 mark m-1 Draining ',
    '0 ack i1 1',
    'GET /api/v1/pods?fieldSelector=spec.nodeName=node-1',
    'POST /api/v1/namespaces/n/pods/a/eviction {"apiVersion":"policy/v1","kind":"Eviction",' +
      '"metadata":{"name":"a","namespace":"n"},"deleteOptions":{"preconditions":{"uid":"u-a"}}}',
    'GET /api/v1/pods?fieldSelector=spec.nodeName=node-1',
    '2000 mark m-1 Drained ',
  ]);
});

test('a pod that its budget holds is asked again until the grace is over', async () => {
  const { cluster, timers, drainer } = scene(pod('a'));
  const path = 'POST /api/v1/namespaces/n/pods/a/eviction';
  cluster.refusals.set(
    path,
    Array.from({ length: 100 }, () => 429),
  );
  await drainer.carryOut(instruction(10, 'm-1'));
  const asked = cluster.transcript.filter((line) => line.startsWith(path));
  assert.equal(asked.length, 6);
  assert.equal(timers.nowMs(), 10_000);
  assert.equal(cluster.transcript.at(-1), '10000 mark m-1 Failed pods are left: n/a');
});

test('a node that is not there is told of, and the others are drained', async () => {
  const { cluster, drainer } = scene();
  await drainer.carryOut(instruction(10, 'm-7', 'm-1'));
  assert.deepEqual(
    cluster.transcript.filter((line) => /^\d/.test(line)),
    [
      '0 machine m-7: there is no node node-7 to be cordoned',
      '0 mark m-7 Draining there is no node node-7',
      '0 mark m-1 Draining ',
      '0 ack i1 1',
      '0 mark m-1 Drained ',
    ],
  );
});

test('an instruction that comes twice is carried out once, and acknowledged twice', async () => {
  const { cluster, drainer } = scene();
  await drainer.carryOut(instruction(10, 'm-1'));
  await drainer.carryOut(instruction(10, 'm-1'));
  const count = (text: string): number =>
    cluster.transcript.filter((line) => line.includes(text)).length;
  assert.deepEqual([count('PATCH'), count('ack i1 1')], [1, 2]);
});

test('a grace that is none is half a minute, and none is longer than a timer can be', () => {
  const of = (seconds: bigint): number =>
    graceMs(create(ReclaimInstructionSchema, { gracePeriodSeconds: seconds }));
  assert.deepEqual(
    [of(0n), of(-5n), of(120n), of(2n ** 62n)],
    [30_000, 30_000, 120_000, 2_592_000_000],
  );
});

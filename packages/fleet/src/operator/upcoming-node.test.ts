import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { MachineState } from '../contract/tables/provider.ts';
import { NodeStateUpdateSchema } from '../contract/tables/shard.ts';
import { FakeCluster } from './fake-cluster.sim.ts';
import { NodeWriter } from './node-writer.ts';
import { objectName, phaseOf } from './upcoming-node.ts';

const UPCOMING = '/apis/bigfleet.lucy.sh/v1alpha1/upcomingnodes';

test('each state of a machine has its phase', () => {
  const phases = Object.values(MachineState).map((state) => phaseOf(state, ''));
  assert.deepEqual(phases, [
    ...['Provisioning', 'Provisioning', 'Provisioning', 'Launched', 'Registered'],
    ...['Ready', 'Draining', 'Provisioning', 'Failed'],
  ]);
  for (const before of ['Registered', 'Ready', 'Draining', 'Failed']) {
    assert.equal(phaseOf(MachineState.IDLE, before), 'Drained', before);
  }
  assert.equal(phaseOf(99, ''), 'Provisioning');
});

test('a machine whose id is no name gets one that stands for it', () => {
  assert.equal(objectName('m-1.zone'), 'm-1.zone');
  assert.match(objectName('pool/M_1'), /^m-[0-9a-f]{64}$/);
  assert.match(objectName('a'.repeat(254)), /^m-[0-9a-f]{64}$/);
});

function writer(cluster: FakeCluster): NodeWriter {
  return new NodeWriter({ api: cluster, wallMs: () => 0, log: () => {} });
}

async function life(nodes: NodeWriter, ...states: readonly MachineState[]): Promise<void> {
  for (const state of states) {
    const resources = { resources: { cpu: '4' } };
    const facts = { machineId: 'm1', state, resources, labels: { zone: 'a' }, providerId: 'p://1' };
    nodes.tell(create(NodeStateUpdateSchema, facts));
    await nodes.settled();
  }
}

test('the object of a machine lives from its first word until it is drained', async () => {
  const cluster = new FakeCluster();
  cluster.objects.set('/api/v1/nodes/m1', { metadata: { name: 'm1', uid: 'n1' } });
  const { CONFIGURING, CONFIGURED, DRAINING, IDLE } = MachineState;
  await life(writer(cluster), CONFIGURING, CONFIGURED, CONFIGURED, DRAINING, IDLE);
  const spec = '{"resources":{"cpu":"4"},"labels":{"zone":"a"}}';
  const time = '"provisioningStartTime":"1970-01-01T00:00:00.000Z"';
  const status = (phase: string, more = ''): string =>
    `PATCH ${UPCOMING}/m1/status [{"op":"add","path":"/status","value":` +
    `{"phase":"${phase}",${time},${more}"providerID":"p://1"}}]`;
  const node = '"nodeRef":{"apiVersion":"v1","kind":"Node","name":"m1","uid":"n1"},';
  const kind = '"apiVersion":"bigfleet.lucy.sh/v1alpha1","kind":"UpcomingNode"';
  assert.deepEqual(cluster.transcript, [
    `GET ${UPCOMING}/m1`,
    `POST ${UPCOMING} {${kind},"metadata":{"name":"m1"},"spec":${spec}}`,
    status('Registered'),
    'GET /api/v1/nodes/m1',
    status('Ready', node),
    'GET /api/v1/nodes/m1',
    status('Draining'),
    `DELETE ${UPCOMING}/m1`,
  ]);
  assert.equal(cluster.objects.has(`${UPCOMING}/m1`), false);
});

test('an operator that starts anew finds what it wrote before', async () => {
  const cluster = new FakeCluster();
  const { DRAINING, IDLE, FAILED } = MachineState;
  cluster.objects.set(`${UPCOMING}/m1`, { status: { phase: 'Draining' } });
  await life(writer(cluster), IDLE);
  assert.equal(cluster.objects.has(`${UPCOMING}/m1`), false);
  await life(writer(cluster), DRAINING, FAILED);
  assert.match(cluster.transcript.at(-1) ?? '', /"Failed".*"lastError":"no reason given"/);
});

test('only the newest of many words is written, and a write that fails is told', async () => {
  const cluster = new FakeCluster();
  cluster.refusals.set(`GET ${UPCOMING}/m1`, [500]);
  const nodes = writer(cluster);
  for (const state of [1, 2, 3, 4, 5]) {
    nodes.tell(create(NodeStateUpdateSchema, { machineId: 'm1', state: state as 1 }));
  }
  nodes.tell(create(NodeStateUpdateSchema, { machineId: '', state: 5 }));
  await nodes.settled();
  assert.equal(nodes.failures, 1);
  const phases = cluster.transcript.filter((line) => line.startsWith('PATCH'));
  assert.equal(phases.length, 1);
  assert.match(phases[0] ?? '', /Ready/);
});

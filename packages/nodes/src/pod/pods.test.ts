import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClient } from '../../test/fake-client.ts';
import { CALLS, type Call } from '../fidelity/calls.ts';
import { networkOf, PodAddresses, type PodNetwork } from './pod-addresses.ts';
import { Pods } from './pods.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';

interface World {
  readonly client: FakeClient;
  readonly pods: Pods;
  readonly metrics: SimulatorMetrics;
  readonly nodes: Map<string, readonly string[]>;
  readonly see: (id: number, pod: object) => void;
  /** Containers that began to run. */
  readonly started: readonly number[];
}

function world(
  calls?: ReadonlySet<Call>,
  networks: ReadonlyMap<string, readonly PodNetwork[]> = new Map(),
): World {
  const client = new FakeClient(3);
  const metrics = new SimulatorMetrics();
  const nodes = new Map<string, readonly string[]>([['n', ['10.128.0.1']]]);
  const seen = new Set<number>();
  const started: number[] = [];
  const pods = new Pods({
    client,
    metrics,
    addresses: new PodAddresses('10.0.0.0/24'),
    ...(calls === undefined ? {} : { calls }),
    find: (_, name) => Number(name.slice(1)),
    nodeAddresses: (node) => nodes.get(node) ?? null,
    networksOf: (node) => networks.get(node) ?? [],
    onStart: (_, containers) => void started.push(containers),
  });
  const see = (id: number, pod: object): void => {
    const bytes = Buffer.from(JSON.stringify(pod));
    pods.handler.onUpsert(id, !seen.has(id), bytes, 0, bytes.length);
    seen.add(id);
  };
  return { client, pods, metrics, nodes, see, started };
}

function pod(id: number, status: object = {}, metadata: object = {}, node = 'n'): object {
  return {
    metadata: { name: `p${id}`, namespace: 'd', uid: `u${id}`, ...metadata },
    spec: { nodeName: node, containers: [{ name: 'main', image: 'nginx' }] },
    status,
  };
}

const grace = (deletionGracePeriodSeconds: number): object => ({ deletionGracePeriodSeconds });
const DYING = { deletionTimestamp: '2026-01-02T03:04:05Z' };

test('a bound pod becomes Running with an address of its own, and gives it back', () => {
  const { client, see, metrics, pods } = world();
  see(0, pod(0));
  const patch = client.answer(200);
  const body = JSON.parse(patch.body);
  assert.equal(patch.path, '/api/v1/namespaces/d/pods/p0/status');
  assert.equal(body.metadata.uid, 'u0');
  assert.equal(body.status.podIP, '10.0.0.1');
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }));
  assert.deepEqual([metrics.podsBound, metrics.podsRunning], [1, 1]);
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }, DYING));
  const removal = client.answer(200);
  assert.equal(removal.method, 'DELETE');
  assert.deepEqual(JSON.parse(removal.body), {
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u0' },
  });
  pods.handler.onDelete(0, new Uint8Array(0), 0, 0);
  assert.deepEqual([metrics.podsBound, metrics.podsRunning], [0, 0]);
});

test('a pod of a node with two families has addresses of both, as has its host', () => {
  const cidrs = ['fd00:1::/64', '10.1.0.0/24'].flatMap((cidr) => networkOf(cidr) ?? []);
  const { client, see, nodes } = world(undefined, new Map([['n', cidrs]]));
  nodes.set('n', ['fd00::9', '10.128.0.1']);
  see(0, pod(0));
  const { status } = JSON.parse(client.answer(200).body);
  assert.deepEqual([status.hostIP, status.hostIPs[1].ip], ['fd00::9', '10.128.0.1']);
  assert.deepEqual(status.podIPs, [{ ip: 'fd00:1::1' }, { ip: '10.1.0.1' }]);
  assert.equal(status.podIP, 'fd00:1::1');
});

test('an address from before is not given out again', () => {
  const { client, see } = world();
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }));
  see(1, pod(1));
  assert.equal(JSON.parse(client.answer(200).body).status.podIP, '10.0.0.2');
});

test('a pod is deleted once: without grace the server removes it, when finalizers let it', () => {
  const { client, see } = world();
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }, { ...DYING, ...grace(30) }));
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }, { ...DYING, ...grace(0) }));
  assert.equal(client.answer(200).method, 'DELETE');
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }, { ...DYING, ...grace(0) }));
  assert.equal(client.sent.length, 0);
});

test('one request a pod at a time: a newer state waits for the answer', () => {
  const { client, see } = world();
  see(0, pod(0));
  see(0, pod(0, {}, DYING));
  assert.deepEqual(
    client.sent.map(({ method }) => method),
    ['PATCH'],
  );
  client.answer(200);
  assert.deepEqual(
    client.sent.map(({ method }) => method),
    ['DELETE'],
  );
});

test('a full queue is waited for, and nothing is lost', () => {
  const { client, see } = world();
  client.queueMax = 2;
  for (let id = 0; id < 10; id++) see(id, pod(id));
  const paths = new Set<string>();
  while (client.sent.length > 0) {
    assert(client.sent.length <= 2);
    paths.add(client.answer(200).path);
  }
  assert.equal(paths.size, 10);
});

test('a server in trouble, or one that refuses, is asked again later and later', () => {
  const { client, see } = world();
  see(0, pod(0));
  client.answer(503);
  assert.equal(client.sent.length, 0);
  client.pass(900);
  assert.equal(client.sent.length, 0);
  client.pass(400);
  client.answer(422);
  let asked = 0;
  for (let seconds = 0; seconds < 600; seconds++) {
    client.pass(1000);
    for (; client.sent.length > 0; asked++) client.answer(403);
  }
  // after 2, 4, 8, 16, 32 and then each 64 to 77 s
  assert.ok(asked >= 11 && asked <= 14, `${asked}`);
  client.pass(80_000);
  assert.equal(client.answer(200).method, 'PATCH');
  client.pass(200_000);
  assert.equal(client.sent.length, 0);
});

test('a pod that is seen before its node is played when the node comes', () => {
  const { client, see, nodes, pods } = world();
  see(5, pod(5, {}, {}, 'late'));
  assert.equal(client.sent.length, 0);
  nodes.set('late', ['10.128.0.9']);
  pods.onNode('late');
  assert.equal(JSON.parse(client.answer(200).body).status.hostIP, '10.128.0.9');
});

test('a kubelet reads a pod before it writes, and tells each of its steps', () => {
  const { client, see } = world(new Set(CALLS));
  see(0, pod(0));
  assert.equal(client.answer(200).method, 'GET');
  const creating = JSON.parse(client.answer(200).body);
  assert.equal(creating.status.containerStatuses[0].state.waiting.reason, 'ContainerCreating');
  // what it has just said comes back, and is not done again
  see(0, pod(0, { phase: 'Pending', hostIP: '10.128.0.1' }));
  assert.equal(client.answer(200).method, 'GET');
  const sandbox = JSON.parse(client.answer(200).body).status;
  assert.deepEqual([Object.keys(sandbox), sandbox.conditions.length], [['conditions'], 1]);
  assert.equal(client.answer(200).method, 'GET');
  const running = JSON.parse(client.answer(200).body);
  assert.equal(running.status.phase, 'Running');
  const ready = running.status.conditions.find(({ type }: { type: string }) => type === 'Ready');
  assert.deepEqual([ready.status, ready.reason], ['True', null]);
  // the event of an earlier step comes late
  see(0, pod(0, { phase: 'Pending', hostIP: '10.128.0.1' }));
  assert.equal(client.sent.length, 0);
  see(0, pod(0, { phase: 'Running', podIP: '10.0.0.1' }, { ...DYING, generation: 2 }));
  assert.equal(client.answer(200).method, 'GET');
  assert.deepEqual(JSON.parse(client.answer(200).body).status, { observedGeneration: 2 });
  assert.equal(client.answer(200).method, 'GET');
  const ended = JSON.parse(client.answer(200).body).status;
  assert.deepEqual([ended.phase, ended.observedGeneration], ['Succeeded', 2]);
  assert.equal(ended.conditions[0].observedGeneration, 2);
  assert.equal(client.answer(200).method, 'GET');
  assert.equal(client.answer(200).method, 'DELETE');
  assert.equal(client.sent.length, 0);
});

test("times of pods follow the machine's clock back when it was set ahead", () => {
  const { client, see } = world();
  client.setMs = 86_400_000;
  see(0, pod(0));
  const startTime = (body: string): number => Date.parse(JSON.parse(body).status.startTime);
  const aheadMs = startTime(client.answer(200).body) - client.timers.nowMs();
  client.setMs = 0;
  see(1, pod(1));
  assert.ok(aheadMs > 86_390_000);
  assert.ok(startTime(client.answer(200).body) - client.timers.nowMs() < 1000);
});

test('containers are counted once they run, however often the pod changes before', () => {
  const { client, see, started } = world(new Set(CALLS));
  see(0, pod(0));
  see(0, pod(0, { conditions: [] }));
  while (client.sent.length > 0) client.answer(200);
  see(0, pod(0, { phase: 'Running' }));
  assert.deepEqual(started, [1]);
});

test('a pod of the same name as one whose end nobody told is started', () => {
  const { client, see, started, metrics } = world(new Set(CALLS));
  see(0, pod(0));
  while (client.sent.length > 0) client.answer(200);
  see(0, pod(0, { phase: 'Running' }));
  see(0, pod(0, {}, { uid: 'other' }));
  const uids = new Set<string>();
  while (client.sent.length > 0) {
    const { body } = client.answer(200);
    if (body !== '') uids.add(JSON.parse(body).metadata.uid);
  }
  assert.deepEqual([...uids], ['other']);
  assert.deepEqual(started, [1, 1]);
  assert.equal(metrics.podsBound, 1);
});

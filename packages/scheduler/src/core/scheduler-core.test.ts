import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { NodeObject, PodObject } from '../api/objects.ts';
import { UNUSED_MAX } from '../collections/byte-cache.ts';
import { PLACE } from '../cache/pod-table.ts';
import { SchedulerCore } from './scheduler-core.ts';

const HOST = 'kubernetes.io/hostname';

/** A machine with names for rows, and a transcript of what it does. */
class Bench {
  readonly keys = new Map<number, string>();
  readonly core: SchedulerCore;
  readonly lines: string[] = [];
  nowMs = 0;
  /** How often a pod was made an object of, for which its name is asked. */
  named = 0;
  #rows = 0;

  constructor(seed = 1) {
    const keyOf = (id: number): string => {
      this.named++;
      return this.keys.get(id) ?? '';
    };
    this.core = new SchedulerCore({ seed, keyOf });
  }

  node(name: string, cpu = '1', change: Partial<NodeObject['spec']> = {}): void {
    const node = {
      metadata: { name, labels: { 'kubernetes.io/hostname': name } },
      spec: change,
      status: { allocatable: { cpu, memory: '8Gi', pods: '10' } },
    };
    this.core.nodeSeen(node, this.nowMs);
  }

  see(id: number, pod: PodObject, isNew = false): void {
    const bytes = Buffer.from(JSON.stringify(pod));
    this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.nowMs);
  }

  pod(name: string, cpu = '1', spec: object = {}): number {
    const id = this.#rows++;
    this.keys.set(id, `default/${name}`);
    this.see(id, podObject(name, cpu, spec), true);
    return id;
  }

  confirm(id: number): void {
    const { core } = this;
    const name = (this.keys.get(id) ?? '').slice('default/'.length);
    const nodeName = core.nodes.nameOf(core.pods.node.get(id));
    this.see(id, podObject(name, '1', { nodeName }));
  }

  /** All tries that are due, as lines. */
  run(atMs: number): string[] {
    this.nowMs = atMs;
    this.core.tick(atMs);
    const lines: string[] = [];
    for (let next = this.core.attempt(atMs); next !== null; next = this.core.attempt(atMs)) {
      const name = (this.keys.get(next.id) ?? '').slice('default/'.length);
      if (next.kind === 'bind') lines.push(`${name} -> ${this.core.nodes.nameOf(next.node)}`);
      else lines.push(`${name}: ${next.failure.message.replace(/ no new claims.*/, '')}`);
    }
    return lines;
  }
}

function podObject(name: string, cpu: string, spec: object): PodObject {
  const containers = [{ name: 'c', resources: { requests: { cpu } } }];
  return { kind: 'Pod', metadata: { name, namespace: 'default' }, spec: { containers, ...spec } };
}

test('important pods go first, and equal ones in the order in which they came', () => {
  const bench = new Bench();
  bench.node('n', '10');
  bench.pod('low-1', '1', { priority: -1 });
  bench.pod('plain-1');
  bench.pod('high', '1', { priority: 100 });
  bench.pod('plain-2');
  assert.deepEqual(bench.run(0), ['high -> n', 'plain-1 -> n', 'plain-2 -> n', 'low-1 -> n']);
});

test('a pod without a node waits until room is made, and so does the next of its class', () => {
  const bench = new Bench();
  bench.node('n');
  const first = bench.pod('a');
  bench.pod('b');
  bench.pod('c');
  const short = '0/1 nodes are available: 1 Insufficient cpu.';
  assert.deepEqual(bench.run(0), ['a -> n', `b: ${short}`, `c: ${short}`]);
  assert.deepEqual(bench.run(20_000), []);
  bench.core.podGone(first, 20_000);
  assert.deepEqual(bench.run(20_000), ['b -> n', `c: ${short}`]);
  bench.node('m');
  assert.deepEqual(bench.run(40_000), ['c -> m']);
});

test('with nothing else to do a rejected pod need not sit out its pause', () => {
  const bench = new Bench();
  bench.pod('a');
  assert.deepEqual(bench.run(0), ['a: no nodes available to schedule pods']);
  bench.node('n');
  assert.equal(bench.core.queue.counts.backoff, 1);
  assert.deepEqual(bench.run(1), ['a -> n']);
});

test('a binding that was not taken gives the room back and is tried after a pause', () => {
  const bench = new Bench();
  bench.node('n');
  const id = bench.pod('a');
  assert.deepEqual(bench.run(100), ['a -> n']);
  assert.equal(bench.core.assumed, 1);
  bench.core.bindFailed(bench.core.pods.tagOf(id), 150);
  assert.equal(bench.core.assumed, 0);
  assert.equal(bench.core.pods.placed, 0);
  assert.deepEqual(bench.run(1999), []);
  assert.deepEqual(bench.run(2000), ['a -> n']);
});

test('pauses double with each failure up to ten seconds', () => {
  const bench = new Bench();
  bench.node('n');
  const id = bench.pod('a');
  bench.run(0);
  const pauses: number[] = [];
  for (let failures = 0; failures < 6; failures++) {
    const failedMs = bench.nowMs;
    bench.core.bindFailed(bench.core.pods.tagOf(id), failedMs);
    let nowMs = failedMs;
    while (bench.run(nowMs).length === 0) nowMs += 500;
    pauses.push((nowMs - failedMs) / 1000);
  }
  assert.deepEqual(pauses, [2, 3, 5, 9, 11, 11]);
});

test('a confirmation changes only the state, another node than assumed moves the pod', () => {
  const bench = new Bench();
  bench.node('n', '2');
  const id = bench.pod('a');
  bench.run(0);
  bench.confirm(id);
  assert.equal(bench.core.assumed, 0);
  assert.equal(bench.core.pods.place.get(id), PLACE.bound);
  assert.equal(bench.core.pods.placed, 1);
  bench.node('m', '2');
  bench.see(id, podObject('a', '1', { nodeName: 'm' }));
  assert.equal(bench.core.nodes.nameOf(bench.core.pods.node.get(id)), 'm');
  assert.equal(bench.core.nodes.milliCpu.get(bench.core.nodes.find('n')), 0);
});

test('an answer to a binding of a pod that is gone touches nobody else', () => {
  const bench = new Bench();
  bench.node('n', '5');
  const id = bench.pod('a');
  bench.run(0);
  const tag = bench.core.pods.tagOf(id);
  bench.core.podGone(id, 1);
  bench.keys.set(id, 'default/b');
  bench.see(id, podObject('b', '1', {}), true);
  assert.deepEqual(bench.run(2), ['b -> n']);
  bench.core.bindFailed(tag, 3);
  assert.equal(bench.core.pods.place.get(id), PLACE.assumed);
});

test('gated pods are not tried until their gates are gone', () => {
  const bench = new Bench();
  bench.node('n');
  const id = bench.pod('a', '1', { schedulingGates: [{ name: 'g' }] });
  assert.deepEqual(bench.run(0), []);
  assert.equal(bench.core.queue.counts.gated, 1);
  bench.see(id, podObject('a', '1', {}));
  assert.deepEqual(bench.run(1), ['a -> n']);
});

test('pods of other schedulers, and pods that leave, are not tried', () => {
  const bench = new Bench();
  bench.node('n');
  bench.pod('a', '1', { schedulerName: 'other' });
  const id = bench.pod('b');
  const leaving = podObject('b', '1', {});
  bench.see(id, {
    ...leaving,
    metadata: { ...leaving.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' },
  });
  assert.deepEqual(bench.run(0), []);
});

test('a pod that waits for nothing is tried again after five minutes', () => {
  const bench = new Bench();
  bench.node('n', '1', { unschedulable: true });
  bench.pod('a');
  const text = 'a: 0/1 nodes are available: 1 node(s) were unschedulable.';
  assert.deepEqual(bench.run(0), [text]);
  bench.core.flush(299_000);
  assert.deepEqual(bench.run(299_000), []);
  bench.core.flush(300_000);
  assert.deepEqual(bench.run(300_000), [text]);
});

test('a pod gives up the node it waits for when somebody takes the wish from its object', () => {
  const bench = new Bench();
  bench.node('n');
  const spec = { priority: 10, nodeSelector: { none: 'x' }, preemptionPolicy: 'Never' };
  const waiting = bench.pod('waiting', '1', spec);
  const seen = (status: object): void => {
    bench.see(waiting, { ...podObject('waiting', '1', spec), status });
  };
  seen({ nominatedNodeName: 'n' });
  bench.pod('other');
  const refusal = '0/1 nodes are available: 1 Insufficient cpu.';
  const [, other] = bench.run(0);
  assert.equal(other, `other: ${refusal}`);
  assert.equal(bench.core.nominator.nodeOf(waiting), 'n');
  seen({});
  assert.equal(bench.core.nominator.nodeOf(waiting), '');
  assert.deepEqual(bench.run(30_000), ['other -> n']);
});

test('when the reasons change, all that wait are told', () => {
  const bench = new Bench();
  bench.node('n', '1', { unschedulable: true });
  for (const name of ['a', 'b', 'c']) bench.pod(name, '3');
  const before = '0/1 nodes are available: 1 node(s) were unschedulable.';
  assert.deepEqual(bench.run(0), [`a: ${before}`, `b: ${before}`, `c: ${before}`]);
  bench.node('n', '1');
  const after = '0/1 nodes are available: 1 Insufficient cpu.';
  assert.deepEqual(bench.run(30_000), [`a: ${after}`, `b: ${after}`, `c: ${after}`]);
});

test('an important pod evicts, waits for the node, and gets it before others', () => {
  const bench = new Bench();
  bench.node('n');
  const victim = bench.pod('victim');
  bench.run(0);
  bench.confirm(victim);
  const high = bench.pod('high', '1', { priority: 10 });
  bench.nowMs = 10;
  const attempt = bench.core.attempt(10);
  assert(attempt?.kind === 'failed');
  assert.deepEqual(attempt.failure.nomination?.victims, [victim]);
  assert.equal(bench.core.nominator.nodeOf(high), 'n');
  bench.core.podGone(victim, 20_000);
  bench.pod('late');
  const rest = bench.run(20_000);
  assert.equal(rest[0], 'high -> n');
  assert.match(rest[1] ?? '', /^late: 0\/1/);
});

test('nothing is forgotten: what fits somewhere is tried, whatever happens in between', () => {
  for (let seed = 1; seed <= 8; seed++) storm(seed);
});

/** Random events; at the end each pod that still waits must fit nowhere. */
function storm(seed: number): void {
  const bench = new Bench(seed);
  const random = new Random(seed);
  const alive: number[] = [];
  const cpus = ['100m', '500m', '1', '3'];
  for (let step = 0; step < 300; step++) {
    bench.nowMs += random.below(3000);
    const roll = random.next();
    if (roll < 0.5) alive.push(bench.pod(`p${step}`, cpus[random.below(4)]));
    else if (roll < 0.6) bench.node(`n${random.below(8)}`, cpus[random.below(4)]);
    else if (roll < 0.65) bench.core.nodeGone(`n${random.below(8)}`, bench.nowMs);
    else if (roll < 0.8 && alive.length > 0) {
      const [id = 0] = alive.splice(random.below(alive.length), 1);
      bench.core.podGone(id, bench.nowMs);
    } else if (roll < 0.85 && alive.length > 0) {
      const id = alive[random.below(alive.length)] ?? 0;
      bench.core.bindFailed(bench.core.pods.tagOf(id), bench.nowMs);
    }
    bench.run(bench.nowMs);
  }
  for (let second = 0; second < 30; second++) bench.run(bench.nowMs + 1000);
  const { core } = bench;
  assert.equal(core.queue.counts.active + core.queue.counts.backoff, 0);
  for (const id of alive) {
    if (core.pods.node.get(id) >= 0) continue;
    assert.equal(core.pods.place.get(id), PLACE.unschedulable, `seed ${seed}, pod ${id}`);
    for (let node = 0; node < core.nodes.idEnd; node++) {
      if (!core.nodes.isPresent(node)) continue;
      const isFeasible = core.placement.isFeasible(core.pods.podClass.get(id), node);
      assert.equal(isFeasible, false, `seed ${seed}: pod ${id} fits on node ${node} and waits`);
    }
  }
}

test('decisions of the index are compared with full evaluation when that is asked for', () => {
  const core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/p${id}`, checkedEvery: 2 });
  for (const name of ['a', 'b', 'c']) {
    core.nodeSeen({ metadata: { name }, status: { allocatable: { cpu: '2', pods: '9' } } }, 0);
  }
  for (let id = 0; id < 10; id++) {
    const bytes = Buffer.from(JSON.stringify(podObject(`p${id}`, '500m', {})));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
    core.attempt(0);
  }
  assert.equal(core.placement.metrics.checked, 5);
  assert.equal(core.placement.metrics.mismatched, 0);
  // A table that says that nobody has room: the comparison must notice.
  for (const name of ['a', 'b', 'c']) {
    core.nodes.milliCpu.set(core.nodes.find(name), 2000);
    core.nodes.log.append(core.nodes.find(name));
  }
  for (let id = 10; id < 12; id++) {
    const bytes = Buffer.from(JSON.stringify(podObject(`p${id}`, '500m', {})));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
    core.attempt(0);
  }
  assert.equal(core.placement.metrics.checked, 6);
  assert.equal(core.placement.metrics.mismatched, 1);
  assert.match(
    core.placement.mismatch,
    /^pod default\/p11: decided 0\/3 .*; full evaluation says [abc]/,
  );
});

test('identities and usages are given back with the pods that had them', () => {
  const bench = new Bench();
  bench.node('n', '64');
  const ids = Array.from({ length: 50 }, (_, index) => bench.pod(`p${index}`, `${index}m`));
  bench.run(0);
  for (const id of ids) bench.core.podGone(id, 1);
  assert.equal(bench.core.pods.placed, 0);
  assert.equal(bench.core.nodes.milliCpu.get(bench.core.nodes.find('n')), 0);
  // What is left is held by the cache of specs, which forgets when it is full.
  assert(bench.core.identities.classes.size <= 51);
});

test('classes that no pod uses are forgotten, with all that was made for them', () => {
  const bench = new Bench();
  bench.node('n', '64');
  const { core } = bench;
  const { identities, placement } = core;
  for (let index = 0; index < 3000; index++) {
    const id = bench.pod(`p${index}`);
    const pod = podObject(`p${index}`, `${index}m`, {});
    const metadata = { ...pod.metadata, labels: { template: `t${index}` } };
    bench.see(id, { ...pod, metadata });
    bench.run(index);
    assert(placement.indexes.size > 0);
    core.podGone(id, 1);
    const { classes, labels, nodeClasses } = identities;
    for (const one of [classes, labels, nodeClasses]) assert(one.size <= UNUSED_MAX + 2);
    assert(placement.indexes.size <= UNUSED_MAX + 2, `${placement.indexes.size} indexes`);
  }
});

test('pods of a known class give no number a new meaning', () => {
  const bench = new Bench();
  bench.node('n', '64');
  bench.pod('first', '1');
  bench.run(0);
  const { classes, labels, namespaces, owners } = bench.core.identities;
  const epochs = (): number[] => [classes, labels, namespaces, owners].map(({ epoch }) => epoch);
  const before = epochs();
  for (let index = 0; index < 10; index++) bench.pod(`p${index}`, '1');
  bench.run(2);
  assert.deepEqual(epochs(), before);
});

test('labels that a binding brings are counted, and make no object of the pod', () => {
  const bench = new Bench();
  bench.node('n', '9');
  bench.node('m', '9');
  const rule = { labelSelector: { matchLabels: { zone: 'a' } }, topologyKey: HOST };
  const affinity = {
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [rule] },
  };
  const apart = bench.pod('apart', '1', { affinity });
  const plain = bench.pod('plain', '1', { nodeSelector: { [HOST]: 'n' } });
  assert.equal(bench.run(0).at(-1), 'plain -> n');
  bench.core.podGone(apart, 0);
  const bound = podObject('plain', '1', { nodeSelector: { [HOST]: 'n' }, nodeName: 'n' });
  const { named } = bench;
  bench.see(plain, { ...bound, metadata: { ...bound.metadata, labels: { zone: 'a' } } });
  assert.equal(bench.named, named);
  bench.pod('second', '1', { affinity, nodeSelector: { [HOST]: 'n' } });
  bench.pod('third', '1', { affinity });
  const [second, third] = bench.run(0);
  assert.match(second ?? '', /^second: 0\/2 nodes are available: 1 .* anti-affinity rules/);
  assert.equal(third, 'third -> m');
});

test('a pod that names its node waits for that one, and no other is looked at', () => {
  const bench = new Bench();
  bench.node('n');
  bench.node('m');
  const on = (name: string): object => ({ nodeSelector: { [HOST]: name } });
  const [first, second] = [bench.pod('a', '1', on('n')), bench.pod('b', '1', on('m'))];
  const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] };
  const required = { nodeSelectorTerms: [named] };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
  bench.run(0);
  bench.pod('daemon', '1', { affinity: { nodeAffinity }, priority: -1 });
  assert.deepEqual(bench.run(1), [
    'daemon: 0/2 nodes are available: 1 Insufficient cpu, ' +
      "1 node(s) didn't satisfy plugin(s) [NodeAffinity].",
  ]);
  bench.core.podGone(second, 2000);
  bench.node('k', '4');
  assert.deepEqual(bench.run(20_000), []);
  bench.core.podGone(first, 20_000);
  assert.deepEqual(bench.run(40_000), ['daemon -> n']);
  assert.equal(bench.core.placement.metrics.evaluated, 0);
});

test('who waits for victims is not tried for pods that go elsewhere, unless there is room', () => {
  const bench = new Bench();
  const on = (name: string): object => ({ nodeSelector: { [HOST]: name } });
  for (const name of ['n', 'm', 'k']) bench.node(name);
  const [first, second] = [bench.pod('a', '1', on('n')), bench.pod('b', '1', on('m'))];
  const small = bench.pod('c', '500m', on('k'));
  bench.pod('d', '500m', { priority: 20, ...on('k') });
  bench.run(0);
  for (const name of ['x', 'y']) bench.pod(name, '1', { priority: 10 });
  assert.equal(bench.run(1).length, 2);
  assert.equal(bench.core.queue.counts.unschedulable, 2);
  bench.core.podGone(small, 20_000);
  assert.deepEqual(bench.run(20_000), []);
  // One of them gets the room that was made for it; the other is left alone.
  bench.core.podGone(first, 30_000);
  assert.equal(bench.run(30_000).length, 1);
  bench.core.podGone(second, 40_000);
  assert.equal(bench.run(40_000).length, 1);
  assert.equal(bench.core.queue.counts.unschedulable, 0);
});

test('a node without a zone is in no domain of its own, whatever runs on it', () => {
  const bench = new Bench();
  const labels = { 'kubernetes.io/hostname': 'n' };
  const status = { allocatable: { cpu: '9', pods: '9' } };
  bench.core.nodeSeen({ metadata: { name: 'n', labels }, status }, 0);
  bench.see(bench.pod('first'), podObject('first', '1', { nodeName: 'n' }));
  const rule = (topologyKey: string): object => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] },
    minDomains: 2,
  });
  const rules = [rule('kubernetes.io/hostname'), rule('topology.kubernetes.io/zone')];
  bench.pod('second', '1', { topologySpreadConstraints: rules });
  assert.deepEqual(bench.run(0), [
    "second: 0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints " +
      '(missing required label).',
  ]);
});

test('a pod that took the place of another while nobody looked is a pod of its own', () => {
  const bench = new Bench();
  bench.node('n');
  const id = bench.pod('web-0');
  const seen = (last: string, spec: object = {}): void => {
    const pod = podObject('web-0', '1', spec);
    const uid = `01234567-89ab-cdef-0123-00000000000${last}`;
    bench.see(id, { ...pod, metadata: { ...pod.metadata, uid } });
  };
  seen('1');
  assert.deepEqual(bench.run(0), ['web-0 -> n']);
  const tag = bench.core.pods.tagOf(id);
  // The first is being bound.
  seen('2');
  assert.equal(bench.core.pods.rowOf(tag), -1);
  assert.equal(bench.core.assumed, 0);
  assert.deepEqual(bench.run(100), ['web-0 -> n']);
  seen('2', { nodeName: 'n' });
  assert.deepEqual([bench.core.pods.placed, bench.core.assumed], [1, 0]);
  // The second ran.
  seen('3');
  assert.deepEqual(bench.run(200), ['web-0 -> n']);
  seen('3', { nodeName: 'n' });
  // The third ran, and the fourth does already, on a node that nobody has seen.
  seen('4', { nodeName: 'm' });
  assert.equal(bench.core.pods.placed, 1);
  bench.pod('other');
  assert.deepEqual(bench.run(300), ['other -> n']);
});

test('what a resize gave to a pod counts for those that are evaluated in full, too', () => {
  const core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/p${id}` });
  const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
  core.nodeSeen({ metadata: { name: 'n' }, status: { allocatable } }, 0);
  const see = (id: number, cpu: string, spec: object, status: object): void => {
    const containers = [{ name: 'c', resources: { requests: { cpu } } }];
    const metadata = { name: `p${id}`, namespace: 'default' };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec: { containers, ...spec }, status }));
    assert(core.podSeen(id, true, bytes, 0, bytes.length, 0));
  };
  const resources = { requests: { cpu: '3' } };
  see(0, '1', { nodeName: 'n' }, { containerStatuses: [{ name: 'c', resources }] });
  see(1, '1', { nodeName: 'n' }, {});
  const volumes = [{ name: 'v', awsElasticBlockStore: { volumeID: 'vol-1' } }];
  see(2, '1', { volumes }, {});
  const attempt = core.attempt(0);
  assert.equal(core.placement.metrics.evaluated, 1);
  assert.equal(attempt?.kind, 'failed');
  assert.match(attempt.failure.message, /1 Insufficient cpu/);
});

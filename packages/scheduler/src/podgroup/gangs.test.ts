import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { groupCondition } from './group-condition.ts';

/** A scheduler with nodes of four CPUs, and pods of one CPU in groups. */
class Bench {
  readonly core: SchedulerCore;
  readonly keys: string[] = [];
  nowMs = 0;

  constructor(...nodes: readonly string[]) {
    const profiles = ['default-scheduler', 'second'].map((schedulerName) => ({ schedulerName }));
    const keyOf = (id: number): string => this.keys[id] ?? '';
    this.core = new SchedulerCore({ seed: 1, keyOf, profiles });
    for (const name of nodes) this.node(name);
  }

  node(name: string, cpu = '4'): void {
    const allocatable = { cpu, memory: '8Gi', pods: '10' };
    this.core.nodeSeen({ metadata: { name }, status: { allocatable } }, this.nowMs);
  }

  group(name: string, minCount: number): void {
    const spec = { schedulingPolicy: { gang: { minCount } } };
    const group = { metadata: { name, namespace: 'default' }, spec };
    this.core.objectSeen('PodGroup', group, this.nowMs);
  }

  pod(name: string, group: string, spec: object = {}): number {
    const id = this.keys.push(`default/${name}`) - 1;
    const requests = { cpu: '1' };
    const pod = {
      metadata: { name, namespace: 'default' },
      spec: {
        schedulerName: 'default-scheduler',
        containers: [{ name: 'c', resources: { requests } }],
        ...(group === '' ? {} : { schedulingGroup: { podGroupName: group } }),
        ...spec,
      },
    };
    const bytes = Buffer.from(JSON.stringify(pod));
    assert(this.core.podSeen(id, true, bytes, 0, bytes.length, this.nowMs));
    return id;
  }

  /** Everything that is decided now, as `name: node` or `name: message`. */
  decisions(): string[] {
    const lines: string[] = [];
    for (;;) {
      const attempt = this.core.attempt(this.nowMs);
      if (attempt === null) return lines.toSorted();
      const name = (this.keys[attempt.id] ?? '').slice('default/'.length);
      const end =
        attempt.kind === 'bind'
          ? this.core.nodes.nameOf(attempt.node)
          : attempt.failure.message.replace(/\. no new claims.*$/, '');
      lines.push(`${name}: ${end}`);
    }
  }
}

test('a gang is not tried before its group is there and has enough pods', () => {
  const bench = new Bench('n1');
  bench.pod('a', 'g');
  bench.pod('b', 'g');
  assert.deepEqual(bench.decisions(), []);
  assert.equal(bench.core.queue.counts.gated, 2);
  bench.group('g', 3);
  assert.deepEqual(bench.decisions(), []);
  bench.pod('c', 'g');
  assert.deepEqual(bench.decisions(), ['a: n1', 'b: n1', 'c: n1']);
});

test('a gang that does not fit gives everything back, and others take the room', () => {
  const bench = new Bench('n1');
  bench.group('g', 5);
  for (const name of ['a', 'b', 'c', 'd', 'e']) bench.pod(name, 'g');
  const lines = bench.decisions();
  const told = lines.map((line) => line.slice('a: '.length));
  const few =
    'pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, ' +
    'one or more plugins asked to wait and no plugin rejected pod';
  assert.equal(told.filter((line) => line === few).length, 4);
  const others = told.filter((line) => line !== few);
  assert.match(others.join(), /^0\/1 nodes are available: 1 Insufficient cpu/);
  assert.equal(bench.core.pods.placed, 0);
  assert.equal(bench.core.assumed, 0);
  const big = { containers: [{ name: 'c', resources: { requests: { cpu: '4' } } }] };
  bench.pod('single', '', big);
  assert.deepEqual(bench.decisions(), ['single: n1']);
});

test('a gang that did not fit is placed whole when a node comes', () => {
  const bench = new Bench('n1');
  bench.group('g', 5);
  for (const name of ['a', 'b', 'c', 'd', 'e']) bench.pod(name, 'g');
  bench.decisions();
  bench.nowMs = 20_000;
  bench.node('n2');
  bench.core.tick(bench.nowMs);
  assert.equal(bench.decisions().length, 5);
  assert.equal(bench.core.pods.placed, 5);
});

test('two gangs for which there is room for one do not lock each other out', () => {
  const bench = new Bench('n1');
  bench.group('g', 3);
  bench.group('h', 3);
  for (const name of ['a', 'b', 'c']) {
    bench.pod(`g${name}`, 'g');
    bench.pod(`h${name}`, 'h');
  }
  const placed = bench.decisions().filter((line) => line.endsWith(': n1'));
  assert.deepEqual(placed, ['ga: n1', 'gb: n1', 'gc: n1']);
  assert.equal(bench.core.pods.placed, 3);
  // What failed waits: it is not tried again as long as nothing happens.
  bench.nowMs = 60_000;
  bench.core.tick(bench.nowMs);
  assert.deepEqual(bench.decisions(), []);
});

test('a pod that joins a gang that runs may go alone', () => {
  const bench = new Bench('n1');
  bench.group('g', 2);
  bench.pod('a', 'g', { nodeName: 'n1' });
  bench.pod('b', 'g', { nodeName: 'n1' });
  bench.pod('c', 'g');
  assert.deepEqual(bench.decisions(), ['c: n1']);
});

test('pods of other schedulers are no company until they have a node', () => {
  const bench = new Bench('n1');
  bench.group('g', 2);
  bench.pod('a', 'g');
  bench.pod('b', 'g', { schedulerName: 'foreign' });
  assert.deepEqual(bench.decisions(), []);
  bench.pod('c', 'g', { schedulerName: 'foreign', nodeName: 'n1' });
  assert.deepEqual(bench.decisions(), ['a: n1']);
});

test('a gang whose pods ask for several profiles is an error for all of them', () => {
  const bench = new Bench('n1');
  bench.group('g', 2);
  bench.pod('a', 'g', { priority: 9 });
  bench.pod('b', 'g', { schedulerName: 'second' });
  const rule = 'all pods in a single pod group should have the same .spec.schedulerName set';
  const got = `${rule}, got: "default-scheduler" and "second"`;
  assert.deepEqual(bench.decisions(), [`a: ${got}`, `b: ${got}`]);
  assert.equal(bench.core.queue.counts.backoff, 2);
  assert.deepEqual(bench.core.takeWrites(), []);
});

test('an error of one pod is an error of its whole gang, and no more of it are looked at', () => {
  const bench = new Bench('n1', 'n2');
  bench.group('g', 2);
  const preference = { matchExpressions: [{ key: 'k', operator: 'Gt', values: ['-4'] }] };
  const preferred = [{ weight: 1, preference }];
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preferred };
  bench.pod('a', 'g', { priority: 9 });
  bench.pod('b', 'g', { priority: 5, affinity: { nodeAffinity } });
  bench.pod('c', 'g');
  const [a = '', b = '', c = ''] = bench.decisions();
  const message = b.replace(/^b: /, '');
  assert.match(message, /^running PreScore plugin "NodeAffinity": /);
  const others = `failed to schedule other pod from a pod group: ${message}`;
  assert.deepEqual([a, c], [`a: ${others}`, `c: ${others}`]);
  assert.equal(bench.core.pods.placed, 0);
  assert.equal(bench.core.queue.counts.backoff, 3);
  const group = { result: 'error', profile: 'default-scheduler' };
  assert.deepEqual(bench.core.groupTry, group);
  const [write] = bench.core.takeWrites();
  assert.match(JSON.stringify(write?.change({ metadata: {} }, 0)), /"reason":"SchedulerError"/);
});

test('pods beyond the quorum that find no node are told why, and the others are bound', () => {
  const bench = new Bench('n1');
  bench.group('g', 3);
  for (const name of ['a', 'b', 'c', 'd', 'e']) bench.pod(name, 'g');
  const lines = bench.decisions();
  assert.equal(lines.filter((line) => line.endsWith(': n1')).length, 4);
  assert.equal(lines.filter((line) => line.includes('0/1 nodes are available')).length, 1);
});

test('pods are not tried while their group is gone, or has too few pods again', () => {
  const bench = new Bench();
  bench.node('n1', '1');
  bench.group('g', 2);
  bench.pod('a', 'g');
  const second = bench.pod('b', 'g');
  assert.equal(bench.decisions().length, 2);
  bench.core.objectGone('PodGroup', 'default/g', bench.nowMs);
  bench.nowMs = 20_000;
  bench.node('n2');
  bench.core.tick(bench.nowMs);
  assert.deepEqual(bench.decisions(), []);
  bench.core.podGone(second, bench.nowMs);
  bench.group('g', 2);
  bench.core.tick(bench.nowMs);
  assert.deepEqual(bench.decisions(), []);
  bench.pod('c', 'g');
  bench.nowMs = 40_000;
  bench.core.tick(bench.nowMs);
  assert.equal(bench.decisions().length, 2);
  assert.equal(bench.core.pods.placed, 2);
});

test('a gang that has enough nodes waits if others have to go for one more of it', () => {
  const bench = new Bench('n1');
  bench.group('g', 2);
  bench.pod('low', '', { nodeName: 'n1' });
  for (const name of ['a', 'b', 'c', 'd']) bench.pod(name, 'g', { priority: 9 });
  const ends = bench.decisions().map((line) => line.slice('a: '.length));
  const waiting = 'pod group is unschedulable, pod group is waiting for preemption to complete';
  assert.equal(ends.filter((end) => end === waiting).length, 3);
  assert.equal(bench.core.pods.placed, 1);
});

test('a group without a minimum is told of when one of its pods has a node', () => {
  const bench = new Bench('n1');
  const group = { metadata: { name: 'g', namespace: 'default' }, spec: {} };
  bench.core.objectSeen('PodGroup', group, bench.nowMs);
  bench.pod('a', 'g');
  assert.deepEqual(bench.decisions(), ['a: n1']);
  const [write] = bench.core.takeWrites();
  assert.equal(write?.key, 'default/g');
  const changed = JSON.stringify(write.change({ metadata: {} }, 0));
  assert.match(changed, /"status":"True","reason":"Scheduled"/);
});

test('nobody is evicted for a gang that would not fit anyhow', () => {
  const bench = new Bench('n1');
  bench.group('g', 5);
  bench.pod('low', '', { nodeName: 'n1' });
  for (const name of ['a', 'b', 'c', 'd', 'e']) bench.pod(name, 'g', { priority: 9 });
  for (;;) {
    const attempt = bench.core.attempt(0);
    if (attempt === null) break;
    assert(attempt.kind === 'failed');
    assert.equal(attempt.failure.nomination, null);
  }
});

test('a gang for which others have to go waits for them, on the nodes that it would have', () => {
  const bench = new Bench('n1');
  bench.group('g', 4);
  bench.pod('low', '', { nodeName: 'n1' });
  for (const name of ['a', 'b', 'c', 'd']) bench.pod(name, 'g', { priority: 9 });
  const victims: number[][] = [];
  for (;;) {
    const attempt = bench.core.attempt(0);
    if (attempt === null) break;
    assert(attempt.kind === 'failed' && attempt.failure.nomination !== null);
    victims.push([...attempt.failure.nomination.victims]);
  }
  assert.deepEqual(
    victims.toSorted((one, other) => one.length - other.length),
    [[], [], [], [0]],
  );
  assert.equal(bench.core.pods.placed, 1);
});

test('the condition of a group is written when it changes, and stays true once it was', () => {
  const group = { metadata: { name: 'g', generation: 1 } };
  const failed = groupCondition('default/g', 'pod group is unschedulable').change(group, 1000);
  const condition = {
    type: 'PodGroupScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message: 'pod group is unschedulable',
    observedGeneration: 1,
    lastTransitionTime: '1970-01-01T00:00:01Z',
  };
  assert.deepEqual(failed, { ...group, status: { conditions: [condition] } });
  const again = groupCondition('default/g', 'pod group is unschedulable');
  assert(typeof failed === 'object' && failed !== null);
  assert.equal(again.change(failed, 5000), null);
  const placed = groupCondition('default/g', '').change(failed, 5000);
  assert.match(JSON.stringify(placed), /"status":"True","reason":"Scheduled"/);
  assert.equal(again.change(placed as JsonObject, 9000), null);
});

// What a cluster can hold that no cluster should: the scheduler goes on, and others are placed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject } from '../api/objects.ts';
import { SchedulerCore } from './scheduler-core.ts';

class Bench {
  readonly core = new SchedulerCore({ seed: 1, checkedEvery: 1, keyOf: (id) => `a/p${id}` });
  #rows = 0;

  node(name: string, allocatable: object, more: object = {}): void {
    const node = { metadata: { name, labels: {} }, status: { allocatable }, ...more };
    this.core.nodeSeen(node as NodeObject, 0);
  }

  see(spec: object, metadata: object): void {
    const id = this.#rows++;
    const pod = { metadata: { name: `p${id}`, namespace: 'a', ...metadata }, spec };
    const bytes = Buffer.from(JSON.stringify(pod));
    assert(this.core.podSeen(id, true, bytes, 0, bytes.length, 0));
  }

  /** The node of a new pod, or why it has none. */
  place(spec: object, metadata: object = {}): string {
    this.see(spec, metadata);
    const attempt = this.core.attempt(0);
    assert(attempt !== null);
    assert.equal(this.core.placement.metrics.mismatched, 0);
    if (attempt.kind === 'bind') return this.core.nodes.nameOf(attempt.node);
    return attempt.failure.message.replace(/\. no new.*/, '');
  }
}

const asking = (requests: object): object => ({
  schedulerName: 'default-scheduler',
  containers: [{ name: 'c', resources: { requests } }],
});

test('nodes with absurd, negative or senseless allocatable do not disturb the others', () => {
  const bench = new Bench();
  bench.node('negative', { cpu: '-4', memory: '-1Gi', pods: '-10' });
  bench.node('words', { cpu: 'many', memory: '', pods: '1.5e' });
  bench.node('nothing', {});
  bench.node('good', { cpu: '4', memory: '8Gi', pods: '10' });
  assert.equal(bench.place(asking({ cpu: '1', memory: '1Gi' })), 'good');
  assert.match(bench.place(asking({ cpu: '5' })), /^0\/4 nodes are available: .*Insufficient cpu/);
  // What int64 does not hold is nothing to kube-scheduler v1.36.1, or wraps around.
  bench.node('none', { cpu: '1e17', memory: '1e30', pods: '1e30' });
  bench.node('wraps', { cpu: '9223372036854775807', memory: '9e18', pods: '110' });
  assert.match(bench.place(asking({ cpu: '100' })), /6 Insufficient cpu/);
  bench.node('vast', { cpu: '9223372036854775', memory: '9e18', pods: '9e15' });
  assert.equal(bench.place(asking({ cpu: '100', memory: '1Ti' })), 'vast');
  assert.equal(bench.place(asking({ cpu: '100', memory: '1Ti' })), 'vast');
});

test('pods with negative, overflowing or senseless requests are decided about like others', () => {
  const bench = new Bench();
  bench.node('n', { cpu: '4', memory: '8Gi', pods: '100' });
  assert.equal(bench.place(asking({ cpu: '-1', memory: '-8Gi' })), 'n');
  assert.match(bench.place(asking({ cpu: '9e15' })), /Insufficient cpu/);
  assert.equal(bench.place(asking({ cpu: '1e40' })), 'n');
  assert.match(bench.place(asking({ memory: '9999999Ei' })), /Insufficient memory/);
  assert.equal(bench.place(asking({ memory: '1e30' })), 'n');
  assert.equal(bench.place(asking({ cpu: 'lots' })), 'n');
  assert.equal(bench.place(asking({ cpu: '1' })), 'n');
});

test('a selector with a hundred thousand labels takes a moment, not the scheduler', () => {
  const bench = new Bench();
  for (let i = 0; i < 50; i++) bench.node(`n${i}`, { cpu: '4', memory: '8Gi', pods: '10' });
  const nodeSelector = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, i) => [`label-${i}`, 'x']),
  );
  const text = bench.place({ ...asking({ cpu: '1' }), nodeSelector });
  assert.match(text, /^0\/50 nodes are available: 50 node\(s\) didn't match Pod's node affinity/);
  const matchLabels = nodeSelector;
  const labelSelector = { matchLabels };
  const term = { labelSelector, topologyKey: 'kubernetes.io/hostname' };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  const shy = { ...asking({ cpu: '1' }), affinity: { podAntiAffinity } };
  assert.match(bench.place(shy), /^n\d+$/);
  assert.match(bench.place(shy, { labels: nodeSelector }), /^n\d+$/);
  assert.match(bench.place(asking({ cpu: '1' })), /^n\d+$/);
});

test('tens of thousands of node names or of resources take a moment', () => {
  const bench = new Bench();
  for (let i = 0; i < 2000; i++) bench.node(`n${i}`, { cpu: '4', memory: '8Gi', pods: '10' });
  const before = process.cpuUsage();
  const nodeSelectorTerms = Array.from({ length: 25_000 }, (_, i) => ({
    matchFields: [{ key: 'metadata.name', operator: 'In', values: [`x${i}`] }],
  }));
  const requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution };
  const named = bench.place({ ...asking({ cpu: '1' }), affinity: { nodeAffinity } });
  assert.match(named, /^0\/2000 nodes are available/);
  const resources = Array.from({ length: 1000 }, (_, i) => [`x.io/r${i}`, '1']);
  const many = bench.place(asking(Object.fromEntries(resources)));
  assert.match(many, /^0\/2000 nodes are available: 2000 Insufficient x.io\/r0, 2000 Insuff/);
  const { user, system } = process.cpuUsage(before);
  assert(user + system < 4e6, `${user + system} us`);
});

test('bytes that are no pod are refused, and the row goes to the next one', () => {
  const { core } = new Bench();
  for (const text of ['', '[]', '{}', '{"metadata":{}}', '"pod"', '{"spec":5}']) {
    const bytes = Buffer.from(text);
    const isRead = core.podSeen(0, true, bytes, 0, bytes.length, 0);
    if (isRead) core.podGone(0, 0);
  }
  const pod = { metadata: { name: 'p', namespace: 'a' }, spec: asking({ cpu: '1' }) };
  const bytes = Buffer.from(JSON.stringify(pod));
  assert(core.podSeen(0, true, bytes, 0, bytes.length, 0));
  assert.equal(core.attempt(0)?.id, 0);
});

test('a clock that jumps neither forgets pods nor tries them without end', () => {
  const { core } = new Bench();
  const bytes = Buffer.from(
    JSON.stringify({ metadata: { name: 'p0', namespace: 'a' }, spec: asking({ cpu: '1' }) }),
  );
  core.podSeen(0, true, bytes, 0, bytes.length, 1_000_000);
  assert.equal(core.attempt(1_000_000)?.kind, 'failed');
  // Forward by a year: the pod is due once.
  const yearMs = 365 * 86_400_000;
  core.flush(1_000_000 + yearMs);
  assert.equal(core.attempt(1_000_000 + yearMs)?.kind, 'failed');
  assert.equal(core.attempt(1_000_000 + yearMs), null);
  core.tick(1_000_000 + yearMs);
  assert.equal(core.attempt(1_000_000 + yearMs), null);
});

test('keys that every object of the language has are keys of labels like others', () => {
  for (const key of ['constructor', 'toString', 'valueOf', 'hasOwnProperty']) {
    const bench = new Bench();
    bench.node('n', { cpu: '4', memory: '8Gi', pods: '100' });
    const placed = (spec: object): string => bench.place({ ...asking({ cpu: '1m' }), ...spec });
    const labelSelector = { matchLabels: { app: 'a' } };
    const spread = { maxSkew: 1, topologyKey: key, whenUnsatisfiable: 'DoNotSchedule' };
    const rule = { ...spread, labelSelector, matchLabelKeys: [key] };
    assert.match(placed({ topologySpreadConstraints: [rule] }), /missing required label/);
    const soft = { ...rule, whenUnsatisfiable: 'ScheduleAnyway' };
    assert.equal(placed({ topologySpreadConstraints: [soft] }), 'n');
    const term = { topologyKey: key, labelSelector, matchLabelKeys: [key] };
    const wanted = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    assert.match(placed({ affinity: { podAffinity: wanted } }), /match pod affinity rules/);
    assert.equal(placed({ affinity: { podAntiAffinity: wanted } }), 'n');
    const liked = {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }],
    };
    assert.equal(placed({ affinity: { podAffinity: liked } }), 'n');
    assert.match(placed({ nodeSelector: { [key]: 'x' } }), /match Pod's node affinity/);
    const there = { matchExpressions: [{ key, operator: 'Exists' }] };
    const nodeAffinity = {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [there] },
    };
    assert.match(placed({ affinity: { nodeAffinity } }), /match Pod's node affinity/);
  }
});

test('pods with thousands of terms about others hold nobody up', () => {
  const bench = new Bench();
  const count = 2000;
  for (let index = 0; index < 40; index++) {
    const labels = { 'kubernetes.io/hostname': `n${index}`, zone: `z${index % 3}` };
    bench.node(
      `n${index}`,
      { cpu: '64', pods: '500' },
      { metadata: { name: `n${index}`, labels } },
    );
  }
  // All but the last node run pods of sorts that are not wanted near.
  for (let index = 0; index < count; index++) {
    const labels = { app: `a${index}` };
    bench.see({ ...asking({}), nodeName: `n${index % 39}` }, { labels });
  }
  const each = <T>(make: (labelSelector: object) => T): T[] =>
    Array.from({ length: count }, (_, index) => make({ matchLabels: { app: `a${index}` } }));
  const topologyKey = 'kubernetes.io/hostname';
  const podAntiAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: each((labelSelector) => ({
      labelSelector,
      topologyKey,
    })),
  };
  const alone = { ...asking({}), affinity: { podAntiAffinity } };
  assert.equal(bench.place(alone, { labels: { app: 'alone' } }), 'n39');
  const near = {
    preferredDuringSchedulingIgnoredDuringExecution: each((labelSelector) => ({
      weight: 1,
      podAffinityTerm: { labelSelector, topologyKey: 'zone' },
    })),
  };
  assert.match(bench.place({ ...asking({}), affinity: { podAffinity: near } }), /^n\d+$/);
});

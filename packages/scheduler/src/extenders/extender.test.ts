import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import type { ExtenderConfiguration } from '../config/configuration.ts';
import type { NodeObject, PodObject } from '../api/objects.ts';
import type { Attempt } from '../queue/attempt.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { ExtenderCall } from './extender.ts';
import type { Answer } from './extender-answer.ts';

const FILTER: ExtenderConfiguration = { urlPrefix: 'http://x/', filterVerb: 'filter' };

type Respond = (call: ExtenderCall) => JsonValue | Error;

function node(name: string, cpu = '4'): NodeObject {
  const allocatable = { cpu, memory: '8Gi', pods: '10' };
  return { metadata: { name, labels: { zone: name } }, status: { allocatable } };
}

/** A scheduler with nodes a, b and c, and extenders that answer as the test says. */
class Bench {
  readonly core: SchedulerCore;
  readonly asked: string[] = [];
  readonly keys: string[] = [];
  readonly #respond: Respond;

  constructor(extenders: readonly ExtenderConfiguration[], respond: Respond) {
    const keyOf = (id: number): string => this.keys[id] ?? '';
    this.core = new SchedulerCore({ seed: 1, extenders, keyOf });
    this.#respond = respond;
    for (const name of ['a', 'b', 'c']) this.core.nodeSeen(node(name), 0);
  }

  see(pod: PodObject): number {
    const key = `default/${pod.metadata.name}`;
    const known = this.keys.indexOf(key);
    const id = known < 0 ? this.keys.push(key) - 1 : known;
    const uid = `00000000-0000-0000-0000-${String(id).padStart(12, '0')}`;
    const metadata = { namespace: 'default', uid, ...pod.metadata };
    const bytes = Buffer.from(JSON.stringify({ ...pod, metadata }));
    assert(this.core.podSeen(id, known < 0, bytes, 0, bytes.length, 0));
    return id;
  }

  pending(name: string, spec: object = {}): number {
    return this.see({ metadata: { name }, spec: { schedulerName: 'default-scheduler', ...spec } });
  }

  /** Tries one pod and answers all questions; `between` runs before each answer. */
  attempt(between: () => void = () => {}): Attempt | null {
    const { core } = this;
    let attempt = core.attempt(0);
    while (core.question !== null) {
      const { question } = core;
      between();
      const answers: Answer[] =
        question.kind === 'pod'
          ? [{ ok: true, value: { metadata: { name: question.key } } }]
          : (question.kind === 'calls' ? question.calls : []).map((call) => this.#answer(call));
      attempt = core.answer(answers, 0);
    }
    return attempt;
  }

  #answer(call: ExtenderCall): Answer {
    this.asked.push(`${call.extender.url} ${call.verb}`);
    const value = this.#respond(call);
    return value instanceof Error ? { ok: false, text: value.message } : { ok: true, value };
  }

  /** The node found, or the message of the failure. */
  outcome(between?: () => void): string {
    const attempt = this.attempt(between);
    if (attempt === null) return 'nothing';
    if (attempt.kind === 'bind') return this.core.nodes.nameOf(attempt.node);
    return attempt.failure.message;
  }
}

function namesOf({ body }: ExtenderCall): string[] {
  const nodes = isObject(body) ? body['Nodes'] : null;
  const items = isObject(nodes) ? nodes['items'] : null;
  return Array.isArray(items)
    ? items.map((one) => (one as unknown as NodeObject).metadata.name)
    : [];
}

const keep = (...names: string[]): JsonValue => ({
  Nodes: { items: names.map((name) => ({ metadata: { name } })) },
});

test('extenders filter one after another, those that may be ignored last', () => {
  const second = { urlPrefix: 'http://y', filterVerb: 'f' };
  const configurations = [{ ...second, ignorable: true }, FILTER];
  const seen: string[][] = [];
  const bench = new Bench(configurations, (call) => {
    seen.push(namesOf(call));
    return call.extender.url === 'http://x/' ? keep('a', 'b') : keep('b');
  });
  bench.pending('p');
  assert.equal(bench.outcome(), 'b');
  assert.deepEqual(bench.asked, ['http://x/ filter', 'http://y f']);
  assert.deepEqual(seen, [
    ['a', 'b', 'c'],
    ['a', 'b'],
  ]);
});

test('what an extender says of a node stands in the message, and any event wakes the pod', () => {
  const bench = new Bench([FILTER], () => ({
    nodes: { items: [] },
    failedNodes: { a: 'too hot', b: 'too hot' },
    FailedAndUnresolvableNodes: { c: 'broken' },
  }));
  const id = bench.pending('p');
  const reasons = '0/3 nodes are available: 1 broken, 2 too hot.';
  assert.equal(
    bench.outcome(),
    `${reasons} no new claims to deallocate, preemption: 0/3 nodes are available: ` +
      '1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.',
  );
  assert.equal(bench.core.queue.counts.unschedulable, 1);
  bench.core.objectSeen('Service', { metadata: { name: 's', namespace: 'default' } }, 60_000);
  assert.equal(bench.core.queue.counts.unschedulable, 0);
  assert.equal(bench.core.queue.pop(), id);
});

test('an extender that fails fails the try, unless it may be ignored', () => {
  const fail: Respond = () => new Error('failed filter with extender at URL http://x/filter');
  const strict = new Bench([FILTER], fail);
  strict.pending('p');
  const attempt = strict.attempt();
  assert(attempt?.kind === 'failed' && attempt.failure.isError);
  assert.equal(attempt.failure.message, 'failed filter with extender at URL http://x/filter');
  const lenient = new Bench([{ ...FILTER, ignorable: true }], fail);
  lenient.pending('p');
  assert.match(lenient.outcome(), /^[abc]$/);
});

test('an extender that lies about nodes fails the try', () => {
  const bench = new Bench([{ ...FILTER, nodeCacheCapable: true }], () => ({ NodeNames: ['z'] }));
  bench.pending('p');
  const text = 'claims a filtered node "z" which is not found in the input node list';
  assert.equal(bench.outcome(), `extender "http://x/" ${text}`);
  const saying = new Bench([FILTER], () => ({ Error: 'no idea' }));
  saying.pending('p');
  assert.equal(saying.outcome(), 'no idea');
});

test('scores of extenders are weighted and added; one that fails has no say', () => {
  const configurations = [
    { urlPrefix: 'http://x', prioritizeVerb: 'p', weight: 2 },
    { urlPrefix: 'http://y', prioritizeVerb: 'p', weight: 50 },
  ];
  const bench = new Bench(configurations, ({ extender }) =>
    extender.url === 'http://y'
      ? new Error('late')
      : [
          { Host: 'c', Score: 10 },
          { host: 'b', score: 3 },
          { Host: 'unknown', Score: 10 },
        ],
  );
  bench.pending('p');
  assert.equal(bench.outcome(), 'c');
});

test('extenders that manage resources are asked only about pods that want them', () => {
  const managed = { ...FILTER, managedResources: [{ name: 'example.com/a' }] };
  const bench = new Bench([managed], () => keep('b'));
  bench.core.nodeSeen(
    { metadata: { name: 'b' }, status: { allocatable: { 'example.com/a': '1', pods: '9' } } },
    0,
  );
  bench.pending('plain');
  bench.attempt();
  assert.deepEqual(bench.asked, []);
  const resources = { requests: { 'example.com/a': '1' } };
  bench.pending('special', { containers: [{ name: 'c', resources }] });
  assert.equal(bench.outcome(), 'b');
  assert.equal(bench.asked.length, 1);
});

test('victims are those that the extender leaves', () => {
  const preempt = { urlPrefix: 'http://x', preemptVerb: 'v', nodeCacheCapable: true };
  const bench = new Bench([preempt], ({ body }) => {
    const all = isObject(body) ? body['NodeNameToMetaVictims'] : {};
    return { NodeNameToMetaVictims: { b: isObject(all) ? (all['b'] ?? null) : null } };
  });
  const full = { containers: [{ name: 'c', resources: { requests: { cpu: '4' } } }] };
  for (const name of ['a', 'b', 'c']) bench.pending(`on-${name}`, { ...full, nodeName: name });
  bench.pending('p', { ...full, priority: 5 });
  const attempt = bench.attempt();
  assert(attempt?.kind === 'failed' && attempt.failure.nomination !== null);
  assert.equal(bench.core.nodes.nameOf(attempt.failure.nomination.node), 'b');
  assert.deepEqual(attempt.failure.nomination.victims, [1]);
});

test('victims that are not on their node, and none at all, are refused', () => {
  const preempt = { urlPrefix: 'http://x', preemptVerb: 'v', nodeCacheCapable: true };
  const victims = (pods: JsonValue): string => {
    const bench = new Bench([preempt], () => ({ NodeNameToMetaVictims: { a: { Pods: pods } } }));
    const full = { containers: [{ name: 'c', resources: { requests: { cpu: '4' } } }] };
    for (const name of ['a', 'b', 'c']) bench.pending(`on-${name}`, { ...full, nodeName: name });
    bench.pending('p', { ...full, priority: 5 });
    return bench.outcome();
  };
  assert.match(victims([]), /preemption: expected at least one victim pod on node "a"$/);
  assert.match(victims([{ UID: 'x' }]), /claims to preempt pod \(UID: &\{x\}\) on node: a, but/);
});

test('nobody is evicted from a node that only an extender refuses', () => {
  const bench = new Bench([FILTER], () => ({
    nodes: { items: [] },
    failedNodes: { a: 'too hot' },
  }));
  bench.pending('lesser', { nodeName: 'a' });
  bench.pending('p', { priority: 5, nodeSelector: { zone: 'a' } });
  const attempt = bench.attempt();
  assert(attempt?.kind === 'failed');
  assert.equal(attempt.failure.nomination, null);
  assert.match(
    attempt.failure.message,
    /1 too hot, .* preemption: expected at least one victim pod on node "a"$/,
  );
});

test('a pod that goes while extenders think is forgotten, and its node stays free', () => {
  const bench = new Bench([FILTER], () => keep('a'));
  const id = bench.pending('p');
  assert.equal(
    bench.outcome(() => void bench.core.podGone(id, 0)),
    'nothing',
  );
  assert.equal(bench.core.pods.placed, 0);
});

test('a pod that somebody else binds while extenders think stays where it is', () => {
  const bench = new Bench([FILTER], () => keep('a'));
  const id = bench.pending('p');
  const bound = { metadata: { name: 'p' }, spec: { nodeName: 'b' } };
  assert.equal(
    bench.outcome(() => void bench.see(bound)),
    'nothing',
  );
  assert.equal(bench.core.nodes.nameOf(bench.core.pods.node.get(id)), 'b');
});

test('a node that goes while extenders think is an error, and the pod is tried again', () => {
  const bench = new Bench([FILTER], () => keep('a'));
  bench.pending('p');
  assert.equal(
    bench.outcome(() => bench.core.nodeGone('a', 0)),
    'the node that was found is gone',
  );
  assert.equal(bench.core.queue.counts.backoff, 1);
});

test('a pod that changes while extenders think is not queued a second time', () => {
  const bench = new Bench([FILTER], () => keep('a'));
  const id = bench.pending('p');
  const changed = { metadata: { name: 'p', labels: { x: 'y' } }, spec: {} };
  const seen = { ...changed, spec: { schedulerName: 'default-scheduler' } };
  assert.equal(
    bench.outcome(() => void bench.see(seen)),
    'a',
  );
  assert.equal(bench.core.queue.pop(), -1);
  assert.equal(bench.core.pods.placed, 1);
  assert.equal(bench.core.nodes.nameOf(bench.core.pods.node.get(id)), 'a');
});

test('an event that comes while extenders think wakes the pod that they then reject', () => {
  const bench = new Bench([FILTER], () => keep());
  bench.pending('p');
  bench.outcome(() => bench.core.nodeSeen(node('d'), 0));
  assert.equal(bench.core.queue.counts.unschedulable, 0);
  assert.equal(bench.core.queue.counts.backoff, 1);
});

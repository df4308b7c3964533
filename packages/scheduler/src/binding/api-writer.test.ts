import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Client, SendDone } from '@megaplane/client/client';
import { ApiWriter } from './api-writer.ts';
import { EventWriter } from './event-writer.ts';
import { PLACE } from '../cache/pod-table.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { SchedulerMetrics } from '../metrics/text/scheduler-metrics.ts';

interface Sent {
  readonly line: string;
  readonly body: string;
  readonly answer: (status: number, text?: string) => void;
}

/** A client that keeps what it is given until the test answers it. */
class FakeClient {
  readonly sent: Sent[] = [];
  free = 100;
  monotonicMs = 1;
  isLeading = true;
  #roomCallback: () => void = () => {};
  readonly timers = {
    nowMs: () => 5000,
    wallMs: () => 5000,
    after: (_delayMs: number, fire: () => void): (() => void) => {
      setImmediate(fire);
      return () => {};
    },
  };
  /** What `request` answers, one after another; then nothing more. */
  readonly answers: object[] = [];

  send(
    method: string,
    path: string,
    _type: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag = 0,
  ): boolean {
    if (this.free === 0) return false;
    const answer = (status: number, text = '{}'): void => {
      const bytes = Buffer.from(text);
      done(status, bytes, 0, bytes.length, tag);
    };
    this.sent.push({ line: `${method} ${path}`, body: String(body ?? ''), answer });
    return true;
  }

  room(): number {
    return this.free;
  }

  onRoom(callback: () => void): void {
    this.#roomCallback = callback;
  }

  request(): Promise<object> {
    const next = this.answers.shift();
    return next === undefined ? new Promise(() => {}) : Promise.resolve(next);
  }

  random(): number {
    return 0.5;
  }

  makeRoom(): void {
    this.free = 100;
    this.#roomCallback();
  }
}

function setup(eventsPerSecondMax = 0): {
  client: FakeClient;
  core: SchedulerCore;
  writer: ApiWriter;
  metrics: SchedulerMetrics;
} {
  const client = new FakeClient();
  const keyOf = (id: number): string => `default/p${id}`;
  const core = new SchedulerCore({ seed: 1, keyOf });
  const metrics = new SchedulerMetrics(() => 0);
  const events = new EventWriter({
    client: client as unknown as Client,
    host: 'here',
    eventsPerSecondMax,
  });
  const writer = new ApiWriter({
    client: client as unknown as Client,
    core,
    metrics,
    keyOf,
    events,
    monotonicMs: () => client.monotonicMs,
    onProgress: () => {},
    undo: () => {},
    mayDecide: () => client.isLeading,
    bindElsewhere: () => Promise.resolve('no extender binds'),
    log: () => {},
  });
  core.nodeSeen({ metadata: { name: 'n' }, status: { allocatable: { cpu: '1', pods: '9' } } }, 0);
  return { client, core, writer, metrics };
}

function see(core: SchedulerCore, id: number, cpu: string): void {
  const uid = `01234567-89ab-cdef-0123-00000000000${id}`;
  const pod = {
    metadata: { name: `p${id}`, namespace: 'default', uid },
    spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
  };
  const bytes = Buffer.from(JSON.stringify(pod));
  core.podSeen(id, true, bytes, 0, bytes.length, 0);
}

test('a binding names the pod by its uid and the node', () => {
  const { client, core, writer, metrics } = setup();
  see(core, 0, '1');
  core.attempt(0);
  writer.bind(0, 0);
  const [sent] = client.sent;
  assert.equal(sent?.line, 'POST /api/v1/namespaces/default/pods/p0/binding');
  assert.deepEqual(JSON.parse(sent.body), {
    kind: 'Binding',
    apiVersion: 'v1',
    metadata: {
      name: 'p0',
      namespace: 'default',
      uid: '01234567-89ab-cdef-0123-000000000000',
    },
    target: { kind: 'Node', name: 'n' },
  });
  sent.answer(201);
  assert.equal(metrics.attemptsOf('scheduled'), 1);
  assert.equal(writer.pending, 0);
});

test('the wait before a binding does not count for the binding', () => {
  const { client, core, writer, metrics } = setup();
  see(core, 0, '100m');
  assert.equal(core.attempt(0)?.kind, 'bind');
  writer.delay(0, client.monotonicMs);
  client.sent[0]?.answer(200);
  client.monotonicMs += 30_000;
  writer.bindDelayed(core.pods.tagOf(0));
  client.monotonicMs += 2000;
  client.sent[1]?.answer(201);
  const text = metrics.text(core);
  const labels = (point: string): string =>
    `{extension_point="${point}",status="Success",profile="default-scheduler"}`;
  const family = 'scheduler_framework_extension_point_duration_seconds_sum';
  assert(text.includes(`${family}${labels('PreBind')} 30\n`), text);
  assert(text.includes(`${family}${labels('Bind')} 2\n`), text);
  assert(text.includes(`${family}${labels('PostBind')} 0\n`), text);
});

test('a conflict gives the node back and is told on the pod', () => {
  const { client, core, writer, metrics } = setup();
  see(core, 0, '1');
  core.attempt(0);
  writer.bind(0, 0);
  client.sent[0]?.answer(409, '{"message":"pod p0 is already assigned to node \\"m\\""}');
  assert.equal(core.pods.placed, 0);
  assert.equal(metrics.bindFailures, 1);
  assert.equal(client.sent[1]?.line, 'PATCH /api/v1/namespaces/default/pods/p0/status');
  const { status } = JSON.parse(client.sent[1].body) as { status: { conditions: object[] } };
  assert.partialDeepStrictEqual(status.conditions[0], {
    type: 'PodScheduled',
    status: 'False',
    reason: 'SchedulerError',
    message: 'running Bind plugin "DefaultBinder": pod p0 is already assigned to node "m"',
  });
});

test('room is kept until it is known whether a binding was done', async () => {
  const bound = { ok: true, code: 200, object: { spec: { nodeName: 'n' } } };
  const free = { ok: true, code: 200, object: { spec: {} } };
  for (const [last, isKept] of [
    [bound, true],
    [free, false],
    [{ ok: false, code: 404, status: {} }, false],
  ] as const) {
    const { client, core, writer, metrics } = setup();
    see(core, 0, '1');
    core.attempt(0);
    writer.bind(0, 0);
    for (const code of [0, 429, 500, 503]) client.answers.push({ ok: false, code, status: {} });
    client.sent[0]?.answer(504, '{"message":"request did not complete"}');
    for (let turn = 0; turn < 4; turn++) await nextTurn();
    assert.deepEqual([metrics.bindFailures, core.assumed], [0, 1]);
    client.answers.push(last);
    writer.bind(0, 0);
    client.sent.at(-1)?.answer(0, 'connection reset');
    for (let turn = 0; turn < 4; turn++) await nextTurn();
    assert.deepEqual([metrics.bindFailures, core.assumed], isKept ? [0, 1] : [1, 0]);
  }
});

test('a failure is told once, and only its last word when there was no room', () => {
  const { client, core, writer } = setup();
  see(core, 0, '5');
  const attempt = core.attempt(0);
  assert(attempt?.kind === 'failed');
  client.free = 0;
  writer.report(0, attempt.failure, []);
  writer.report(0, { ...attempt.failure, message: 'later' }, []);
  assert.equal(client.sent.length, 0);
  client.makeRoom();
  assert.equal(client.sent.length, 1);
  assert.match(client.sent[0]?.body ?? '', /"message":"later"/);
  assert.match(client.sent[0]?.body ?? '', /"lastTransitionTime":"1970-01-01T00:00:05Z"/);
  writer.report(0, { ...attempt.failure, message: 'later' }, []);
  assert.equal(client.sent.length, 1);
  writer.report(0, { ...attempt.failure, message: 'other' }, []);
  assert.doesNotMatch(client.sent[1]?.body ?? '', /lastTransitionTime/);
});

test('a victim is told why before it is deleted', () => {
  const { client, core, writer, metrics } = setup();
  see(core, 0, '1');
  core.attempt(0);
  see(core, 1, '1');
  const nomination = { node: core.nodes.find('n'), victims: [0] };
  const failure = {
    message: 'm',
    rejecters: new Set(['NodeResourcesFit']),
    isError: false,
    clearsNomination: false,
    isIndexed: false,
    nomination,
  };
  writer.report(1, failure, []);
  const lines = client.sent.map(({ line }) => line);
  assert.deepEqual(lines, [
    'PATCH /api/v1/namespaces/default/pods/p1/status',
    'PATCH /api/v1/namespaces/default/pods/p0/status',
  ]);
  assert.match(client.sent[0]?.body ?? '', /"nominatedNodeName":"n"/);
  assert.match(client.sent[1]?.body ?? '', /PreemptionByScheduler/);
  client.sent[1]?.answer(200);
  assert.equal(client.sent[2]?.line, 'DELETE /api/v1/namespaces/default/pods/p0');
  // Not another pod of its name.
  assert.match(client.sent[1]?.body ?? '', /^\{"metadata":\{"uid":"/);
  assert.match(client.sent[2]?.body ?? '', /"preconditions":\{"uid":"/);
  // Chosen again before the watch shows that it leaves, it hears of it once.
  const again = { ...failure, message: 'again' };
  writer.report(1, again, []);
  assert.equal(client.sent.filter(({ line }) => line.includes('/p0')).length, 2);
  client.sent[2]?.answer(500, 'busy');
  writer.report(1, again, []);
  assert.equal(client.sent.filter(({ line }) => line.includes('/p0')).length, 3);
  client.sent.at(-1)?.answer(404, 'gone');
  // Who was chosen again while it was being asked is no round of its own.
  const rounds = metrics.text(core).matchAll(/^scheduler_preemption_goroutines_exec.* (\S+)$/gm);
  const counts = [...rounds].map(([line]) => line.replace(/^.*\{/, ''));
  assert.deepEqual(counts, ['result="error"} 1', 'result="success"} 1']);
});

test('who waits for room is tried again when a victim could not be asked to go', () => {
  const { client, core, writer } = setup();
  const seen = (id: number, spec: object): void => {
    const resources = { requests: { cpu: '1' } };
    const containers = [{ name: 'c', resources }];
    const metadata = { name: `p${id}`, namespace: 'default' };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec: { containers, ...spec } }));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
  };
  seen(0, { nodeName: 'n' });
  seen(1, { priority: 10 });
  const attempt = core.attempt(0);
  assert(attempt?.kind === 'failed');
  assert.deepEqual(attempt.failure.nomination?.victims, [0]);
  writer.report(1, attempt.failure, []);
  assert.equal(core.pods.place.get(1), PLACE.unschedulable);
  const answer = (line: string, code: number): void =>
    client.sent.find((sent) => sent.line === line)?.answer(code);
  answer('PATCH /api/v1/namespaces/default/pods/p0/status', 200);
  answer('DELETE /api/v1/namespaces/default/pods/p0', 500);
  assert.notEqual(core.pods.place.get(1), PLACE.unschedulable);
  client.sent.length = 0;
  core.tick(60_000);
  const again = core.attempt(60_000);
  assert(again?.kind === 'failed');
  writer.report(1, again.failure, []);
  answer('PATCH /api/v1/namespaces/default/pods/p0/status', 200);
  answer('DELETE /api/v1/namespaces/default/pods/p0', 200);
  assert.equal(core.pods.place.get(1), PLACE.unschedulable);
});

test('the scheduler of the preemptor tells of the victim, whosever that is', () => {
  const { client, core, writer } = setup(10);
  const spec = { nodeName: 'n', schedulerName: 'other', containers: [] };
  const pod = Buffer.from(JSON.stringify({ metadata: { name: 'p0', namespace: 'default' }, spec }));
  core.podSeen(0, true, pod, 0, pod.length, 0);
  see(core, 1, '1');
  const nomination = { node: core.nodes.find('n'), victims: [0] };
  const failure = { message: 'm', rejecters: new Set<string>(), isError: false, nomination };
  writer.report(1, { ...failure, clearsNomination: false, isIndexed: false }, []);
  const event = client.sent.find(({ body }) => body.includes('"reason":"Preempted"'));
  assert.match(event?.body ?? '', /"reportingController":"default-scheduler"/);
});

test('metrics have the names and labels of kube-scheduler', () => {
  const { core, writer, client, metrics } = setup();
  see(core, 0, '1');
  core.attempt(0);
  writer.bind(0, 0);
  client.sent[0]?.answer(201);
  const text = metrics.text(core);
  const result = 'result="scheduled",profile="default-scheduler"';
  assert(text.includes(`scheduler_schedule_attempts_total{${result}} 1\n`));
  assert(text.includes('scheduler_pending_pods{queue="active"} 0\n'));
  assert(text.includes('scheduler_cache_size{type="assumed_pods"} 1\n'));
  assert(text.includes('scheduler_pod_scheduling_attempts_bucket{le="1"} 1\n'));
});

test('a binding waits for what is told of the pod, and what is not told yet never is', () => {
  const { client, core, writer } = setup();
  see(core, 0, '1');
  const failure = { message: 'full', rejecters: new Set<string>(), isError: false };
  const told = { ...failure, clearsNomination: false, isIndexed: false, nomination: null };
  writer.report(0, told, []);
  core.attempt(0);
  writer.bind(0, 0);
  assert.deepEqual(
    client.sent.map(({ line }) => line),
    ['PATCH /api/v1/namespaces/default/pods/p0/status'],
  );
  client.sent[0]?.answer(200);
  assert.equal(client.sent[1]?.line, 'POST /api/v1/namespaces/default/pods/p0/binding');
  see(core, 1, '0');
  client.free = 0;
  writer.report(1, told, []);
  client.free = 100;
  core.attempt(0);
  writer.bind(1, 0);
  client.makeRoom();
  assert.equal(client.sent.length, 3);
  assert.equal(client.sent[2]?.line, 'POST /api/v1/namespaces/default/pods/p1/binding');
});

test('who slept past its lease sends no binding that waited meanwhile', async () => {
  const { client, core, writer } = setup();
  see(core, 0, '1');
  core.attempt(0);
  writer.delay(0, 0);
  writer.bindDelayed(core.pods.tagOf(0));
  client.isLeading = false;
  client.sent[0]?.answer(200);
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.equal(client.sent.length, 1);
  client.isLeading = true;
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.equal(client.sent[1]?.line, 'POST /api/v1/namespaces/default/pods/p0/binding');
});

import assert from 'node:assert/strict';
import { Exposition } from '@megaplane/client/exposition';
import { test } from 'node:test';
import type { Client, ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Status } from '@megaplane/machinery/status';
import { PreBinder } from './pre-binder.ts';
import type { KubeObject } from '../api/objects.ts';
import type { ObjectWrite, Reservation } from '../framework/reservation.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { WorkMetrics } from '../metrics/work-metrics.ts';

/** Answers requests with what the test says, and runs timers when told. */
class Bench {
  readonly lines: string[] = [];
  readonly core = new SchedulerCore({ seed: 1, keyOf: () => 'default/p' });
  readonly metrics = new WorkMetrics();
  readonly binder: PreBinder;
  answers: number[] = [];
  nowMs = 0;
  #timers: (() => void)[] = [];

  constructor() {
    const client = {
      timers: {
        nowMs: () => this.nowMs,
        wallMs: () => this.nowMs,
        after: (_: number, fire: () => void) => {
          this.#timers.push(fire);
          return () => {};
        },
      },
      request: (request: ClientRequest) => Promise.resolve(this.#answer(request)),
    };
    this.binder = new PreBinder({
      client: client as unknown as Client,
      core: this.core,
      metrics: this.metrics,
      onReady: () => this.lines.push('ready'),
      onFailure: (_, message) => this.lines.push(`failed: ${message}`),
      onWaiting: (_, text) => this.lines.push(`waits: ${text}`),
      onTrouble: (message) => this.lines.push(`trouble: ${message}`),
    });
    this.core.nodeSeen({ metadata: { name: 'n' }, status: { allocatable: { pods: '9' } } }, 0);
    const pod = { metadata: { name: 'p', namespace: 'default' }, spec: {} };
    const bytes = Buffer.from(JSON.stringify(pod));
    this.core.podSeen(0, true, bytes, 0, bytes.length, 0);
    this.core.attempt(0);
  }

  #answer({ method, path, body }: ClientRequest): ClientResponse {
    const code = this.answers.shift() ?? 200;
    this.lines.push(`${method} ${path} ${code}`);
    if (code >= 300) return { ok: false, code, status: { message: 'no' } as Status };
    const known = { metadata: { name: 'c', namespace: 'd', resourceVersion: '2' } };
    const object = (method === 'GET' ? known : body) as JsonObject;
    return { ok: true, code, object, bytes: Buffer.alloc(0) };
  }

  async run(reservation: Partial<Reservation>): Promise<string[]> {
    const whole: Reservation = {
      plugin: 'Some',
      assumed: [],
      pending: [],
      writes: [],
      isReady: () => true,
      timeoutMs: 5000,
      timeoutText: 'too late',
      undo: [],
      waitingText: '',
      outcome: [],
      ...reservation,
    };
    const tag = this.core.pods.tagOf(0);
    this.core.reservations.take(tag, [whole]);
    this.binder.start(tag, [whole]);
    for (let rounds = 0; rounds < 20 && this.binder.pending > 0; rounds++) {
      await new Promise((resolve) => void setImmediate(resolve));
      this.nowMs += 1000;
      for (const fire of this.#timers.splice(0)) fire();
    }
    await new Promise((resolve) => void setImmediate(resolve));
    return this.lines;
  }
}

const CREATED = 'scheduler_resourceclaim_creates_total';
const PATH = '/apis/resource.k8s.io/v1/namespaces/d/resourceclaims/c';
const write: ObjectWrite = {
  kind: 'ResourceClaim',
  key: 'd/c',
  path: PATH,
  subresource: 'status',
  about: 'add reservation to claim d/c',
  change: (object) => ({ ...object, status: { done: true } }),
};

test('an object that was changed by somebody else is read and changed again', async () => {
  const bench = new Bench();
  bench.answers = [200, 409, 200, 200];
  assert.deepEqual(await bench.run({ writes: [write] }), [
    `GET ${PATH} 200`,
    `PUT ${PATH}/status 409`,
    `GET ${PATH} 200`,
    `PUT ${PATH}/status 200`,
    'ready',
  ]);
  // What was written is seen before the watch shows it.
  assert.ok('status' in (bench.core.objects.object('ResourceClaim', 'd/c') as object));
});

test('what others see as promised is written all the same, once', async () => {
  const bench = new Bench();
  const claim = { metadata: { name: 'c', namespace: 'd', resourceVersion: '1' } };
  bench.core.objectSeen('ResourceClaim', claim, 0);
  const once: ObjectWrite = {
    ...write,
    change: (object) => ('status' in object ? null : { ...object, status: { done: true } }),
  };
  const assumed = [{ ...claim, kind: 'ResourceClaim', status: { done: true } }];
  const lines = await bench.run({ assumed, writes: [once, once] });
  assert.deepEqual(lines, [`PUT ${PATH}/status 200`, 'ready']);
});

test('a write that is refused ends the try, with the plugin that wanted it', async () => {
  const bench = new Bench();
  bench.answers = [200, 403];
  const lines = await bench.run({ writes: [write] });
  const text = 'running PreBind plugin "Some": add reservation to claim d/c: no';
  assert.equal(lines.at(-1), `failed: ${text}`);
});

test('waits for devices and claims that are made are counted by how they end', async () => {
  const drivers = { all: ['d.example', 'e.example'], slow: ['d.example'] };
  const ends: string[] = [];
  const answers = [true, 'claim c binding failed: reason=r', false, 'could not find ResourceClaim'];
  for (const answer of answers) {
    const bench = new Bench();
    const timeoutText = 'device binding timeout';
    const change = (): JsonObject => ({ metadata: { name: 'c', namespace: 'd' } });
    const made: ObjectWrite = { ...write, action: 'create', change };
    bench.answers = answer === true ? [201] : [201, 500];
    const writes = answer === true ? [made] : [];
    await bench.run({ isReady: () => answer, drivers, timeoutText, writes });
    const out = new Exposition();
    bench.metrics.write(out);
    const lines = out.toString().split('\n');
    const uses = lines.filter((line) => line.startsWith('scheduler_dra_bindingconditions_alloc'));
    ends.push(...uses.map((line) => /status="([a-z]+)"\} 1$/.exec(line)?.[1] ?? line));
    const waited = lines.filter((line) => /wait_duration_seconds_count.* 1$/.test(line));
    assert.equal(waited.length, 2);
    const claims = lines.filter((line) => line.startsWith('scheduler_resourceclaim_creates_total'));
    assert.equal(claims.join(), answer === true ? `${CREATED}{status="success"} 1` : '');
  }
  assert.deepEqual(ends, ['success', 'failure', 'timeout', 'error']);
});

test('a wait ends with what it waits for, with a failure, or in time', async () => {
  let looks = 0;
  const slow = await new Bench().run({ isReady: () => ++looks > 2, waitingText: 'for disks' });
  assert.deepEqual(slow, ['waits: for disks', 'ready']);
  const broken = await new Bench().run({ isReady: () => 'broken' });
  assert.deepEqual(broken, ['failed: running PreBind plugin "Some": broken']);
  const late = await new Bench().run({ isReady: () => false });
  assert.deepEqual(late, ['failed: running PreBind plugin "Some": too late']);
});

test('a pod that is gone is neither bound nor told of', async () => {
  const bench = new Bench();
  const gone = (): boolean => {
    bench.core.podGone(0, 1);
    return false;
  };
  assert.deepEqual(await bench.run({ isReady: gone }), []);
});

test('what is promised is seen by others until it is given back', () => {
  const { core } = new Bench();
  const seen = (version: string, note: string): KubeObject => ({
    kind: 'PersistentVolume',
    metadata: { name: 'v', resourceVersion: version, annotations: { note } },
  });
  const shown = (): string | undefined =>
    core.objects.object('PersistentVolume', 'v')?.metadata.annotations?.['note'];
  core.objectSeen('PersistentVolume', seen('5', 'server'), 0);
  core.objects.assume('PersistentVolume', seen('5', 'ours'));
  assert.equal(shown(), 'ours');
  core.objectSeen('PersistentVolume', seen('5', 'server'), 0);
  assert.equal(shown(), 'ours');
  core.objects.restore('PersistentVolume', 'v');
  assert.equal(shown(), 'server');
  core.objects.assume('PersistentVolume', seen('5', 'ours'));
  core.objectSeen('PersistentVolume', seen('6', 'newer'), 0);
  assert.equal(shown(), 'newer');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { madeUpStatus } from '@megaplane/client/answer';
import type { Client, ClientMetrics } from '@megaplane/client/client';
import { createPods, lacksPods } from './workload.ts';

const EMPTY = Buffer.alloc(0);

function cancelling(immediate: NodeJS.Immediate): () => void {
  return () => clearImmediate(immediate);
}

/** A cluster of pods in one namespace: as much of a client as the workload asks. */
class Pods {
  readonly names: Set<string>;
  readonly created: string[] = [];
  readonly paths: string[] = [];
  /** Answered to creations while set. */
  status = 201;
  /** Answers of `send` that the test lets through later. */
  held: (() => void)[] | null = null;

  constructor(names: readonly string[]) {
    this.names = new Set(names);
  }

  readonly client: Client = {
    retryAfterSeconds: 0,
    timers: {
      nowMs: () => 0,
      wallMs: () => 0,
      after: (_ms, fire) => cancelling(setImmediate(() => fire())),
    },
    random: () => 0,
    room: () => 1000,
    onRoom: () => undefined,
    request: async (request) => {
      this.paths.push(request.path);
      const { method, body } = request;
      const isNew = !this.names.has('res-0');
      if (method === 'POST' && isNew && typeof body === 'string') this.#add(body);
      if (method === 'POST' && !isNew) {
        return { ok: false, code: 409, status: madeUpStatus(409, 'exists') };
      }
      return { ok: true, code: 200, bytes: EMPTY, object: { metadata: { uid: 'u0' }, items: [] } };
    },
    send: (_method, _path, _type, body, done, tag = 0) => {
      const answer = (): void => {
        const status = this.#add(typeof body === 'string' ? body : '');
        done(status, Buffer.from('refused by the test'), 0, 19, tag);
      };
      if (this.held === null) setImmediate(answer);
      else this.held.push(answer);
      return true;
    },
    stream: (path, sink) => {
      this.paths.push(path);
      const items = [...this.names].map((name) => ({ metadata: { name }, spec: {} }));
      const bytes = Buffer.from(JSON.stringify({ metadata: { resourceVersion: '7' }, items }));
      setImmediate(() => {
        sink.onHead(200, 0);
        sink.onData(bytes, 0, bytes.length);
        sink.onEnd(null);
      });
      return { cancel: () => undefined, pause: () => undefined, resume: () => undefined };
    },
    metrics: undefined as unknown as ClientMetrics,
    close: () => undefined,
  };

  #add(body: string): number {
    const { name } = JSON.parse(body).metadata;
    if (this.status !== 201) return this.status;
    this.created.push(name);
    this.names.add(name);
    return 201;
  }
}

const never = new AbortController().signal;

test('a new cluster gets all pods', async () => {
  const pods = new Pods([]);
  await createPods(pods.client, 5, never);
  assert.deepEqual(pods.created.toSorted(), ['res-0', 'res-1', 'res-2', 'res-3', 'res-4']);
});

test('pods that exist are counted, and only those that lack are created', async () => {
  const others = ['web-1', 'res-x', 'res-01', 'res-7'];
  const pods = new Pods(['res-0', 'res-1', 'res-3', ...others]);
  await createPods(pods.client, 6, never);
  assert.deepEqual(pods.created.toSorted(), ['res-2', 'res-4', 'res-5']);
  await createPods(pods.client, 6, never);
  assert.equal(pods.created.length, 3);
  assert(pods.paths.some((path) => /\?labelSelector=app%3Dres&limit=\d+$/.test(path)));
});

test('a pod that is refused is told of', async () => {
  const pods = new Pods(['res-0']);
  pods.status = 403;
  await assert.rejects(
    createPods(pods.client, 3, never),
    /pod res-1 is refused \(403\): refused by/,
  );
});

test('whoever is told to stop waits for no answer', async () => {
  const pods = new Pods(['res-0']);
  pods.held = [];
  const end = new AbortController();
  const creating = createPods(pods.client, 100, end.signal);
  while (pods.held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  end.abort();
  await creating;
  assert.equal(pods.created.length, 0);
});

test('what lacks is asked of the server by fields', async () => {
  const pods = new Pods([]);
  assert.equal(await lacksPods(pods.client, 'bound'), false);
  assert.equal(await lacksPods(pods.client, 'running'), false);
  const [bound, running] = pods.paths;
  assert.match(bound ?? '', /labelSelector=app%3Dres&fieldSelector=spec.nodeName%3D&limit=1$/);
  assert.match(running ?? '', /fieldSelector=status.phase%3DPending&/);
});

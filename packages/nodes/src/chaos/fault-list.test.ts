import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { FakeClient } from '../../test/fake-client.ts';
import { drain } from './drain.ts';
import { addFault, listFaults, removeFaults } from './fault-list.ts';

const NONE = { ok: false, code: 0, status: { message: 'connection lost' } };

/** One ConfigMap, nodes that take all patches, and one pod that goes when it is evicted. */
class Server extends FakeClient {
  readonly asked: string[] = [];
  /** What happens to the next requests: lost before or after they were done, or a code. */
  readonly troubles: ('before' | 'after' | 429 | 503)[] = [];
  pods = 1;
  #map: JsonObject | undefined;

  override async request(request: ClientRequest): Promise<ClientResponse> {
    this.asked.push(`${request.method} ${request.path.replace(/.*\/|\?.*/g, '')}`);
    const trouble = this.troubles.shift();
    if (typeof trouble === 'number') {
      return { ok: false, code: trouble, status: { message: 'busy' } } as ClientResponse;
    }
    const answer = trouble === 'before' ? NONE : this.#answer(request);
    return (trouble === 'after' ? NONE : answer) as ClientResponse;
  }

  #answer({ method, path, body }: ClientRequest): object {
    if (path.includes('configmaps')) {
      if (method !== 'GET') this.#map = body as JsonObject;
      if (this.#map === undefined) return { ok: false, code: 404, status: {} };
      return { ok: true, code: 200, object: this.#map };
    }
    if (path.includes('/eviction')) this.pods = 0;
    const pod = { metadata: { name: 'p', namespace: 'd', uid: 'u' } };
    return { ok: true, code: 200, object: { items: Array(this.pods).fill(pod) } };
  }

  /** Lets time pass until the work is done. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    let isDone = false;
    const end = (): void => void (isDone = true);
    void work.then(end, end);
    for (let turn = 0; turn < 1000 && !isDone; turn++) {
      for (let step = 0; step < 20; step++) await Promise.resolve();
      if (!isDone) this.pass(500);
    }
    return work;
  }
}

const told: string[] = [];
const log = (message: string): void => void told.push(message);
const FAULT = {
  kind: 'down',
  selector: '',
  names: [],
  percent: 1,
  untilMs: 0,
  periodMs: 0,
} as const;

test('a fault is added and removed once, whatever is lost on the way', async () => {
  const server = new Server(1);
  server.troubles.push('before', 503, 'after');
  await server.during(addFault(server, FAULT, log));
  assert.deepEqual(
    (await listFaults(server)).map(({ id }) => id),
    ['f1'],
  );
  server.troubles.push(429, 'after');
  await server.during(addFault(server, FAULT, log));
  server.troubles.push(429, 'before');
  await server.during(addFault(server, FAULT, log));
  assert.equal((await listFaults(server)).length, 3);
  server.troubles.push('before', 'after');
  assert.equal((await server.during(removeFaults(server, ['f1'], log))).length, 1);
  assert.deepEqual(
    (await listFaults(server)).map(({ id }) => id),
    ['f2', 'f3'],
  );
});

test('a node is drained though the server is away, and asked ever more seldom', async () => {
  const server = new Server(1);
  told.splice(0);
  server.troubles.push('after', 429, 503, 'before', 'before');
  await server.during(drain(['n'], { client: server, timeoutMs: 600_000, log }));
  assert.equal(server.pods, 0);
  server.pods = 1;
  server.asked.length = 0;
  server.troubles.push(...Array<'before'>(1000).fill('before'));
  const refused = server.during(drain(['n'], { client: server, timeoutMs: 600_000, log }));
  await assert.rejects(refused, /connection lost/);
  assert.ok(server.asked.length < 25, `${server.asked.length}`);
  // whoever waits hears what for, once a request
  assert.equal(told.filter((message) => /connection lost; trying on/.test(message)).length, 2);
});

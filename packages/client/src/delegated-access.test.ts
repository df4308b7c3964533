import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { Client, ClientRequest, ClientResponse } from './client.ts';
import { DelegatedAccess } from './delegated-access.ts';

class Reviewer {
  nowMs = 0;
  asked: string[] = [];
  isDown = false;

  readonly timers = {
    nowMs: (): number => this.nowMs,
    wallMs: (): number => this.nowMs,
    after: () => () => {},
  };

  async request({ path, body }: ClientRequest): Promise<ClientResponse> {
    await Promise.resolve();
    this.asked.push(path.slice(path.lastIndexOf('/') + 1));
    if (this.isDown) return { ok: false, code: 0, status: { message: 'no answer' } as never };
    const spec = objectAt(body as JsonObject, 'spec');
    const token = stringAt(spec, 'token');
    const isKnown = token === 'good' || token === 'poor';
    const status: JsonObject = path.endsWith('tokenreviews')
      ? { authenticated: isKnown, user: { username: token, groups: ['g'] } }
      : { allowed: stringAt(spec, 'user') === 'good' };
    return { ok: true, code: 201, object: { status }, bytes: Buffer.alloc(0) };
  }
}

test('open paths are for all, others for whom the API server allows them', async () => {
  const reviewer = new Reviewer();
  const access = new DelegatedAccess(reviewer as unknown as Client, ['/healthz', '/livez/*']);
  const told = async (path: string, authorization = ''): Promise<string> => {
    const verdict = await access.decide(path, 'get', authorization);
    return verdict.kind === 'allowed' ? verdict.kind : `${verdict.code} ${verdict.text}`;
  };
  assert.equal(await told('/healthz'), 'allowed');
  assert.equal(await told('/livez/ping'), 'allowed');
  assert.deepEqual(reviewer.asked, []);
  const forbidden = (user: string): string =>
    `403 forbidden: User "${user}" cannot get path "/metrics"`;
  assert.equal(await told('/metrics'), forbidden('system:anonymous'));
  assert.equal(await told('/metrics', 'Bearer poor'), forbidden('poor'));
  assert.equal(await told('/metrics', 'Bearer nobody'), '401 Unauthorized');
  assert.equal(await told('/metrics', 'Bearer good'), 'allowed');
  const { length } = reviewer.asked;
  assert.equal(await told('/metrics', 'Bearer good'), 'allowed');
  assert.equal(reviewer.asked.length, length, 'the answer is kept');
  reviewer.isDown = true;
  reviewer.nowMs = 10_001;
  assert.equal(await told('/metrics', 'Bearer good'), '401 Unauthorized');
  assert.equal(await told('/metrics'), '500 Internal Server Error: "/metrics": no answer');
});

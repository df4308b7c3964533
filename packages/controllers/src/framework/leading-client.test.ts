import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeApi } from '../../test/fake-api.ts';
import { LeadingClient } from './leading-client.ts';

test('after the lease only reads are let through, and a refusal is told as no answer', async () => {
  const api = new FakeApi();
  let mayWrite = true;
  const client = new LeadingClient(api, () => mayWrite);
  const codes: number[] = [];
  const body = (reason: string): string => JSON.stringify({ reason, message: '' });
  const write = async (reason: string): Promise<void> => {
    const path = '/api/v1/events';
    const done = (code: number): void => void codes.push(code);
    assert(client.send('POST', path, 'application/json', body(reason), done));
    const metadata = { name: reason };
    const put = client.request({ method: 'PATCH', path: `/api/v1/nodes/n`, body: { metadata } });
    const got = client.request({ method: 'GET', path: '/api/v1/nodes' });
    await api.advance(0);
    codes.push((await put).code, (await got).code);
  };
  await write('before');
  assert(!codes.includes(0), codes.join());
  codes.length = 0;
  mayWrite = false;
  await write('after');
  assert.deepEqual(codes, [0, 0, 200]);
  assert.deepEqual(api.events, ['before: ']);
});

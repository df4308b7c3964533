import assert from 'node:assert/strict';
import { test } from 'node:test';
import { madeUpStatus } from '@megaplane/client/answer';
import type { Client } from '@megaplane/client/client';
import { awaitDefaultAccount } from './default-account.ts';

const never = new AbortController().signal;

/** A server that has the account from its `madeAt`th answer on, and a clock that waiting moves. */
function serverWith(madeAt: number): { readonly client: Client; asked: number } {
  let nowMs = 0;
  const server = {
    asked: 0,
    client: {
      timers: {
        nowMs: () => nowMs,
        after: (ms: number, fire: () => void) => {
          nowMs += ms;
          setImmediate(fire);
          return () => undefined;
        },
      },
      request: async () =>
        ++server.asked >= madeAt
          ? { ok: true, code: 200, object: {} }
          : { ok: false, code: 404, status: madeUpStatus(404, 'not found') },
    } as unknown as Client,
  };
  return server;
}

test('a cluster is waited for until pods can be created in it', async () => {
  const server = serverWith(4);
  assert.equal(await awaitDefaultAccount(server.client, never), true);
  assert.equal(server.asked, 4);
});

test('an account that nobody makes is not waited for without end', async () => {
  const server = serverWith(Infinity);
  assert.equal(await awaitDefaultAccount(server.client, never), false);
  assert(server.asked > 10 && server.asked < 1000);
});

test('a cluster that is to end is not waited for', async () => {
  const server = serverWith(Infinity);
  assert.equal(await awaitDefaultAccount(server.client, AbortSignal.abort()), false);
  assert.equal(server.asked, 0);
});

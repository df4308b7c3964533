import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PatientCalls } from './patient-calls.ts';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from './webhook-call.ts';

const TARGET: WebhookTarget = {
  host: '10.0.0.1',
  port: 8443,
  serverName: 'hook.tools.svc',
  authority: 'hook.tools.svc:443',
  path: '/check?timeout=5s',
  caBundle: 'pem',
  credential: { certificate: '', key: '', token: 'secret' },
};

type Answer = Partial<Extract<WebhookResponse, { ok: true }>> & { readonly status: number };

/** Answers by path, and remembers what it was asked. */
class Hook implements WebhookCaller {
  readonly asked: WebhookTarget[] = [];
  readonly #answer: (target: WebhookTarget, count: number) => Answer;

  constructor(answer: (target: WebhookTarget, count: number) => Answer) {
    this.#answer = answer;
  }

  call(target: WebhookTarget, _: Buffer, __: number, then: (one: WebhookResponse) => void): void {
    this.asked.push(target);
    const answer = this.#answer(target, this.asked.length);
    setImmediate(() => {
      then({ ok: true, contentType: '', body: Buffer.from('x'), ...answer });
    });
  }
}

function asking(hook: Hook, timeoutMs = 60_000): Promise<WebhookResponse> {
  return new Promise((done) => {
    // holds the process while only unreferenced timers are left
    const hold = setInterval(() => {}, 1000);
    new PatientCalls(hook).call(TARGET, Buffer.from('{}'), timeoutMs, (response) => {
      clearInterval(hold);
      done(response);
    });
  });
}

test('a webhook that says when to come again is asked again, ten times at most', async () => {
  const soon = new Hook((_, count) =>
    count < 3 ? { status: 429, retryAfterS: 0 } : { status: 200 },
  );
  const answered = await asking(soon);
  assert.equal(answered.ok && answered.status, 200);
  const never = new Hook(() => ({ status: 503, retryAfterS: 0 }));
  const refused = await asking(never);
  assert.equal(refused.ok && refused.status, 503);
  assert.equal(never.asked.length, 11);
  const plain = new Hook(() => ({ status: 503 }));
  await asking(plain);
  assert.equal(plain.asked.length, 1);
  const bad = new Hook(() => ({ status: 400, retryAfterS: 0 }));
  await asking(bad);
  assert.equal(bad.asked.length, 1);
});

test('the time of a call ends all that it waits for', async () => {
  const late = new Hook(() => ({ status: 429, retryAfterS: 3600 }));
  assert.deepEqual(await asking(late, 30), { ok: false, why: 'context deadline exceeded' });
  assert.equal(late.asked.length, 1);
});

test('redirects are followed with the same body, or with GET where Go does that', async () => {
  const moved = new Hook(({ path }) =>
    path === '/there' ? { status: 200 } : { status: 307, location: '/there' },
  );
  const answered = await asking(moved);
  assert.equal(answered.ok && answered.status, 200);
  assert.deepEqual(moved.asked[1], { ...TARGET, path: '/there', isGet: false });
  const elsewhere = new Hook(({ path }) =>
    path === '/a?b=c' ? { status: 200 } : { status: 302, location: 'http://[::1]:90/a?b=c' },
  );
  await asking(elsewhere);
  const { credential: _, ...open } = TARGET;
  assert.deepEqual(elsewhere.asked[1], {
    ...open,
    ...{ host: '::1', port: 90, authority: '[::1]:90', path: '/a?b=c' },
    ...{ isPlain: true, isGet: true },
  });
});

test('redirects without end, or to nowhere, are failures in the words of Go', async () => {
  const loop = new Hook(() => ({ status: 308, location: '/again' }));
  assert.deepEqual(await asking(loop), {
    ok: false,
    why: 'stopped after 10 redirects',
    url: '/again',
  });
  assert.equal(loop.asked.length, 10);
  assert.deepEqual(await asking(new Hook(() => ({ status: 307, location: '://x' }))), {
    ok: false,
    why: 'failed to parse Location header "://x": parse "://x": missing protocol scheme',
  });
  const unsaid = await asking(new Hook(() => ({ status: 307 })));
  assert.equal(unsaid.ok && unsaid.status, 307);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringAt } from '@megaplane/machinery/json';
import type { Client, ClientRequest, ClientResponse } from '../rest/client.ts';
import { DelegatedAccess, type AccessOptions, type PageCredentials } from './delegated-access.ts';

/** Knows the token `good` of the user `jane`, who may do what `mayDo` says. */
class Reviewer {
  readonly asked: string[] = [];
  mayDo = true;
  isUp = true;

  request({ path, body }: ClientRequest): Promise<ClientResponse> {
    const text = JSON.stringify(body);
    this.asked.push(`${path.split('/').at(-1)} ${text.replace(/.*"spec":/, '')}`);
    const isKnown = text.includes('"good"');
    const user = { username: 'jane', uid: '1', groups: ['devs'] };
    const status = path.endsWith('tokenreviews')
      ? { authenticated: isKnown, ...(isKnown ? { user } : {}) }
      : { allowed: this.mayDo };
    const answer = this.isUp
      ? { ok: true, code: 201, object: { status } }
      : { ok: false, code: 503, status: { message: 'no server' } };
    return Promise.resolve(answer as unknown as ClientResponse);
  }
}

let timeMs = 0;

function accessBy(reviewer: Reviewer, change: Partial<AccessOptions> = {}): DelegatedAccess {
  const client = reviewer as unknown as Client;
  return new DelegatedAccess({
    authentication: client,
    authorization: client,
    alwaysAllowed: ['/healthz', '/open/*'],
    tokenMs: 10,
    allowedMs: 10,
    deniedMs: 10,
    nowMs: () => timeMs,
    ...change,
  });
}

const nobody: PageCredentials = { certificate: null, authorization: '' };
const token = (text: string): PageCredentials => ({ ...nobody, authorization: `Bearer ${text}` });
const certificate = (...groups: string[]): PageCredentials => ({
  certificate: { commonName: 'scraper', groups },
  authorization: '',
});

async function shown(
  access: DelegatedAccess,
  of: PageCredentials,
  path: string,
  method = 'GET',
): Promise<string> {
  const found = await access.decide(of, method, path);
  if (found.kind === 'allowed') return 'allowed';
  return `${found.status.code} ${stringAt(found.status, 'message')}`;
}

// The texts and codes are those of kube-scheduler v1.36.1.
test('health is for all but who comes with a wrong token, the rest for who may', async () => {
  const reviewer = new Reviewer();
  const access = accessBy(reviewer);
  assert.equal(await shown(access, nobody, '/healthz'), 'allowed');
  assert.equal(await shown(access, nobody, '/open/door'), 'allowed');
  assert.equal(await shown(access, token('bad'), '/healthz'), '401 Unauthorized');
  assert.equal(await shown(access, token('good'), '/metrics'), 'allowed');
  reviewer.mayDo = false;
  const anonymous = '403 forbidden: User "system:anonymous" cannot post path "/metrics"';
  assert.equal(await shown(access, nobody, '/metrics', 'POST'), anonymous);
  const jane = '403 forbidden: User "jane" cannot get path "/configz"';
  assert.equal(await shown(access, token('good'), '/configz'), jane);
  assert.equal(await shown(access, certificate('system:masters'), '/metrics'), 'allowed');
});

test('who asks is told by certificate or token, with the groups of who is known', async () => {
  const reviewer = new Reviewer();
  const access = accessBy(reviewer);
  await shown(access, certificate('ops'), '/metrics');
  await shown(access, token('good'), '/metrics');
  const attributes = '"nonResourceAttributes":{"path":"/metrics","verb":"get"}}}';
  assert.deepEqual(reviewer.asked, [
    'subjectaccessreviews {"user":"scraper","uid":"","groups":["ops","system:authenticated"],' +
      attributes,
    'tokenreviews {"token":"good"}}',
    'subjectaccessreviews {"user":"jane","uid":"1","groups":["devs","system:authenticated"],' +
      attributes,
  ]);
});

test('answers are kept for a while, failures are not', async () => {
  const reviewer = new Reviewer();
  const access = accessBy(reviewer);
  reviewer.isUp = false;
  assert.match(await shown(access, token('good'), '/metrics'), /^500 .*no server$/);
  reviewer.isUp = true;
  assert.equal(await shown(access, token('good'), '/metrics'), 'allowed');
  reviewer.mayDo = false;
  assert.equal(await shown(access, token('good'), '/metrics'), 'allowed');
  timeMs += 10;
  assert.match(await shown(access, token('good'), '/metrics'), /^403/);
});

test('without anybody to ask tokens say nothing, and only what is open is shown', async () => {
  const access = accessBy(new Reviewer(), { authentication: null, authorization: null });
  assert.equal(await shown(access, token('bad'), '/healthz'), 'allowed');
  const text = '403 forbidden: User "system:anonymous" cannot get path "/metrics"';
  assert.equal(await shown(access, token('good'), '/metrics'), text);
});

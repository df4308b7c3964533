import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import { FakeClient } from '../../test/fake-client.ts';
import { ALLOWED_MS, attributesOf, DENIED_MS, PortAccess, TOKEN_MS } from './port-access.ts';

/** Knows the token `good` of the user `jane`, who may do what `mayDo` says. */
class Reviewer extends FakeClient {
  readonly asked: string[] = [];
  mayDo = true;
  isUp = true;
  /** The only part of nodes that is allowed; empty: any. */
  part = '';

  override request({ path, body }: ClientRequest): Promise<ClientResponse> {
    this.asked.push(path.split('/').at(-1) ?? '');
    const text = JSON.stringify(body);
    const isKnown = text.includes('"good"');
    const user = { username: 'jane', uid: '1', groups: ['devs'] };
    const status = path.endsWith('tokenreviews')
      ? { authenticated: isKnown, ...(isKnown ? { user } : {}) }
      : { allowed: this.mayDo && (this.part === '' || text.includes(`"${this.part}"`)) };
    const answer = this.isUp
      ? { ok: true, code: 201, object: { status } }
      : { ok: false, code: 503, status: { message: 'no server' } };
    return Promise.resolve(answer as unknown as ClientResponse);
  }
}

const LOGS = attributesOf('GET', '/containerLogs/default/p/c', 'n');
const certificate = (...groups: string[]) => ({
  certificate: { commonName: 'kubelet-client', groups },
  authorization: '',
});
const token = (text: string) => ({ certificate: null, authorization: `Bearer ${text}` });

test('nobody and strangers are sent away, masters let in, others by what they may do', async () => {
  const client = new Reviewer(1);
  const access = new PortAccess(client);
  const decide = async (of: Parameters<PortAccess['decide']>[0]): Promise<string> => {
    const found = await access.decide(of, LOGS);
    return found.kind === 'refused' ? `${found.code} ${found.text}` : found.kind;
  };
  assert.equal(await decide({ certificate: null, authorization: '' }), '401 Unauthorized');
  assert.equal(await decide(token('bad')), '401 Unauthorized');
  assert.equal(await decide(certificate('system:masters')), 'allowed');
  assert.deepEqual(client.asked, ['tokenreviews']);
  assert.equal(await decide(token('good')), 'allowed');
  client.mayDo = false;
  assert.equal(await decide(token('good')), 'allowed');
  assert.equal(
    await decide(certificate('nobodies')),
    '403 Forbidden (user=kubelet-client, verb=get, resource=nodes, subresource(s)=[proxy])\n',
  );
  client.isUp = false;
  assert.equal(await decide(token('other')), '500 Authorization error: no server');
});

test('who may read the pods of nodes needs no proxy for them', async () => {
  const client = new Reviewer(1);
  client.part = 'pods';
  const access = new PortAccess(client);
  const decide = async (path: string): Promise<string> =>
    (await access.decide(token('good'), attributesOf('GET', path, 'n'))).kind;
  assert.equal(await decide('/pods'), 'allowed');
  assert.equal(await decide('/containerLogs/default/p/c'), 'refused');
  client.part = 'proxy';
  client.pass(ALLOWED_MS);
  assert.equal(await decide('/pods'), 'allowed');
});

test('answers are kept as long as a kubelet keeps them', async () => {
  const client = new Reviewer(1);
  const access = new PortAccess(client);
  const asks = async (passMs: number): Promise<readonly string[]> => {
    client.pass(passMs);
    client.asked.length = 0;
    await access.decide(token('good'), LOGS);
    return client.asked;
  };
  const both = ['tokenreviews', 'subjectaccessreviews'];
  assert.deepEqual(await asks(0), both);
  assert.deepEqual(await asks(TOKEN_MS - 1), []);
  assert.deepEqual(await asks(1), ['tokenreviews']);
  client.mayDo = false;
  assert.deepEqual(await asks(ALLOWED_MS), both);
  assert.deepEqual(await asks(DENIED_MS), ['subjectaccessreviews']);
});

test('paths and methods are asked about as a kubelet asks', () => {
  const of = (method: string, path: string): string => {
    const { verb, subresources, node } = attributesOf(method, path, 'n');
    return `${verb} nodes/${subresources.join(' or ')} ${node}`;
  };
  assert.equal(of('GET', '/metrics/resource'), 'get nodes/metrics n');
  assert.equal(of('GET', '/stats/summary'), 'get nodes/stats n');
  assert.equal(of('GET', '/logs/x'), 'get nodes/log n');
  assert.equal(of('POST', '/exec/default/p/c'), 'create nodes/proxy n');
  assert.equal(of('GET', '/pods'), 'get nodes/pods or proxy n');
  assert.equal(of('GET', '/runningpods/'), 'get nodes/pods or proxy n');
  assert.equal(of('GET', '/configz'), 'get nodes/configz or proxy n');
  assert.equal(of('GET', '/flagz'), 'get nodes/configz n');
  assert.equal(of('GET', '/metricsx'), 'get nodes/proxy n');
});

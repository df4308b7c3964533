import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { TokenSigner, type Examined } from './token-signer.ts';
import { AccessModel } from '../testing/access.sim.ts';

const ACCOUNTS = '/api/v1/namespaces/n/serviceaccounts';
const PODS = '/api/v1/namespaces/n/pods';
const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** Counts the signatures that it is asked about. */
class CountingSigner extends TokenSigner {
  reads = 0;

  override examine(token: string): Examined {
    this.reads++;
    return super.examine(token);
  }
}

interface Setting {
  readonly model: AccessModel;
  readonly signer: CountingSigner;
  /** Asks with a token that is bound to a pod; the status of the answer. */
  readonly use: () => number;
}

function withBoundToken(): Setting {
  const signer = new CountingSigner(KEY.export({ type: 'pkcs8', format: 'pem' }).toString());
  const model = new AccessModel({ signer });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  for (const name of ['default', 'bot']) model.ask('POST', ACCOUNTS, { metadata: { name } });
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { serviceAccountName: 'bot', containers };
  const pod = model.ask('POST', PODS, { metadata: { name: 'p' }, spec });
  assert.equal(pod.status, 201, pod.text);
  const answer = model.ask('POST', `${ACCOUNTS}/bot/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } },
  });
  assert.equal(answer.status, 201, answer.text);
  const token = stringAt(JSON.parse(answer.text) as JsonObject, 'status', 'token');
  signer.reads = 0;
  return { model, signer, use: () => model.ask('GET', '/version', undefined, token).status };
}

test('a token is verified once, and again when what it rests on has changed', () => {
  const { model, signer, use } = withBoundToken();
  for (let n = 0; n < 5; n++) assert.equal(use(), 200);
  assert.equal(signer.reads, 1);
  const labels = { metadata: { labels: { a: 'b' } } };
  const type = 'application/merge-patch+json';
  assert.equal(model.ask('PATCH', `${PODS}/p`, labels, '', { 'content-type': type }).status, 200);
  for (let n = 0; n < 5; n++) assert.equal(use(), 200);
  assert.equal(signer.reads, 2);
  const told = model.ask('GET', '/metrics').text.split('\n');
  for (const line of [
    'serviceaccount_valid_tokens_total 10',
    'serviceaccount_stale_tokens_total 0',
    'authentication_token_cache_request_total{status="hit"} 8',
    'authentication_token_cache_request_total{status="miss"} 2',
    'authentication_token_cache_fetch_total{status="ok"} 2',
  ]) {
    assert.ok(told.includes(line), line);
  }
});

test('a token that was good a moment ago ends with its time, its pod and its account', () => {
  const timed = withBoundToken();
  assert.equal(timed.use(), 200);
  // clocks may differ by a minute
  timed.model.nowMs += 3660_000;
  assert.equal(timed.use(), 200);
  timed.model.nowMs += 1000;
  assert.equal(timed.use(), 401);

  const bound = withBoundToken();
  assert.equal(bound.use(), 200);
  bound.model.ask('DELETE', `${PODS}/p`, { gracePeriodSeconds: 0 });
  assert.equal(bound.use(), 401);

  const owned = withBoundToken();
  assert.equal(owned.use(), 200);
  owned.model.ask('DELETE', `${ACCOUNTS}/bot`);
  assert.equal(owned.use(), 401);
});

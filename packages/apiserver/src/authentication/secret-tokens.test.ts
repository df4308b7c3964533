import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { TokenSigner } from './token-signer.ts';
import { LEGACY_ISSUER } from './account-issuer.ts';
import { AccessModel } from '../testing/access.sim.ts';

const DAY_MS = 86_400_000;
const SECRETS = '/api/v1/namespaces/n/secrets';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const INVALID_SINCE = 'kubernetes.io/legacy-token-invalid-since';
const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

/** A server with a token of an account in a Secret, as kube-controller-manager makes them. */
function withToken(): { readonly model: AccessModel; readonly token: string } {
  const pem = KEY.export({ type: 'pkcs8', format: 'pem' }).toString();
  const model = new AccessModel({ signer: new TokenSigner(pem, {}) });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  const account = { metadata: { name: 'bot' } };
  const made = model.ask('POST', '/api/v1/namespaces/n/serviceaccounts', account);
  const uid = stringAt(JSON.parse(made.text) as JsonObject, 'metadata', 'uid');
  const about = 'kubernetes.io/serviceaccount';
  const token = new TokenSigner(pem, { issuers: [LEGACY_ISSUER] }).sign({
    sub: 'system:serviceaccount:n:bot',
    [`${about}/namespace`]: 'n',
    [`${about}/secret.name`]: 's',
    [`${about}/service-account.name`]: 'bot',
    [`${about}/service-account.uid`]: uid,
  });
  const answer = model.ask('POST', SECRETS, {
    metadata: { name: 's', annotations: { 'kubernetes.io/service-account.name': 'bot' } },
    type: 'kubernetes.io/service-account-token',
    data: { token: Buffer.from(token).toString('base64') },
  });
  assert.equal(answer.status, 201, answer.text);
  return { model, token };
}

function secretOf(model: AccessModel): JsonObject {
  return JSON.parse(model.ask('GET', `${SECRETS}/s`).text) as JsonObject;
}

test('the day of the last use is written at the Secret of a token, once a day', () => {
  const { model, token } = withToken();
  const use = (): number => model.ask('GET', '/version', undefined, token).status;
  const lastUsed = (): string => stringAt(secretOf(model), 'metadata', 'labels', LAST_USED);
  assert.equal(lastUsed(), '');
  assert.equal(use(), 200);
  assert.equal(lastUsed(), '2023-11-14');
  const revision = stringAt(secretOf(model), 'metadata', 'resourceVersion');
  assert.equal(use(), 200);
  assert.equal(stringAt(secretOf(model), 'metadata', 'resourceVersion'), revision);
  model.nowMs += DAY_MS;
  assert.equal(use(), 200);
  assert.equal(lastUsed(), '2023-11-15');
});

test('a token that is marked is refused until the mark goes', () => {
  const { model, token } = withToken();
  const mark = (day: string | null): void => {
    const secret = secretOf(model);
    const labels = day === null ? {} : { [INVALID_SINCE]: day };
    const metadata = { ...(secret['metadata'] as JsonObject), labels };
    assert.equal(model.ask('PUT', `${SECRETS}/s`, { ...secret, metadata }).status, 200);
  };
  mark('2023-11-01');
  assert.equal(model.ask('GET', '/version', undefined, token).status, 401);
  mark(null);
  assert.equal(model.ask('GET', '/version', undefined, token).status, 200);
});

test('who uses a token that a controller made is warned, and a marked one is noted, too', () => {
  const { model, token } = withToken();
  const warned = (): string | undefined => {
    const { headers } = model.ask('GET', '/version', undefined, token);
    return headers[headers.indexOf('warning') + 1];
  };
  assert.doesNotMatch(warned() ?? '', /^299/);
  const path = '/api/v1/namespaces/n/serviceaccounts/bot';
  const account = JSON.parse(model.ask('GET', path).text) as JsonObject;
  assert.equal(model.ask('PUT', path, { ...account, secrets: [{ name: 's' }] }).status, 200);
  assert.match(warned() ?? '', /^299 - "Use tokens from the TokenRequest API/);
  const secret = secretOf(model);
  const metadata = { ...(secret['metadata'] as JsonObject), labels: { [INVALID_SINCE]: 'x' } };
  model.ask('PUT', `${SECRETS}/s`, { ...secret, metadata });
  assert.equal(model.ask('GET', '/version', undefined, token).status, 401);
  assert.equal(stringAt(secretOf(model), 'metadata', 'labels', LAST_USED), '2023-11-14');
});

test('what a token rests on counts as gone a minute after its end', () => {
  const { model } = withToken();
  const base = '/api/v1/namespaces/n/serviceaccounts/bot';
  const finalizers = ['x/y'];
  model.ask('PATCH', `${SECRETS}/s`, { metadata: { finalizers } }, '', {
    'content-type': 'application/merge-patch+json',
  });
  const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name: 's' };
  const made = model.ask('POST', `${base}/token`, { spec: { boundObjectRef } });
  const token = stringAt(JSON.parse(made.text) as JsonObject, 'status', 'token');
  const use = (): number => model.ask('GET', '/version', undefined, token).status;
  assert.equal(use(), 200);
  model.ask('DELETE', `${SECRETS}/s`);
  assert.equal(use(), 200);
  model.nowMs += 60_000;
  assert.equal(use(), 200);
  model.nowMs += 1000;
  assert.equal(use(), 401);
});

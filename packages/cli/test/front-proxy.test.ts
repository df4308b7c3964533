import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { issueCertificate, type KeyAndCertificate } from '@megaplane/apiserver/certificates';
import { frontProxyOf, proxiedCaller } from '@megaplane/nodes/port/front-proxy';

function issue(
  commonName: string,
  use: 'authority' | 'client',
  authority: KeyAndCertificate | null,
): KeyAndCertificate {
  const times = { notBeforeMs: Date.now() - 1000, notAfterMs: Date.now() + 60_000 };
  return issueCertificate({ commonName, use, ...times, serial: randomBytes(8) }, authority);
}

const users = issue('users', 'authority', null);
const proxies = issue('proxies', 'authority', null);
const configMap = {
  data: {
    'requestheader-client-ca-file': proxies.certificate,
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
  },
};
const HEADERS = { 'x-remote-user': ['jane'], 'x-remote-group': ['devs', 'ops'] };

function callerBy(signer: KeyAndCertificate, name: string, headers: object = HEADERS): unknown {
  const proxy = frontProxyOf(configMap);
  assert(proxy !== null);
  const { raw } = new X509Certificate(issue(name, 'client', signer).certificate);
  const request = { headersDistinct: headers } as unknown as IncomingMessage;
  return proxiedCaller(proxy, raw, name, request);
}

test('a front proxy is believed by its authority and its name alone', () => {
  const jane = { user: 'jane', uid: '', groups: ['devs', 'ops'] };
  assert.deepEqual(callerBy(proxies, 'front-proxy-client'), jane);
  assert.equal(callerBy(proxies, 'somebody'), null);
  assert.equal(callerBy(users, 'front-proxy-client'), null);
  assert.equal(callerBy(proxies, 'front-proxy-client', {}), null);
  const other = issue('proxies', 'authority', null);
  assert.equal(callerBy(other, 'front-proxy-client'), null);
});

test('a server that publishes no proxies has none', () => {
  assert.equal(frontProxyOf({ data: { 'client-ca-file': users.certificate } }), null);
});

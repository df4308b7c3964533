import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller } from './access.ts';
import { cookieHeader, hostsOf, judge } from './access.ts';

const RULES = {
  token: 'sesame',
  hosts: hostsOf('127.0.0.1', 8080, []),
  port: 8080,
  isSecure: false,
};
const NOBODY: Caller = {
  host: '127.0.0.1:8080',
  origin: undefined,
  fetchSite: undefined,
  authorization: undefined,
  cookie: undefined,
  token: null,
};
const bearer = { authorization: 'Bearer sesame' };

function verdict(caller: Partial<Caller>, isData = true): string {
  const found = judge({ ...NOBODY, ...caller }, RULES, isData);
  return found.kind === 'refused' ? `${found.code}` : found.kind;
}

test('who has no token gets nothing, whatever else is right', () => {
  assert.equal(verdict({}), '401');
  assert.equal(verdict({}, false), '401');
  assert.equal(verdict({ authorization: 'Bearer' }), '401');
  assert.equal(verdict({ authorization: 'Bearer sesam' }), '401');
  assert.equal(verdict({ token: 'sesame ' }, false), '401');
  assert.equal(verdict({ token: '' }, false), '401');
});

test('the bearer opens data, the link and its cookie open files alone', () => {
  assert.equal(verdict(bearer), 'data');
  assert.equal(verdict({ token: 'sesame' }, false), 'files');
  assert.equal(verdict({ token: 'sesame' }), '401');
  const [cookie = ''] = cookieHeader(RULES).split(';');
  assert.equal(verdict({ cookie: `a=b; ${cookie}` }, false), 'files');
  assert.equal(verdict({ cookie }), '401');
  assert.equal(cookie.includes('sesame'), false);
  assert.match(cookieHeader(RULES), /HttpOnly; SameSite=Strict$/);
});

test('over TLS the cookie goes over nothing else, and no plain page is its own', () => {
  const secure = { ...RULES, isSecure: true };
  assert.match(cookieHeader(secure), /; Secure$/);
  const caller = { ...NOBODY, ...bearer };
  const from = (origin: string): string => judge({ ...caller, origin }, secure, true).kind;
  assert.equal(from('https://127.0.0.1:8080'), 'data');
  assert.equal(from('http://127.0.0.1:8080'), 'refused');
});

test('a cookie of another port opens nothing', () => {
  const [cookie = ''] = cookieHeader({ ...RULES, port: 9090 }).split(';');
  assert.equal(verdict({ cookie: cookie.replace('9090', '8080') }, false), '401');
});

test('foreign names and origins are refused although the token is right', () => {
  assert.equal(verdict({ ...bearer, host: 'evil.example' }), '421');
  assert.equal(verdict({ ...bearer, host: 'evil.example:8080' }), '421');
  assert.equal(verdict({ ...bearer, host: undefined }), '421');
  assert.equal(verdict({ token: 'sesame', host: 'evil.example:8080' }, false), '421');
  for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:9090', 'http://[::1']) {
    assert.equal(verdict({ ...bearer, origin }), '403', origin);
  }
  assert.equal(verdict({ ...bearer, fetchSite: 'cross-site' }), '403');
  assert.equal(verdict({ ...bearer, fetchSite: 'same-site' }), '403');
  assert.equal(verdict({ ...bearer, origin: 'http://127.0.0.1:8080' }), 'data');
  assert.equal(
    verdict({ ...bearer, origin: 'http://localhost:8080', host: 'LOCALHOST:8080' }),
    'data',
  );
});

test('other names are served where they are allowed', () => {
  const hosts = hostsOf('10.0.0.7', 80, ['page.example']);
  assert.deepEqual([...hosts], ['10.0.0.7', '10.0.0.7:80', 'page.example', 'page.example:80']);
  assert(hostsOf('::', 8080, []).has('[::1]:8080'));
});

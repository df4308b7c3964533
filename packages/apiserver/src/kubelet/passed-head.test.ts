import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Call } from '../request/call.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { identityOf } from '../request/identity.ts';
import { Query } from '../request/query.ts';
import { parseRequest } from '../request/request-info.ts';
import { goText, goWords } from '../webhook/dial-text.ts';
import { hostFor, passedFields, returnedFields } from './passed-head.ts';
import type { Target } from '../webhook/target.ts';

const POD = '/api/v1/namespaces/default/pods/p:80/proxy';

function callOf(path: string, fields: Record<string, string>): Call {
  const exchange = new ExchangeModel('GET', path, undefined, fields, new ConnectionModel(true));
  const info = parseRequest('GET', path);
  assert.ok(info !== null);
  return new Call(exchange, info, new Query(path), identityOf('joe', []), 0, 'audit');
}

function targetOf(peer: Target['peer'], path: string): Target {
  return {
    peer,
    isTls: false,
    host: '10.0.0.1',
    port: 80,
    path,
    needsUpgrade: false,
    resource: 'pods/proxy',
    name: 'p',
    isWrapped: true,
    wrapsFailures: false,
    isInsecure: true,
  };
}

function pairs(fields: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at + 1 < fields.length; at += 2) found[fields[at] ?? ''] = fields[at + 1] ?? '';
  return found;
}

test('a pod is told who asks, through what, and by which name it was called', () => {
  const call = callOf(`${POD}/a/b?c=d`, {
    authorization: 'Bearer x',
    connection: 'keep-alive, x-own',
    'x-own': '1',
    'x-else': '2',
    'x-forwarded-for': '9.9.9.9',
    'x-forwarded-uri': '/else',
    'x-remote-user': 'mallory',
    'impersonate-user': 'jane',
    'audit-id': 'other',
  });
  const target = targetOf('workload', '/a/b?c=d');
  const own = call.exchange.connection.remoteAddress;
  assert.deepEqual(pairs(passedFields(call, target)), {
    'x-else': '2',
    'audit-id': 'audit',
    'x-forwarded-for': `9.9.9.9, ${own}`,
    'x-forwarded-uri': `${POD}/a/b`,
  });
  assert.equal(hostFor(call, target), call.exchange.authority);
});

test('an extension is told its own address instead', () => {
  const path = '/apis/metrics.k8s.io/v1beta1/nodes?limit=1';
  const call = callOf(path, { 'x-forwarded-host': 'spoofed', 'x-forwarded-proto': 'http' });
  const target = targetOf('extension', path);
  const fields = pairs(passedFields(call, target));
  assert.equal(fields['x-forwarded-uri'], '/apis/metrics.k8s.io/v1beta1/nodes');
  assert.equal(fields['x-forwarded-host'], '10.0.0.1:80');
  assert.equal(fields['x-forwarded-proto'], 'https');
  assert.equal(hostFor(call, target), '10.0.0.1:80');
});

test('an answer comes without what was for one connection or for other origins', () => {
  const call = callOf(`${POD}/a`, {});
  const said = [
    ...['Content-Type', 'text/plain', 'Connection', 'keep-alive, X-Hop', 'X-Hop', '1'],
    ...['Proxy-Authenticate', 'Basic', 'Access-Control-Allow-Origin', '*', 'X-Stay', '2'],
  ];
  const { type, fields } = returnedFields(call, targetOf('workload', '/a'), said);
  assert.equal(type, 'text/plain');
  const cached = { 'cache-control': 'no-cache, private' };
  assert.deepEqual(pairs(fields), { 'audit-id': 'audit', 'x-stay': '2', ...cached });
  const own = returnedFields(call, targetOf('workload', '/a'), ['Cache-Control', 'max-age=5']);
  assert.equal(pairs(own.fields)['cache-control'], 'max-age=5');
});

test('links to the target’s own host lead through the proxy', () => {
  const call = callOf(`${POD}/a/b`, {});
  const leads = (location: string): string => {
    const said = ['location', location];
    return pairs(returnedFields(call, targetOf('workload', '/a/b'), said).fields)['location'] ?? '';
  };
  assert.equal(leads('/x/y?z#w'), `${POD}/x/y?z#w`);
  assert.equal(leads('http://10.0.0.1:80/x/'), `${POD}/x/`);
  assert.equal(leads(`${POD}/x`), `${POD}/x`);
  assert.equal(leads('x/y'), 'x/y');
  assert.equal(leads('https://example.com/x'), 'https://example.com/x');
});

test('failures are told as Go tells them', () => {
  const altnames = `Hostname/IP does not match certificate's altnames: `;
  const listed = 'DNS:a.svc, DNS:b.svc, IP Address:10.0.0.1';
  assert.equal(
    goWords(`${altnames}Host: c.svc. is not in the cert's altnames: ${listed}`),
    'tls: failed to verify certificate: x509: certificate is valid for a.svc, b.svc, not c.svc',
  );
  const known = new Error('unable to verify the first certificate; if the root CA is installed');
  const unknown =
    'tls: failed to verify certificate: x509: certificate signed by unknown authority';
  assert.equal(goText(known, '10.0.0.1:80'), unknown);
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  assert.equal(goText(refused, '10.0.0.1:80'), 'dial tcp 10.0.0.1:80: connect: connection refused');
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  assert.equal(goText(reset, '10.0.0.1:80'), 'EOF');
});

import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto, { type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { fromJson } from '@megaplane/machinery/cel/json-values';
import { compileCel } from '@megaplane/machinery/cel/program';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { authenticate, isUnknown, type TokenReader } from './authentication.ts';
import { issueCertificate } from '../pki/certificates.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import type { Identity } from '../request/identity.ts';
import { TokenSigner } from './token-signer.ts';
import { AccessModel, WebhookModel } from '../testing/access.sim.ts';
import { readAuthenticationConfiguration } from './authentication-configuration.ts';
import {
  openAuthentication,
  signerOptions,
  type AuthenticationFlags,
} from './authentication-flags.ts';
import { FrontProxy } from './front-proxy.ts';
import { jwtReader, type IssuerKeys } from './jwt-authenticator.ts';
import { CLAIMS_ENVIRONMENT, CLAIMS_TYPE } from './jwt-environment.ts';

const NOW_MS = 1_700_000_000_000;
const NOW_S = NOW_MS / 1000;
const ISSUER = 'https://issuer.example';
const RSA = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const EC = crypto.generateKeyPairSync('ec', { namedCurve: 'P-384' });
const OTHER = crypto.generateKeyPairSync('ec', { namedCurve: 'P-384' });
const dir = mkdtempSync(join(tmpdir(), 'megaplane-authentication-'));
after(() => rmSync(dir, { recursive: true, force: true }));

function fileOf(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

const encode = (value: JsonObject): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url');

function tokenOf(
  claims: JsonObject,
  key: KeyObject = RSA.privateKey,
  header: JsonObject = { alg: 'RS256', kid: 'rsa' },
): string {
  const whole = { iss: ISSUER, aud: 'me', exp: NOW_S + 60, sub: 'ann', ...claims };
  const body = `${encode(header)}.${encode(whole)}`;
  const hash = header['alg'] === 'ES384' ? 'sha384' : 'sha256';
  const signature = crypto.sign(hash, Buffer.from(body), { key, dsaEncoding: 'ieee-p1363' });
  return `${body}.${signature.toString('base64url')}`;
}

/** The keys of an issuer that answers at once. */
const KEYS: IssuerKeys = {
  find: (id) =>
    [
      { id: 'rsa', key: RSA.publicKey },
      { id: 'ec', key: EC.publicKey },
    ]
      .filter((one) => id === undefined || one.id === id)
      .map(({ key }) => key),
  refresh: () => null,
};

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n';

function readerOf(text: string): { readonly read: TokenReader; readonly told: string[] } {
  const { issuers } = readAuthenticationConfiguration(parse(HEAD + text) as JsonValue, []);
  const told: string[] = [];
  const [issuer] = issuers;
  assert.ok(issuer !== undefined);
  const log = (message: string): void => void told.push(message);
  return { read: jwtReader(issuer, KEYS, () => NOW_MS, log), told };
}

function known(read: TokenReader, token: string): Identity | null {
  const found = read(token);
  assert.ok(!isUnknown(found));
  return found;
}

const PLAIN = `jwt:
- issuer: {url: '${ISSUER}', audiences: [me]}
  claimMappings:
    username: {claim: sub, prefix: 'oidc:'}
    groups: {claim: groups, prefix: 'g:'}
    uid: {claim: id}
`;

test('a token of an issuer is a user by its claims, with prefixes', () => {
  const { read, told } = readerOf(PLAIN);
  const found = known(read, tokenOf({ groups: ['a', 'b', ''], id: '9' }));
  assert.equal(found?.user, 'oidc:ann');
  assert.deepEqual(found.groups, ['g:a', 'g:b', 'g:', 'system:authenticated']);
  assert.equal(found.uid, '9');
  const one = known(
    read,
    tokenOf({ groups: 'solo', id: '' }, EC.privateKey, { alg: 'ES384', kid: 'ec' }),
  );
  assert.deepEqual(one?.groups, ['g:solo', 'system:authenticated']);
  assert.equal(known(read, tokenOf({ id: '9', nbf: NOW_S + 60 }))?.uid, '9', 'clocks differ');
  assert.deepEqual(told, []);
});

test('tokens that prove nothing are refused, and the log says why', () => {
  const { read, told } = readerOf(PLAIN);
  const refused: [string, RegExp][] = [
    [tokenOf({ exp: NOW_S }), /its time is over/],
    [tokenOf({ nbf: NOW_S + 61 }), /its time has not come/],
    [tokenOf({ nbf: 'soon' }), /claim nbf is "soon"/],
    [tokenOf({ aud: ['you'] }), /for another audience/],
    [tokenOf({ id: 7 }), /claim id is no text/],
    [tokenOf({ id: 'x', sub: '' }), /names no user/],
    [tokenOf({ id: 'x', groups: [1] }), /holds something else than texts/],
    [tokenOf({}, OTHER.privateKey, { alg: 'ES384', kid: 'ec' }), /no key of the issuer/],
    // a key must not be taken for one of another kind
    [tokenOf({}, RSA.privateKey, { alg: 'ES384', kid: 'rsa' }), /no key of the issuer/],
    [tokenOf({}, RSA.privateKey, { alg: 'none', kid: 'rsa' }), /signed by "none"/],
    [tokenOf({}, RSA.privateKey, { alg: 'HS256', kid: 'rsa' }), /signed by "HS256"/],
  ];
  for (const [token, why] of refused) {
    assert.equal(known(read, token), null);
    assert.match(told.pop() ?? '', why);
  }
  assert.equal(known(read, tokenOf({ iss: 'https://other' })), null);
  for (const text of ['', 'a.b.c', '..', `${tokenOf({})}.x`]) assert.equal(known(read, text), null);
  assert.deepEqual(told, [], 'what is not of this issuer is no business of it');
});

test('expressions make users, and rules refuse them', () => {
  const { read, told } = readerOf(`jwt:
- issuer: {url: '${ISSUER}', audiences: [me, you], audienceMatchPolicy: MatchAny}
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.exp - claims.iat <= 3600', message: tokens live an hour}
  claimMappings:
    username: {expression: "claims.email_verified ? claims.email + ':x' : ''"}
    groups: {expression: "claims.roles.split(',')"}
    uid: {expression: claims.sub}
    extra: [{key: example.com/tenant, valueExpression: claims.tenant}]
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: reserved}
`);
  const good = {
    hd: 'example.com',
    iat: NOW_S,
    email: 'a@b',
    email_verified: true,
    roles: 'r,s',
    tenant: ['t'],
    jti: 'one',
  };
  const found = known(read, tokenOf(good));
  assert.equal(found?.user, 'a@b:x');
  assert.deepEqual(found.groups, ['r', 's', 'system:authenticated']);
  assert.deepEqual(found.extra, {
    'authentication.kubernetes.io/credential-id': ['JTI=one'],
    'example.com/tenant': ['t'],
  });
  const bad: [JsonObject, RegExp][] = [
    [{ hd: 'evil' }, /required claim hd is "evil"/],
    [{ iat: NOW_S - 4000 }, /tokens live an hour/],
    [{ email_verified: false }, /names no user/],
    [{ email: 'system:masters' }, /reserved/],
    [{ roles: 7 }, /no such overload/],
  ];
  for (const [claims, why] of bad) {
    assert.equal(known(read, tokenOf({ ...good, ...claims })), null);
    assert.match(told.pop() ?? '', why);
  }
});

test('numbers of claims are doubles for expressions, wherever they are', () => {
  const evaluate = (source: string): unknown => {
    const compiled = compileCel(CLAIMS_ENVIRONMENT, source);
    assert.ok(compiled.ok);
    const claims = fromJson({ exp: 3, list: [{ n: 3 }] }, CLAIMS_TYPE);
    return compiled.program.evaluate({ claims }).value;
  };
  assert.equal(evaluate('type(claims.exp) == double && claims.exp == 3'), true);
  assert.equal(evaluate('type(dyn(claims.list)[0].n) == double'), true);
});

test('findings in a configuration have their paths and upstream’s words', () => {
  const findings = (text: string): string => {
    try {
      readAuthenticationConfiguration(parse(HEAD + text) as JsonValue, ['https://own']);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return '';
  };
  assert.equal(findings(PLAIN), '');
  const text = findings(`anonymous: {enabled: false, conditions: [{path: /livez}]}
jwt:
- issuer: {url: 'http://u:p@x?q#f', audiences: [a, a, '']}
  claimMappings: {username: {claim: sub}, uid: {claim: a, expression: b}}
- issuer: {url: 'https://own', discoveryURL: 'https://own/', audiences: []}
  claimValidationRules:
  - {}
  - {claim: c, message: m}
  - {claim: c}
  - {expression: '1'}
  - {expression: 'claims.a.all(x, true)'}
  claimMappings:
    username: {expression: claims.email, prefix: x}
    extra: [{key: Foo, valueExpression: "''"}, {key: x.k8s.io/y, valueExpression: ''}]
  userValidationRules: [{expression: user.nope}]
`);
  for (const part of [
    'jwt[0].issuer.url: Invalid value: "http://u:p@x?q#f": URL scheme must be https',
    'URL must not contain a username or password',
    'URL must not contain a query',
    'URL must not contain a fragment',
    'jwt[0].issuer.audiences[1]: Duplicate value: "a"',
    'jwt[0].issuer.audiences[2]: Required value',
    'audienceMatchPolicy must be MatchAny for multiple audiences',
    'jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set.',
    'jwt[0].claimMappings.uid: Invalid value: "": claim and expression can\'t both be set',
    'URL must not overlap with disallowed issuers: [https://own]',
    'discoveryURL must be different from URL',
    'jwt[1].issuer.audiences: Required value: at least one jwt[1].issuer.audiences is required',
    'jwt[1].claimValidationRules[0]: Required value: claim or expression is required',
    'claimValidationRules[1].message: Invalid value: "m": may not be specified when claim is set',
    'claimValidationRules[2].claim: Duplicate value: "c"',
    'claimValidationRules[3].expression: Invalid value: "1": must evaluate to bool',
    "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
    'username.prefix: Invalid value: "x": may not be specified when expression is set',
    'claims.email_verified must be used',
    'extra[0].key: Invalid value: "Foo": must be lowercase',
    'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use',
    'extra[1].valueExpression: Required value',
    'jwt[1].userValidationRules[0].expression: Invalid value: "user.nope": compilation failed',
    'anonymous.conditions: Invalid value',
  ]) {
    assert.ok(text.includes(part), `${part}\nin ${text}`);
  }
});

test('keys are read from the issuer when a token needs them, not for every token', async (t) => {
  const about = {
    commonName: 'issuer',
    notBeforeMs: Date.now() - 60_000,
    notAfterMs: Date.now() + 60_000,
    serial: Buffer.from('12345678'),
  };
  const authority = issueCertificate({ ...about, use: 'authority' }, null);
  const serving = issueCertificate({ ...about, use: 'server', names: ['127.0.0.1'] }, authority);
  const asked: string[] = [];
  const server = createServer(
    { key: serving.key, cert: serving.certificate },
    (request, answer) => {
      asked.push(request.url ?? '');
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const keys = [{ ...RSA.publicKey.export({ format: 'jwk' }), kid: 'rsa', use: 'sig' }];
      const body = request.url === '/keys' ? { keys } : { issuer: url, jwks_uri: `${url}/keys` };
      answer.end(JSON.stringify(body));
    },
  );
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const flags: AuthenticationFlags = {
    oidcIssuerUrl: url,
    oidcClientId: 'me',
    oidcCaFile: fileOf('ca.pem', authority.certificate),
    oidcGroupsClaim: 'groups',
    oidcRequiredClaim: 'team=blue',
  };
  const edge = { caller: new WebhookModel(), nowMs: () => NOW_MS, log: () => {}, later: () => {} };
  const { readers } = openAuthentication(flags, edge);
  const model = new AccessModel({ tokenReaders: readers });
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const token = tokenOf({ iss: url, groups: ['dev'], team: 'blue' });
  const review = model.ask('POST', path, body, token);
  assert.equal(review.status, 0, 'it waits for the keys');
  for (let turn = 0; turn < 3000 && review.status === 0; turn++) await sleep(10);
  assert.equal(review.status, 201, review.text);
  const { status } = JSON.parse(review.text) as { status: { userInfo: JsonObject } };
  assert.equal(status.userInfo['username'], `${url}#ann`);
  assert.deepEqual(status.userInfo['groups'], ['dev', 'system:authenticated']);
  assert.deepEqual(asked, ['/.well-known/openid-configuration', '/keys']);
  const forged = tokenOf({ iss: url, team: 'blue' }, RSA.privateKey, { alg: 'RS256', kid: 'z' });
  assert.equal(model.ask('POST', path, body, forged).status, 401, 'the keys were read just now');
  assert.equal(model.ask('POST', path, body, tokenOf({ iss: url, team: 'red' })).status, 401);
  assert.equal(asked.length, 2);
});

test('issuers of a file that changes count at once; who is nobody may not change', async (t) => {
  const file = fileOf('followed', HEAD + PLAIN);
  const told: string[] = [];
  const log = (message: string): void => void told.push(message);
  const edge = { caller: new WebhookModel(), nowMs: () => NOW_MS, log, later: () => {} };
  const opened = openAuthentication({ authenticationConfig: file }, edge, [], [], 5);
  t.after(opened.stop);
  let all: readonly TokenReader[] = [];
  new AccessModel({ tokenReaders: (world) => (all = opened.readers(world)) });
  const [read] = all;
  assert.ok(read !== undefined);
  const token = tokenOf({ iss: 'https://other.example' });
  // an issuer that is known has its keys asked for
  const isKnown = (): boolean => isUnknown(read(token));
  assert.equal(isKnown(), false);
  const untilTold = async (count: number): Promise<void> => {
    for (let tries = 0; tries < 1000 && told.length < count; tries++) await sleep(5);
  };
  writeFileSync(file, `${HEAD}${PLAIN}anonymous: {enabled: false}\n`);
  await untilTold(1);
  assert.match(told[0] ?? '', /anonymous: Forbidden: changed from initial configuration file; the/);
  assert.equal(isKnown(), false);
  writeFileSync(file, HEAD + PLAIN.replace(ISSUER, 'https://other.example'));
  await untilTold(2);
  assert.match(told[1] ?? '', /--authentication-config: the file has changed/);
  assert.equal(isKnown(), true);
  const lines: string[] = [];
  opened.reloads.print(lines);
  assert.match(lines.join('\n'), /authentication_config_controller_automatic_reloads_total\{/);
});

test('bootstrap tokens are those of secrets that say so, as long as they hold', () => {
  const edge = { caller: new WebhookModel(), nowMs: () => NOW_MS, log: () => {}, later: () => {} };
  const { readers } = openAuthentication({ enableBootstrapTokenAuth: true }, edge);
  const model = new AccessModel({ tokenReaders: readers });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'kube-system' } });
  const put = (id: string, data: Record<string, string>): void => {
    const stringData = {
      'token-id': id,
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
      ...data,
    };
    const secret = { metadata: { name: `bootstrap-token-${id}` }, stringData };
    const type = 'bootstrap.kubernetes.io/token';
    const path = '/api/v1/namespaces/kube-system/secrets';
    assert.equal(model.ask('POST', path, { ...secret, type }).status, 201);
  };
  put('abcdef', { 'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token' });
  put('expire', { expiration: '2020-01-01T00:00:00Z' });
  put('unused', { 'usage-bootstrap-authentication': 'false' });
  put('groups', { 'auth-extra-groups': 'system:masters' });
  put('badend', { expiration: 'tomorrow' });
  const who = (token: string): JsonObject | number => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const answer = model.ask('POST', path, body, token);
    if (answer.status !== 201) return answer.status;
    return (JSON.parse(answer.text) as { status: { userInfo: JsonObject } }).status.userInfo;
  };
  assert.deepEqual(who('abcdef.0123456789abcdef'), {
    username: 'system:bootstrap:abcdef',
    groups: [
      'system:bootstrappers',
      'system:bootstrappers:kubeadm:default-node-token',
      'system:authenticated',
    ],
  });
  for (const id of ['expire', 'unused', 'groups', 'badend', 'absent']) {
    assert.equal(who(`${id}.0123456789abcdef`), 401, id);
  }
  assert.equal(who('abcdef.0123456789abcdeX'), 401);
});

test('a webhook knows tokens, and is asked once for each', () => {
  const hook = new WebhookModel();
  const kubeconfig = fileOf(
    'hook',
    `clusters: [{name: c, cluster: {server: 'https://hook/tokens'}}]
contexts: [{name: x, context: {cluster: c, user: u}}]`,
  );
  const flags = {
    authenticationTokenWebhookConfigFile: kubeconfig,
    authenticationTokenWebhookVersion: 'v1',
  };
  const edge = { caller: hook, nowMs: (): number => model.nowMs, log: () => {}, later: () => {} };
  const { readers } = openAuthentication(flags, edge, [], ['here']);
  const model: AccessModel = new AccessModel({ tokenReaders: readers });
  const first = model.ask('GET', '/version', undefined, 'secret');
  assert.equal(first.status, 0);
  const asked = hook.answer({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    status: { authenticated: true, user: { username: 'joe', groups: ['g'] } },
  });
  assert.deepEqual(asked['spec'], { token: 'secret', audiences: ['here'] });
  assert.equal(first.status, 200);
  assert.equal(model.ask('GET', '/version', undefined, 'secret').status, 200);
  assert.equal(hook.calls.length, 0);
  const wrong = model.ask('GET', '/version', undefined, 'wrong');
  hook.answer({ kind: 'TokenReview', status: { authenticated: false } });
  assert.equal(wrong.status, 401);
  const broken = model.ask('GET', '/version', undefined, 'other');
  hook.fail('connection refused');
  assert.equal(broken.status, 401);
  const [authenticated, user] = [true, { username: 'joe' }];
  const answers: readonly [JsonObject, number][] = [
    [{ authenticated, user, audiences: ['there', 'here'] }, 200],
    [{ authenticated, user, audiences: ['there'] }, 401],
    [{ authenticated: 'true', user }, 401],
    [{ authenticated, user: { username: 'joe', groups: 'system:masters' } }, 401],
    [{ authenticated, user: { username: 'joe', extra: { a: 'b' } } }, 401],
  ];
  for (const [index, [status, code]] of answers.entries()) {
    const answer = model.ask('GET', '/version', undefined, `token-${index}`);
    hook.answer({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status });
    assert.equal(answer.status, code, JSON.stringify(status));
  }
  const foreign = model.ask('GET', '/version', undefined, 'foreign');
  const status = { authenticated, user };
  hook.answer({ apiVersion: 'authentication.k8s.io/v1beta1', kind: 'TokenReview', status });
  assert.equal(foreign.status, 401, 'of another version than was asked in');
});

test('a request for a token says whose its fields are, and names the account by its uid', () => {
  const key = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const model = new AccessModel({ signer: new TokenSigner(key) });
  const accounts = '/api/v1/namespaces/n/serviceaccounts';
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  const made = model.ask('POST', accounts, { metadata: { name: 'bot' } });
  const body = { metadata: { labels: { a: 'b' } }, spec: { audiences: ['x'] } };
  // who it is for comes first, whatever else is wrong
  const short = { spec: { expirationSeconds: 5 } };
  assert.equal(model.ask('POST', `${accounts}/nope/token`, short).status, 404);
  assert.equal(model.ask('POST', `${accounts}/bot/token`, short).status, 422);
  const answer = model.ask('POST', `${accounts}/bot/token?fieldManager=m`, body);
  const parsed = (text: string): JsonObject =>
    (JSON.parse(text) as { metadata: JsonObject }).metadata;
  const { managedFields, uid, labels } = parsed(answer.text);
  assert.equal(uid, parsed(made.text)['uid']);
  assert.deepEqual(labels, { a: 'b' });
  assert.deepEqual(managedFields, [
    {
      ...{ manager: 'm', operation: 'Update', apiVersion: 'authentication.k8s.io/v1' },
      ...{ time: new Date(NOW_S * 1000).toISOString().replace('.000', '') },
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
        'f:spec': { 'f:audiences': {}, 'f:expirationSeconds': {} },
      },
      subresource: 'token',
    },
  ]);
});

test('tokens live no longer than they may, and as long as they say where none is extended', () => {
  const key = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const model = new AccessModel({ signer: new TokenSigner(key, { lifeSecondsMax: 7200 }) });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  const accounts = '/api/v1/namespaces/n/serviceaccounts';
  model.ask('POST', accounts, { metadata: { name: 'bot' } });
  const asked = (expirationSeconds: number): ReturnType<typeof model.ask> =>
    model.ask('POST', `${accounts}/bot/token`, { spec: { expirationSeconds } });
  const long = asked(90_000);
  assert.match(long.text, /"expirationSeconds":7200,/);
  const warning = '299 - "requested expiration of 90000 seconds shortened to 7200 seconds"';
  assert(long.headers.includes(warning), long.headers.join());
  assert.match(asked(7200).text, /"expirationSeconds":7200,/);
  assert(!asked(7200).headers.includes('warning'));
});

test('tokens of service accounts are for their audiences, and old keys still count', () => {
  const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
  const old = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const flags = {
    serviceAccountKeyFile: fileOf('old.pem', pem(old)),
    serviceAccountIssuer: 'https://new,https://old',
  };
  const { key, options } = signerOptions(flags, pem(RSA.privateKey));
  const model = new AccessModel({ signer: new TokenSigner(key, options) });
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  const made = model.ask('POST', '/api/v1/namespaces/n/serviceaccounts', {
    metadata: { name: 'bot' },
  });
  const { metadata } = JSON.parse(made.text) as { metadata: { uid: string } };
  const request = (audiences: string[]): string => {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences },
    };
    const path = '/api/v1/namespaces/n/serviceaccounts/bot/token';
    const answer = model.ask('POST', path, body);
    return (JSON.parse(answer.text) as { status: { token: string } }).status.token;
  };
  const review = (token: string, audiences: string[]): JsonObject => {
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences },
    };
    const answer = model.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', body);
    return (JSON.parse(answer.text) as { status: JsonObject }).status;
  };
  assert.equal(model.ask('GET', '/version', undefined, request([])).status, 200);
  const vault = request(['vault']);
  assert.equal(model.ask('GET', '/version', undefined, vault).status, 401, 'not for this server');
  assert.deepEqual(review(vault, ['vault', 'x'])['audiences'], ['vault']);
  assert.equal(review(vault, [])['authenticated'], undefined);
  const before = new TokenSigner(pem(old), { issuers: ['https://old'] }).sign({
    aud: ['https://old'],
    exp: NOW_S + 60,
    sub: 'system:serviceaccount:n:bot',
    'kubernetes.io': { namespace: 'n', serviceaccount: { name: 'bot', uid: metadata.uid } },
  });
  assert.equal(model.ask('GET', '/version', undefined, before).status, 200);
  const foreign = new TokenSigner(pem(crypto.createPrivateKey(pem(EC256))), {}).sign({
    exp: NOW_S + 60,
  });
  assert.equal(model.ask('GET', '/version', undefined, foreign).status, 401);
});

test('a proxy names users in header fields, and its certificate is nobody by itself', () => {
  const about = {
    notBeforeMs: NOW_MS,
    notAfterMs: NOW_MS + 60_000,
    serial: Buffer.from('12345678'),
  };
  const root = { ...about, commonName: 'proxies', use: 'authority' } as const;
  const authority = issueCertificate(root, null);
  const users = issueCertificate({ ...root, commonName: 'users' }, null);
  const proxy = new FrontProxy({
    authorities: [authority.certificate],
    userAuthorities: [users.certificate],
    names: ['front'],
    userFields: ['x-remote-user'],
    uidFields: ['x-remote-uid'],
    groupFields: ['x-remote-group'],
    extraPrefixes: ['x-remote-extra-'],
  });
  const ask = (
    commonName: string,
    headers: Record<string, string>,
    issuer = authority,
  ): Identity | null => {
    const leaf = issueCertificate({ ...about, commonName, use: 'client' }, issuer);
    const connection = new ConnectionModel(false, {
      raw: new crypto.X509Certificate(leaf.certificate).raw,
      commonName,
      organizations: ['system:masters'],
      uids: [],
      trusted: true,
      failure: '',
      validFromMs: 0,
      validToMs: 1,
    });
    const exchange = new ExchangeModel('GET', '/', undefined, headers, connection);
    const found = authenticate(
      exchange,
      () => null,
      proxy,
      () => 0,
    );
    assert.ok(!isUnknown(found));
    return found;
  };
  const fields = {
    'x-remote-user': 'ann',
    'x-remote-group': 'dev',
    'x-remote-uid': '5',
    'x-remote-extra-a%2fb': 'c',
  };
  const found = ask('front', fields);
  assert.deepEqual([found?.user, found?.uid], ['ann', '5']);
  assert.deepEqual(found?.groups, ['dev', 'system:authenticated']);
  assert.deepEqual(found.extra, { 'a/b': ['c'] });
  assert.equal(ask('front', {}), null, 'it names nobody, and is no user itself');
  assert.equal(ask('other', fields), null, 'its name is not among those allowed');
  assert.equal(ask('front', fields, users)?.user, 'front', 'a user of that name is a user');
  const between = issueCertificate({ ...root, commonName: 'between' }, authority);
  assert.equal(ask('front', fields, between), null, 'proxies must not make administrators');
});

const EC256 = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

test('flags that make no sense together are refused with what to do', () => {
  const edge = { caller: new WebhookModel(), nowMs: () => 0, log: () => {}, later: () => {} };
  const open = (flags: AuthenticationFlags) => () => openAuthentication(flags, edge);
  assert.throws(open({ oidcIssuerUrl: 'https://x' }), /must be specified together/);
  assert.throws(
    open({ oidcIssuerUrl: 'http://x', oidcClientId: 'c' }),
    /--oidc-issuer-url: http:\/\/x: URL scheme must be https/,
  );
  assert.throws(
    open({ authenticationConfig: 'x', oidcClientId: 'c' }),
    /--authentication-config and --oidc-\* flags are mutually exclusive/,
  );
  assert.throws(open({ authenticationConfig: '/no' }), /--authentication-config \/no: ENOENT/);
  assert.throws(
    open({ oidcIssuerUrl: 'https://x', oidcClientId: 'c', oidcSigningAlgs: 'HS256' }),
    /HS256 is not one of RS256/,
  );
  assert.throws(open({ requestheaderClientCaFile: 'x' }), /needs --requestheader-username-headers/);
});

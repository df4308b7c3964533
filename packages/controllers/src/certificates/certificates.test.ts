import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ClientRequest, ClientResponse } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import {
  newAuthority,
  newRequest,
  type Wanted,
} from '@megaplane/machinery/certificate-request.sim';
import type { ControllersOptions } from '../framework/options.ts';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import { parseRequest } from '@megaplane/machinery/certificate-request';
import { objection } from './signers.ts';
import { isOver, lifeMs, readAuthority, signRequest } from './signing.ts';
import { SIGNERS } from './signers.ts';

const NOW_MS: number = Date.parse('2026-01-01T00:00:00Z');
const YEAR_MS: number = 365 * 86_400_000;
const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const KUBELET: Wanted = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
const CLIENT_USAGES: readonly string[] = ['digital signature', 'client auth'];
const PEMS = newAuthority(NOW_MS - YEAR_MS, NOW_MS + 10 * YEAR_MS);
const AUTHORITY = readAuthority(PEMS.certificate, PEMS.key);

function parsed(wanted: Wanted): Exclude<ReturnType<typeof parseRequest>, string> {
  const request = parseRequest(newRequest(wanted));
  assert(typeof request !== 'string');
  return request;
}

let random = 0;
const terms = (usages: readonly string[], life: number) =>
  ({ usages, lifeMs: life, nowMs: NOW_MS, random: () => random++ % 256 }) as const;

test('what is signed is of the key, names and usages that were asked for', () => {
  const wanted = { ...KUBELET, dnsNames: ['n1.local'], addresses: [[10, 0, 0, 1]] };
  const request = parsed(wanted);
  const usages = ['digital signature', 'key encipherment', 'server auth'];
  const pem = signRequest(request, AUTHORITY, terms(usages, YEAR_MS));
  const certificate = new X509Certificate(pem);
  assert(certificate.verify(AUTHORITY.certificate.publicKey));
  assert(certificate.checkIssued(AUTHORITY.certificate));
  assert.equal(certificate.subject, 'O=system:nodes\nCN=system:node:n1');
  assert.equal(certificate.subjectAltName, 'DNS:n1.local, IP Address:10.0.0.1');
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  assert(!certificate.ca);
  assert(certificate.publicKey.equals(request.key));
  assert.equal(Date.parse(certificate.validFrom), NOW_MS - 300_000);
  assert.equal(Date.parse(certificate.validTo), NOW_MS + YEAR_MS - 300_000);
});

test('a certificate ends with its authority, and a short one lives its whole time', () => {
  const request = parsed(KUBELET);
  const endOf = (life: number): number =>
    Date.parse(new X509Certificate(signRequest(request, AUTHORITY, terms([], life))).validTo);
  assert.equal(endOf(20 * YEAR_MS), NOW_MS + 10 * YEAR_MS);
  assert.equal(endOf(3_600_000), NOW_MS + 3_600_000);
  assert.deepEqual(
    [0, 60, 7_200, 1e9].map((asked) => lifeMs(asked, YEAR_MS)),
    [YEAR_MS, 600_000, 7_200_000, YEAR_MS],
  );
});

function pemOf(base64: string): string {
  return `-----BEGIN CERTIFICATE REQUEST-----\n${base64}\n-----END CERTIFICATE REQUEST-----`;
}

test('cut, changed and foreign requests are refused in words', () => {
  const pem = newRequest(KUBELET);
  const bytes = Buffer.from(pem.split('\n').slice(1, -2).join(''), 'base64');
  const shown = (der: Uint8Array): string => pemOf(Buffer.from(der).toString('base64'));
  assert.equal(parseRequest('hello'), 'PEM block type must be CERTIFICATE REQUEST');
  assert.equal(typeof parseRequest(shown(bytes)), 'object');
  for (let at = 0; at < bytes.length; at++) {
    const wrong = Uint8Array.from(bytes);
    wrong[at] = (wrong[at] ?? 0) ^ 0x01;
    assert.equal(typeof parseRequest(shown(wrong)), 'string', `byte ${at} was changed`);
    assert.equal(typeof parseRequest(shown(bytes.subarray(0, at))), 'string');
  }
});

test('each signer says what it does not sign', () => {
  const serving = 'kubernetes.io/kubelet-serving';
  const client = 'kubernetes.io/kube-apiserver-client-kubelet';
  const api = 'kubernetes.io/kube-apiserver-client';
  const named = { ...KUBELET, dnsNames: ['n1'] };
  const serve = ['digital signature', 'server auth'];
  const cases: [string, Wanted, readonly string[], string][] = [
    [client, KUBELET, CLIENT_USAGES, ''],
    [client, KUBELET, [...CLIENT_USAGES, 'key encipherment'], ''],
    [
      client,
      KUBELET,
      serve,
      'usages did not match [client auth digital signature key encipherment]',
    ],
    [client, named, CLIENT_USAGES, 'DNS subjectAltNames are not allowed'],
    [
      client,
      { ...KUBELET, commonName: 'n1' },
      CLIENT_USAGES,
      'subject common name does not begin with system:node:',
    ],
    [serving, KUBELET, serve, 'DNS or IP subjectAltName is required'],
    [serving, named, serve, ''],
    [serving, { ...named, organizations: [] }, serve, 'subject organization is not system:nodes'],
    [api, KUBELET, serve, 'invalid usage for client certificate: server auth'],
    [
      api,
      KUBELET,
      ['digital signature'],
      'missing required usage for client certificate: client auth',
    ],
    ['kubernetes.io/legacy-unknown', {}, serve, ''],
  ];
  for (const [signer, wanted, usages, why] of cases) {
    assert.equal(objection(signer, parsed(wanted), usages), why);
  }
});

/** An API whose authorizer lets some ask for certificates. */
class ReviewingApi extends WorkloadApi {
  allowed: readonly string[] = ['system:node:n1 selfnodeclient'];

  override async request(request: ClientRequest): Promise<ClientResponse> {
    if (!request.path.endsWith('/subjectaccessreviews')) return super.request(request);
    const body = isObject(request.body as JsonObject) ? (request.body as JsonObject) : {};
    const user = stringAt(body, 'spec', 'user');
    const asked = `${user} ${stringAt(body, 'spec', 'resourceAttributes', 'subresource')}`;
    const object = {
      kind: 'SubjectAccessReview',
      status: { allowed: this.allowed.includes(asked) },
    };
    return { ok: true, code: 201, object, bytes: Buffer.from(JSON.stringify(object)) };
  }
}

async function started(more: Partial<ControllersOptions> = {}): Promise<ReviewingApi> {
  const api = new ReviewingApi();
  const names = ['signing', 'approving', 'cleaner'];
  const all = names.map((one) => `certificatesigningrequest-${one}-controller`);
  startManager(api, all, more, {
    authorities: new Map(Object.values(SIGNERS).map((one) => [one, AUTHORITY])),
  });
  await api.advance(100);
  return api;
}

async function ask(api: WorkloadApi, name: string, more: JsonObject = {}): Promise<void> {
  const request = Buffer.from(newRequest(KUBELET)).toString('base64');
  const spec = {
    request,
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    username: 'system:node:n1',
    usages: [...CLIENT_USAGES],
    ...more,
  };
  const kind = 'CertificateSigningRequest';
  const body = { apiVersion: 'certificates.k8s.io/v1', kind, metadata: { name }, spec };
  await api.request({ method: 'POST', path: PATH, body });
  await api.advance(1_000);
}

function statusOf(api: WorkloadApi, name: string): JsonObject {
  return objectAt(api.objects.get(`${PATH} /${name}`), 'status') ?? {};
}

test('a kubelet is given its certificate; who may not ask for one waits', async () => {
  const api = await started();
  await ask(api, 'own');
  const status = statusOf(api, 'own');
  const [condition] = listAt(status, 'conditions');
  assert.equal(stringAt(condition, 'reason'), 'AutoApproved');
  const pem = Buffer.from(stringAt(status, 'certificate'), 'base64').toString();
  assert.equal(new X509Certificate(pem).subject, 'O=system:nodes\nCN=system:node:n1');
  await ask(api, 'other', { username: 'stranger' });
  assert.deepEqual(statusOf(api, 'other'), {});
  api.allowed = ['stranger nodeclient'];
  await api.advance(5_000);
  assert.notEqual(stringAt(statusOf(api, 'other'), 'certificate'), '', 'asked again and again');
  await ask(api, 'node', { username: 'stranger' });
  assert.notEqual(stringAt(statusOf(api, 'node'), 'certificate'), '');
});

test('a serving certificate is approved where its names are all the node’s', async () => {
  const serving = (wanted: Wanted, more: JsonObject = {}): JsonObject => ({
    request: Buffer.from(newRequest(wanted)).toString('base64'),
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'server auth'],
    groups: ['system:nodes', 'system:authenticated'],
    ...more,
  });
  const dnsNames = ['n1', 'N1.example.com'];
  const addresses = [
    [10, 0, 0, 1],
    [0xfd, ...Array.from({ length: 14 }, () => 0), 1],
  ];
  const own = { ...KUBELET, dnsNames, addresses };
  const of = (api: WorkloadApi, name: string): string =>
    stringAt(listAt(statusOf(api, name), 'conditions')[0], 'reason');
  const api = await started({ approveKubeletServing: true });
  await ask(api, 'early', serving(own));
  assert.equal(of(api, 'early'), '', 'there is no node yet');
  const told = [
    { type: 'Hostname', address: 'n1' },
    { type: 'InternalDNS', address: 'n1.example.com' },
    { type: 'InternalIP', address: '10.0.0.1' },
    { type: 'InternalIP', address: 'fd00:0::1' },
  ];
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1' },
    status: { addresses: told },
  };
  await api.request({ method: 'POST', path: '/api/v1/nodes', body: node });
  await api.advance(5_000);
  assert.equal(of(api, 'early'), 'AutoApproved');
  assert.notEqual(stringAt(statusOf(api, 'early'), 'certificate'), '');
  const refused: readonly (readonly [string, JsonObject])[] = [
    ['name', serving({ ...own, dnsNames: ['n1', 'kubernetes.default.svc'] })],
    ['address', serving({ ...own, addresses: [[10, 0, 0, 2]] })],
    ['short', serving({ ...own, addresses: [[10, 0]] })],
    ['asker', serving(own, { username: 'system:node:n2' })],
    ['groups', serving(own, { groups: ['system:authenticated'] })],
    ['usages', serving(own, { usages: ['digital signature', 'client auth'] })],
    ['nameless', serving(KUBELET)],
  ];
  for (const [name, spec] of refused) {
    await ask(api, name, spec);
    await api.advance(5_000);
    assert.equal(of(api, name), '', name);
  }
  const usual = await started();
  await usual.request({ method: 'POST', path: '/api/v1/nodes', body: node });
  await ask(usual, 'own', serving(own));
  await usual.advance(5_000);
  assert.equal(of(usual, 'own'), '', 'nobody asked for it');
});

test('an authority whose time is over signs nothing', () => {
  const endMs = NOW_MS + 10 * YEAR_MS;
  assert(!isOver(AUTHORITY, endMs - 1));
  assert(isOver(AUTHORITY, endMs));
});

test('purposes stand in the order of upstream, one time each', () => {
  const usages = ['s/mime', 'client auth', 'email protection', 'server auth'];
  const pem = signRequest(parsed(KUBELET), AUTHORITY, terms(usages, YEAR_MS));
  const found = new X509Certificate(pem).keyUsage.map((oid) => oid.split('.').at(-1));
  assert.deepEqual(found, ['1', '2', '4']);
});

test('what a signer does not sign fails once, and is written no more', async () => {
  const api = await started();
  await ask(api, 'r', { signerName: 'kubernetes.io/kube-apiserver-client', usages: ['any'] });
  const approval = { type: 'Approved', status: 'True', reason: 'User' };
  await api.request({
    method: 'PATCH',
    path: `${PATH}/r/approval`,
    contentType: 'application/merge-patch+json',
    body: { status: { conditions: [approval] } },
  });
  await api.advance(1_000);
  const [, failed] = listAt(statusOf(api, 'r'), 'conditions');
  assert.equal(stringAt(failed, 'reason'), 'SignerValidationFailure');
  assert.equal(stringAt(failed, 'message'), 'invalid usage for client certificate: any');
  const before = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, before);
});

test('requests go when they were not decided in a day', async () => {
  const api = await started();
  await ask(api, 'forgotten', { username: 'stranger' });
  await api.advance(23 * 3_600_000);
  assert(api.objects.has(`${PATH} /forgotten`));
  await api.advance(3 * 3_600_000);
  assert(!api.objects.has(`${PATH} /forgotten`));
});

test('what was approved an hour ago and nobody signed stays for a day', async () => {
  const api = await started();
  await ask(api, 'theirs', { signerName: 'example.com/signer' });
  const approval = { type: 'Approved', status: 'True', reason: 'User' };
  const lastUpdateTime = new Date(api.timers.wallMs()).toISOString();
  await api.request({
    method: 'PATCH',
    path: `${PATH}/theirs/approval`,
    contentType: 'application/merge-patch+json',
    body: { status: { conditions: [{ ...approval, lastUpdateTime }] } },
  });
  await api.advance(23 * 3_600_000);
  assert(api.objects.has(`${PATH} /theirs`));
  await api.advance(3 * 3_600_000);
  assert(!api.objects.has(`${PATH} /theirs`));
});

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

test(
  'requests of openssl with keys of all kinds are signed, and openssl believes them',
  {
    skip: hasOpenssl ? false : 'needs openssl: apt-get install openssl',
  },
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'megaplane-csr-'));
    const at = (name: string): string => join(directory, name);
    const openssl = (...args: string[]): string => {
      const { status, stdout, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
      return stdout;
    };
    try {
      openssl(
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-keyout',
        at('ca.key'),
        '-out',
        at('ca.crt'),
        '-subj',
        '/O=x/CN=ca',
        '-days',
        '3650',
        '-addext',
        'subjectKeyIdentifier=01020304',
        '-addext',
        'authorityKeyIdentifier=keyid:always',
      );
      const authority = readAuthority(
        readFileSync(at('ca.crt'), 'utf8'),
        readFileSync(at('ca.key'), 'utf8'),
      );
      for (const key of [
        ['rsa:2048'],
        ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
        ['ed25519'],
      ]) {
        openssl(
          'req',
          '-new',
          '-newkey',
          ...key,
          '-nodes',
          '-keyout',
          at('key'),
          '-out',
          at('csr'),
          '-subj',
          '/O=system:nodes/CN=system:node:n1',
          '-addext',
          'subjectAltName=otherName:1.2.3;UTF8:root,URI:urn:u,DNS:a,IP:10.0.0.1,email:a@b',
        );
        const request = parseRequest(readFileSync(at('csr'), 'utf8'));
        assert(typeof request !== 'string');
        assert.deepEqual(
          [request.commonName, ...request.organizations],
          ['system:node:n1', 'system:nodes'],
        );
        const pem = signRequest(request, authority, {
          ...terms(['digital signature', 'server auth'], YEAR_MS),
          nowMs: Date.now(),
        });
        const certificate = new X509Certificate(pem);
        assert(certificate.checkIssued(authority.certificate), 'as its key identifier says');
        const names = 'DNS:a, email:a@b, IP Address:10.0.0.1, URI:urn:u';
        assert.equal(certificate.subjectAltName, names);
        const shown = spawnSync('openssl', ['verify', '-CAfile', at('ca.crt')], {
          input: pem,
          encoding: 'utf8',
        });
        assert.equal(shown.status, 0, shown.stderr);
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);

/** What a machine that joins says of clocks, tokens and strangers between it and its cluster. */
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { issueCertificate, type KeyAndCertificate } from '@megaplane/apiserver/certificates';
import { discover } from '@megaplane/network/join/discovery';
import { authorityHash, type Token } from '@megaplane/network/join/token';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TOKEN: Token = { id: 'abcdef', secret: '0123456789abcdef' };
const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

function issue(
  use: 'authority' | 'server',
  fromMs: number,
  issuer: KeyAndCertificate | null,
): KeyAndCertificate {
  const names = use === 'server' ? ['127.0.0.1'] : [];
  const times = { notBeforeMs: fromMs, notAfterMs: fromMs + DAY_MS };
  return issueCertificate(
    { commonName: use, use, names, serial: randomBytes(16), ...times },
    issuer,
  );
}

interface Faulty {
  /** By how much its clock, and the certificate that it has made itself, are ahead. */
  readonly aheadMs?: number;
  readonly config?: string;
  /** The second answer, where it is another one. */
  readonly second?: string;
  readonly signed?: boolean;
  readonly code?: number;
}

/** A server with cluster-info; it resolves with what a machine that joins says. */
async function joining(faulty: Faulty): Promise<string> {
  const { aheadMs = 0, signed = true, code = 200 } = faulty;
  const authority = issue('authority', Date.now() - HOUR_MS, null);
  const serving = issue('server', Date.now() + aheadMs - 60_000, authority);
  const server = createServer({ key: serving.key, cert: serving.certificate });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const data = Buffer.from(authority.certificate).toString('base64');
  const cluster = { server: `https://${address}`, 'certificate-authority-data': data };
  const own = JSON.stringify({ clusters: [{ name: '', cluster }] });
  let asked = 0;
  server.on('request', (_request, answer) => {
    const text = (asked++ > 0 ? faulty.second : faulty.config) ?? faulty.config ?? own;
    const signature = signed ? { [`jws-kubeconfig-${TOKEN.id}`]: signatureOf(text) } : {};
    answer.writeHead(code, { date: new Date(Date.now() + aheadMs).toUTCString() });
    answer.end(JSON.stringify({ data: { kubeconfig: text, ...signature } }));
  });
  const hashes = [authorityHash(authority.certificate)];
  const request = { address, token: TOKEN, hashes, nowMs: () => Date.now() };
  return discover(request).then(
    ({ localAddress }) => `joined from ${localAddress}`,
    (error: Error) => error.message,
  );
}

function signatureOf(content: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: TOKEN.id })).toString('base64url');
  const body = Buffer.from(content).toString('base64url');
  const own = createHmac('sha256', TOKEN.secret).update(`${header}.${body}`).digest('base64url');
  return `${header}..${own}`;
}

test('who is signed, and has the hash, is believed', async () => {
  assert.equal(await joining({}), 'joined from 127.0.0.1');
});

test('a clock that is behind is told of where a certificate is not valid yet', async () => {
  assert.match(
    await joining({ aheadMs: HOUR_MS }),
    /not yet valid; the clock of this machine is (?:3599|3600|3601) s behind the cluster's: set it/,
  );
});

test('a clock that is ahead is told of where a certificate has expired', async () => {
  const text = await joining({ aheadMs: -3 * DAY_MS });
  assert.match(text, /expired; the clock of this machine is \d+ s ahead of the cluster's: set it/);
});

test('a token that has run out has signed nothing any more', async () => {
  assert.match(await joining({ signed: false }), /abcdef is not known at .*: it has run out or/);
  assert.match(
    await joining({ signed: false, aheadMs: -HOUR_MS }),
    /it has run out .*; the clock of this machine is \d+ s ahead/,
  );
});

test('what is no answer of a cluster is none', async () => {
  assert.match(await joining({ code: 403 }), /says nothing of its cluster \(403\): run "megaplane/);
  assert.match(await joining({ config: '' }), /has no cluster-info: run "megaplane join-command"/);
  assert.match(await joining({ config: '{' }), /is no kubeconfig/);
  assert.match(await joining({ config: 'null' }), /names no server and authority/);
  assert.match(await joining({ config: '{"clusters": 7}' }), /names no server and authority/);
  assert.match(await joining({ config: '{"clusters": [null]}' }), /names no server and authority/);
  assert.match(await joining({ second: 'another' }), /two different answers: somebody is between/);
});

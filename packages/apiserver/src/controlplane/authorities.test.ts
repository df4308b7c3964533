import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { freePort } from '@megaplane/base/free-port.sim';
import { issueCertificate } from '../pki/certificates.ts';
import { openPki, writeKubeconfigs } from '../pki/pki-files.ts';
import { runApiserver, type ApiserverService } from '../server/run.ts';

const DAY_MS = 86_400_000;
const dir = mkdtempSync(join(tmpdir(), 'megaplane-authorities-'));
let service: ApiserverService | null = null;
let storeUrl = '';
/** As data directories had it before: a name that bore the rights, in the group of nodes. */
let oldNodes = { certificate: '', key: '' };
let oldAuthority = '';

function ofCluster(commonName: string, organizations: readonly string[]) {
  const issuer = {
    certificate: readFileSync(join(dir, 'pki/ca.crt'), 'utf8'),
    key: readFileSync(join(dir, 'pki/ca.key'), 'utf8'),
  };
  const nowMs = Date.now();
  const times = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + DAY_MS };
  const serial = Buffer.from('0102030405060708', 'hex');
  return issueCertificate({ commonName, organizations, use: 'client', serial, ...times }, issuer);
}

before(async () => {
  const pki = openPki(dir, [], Date.now());
  oldAuthority = pki.authority.certificate;
  writeKubeconfigs(dir, 'https://127.0.0.1:1', pki.authority, Date.now());
  oldNodes = ofCluster('megaplane-nodes', ['system:nodes']);
  storeUrl = `https://127.0.0.1:${await freePort()}`;
  service = await runApiserver({
    dataDir: dir,
    bindAddress: '127.0.0.1',
    securePort: 0,
    listenClientUrls: storeUrl,
    log: () => {},
  });
});

after(async () => {
  await service?.stop();
  rmSync(dir, { recursive: true });
});

/** The status, or the word for a connection that was refused. */
function ask(url: string, caFile: string, credential: { certificate: string; key: string }) {
  const tls = { ca: readFileSync(join(dir, caFile)), cert: credential.certificate };
  return new Promise<number | 'refused'>((resolve) => {
    const asked = request(url, { ...tls, key: credential.key, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on('error', () => resolve('refused'));
    asked.end();
  });
}

function credentialIn(kubeconfig: string): { certificate: string; key: string } {
  const text = readFileSync(join(dir, kubeconfig), 'utf8');
  const read = (name: string): string => {
    const found = new RegExp(`${name}: "?([A-Za-z0-9+/=]+)`).exec(text)?.[1] ?? '';
    return Buffer.from(found, 'base64').toString();
  };
  return { certificate: read('client-certificate-data'), key: read('client-key-data') };
}

test('the store as etcd is open to certificates of its own authority alone', async () => {
  const own = {
    certificate: readFileSync(join(dir, 'pki/store-client.crt'), 'utf8'),
    key: readFileSync(join(dir, 'pki/store-client.key'), 'utf8'),
  };
  const url = `${storeUrl}/version`;
  assert.equal(await ask(url, 'pki/store-ca.crt', own), 200);
  for (const other of [
    credentialIn('kubeconfig'),
    credentialIn('nodes.kubeconfig'),
    ofCluster('system:node:node-1', ['system:nodes']),
  ]) {
    assert.equal(await ask(url, 'pki/store-ca.crt', other), 'refused');
  }
  // and who may open the store is nobody to the API server
  assert.equal(await ask(`${service?.url}/api/v1/secrets`, 'pki/ca.crt', own), 401);
});

test('what simulated nodes may do goes with a group, not with a name', async () => {
  const secrets = `${service?.url}/api/v1/secrets`;
  const nodes = credentialIn('nodes.kubeconfig');
  assert.equal(await ask(secrets, 'pki/ca.crt', nodes), 200);
  for (const groups of [[], ['system:nodes'], ['megaplane:nodes']]) {
    const other = ofCluster('megaplane-nodes', groups);
    assert.equal(await ask(secrets, 'pki/ca.crt', other), 403);
  }
});

test('an old data directory gets new kubeconfigs, under its own authority', async () => {
  const { certificate } = credentialIn('nodes.kubeconfig');
  const made = new X509Certificate(certificate);
  assert.match(made.subject, /O=system:megaplane:nodes/);
  assert.equal(readFileSync(join(dir, 'pki/ca.crt'), 'utf8'), oldAuthority);
  assert.ok(made.verify(new X509Certificate(oldAuthority).publicKey));
  // a program that still has the old one is somebody, and is told that it may not
  assert.equal(await ask(`${service?.url}/version`, 'pki/ca.crt', oldNodes), 200);
  assert.equal(await ask(`${service?.url}/api/v1/nodes`, 'pki/ca.crt', oldNodes), 403);
});

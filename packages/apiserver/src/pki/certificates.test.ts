import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { addressBytes, issueCertificate } from './certificates.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 1);

function authority() {
  return issueCertificate(
    {
      commonName: 'megaplane-ca',
      notBeforeMs: START_MS,
      notAfterMs: START_MS + 3650 * DAY_MS,
      serial: Uint8Array.of(0xff, 2, 3, 4, 5, 6, 7, 8),
      use: 'authority',
    },
    null,
  );
}

test('an authority signs itself and a serving certificate with names and addresses', () => {
  const ca = authority();
  const root = new X509Certificate(ca.certificate);
  assert.equal(root.ca, true);
  assert.equal(root.verify(root.publicKey), true);
  const serving = issueCertificate(
    {
      commonName: 'kube-apiserver',
      notBeforeMs: START_MS,
      notAfterMs: Date.UTC(2051, 0, 1),
      serial: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8),
      use: 'server',
      names: ['localhost', '127.0.0.1', '::1'],
    },
    ca,
  );
  const leaf = new X509Certificate(serving.certificate);
  assert.equal(leaf.checkIssued(root), true);
  assert.equal(leaf.verify(root.publicKey), true);
  assert.equal(leaf.checkHost('localhost'), 'localhost');
  assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1');
  assert.match(leaf.subjectAltName ?? '', /0:0:0:0:0:0:0:1/);
  assert.equal(leaf.validTo, 'Jan  1 00:00:00 2051 GMT');
});

test('a client certificate carries the user as CN and each group as O', () => {
  const ca = authority();
  const client = issueCertificate(
    {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters', 'ops'],
      notBeforeMs: START_MS,
      notAfterMs: START_MS + DAY_MS,
      serial: Uint8Array.of(9, 9, 9, 9, 9, 9, 9, 9),
      use: 'client',
    },
    ca,
  );
  const leaf = new X509Certificate(client.certificate);
  assert.equal(leaf.subject, 'O=system:masters\nO=ops\nCN=kubernetes-admin');
  assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  assert.equal(leaf.ca, false);
});

test('addresses of both families become network-order bytes', () => {
  assert.deepEqual([...addressBytes('10.96.0.1')], [10, 96, 0, 1]);
  assert.deepEqual(
    [...addressBytes('fd00::1:2')],
    [253, ...Array(12).fill(0), 1, 0, 2].slice(0, 16),
  );
  assert.equal(addressBytes('2001:db8:1:2:3:4:5:6')[15], 6);
});

test('keys are written as clients read them that know the older form alone', () => {
  const { key } = authority();
  assert.match(key, /^-----BEGIN EC PRIVATE KEY-----\n/);
  const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(key);
  assert.deepEqual([asymmetricKeyType, asymmetricKeyDetails?.namedCurve], ['ec', 'prime256v1']);
});

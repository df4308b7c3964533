import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { tokenSigner } from './legacy-token.ts';

const SUBJECT = { namespace: 'ns', account: 'robot', accountUid: 'u1', secret: 't' };

test('tokens in Secrets have the claims of upstream and no end', () => {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const token = tokenSigner(pem)(SUBJECT);
  const [head = '', claims = '', signature = ''] = token.split('.');
  const read = (text: string): unknown => JSON.parse(Buffer.from(text, 'base64url').toString());
  assert.equal((read(head) as { alg: string }).alg, 'ES256');
  assert.deepEqual(read(claims), {
    iss: 'kubernetes/serviceaccount',
    'kubernetes.io/serviceaccount/namespace': 'ns',
    'kubernetes.io/serviceaccount/secret.name': 't',
    'kubernetes.io/serviceaccount/service-account.name': 'robot',
    'kubernetes.io/serviceaccount/service-account.uid': 'u1',
    sub: 'system:serviceaccount:ns:robot',
  });
  const key = { key: createPublicKey(pair.publicKey.export({ type: 'spki', format: 'pem' })) };
  const bytes = Buffer.from(`${head}.${claims}`);
  const given = Buffer.from(signature, 'base64url');
  assert(verify('sha256', bytes, { ...key, dsaEncoding: 'ieee-p1363' }, given));
});

test('a key of another kind is refused', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  assert.throws(() => tokenSigner(pem), /neither RSA nor on a curve/);
});

import assert from 'node:assert/strict';
import { createPublicKey, createVerify, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { TokenSigner } from './token-signer.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const EXPIRES = NOW_MS / 1000 + 60;

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const RSA = pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
const EC = pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);

test('tokens are signed as their key can, and read by the same key alone', () => {
  for (const [pem, algorithm] of [
    [RSA, 'RS256'],
    [EC, 'ES256'],
  ] as const) {
    const signer = new TokenSigner(pem, { issuers: ['https://issuer'] });
    const token = signer.sign({ sub: 'x', exp: EXPIRES });
    assert.deepEqual(signer.read(token, NOW_MS), { sub: 'x', exp: EXPIRES, iss: 'https://issuer' });
    assert.equal(signer.read(token, NOW_MS + 60_000), null);
    assert.equal(signer.read(`${token.slice(0, -4)}AAAA`, NOW_MS), null);
    assert.equal(new TokenSigner(pem === RSA ? EC : RSA).read(token, NOW_MS), null);
    const { id_token_signing_alg_values_supported: algorithms } = signer.discovery('a:6443');
    assert.deepEqual(algorithms, [algorithm]);
  }
});

test('who has the published key verifies a token without asking', () => {
  const signer = new TokenSigner(RSA);
  const [head = '', body = '', signature = ''] = signer.sign({ exp: EXPIRES }).split('.');
  const [key] = (signer.keySet() as { keys: JsonObject[] }).keys;
  assert(key?.['kty'] === 'RSA');
  const verifier = createVerify('RSA-SHA256').update(`${head}.${body}`);
  const published = createPublicKey({ key, format: 'jwk' });
  assert.ok(verifier.verify(published, Buffer.from(signature, 'base64url')));
});

import assert from 'node:assert/strict';
import {
  createPrivateKey,
  createPublicKey,
  createVerify,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
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
    const claims = { sub: 'x', exp: EXPIRES, iss: 'https://issuer' };
    assert.deepEqual(signer.examine(token), { kind: 'ours', claims });
    assert.equal(signer.examine(`${token.slice(0, -4)}AAAA`).kind, 'refused');
    const others = { issuers: ['https://issuer'] };
    assert.equal(new TokenSigner(pem === RSA ? EC : RSA, others).examine(token).kind, 'refused');
    assert.equal(new TokenSigner(pem).examine(token).kind, 'foreign');
    const elsewhere = new TokenSigner(pem, { keysUrl: 'https://keys.example/jwks' });
    assert.equal(elsewhere.discovery('a:6443')['jwks_uri'], 'https://keys.example/jwks');
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

test('claims that upstream cannot read are refused in its words', () => {
  const key = createPrivateKey(RSA);
  const signer = new TokenSigner(RSA, { issuers: ['https://issuer'] });
  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  const why = (claims: string, header = '{"alg":"RS256"}'): string => {
    const signed = `${encode(header)}.${encode(`{"iss":"https://issuer"${claims}}`)}`;
    const signature = sign('sha256', Buffer.from(signed), key).toString('base64url');
    const examined = signer.examine(`${signed}.${signature}`);
    return examined.kind === 'refused' ? examined.why : examined.kind;
  };
  assert.equal(why(''), 'ours');
  assert.equal(why(',"exp":1,"exp":2'), "json: duplicate key 'exp' in object");
  const text = 'json: cannot unmarshal number into Go value of type string';
  assert.equal(why(',"jti":5'), text);
  assert.equal(why(',"kubernetes.io":{"namespace":5}'), text);
  const kubernetes = 'Go value of type serviceaccount.kubernetes';
  assert.equal(why(',"kubernetes.io":[]'), `json: cannot unmarshal array into ${kubernetes}`);
  const audience = 'expected string or array value to unmarshal to Audience';
  assert.equal(why(',"aud":null,"jti":5'), `go-jose/go-jose/jwt: ${audience}`);
  assert.equal(why('', '{"alg":"RS256","kid":"x"}'), 'invalid signature, no keys found');
  const forged = 'go-jose/go-jose: error in cryptographic primitive';
  assert.equal(why('', '{"alg":"none"}'), forged);
  assert.equal(why('', '{"alg":"RS256","kid":5}'), 'foreign');
});

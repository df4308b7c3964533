import assert from 'node:assert/strict';
import { type KeyObject, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Permission, READ, READ_WRITE, Rights, WRITE } from './permissions.ts';
import { JwtTokens, SimpleTokens } from './tokens.ts';

const KEYS = ['a', 'aa', 'ab', 'b', 'ba', 'c', 'd'];
/** Every key that can make a difference between the bounds above. */
const PROBES = KEYS.flatMap((key) => [key, `${key}\0`, `${key}m`]);

function covers({ key, rangeEnd }: Permission, probe: string): boolean {
  if (rangeEnd === '') return probe === key;
  return probe >= key && (rangeEnd === '\0' || probe < rangeEnd);
}

test('a range is allowed exactly when every key in it is', () => {
  const range = fc.record({
    type: fc.constantFrom(READ, WRITE, READ_WRITE),
    key: fc.constantFrom(...KEYS),
    rangeEnd: fc.constantFrom('', '\0', ...KEYS),
  });
  const valid = range.filter(
    ({ key, rangeEnd }) => rangeEnd === '' || rangeEnd === '\0' || key < rangeEnd,
  );
  fc.assert(
    fc.property(fc.array(valid, { maxLength: 5 }), valid, (permissions, asked) => {
      const kind = asked.type === WRITE ? WRITE : READ;
      const held = permissions.filter(({ type }) => type === kind || type === READ_WRITE);
      const isOpen = asked.rangeEnd === '\0';
      // An open range needs an open permission: no probe stands at the end of all keys.
      const expected =
        PROBES.every(
          (probe) => !covers(asked, probe) || held.some((permission) => covers(permission, probe)),
        ) &&
        (!isOpen || held.some(({ rangeEnd }) => rangeEnd === '\0'));
      assert.equal(new Rights(permissions).allows(kind, asked.key, asked.rangeEnd), expected);
    }),
    { numRuns: 2000 },
  );
});

test('a simple token lives from its last use on, and ends with its user', () => {
  let drawn = 0;
  const tokens = new SimpleTokens(1000, (max) => drawn++ % max);
  const at = (monotonicMs: number) => ({ monotonicMs, wallMs: 0 });
  const token = tokens.assign('alice', 5, at(0));
  assert.match(token, /^[a-zA-Z]{16}\.1$/);
  assert.deepEqual(tokens.find(token, 7, at(900)), { name: 'alice', revision: 7 });
  assert.deepEqual(tokens.find(token, 7, at(1800)), { name: 'alice', revision: 7 });
  assert.equal(tokens.find(token, 7, at(2900)), null);
  const second = tokens.assign('alice', 5, at(0));
  tokens.forget('alice');
  assert.equal(tokens.find(second, 7, at(1)), null);
});

test('a web token carries user and revision, and nothing else passes for it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ed = generateKeyPairSync('ed25519');
  const secret = Buffer.from('a shared secret');
  const pair = (keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }) => ({
    signingKey: keys.privateKey,
    verifyingKey: keys.publicKey,
  });
  const kinds = [
    ...['RS256', 'PS384'].map((method) => ({ method, ...pair(rsa) })),
    { method: 'ES256', ...pair(ec) },
    { method: 'EdDSA', ...pair(ed) },
    { method: 'HS512', signingKey: secret, verifyingKey: secret },
  ];
  const now = { monotonicMs: 0, wallMs: 1_000_000 };
  const late = { ...now, wallMs: 1_061_000 };
  const issued = kinds.map((kind) => {
    const tokens = new JwtTokens({ ...kind, ttlMs: 60_000 });
    return { tokens, token: tokens.assign('bob', 9, now) ?? '' };
  });
  for (const { tokens, token } of issued) {
    assert.deepEqual(tokens.find(token, 10, now), { name: 'bob', revision: 9 });
    assert.equal(tokens.find(token, 10, late), null);
    assert.equal(tokens.find(`${token}x.y`, 10, now), null);
    const [head = '', , proof = ''] = token.split('.');
    const forged = Buffer.from('{"username":"root","revision":9}').toString('base64url');
    assert.equal(tokens.find(`${head}.${forged}.${proof}`, 10, now), null);
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    assert.equal(tokens.find(`${none}.${forged}.`, 10, now), null);
    for (const other of issued) {
      if (other.tokens !== tokens) assert.equal(other.tokens.find(token, 10, now), null);
    }
  }
  const verifier = new JwtTokens({ ...pair(rsa), method: 'RS256', signingKey: null, ttlMs: 1 });
  assert.equal(verifier.assign('bob', 1, now), null);
});

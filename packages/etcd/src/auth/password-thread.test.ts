import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PasswordThread } from './password-thread.ts';

const passwords = new PasswordThread();

/** Published vectors of other implementations. */
const VECTORS: readonly (readonly [string, string])[] = [
  ['a', '$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe'],
  ['abc', '$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i'],
  ['abcdefghijklmnopqrstuvwxyz', '$2a$06$.rCVZVOThsIa97pEDOxvGuRRgzG64bvtJ0938xuqzv18d3ZpQhstC'],
];

test('published passwords and hashes belong together', async () => {
  for (const [password, hash] of VECTORS) {
    assert.equal(await passwords.check(Buffer.from(password), hash), true, password);
    assert.equal(await passwords.check(Buffer.from(`${password}x`), hash), false, password);
  }
});

test('a hash is made again from its password, cost and salt', async () => {
  const salt = Buffer.from('0123456789abcdef');
  const hash = await passwords.hash(Buffer.from('secret'), 4, salt);
  assert.match(hash, /^\$2a\$04\$[./A-Za-z0-9]{53}$/);
  assert.equal(await passwords.hash(Buffer.from('secret'), 4, salt), hash);
  assert.equal(await passwords.check(Buffer.from('secret'), hash), true);
  assert.equal(await passwords.check(Buffer.from('Secret'), hash), false);
});

test('what is no hash belongs to no password', async () => {
  for (const text of ['', '$2a$', '$2a$99$' + 'a'.repeat(53), '$1$06$' + 'a'.repeat(53)]) {
    assert.equal(await passwords.check(Buffer.from('a'), text), false);
  }
});

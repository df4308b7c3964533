import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeContinue, encodeContinue } from './continue-token.ts';

test('a token of revision 10245 after default/pod-0500 is the one that upstream writes', () => {
  assert.equal(
    encodeContinue('default/pod-0500', 10245),
    'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAyNDUsInN0YXJ0IjoiZGVmYXVsdC9wb2QtMDUwMFx1MDAwMCJ9',
  );
});

test('every token reads back as it was written', () => {
  const name = fc.stringMatching(/^[a-z0-9.-]{1,40}$/).filter((text) => !/^\.\.?$/.test(text));
  fc.assert(
    fc.property(name, name, fc.integer({ min: 1, max: 2 ** 50 }), (namespace, key, revision) => {
      const token = decodeContinue(encodeContinue(`${namespace}/${key}`, revision));
      assert.deepEqual(token, { revision, start: `${namespace}/${key}\0` });
    }),
    { numRuns: 200 },
  );
});

test('a token that no server wrote is refused with upstream’s text', () => {
  const encode = (value: unknown): string =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  const faults: readonly (readonly [string, string])[] = [
    ['%%%', 'illegal base64 data at input byte 0'],
    ['ab*c', 'illegal base64 data at input byte 2'],
    ['abcde', 'illegal base64 data at input byte 4'],
    ['bm90IGpzb24', "invalid character 'o' in literal null (expecting 'u')"],
    [encode(''), ''],
    [encode('{'), 'unexpected end of JSON input'],
    [encode('[]'), 'json: cannot unmarshal array into Go value of type storage.continueToken'],
    [encode('null'), 'server does not recognize this encoded version '],
    [encode({ v: 'x', rv: 1, start: 'a' }), 'server does not recognize this encoded version x'],
    [
      encode({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' }),
      'incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
    ],
    [
      encode({ v: 'meta.k8s.io/v1', rv: 3, start: '' }),
      'encoded start key empty (version meta.k8s.io/v1)',
    ],
    [encode({ v: 'meta.k8s.io/v1', rv: 3, start: '../secrets' }), '../secrets'],
    [encode({ v: 'meta.k8s.io/v1', rv: 3, start: 'a//b' }), 'a//b'],
    [encode({ v: 'meta.k8s.io/v1', rv: 3, start: 'a/' }), 'a/'],
  ];
  for (const [text, fault] of faults) {
    if (text === '') continue;
    assert.equal(decodeContinue(text), `continue key is not valid: ${fault}`);
  }
});

test('any revision below zero means the latest, and a leading slash is of no account', () => {
  const token = Buffer.from('{"v":"meta.k8s.io/v1","rv":-7,"start":"/a\\u0000"}');
  assert.deepEqual(decodeContinue(token.toString('base64url')), { revision: -7, start: 'a\0' });
});

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
  const name = fc.stringMatching(/^[a-z0-9.-]{1,40}$/).filter((text) => text !== '..');
  fc.assert(
    fc.property(name, name, fc.integer({ min: 1, max: 2 ** 50 }), (namespace, key, revision) => {
      const token = decodeContinue(encodeContinue(`${namespace}/${key}`, revision));
      assert.deepEqual(token, { revision, start: `${namespace}/${key}\0` });
    }),
    { numRuns: 200 },
  );
});

test('a token that no server wrote is refused with a text', () => {
  const encode = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url');
  const faults = [
    '%%%',
    'bm90IGpzb24',
    encode(null),
    encode({ v: 'x', rv: 1, start: 'a' }),
    encode({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' }),
    encode({ v: 'meta.k8s.io/v1', rv: 3, start: '' }),
    encode({ v: 'meta.k8s.io/v1', rv: 3, start: '../secrets' }),
  ];
  for (const fault of faults) {
    const answer = decodeContinue(fault);
    assert.match(typeof answer === 'string' ? answer : fault, /^continue key is not valid/);
  }
});

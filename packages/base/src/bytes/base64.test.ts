import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeBase64 } from './base64.ts';

/** Texts, and what Go's `base64.StdEncoding` makes of them: bytes, or the place of the fault. */
const GOLDEN: readonly (readonly [string, string | number])[] = [
  ['=\r', 0],
  ['Z/', 0],
  ['\r=9b\n\n', 1],
  ['bb--\r', 2],
  ['bA=b', 2],
  ['\r-=', 1],
  ['b//=-b', 4],
  ['\n\r\r==b', 3],
  ['/=', 1],
  ['A\n', 1],
  ['===A/+', 0],
  ['+\n-', 2],
  ['/-==', 1],
  ['=Z=A9+', 0],
  ['A=-', 1],
  ['9A/\r\r=', 'f40f'],
  ['-/9=', 0],
  ['b-A=', 1],
  ['--/Z\rb', 0],
  ['b', 0],
  ['A=A-A', 1],
  ['9\r/', 1],
];

test('base64 is read, and its faults are placed, as by Go', () => {
  for (const [text, expected] of GOLDEN) {
    const found = decodeBase64(text);
    const shown = typeof found === 'number' ? found : found.toString('hex');
    assert.equal(shown, expected, JSON.stringify(text));
  }
});

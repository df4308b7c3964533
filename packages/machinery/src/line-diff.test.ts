import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineDiff } from './line-diff.ts';

const LINES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];

function changed(...edits: readonly (readonly [number, string])[]): string[] {
  const lines = [...LINES];
  for (const [at, line] of edits) lines[at] = line;
  return lines;
}

test('a change is shown with three lines around it', () => {
  assert.equal(lineDiff(LINES, LINES), '');
  assert.equal(lineDiff(LINES, changed([2, 'X'])), '@@ -1,6 +1,6 @@\n a\n b\n-c\n+X\n d\n e\n f\n');
  assert.equal(lineDiff(['a'], ['a', 'b']), '@@ -1 +1,2 @@\n a\n+b\n');
  assert.equal(lineDiff([], ['b']), '@@ -0,0 +1 @@\n+b\n');
});

test('changes that are near share a hunk, others have their own', () => {
  const near = lineDiff(LINES, changed([2, 'X'], [8, 'Y']));
  assert.equal(near.match(/@@ -/g)?.length, 1);
  const far = lineDiff(LINES, changed([0, 'X'], [11, 'Y']));
  assert.equal(far, '@@ -1,4 +1,4 @@\n-a\n+X\n b\n c\n d\n@@ -9,4 +9,4 @@\n i\n j\n k\n-l\n+Y\n');
});

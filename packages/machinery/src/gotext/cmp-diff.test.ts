import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineDiff } from './cmp-diff.ts';

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

// each text below is what github.com/pmezard/go-difflib says
test('the longest run that both have is kept, the first of equal ones', () => {
  const text = lineDiff(['A', 'q', 'A'], ['r', 'A']);
  assert.equal(text, '@@ -1,3 +1,2 @@\n+r\n A\n-q\n-A\n');
  assert.equal(lineDiff(['a', 'b', 'b'], ['a', 'b']), '@@ -1,3 +1,2 @@\n a\n b\n-b\n');
  assert.equal(lineDiff(['x'], ['b', 'x', 'x']), '@@ -1 +1,3 @@\n+b\n x\n+x\n');
  const run = lineDiff(['a', 'b', 'q', 'c', 'd', 'e'], ['c', 'd', 'e', 'a', 'b']);
  assert.equal(run, '@@ -1,6 +1,5 @@\n-a\n-b\n-q\n c\n d\n e\n+a\n+b\n');
});

test('lines that a long text has often begin no run', () => {
  const own = Array.from({ length: 195 }, (_, at) => `own${at}`);
  const text = lineDiff(['x', '}', '}', '}', '}', 'y'], [...own, '}', '}', '}', '}', 'z']);
  assert.ok(text.startsWith('@@ -1,6 +1,200 @@\n-x\n-}\n-}\n-}\n-}\n-y\n+own0\n'));
});

test('long texts that differ throughout are not compared line by line', () => {
  const many = (text: string): string[] => Array.from({ length: 100_000 }, (_, at) => text + at);
  const text = lineDiff(['a', ...many('x'), 'z'], ['a', ...many('y'), 'z']);
  assert.ok(text.startsWith('@@ -1,100002 +1,100002 @@\n a\n-x0\n-x1\n'));
  assert.ok(text.endsWith('+y99999\n z\n'));
});

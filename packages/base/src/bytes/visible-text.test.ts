import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelValue, visibleLines, visibleText } from './visible-text.ts';

const hostile = 'a\n2026-01-01 info forged\r\x1b[2J\x9bm\x7f\u2028\u202ebackwards é 世';

test('words of clients write no line of a log and move no cursor', () => {
  const shown = 'a\\x0a2026-01-01 info forged\\x0d\\x1b[2J\\x9bm\\x7f\\u2028\\u202ebackwards é 世';
  assert.equal(visibleText(hostile), shown);
  assert.equal(visibleLines('Error: a\n    at b\n'), 'Error: a\n\t    at b\n\t');
  assert(!/^2026/m.test(visibleLines(hostile)));
});

test('words of clients are one value of a label', () => {
  assert.equal(labelValue('a"b\\c\nd'), 'a\\"b\\\\c\\nd');
  assert.equal(labelValue('\x1b[2J\r'), '\\\\x1b[2J\\\\x0d');
});

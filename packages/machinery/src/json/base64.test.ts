import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base64Fault } from './base64.ts';

test('base64 ends where Go says it does', () => {
  const faults: [string, number][] = [
    ['', -1],
    ['YQ==', -1],
    ['YW\nJj\r\n', -1],
    ['YQ==YQ==', 4],
    ['YQ', 0],
    ['YWJjZ', 4],
    ['YQ=', 3],
    ['YQ=a', 2],
    ['=', 0],
    ['YWJj*', 4],
    ['YWI=x', 4],
  ];
  for (const [text, fault] of faults) assert.equal(base64Fault(text), fault, text);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextPemBlock, pemBlocks } from './pem.ts';

const BLOCK = '-----BEGIN A-----\naGVs\nbG8=\n-----END A-----\n';

test('blocks are found between other lines, with headers and without', () => {
  const text = `hello\n${BLOCK}and\n-----BEGIN B-----\nKey: value\n\naGVs\n-----END B-----`;
  const found = pemBlocks(text).map(({ type, hasHeaders, bytes }) => ({
    type,
    hasHeaders,
    text: bytes.toString(),
  }));
  assert.deepEqual(found, [
    { type: 'A', hasHeaders: false, text: 'hello' },
    { type: 'B', hasHeaders: true, text: 'hel' },
  ]);
});

test('what is no block is passed over', () => {
  for (const text of [
    '',
    'hello',
    BLOCK.replace('END A', 'END B'),
    BLOCK.replace('bG8=', 'bG8'),
    BLOCK.replace('-----BEGIN', 'x-----BEGIN'),
    BLOCK.replace('END A-----', 'END A-----x'),
    BLOCK.replace('\n-----END', ' -----END'),
  ]) {
    assert.equal(nextPemBlock(text), undefined, text);
    assert.equal(nextPemBlock(`${text}\n${BLOCK}`)?.type, 'A', text);
  }
  assert.equal(nextPemBlock(`-----BEGIN X-----\n${BLOCK}`)?.type, 'A');
});

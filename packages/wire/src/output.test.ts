import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BLOCK_BYTES, Output } from './output.ts';
import type { Transport } from './transport.ts';

test('what waits, and is small, holds no block, and leaves in order with what came after', () => {
  const output = new Output();
  let sent = '';
  const transport = {
    write: (bytes: Buffer, start: number, end: number) => {
      sent += bytes.latin1Slice(start, end);
      return true;
    },
  } as unknown as Transport;
  const put = (text: string): void => {
    output.reserve(text.length);
    output.at += output.bytes.write(text, output.at, 'latin1');
  };
  const large = 'c'.repeat(20_000);
  put('a');
  output.park();
  assert.equal(output.bytes.length, 1);
  put('b');
  output.park();
  assert.equal(output.bytes.length, 1);
  put(large);
  output.park();
  assert.equal(output.bytes.length, BLOCK_BYTES);
  assert.equal(output.size, large.length + 2);
  output.flush(transport);
  assert.equal(sent, `ab${large}`);
  output.reserve(1);
  output.park();
  assert.equal(output.bytes.length, 0);
  assert.equal(output.size, 0);
});

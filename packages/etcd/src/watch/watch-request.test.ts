import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchRequest } from './watch-request.ts';

function filters(hex: string): readonly boolean[] | null {
  const create = Buffer.from(`0a0161${hex}`, 'hex');
  const bytes = Buffer.concat([Buffer.from([0x0a, create.length]), create]);
  const request = new WatchRequest();
  return request.decode(bytes, 0, bytes.length) ? [request.noPut, request.noDelete] : null;
}

test('filters may come one by one or packed, each in more bytes than it needs', () => {
  assert.deepEqual(filters('2800'), [true, false]);
  assert.deepEqual(filters('28012800'), [true, true]);
  assert.deepEqual(filters('2a020001'), [true, true]);
  assert.deepEqual(filters('2a028100'), [false, true]);
  assert.deepEqual(filters('2a03810007'), [false, true]);
  assert.deepEqual(filters('2a00'), [false, false]);
  assert.equal(filters('2a0181'), null);
});

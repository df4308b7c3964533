import assert from 'node:assert/strict';
import { test } from 'node:test';
import { H2Stream } from './stream.ts';

test('a stream that was reset in the middle of its queue begins anew', () => {
  const used = new H2Stream();
  used.id = 7;
  used.queue = [Buffer.from('sent'), Buffer.from('half sent')];
  used.queueIndex = 1;
  used.queueAt = 5;
  used.queuedBytes = 4;
  used.endQueued = true;
  used.clear();
  assert.deepEqual(used, new H2Stream());
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { haveSameLayout } from '@megaplane/base/layout.sim';
import { ARENA_BYTES, arenaOf, Arenas } from './arenas.ts';
import { MemoryWarmer } from './warm-memory.ts';

test('Giving back an arena that holds nothing alive keeps what the engine compiled.', () => {
  const [arenas, others] = [new Arenas(), new Arenas()];
  others.allocate(1, Arenas.sizeOf(0, 0, false));
  const ref = arenas.allocate(1, Arenas.sizeOf(0, 0, false));
  arenas.markGarbage(ref);
  arenas.release(arenaOf(ref));
  assert.equal(arenas.liveBytes, 0);
  assert.ok(haveSameLayout(arenas, others));
  arenas.settle(1000.5);
  assert.ok(haveSameLayout(arenas, others), 'after a quiet moment');
});

test('The block after the next is warmed once an arena was filled, and records go there.', () => {
  const arenas = new Arenas();
  const asked: ((memory: SharedArrayBuffer) => void)[] = [];
  let sizeBytes = 0;
  arenas.warmer = {
    warm: (bytes, done) => {
      sizeBytes = bytes;
      return asked.push(done) > 0;
    },
  };
  const fill = (): Buffer => arenas.buffer(arenas.allocate(1, ARENA_BYTES));
  const first = fill();
  assert.equal(asked.length, 0);
  const second = fill();
  assert.equal(second.buffer, first.buffer);
  assert.equal(asked.length, 1);
  // Not there in time: records do not wait for it, and it is not asked for twice.
  assert.notEqual(fill().buffer, first.buffer);
  fill();
  assert.equal(asked.length, 1);
  const memory = new SharedArrayBuffer(sizeBytes);
  asked[0]?.(memory);
  assert.equal(fill().buffer, memory);
  assert.equal(asked.length, 2);
});

test('Memory is warmed for those who ask for it often.', async () => {
  const warmer = new MemoryWarmer();
  const warmed = new Promise<SharedArrayBuffer>((resolve) => {
    assert.equal(warmer.warm(2 ** 20, resolve), false);
    assert.equal(warmer.warm(2 ** 20, resolve), existsSync('/dev/zero'));
  });
  if (existsSync('/dev/zero')) assert.equal((await warmed).byteLength, 2 ** 20);
});

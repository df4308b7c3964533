import assert from 'node:assert/strict';
import { test } from 'node:test';
import { haveSameLayout } from '@megaplane/base/layout.sim';
import { arenaOf, Arenas } from './arenas.ts';

test('Giving back an arena that holds nothing alive keeps what the engine compiled.', () => {
  const [arenas, others] = [new Arenas(), new Arenas()];
  others.allocate(1, Arenas.sizeOf(0, 0, false));
  const ref = arenas.allocate(1, Arenas.sizeOf(0, 0, false));
  arenas.markGarbage(ref);
  arenas.release(arenaOf(ref));
  assert.equal(arenas.liveBytes, 0);
  assert.ok(haveSameLayout(arenas, others));
});

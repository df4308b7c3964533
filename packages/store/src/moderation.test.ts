import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Moderation } from './moderation.ts';

/** How many pauses turns make that bring `writes` each time, `apartMs` after one another. */
function pauses(writes: (turn: number) => number, apartMs: number, turns = 1000): number {
  const moderation = new Moderation();
  let count = 0;
  for (let turn = 0; turn < turns; turn++) {
    if (moderation.isDue(writes(turn), turn * apartMs)) count++;
  }
  return count;
}

test('who writes one at a time is never made to wait', () => {
  assert.equal(
    pauses(() => 1, 0.1),
    0,
  );
});

test('small turns of several clients make a pause', () => {
  assert(pauses(() => 3, 0.1) > 900);
  const mixed = pauses((turn) => (turn % 8 === 0 ? 30 : 1), 0.2);
  assert(mixed > 700, 'one large turn, then what trickles in behind it');
});

test('turns that bring much, and turns that have long been waited for, make none', () => {
  assert.equal(
    pauses(() => 30, 0.3),
    0,
  );
  assert.equal(
    pauses(() => 3, 1.5),
    0,
  );
});

test('a burst is forgotten when one client is left', () => {
  const late = pauses((turn) => (turn < 10 ? 500 : 1), 0.1, 200);
  assert(late < 120, `${late} pauses`);
  const later = pauses((turn) => (turn < 10 ? 500 : 1), 0.1, 2000);
  assert.equal(later, late, 'none once it is forgotten');
});

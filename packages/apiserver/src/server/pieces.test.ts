import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Pieces } from './pieces.ts';

/** Pieces whose turns are taken, and whose clock is set, by a test. */
class Turns {
  nowMs = 0;
  readonly waiting: (() => void)[] = [];
  readonly pieces: Pieces = new Pieces(
    (work) => this.waiting.push(work),
    () => this.nowMs,
  );
}

test('pieces of one turn take a bounded time, and each has its turn in order', () => {
  const world = new Turns();
  const { pieces, waiting: turns } = world;
  const ran: string[] = [];
  const begin = (name: string, left: number): void => {
    world.nowMs += 1;
    ran.push(name);
    if (left > 1) pieces.add(() => begin(name, left - 1));
  };
  for (let index = 0; index < 10; index++) pieces.add(() => begin(`p${index}`, 2));
  const perTurn: number[] = [];
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    const before = ran.length;
    turn();
    perTurn.push(ran.length - before);
    assert.ok(perTurn.length < 100, 'it comes to an end');
  }
  assert.deepEqual(perTurn, [4, 4, 4, 4, 4]);
  const once = Array.from({ length: 10 }, (_, index) => `p${index}`);
  assert.deepEqual(ran, [...once, ...once]);
});

test('a piece that fails does not keep the others from their turn', () => {
  const { pieces, waiting: turns } = new Turns();
  let done = 0;
  pieces.add(() => {
    throw new Error('planted');
  });
  pieces.add(() => done++);
  assert.throws(() => turns.shift()?.(), /planted/);
  turns.shift()?.();
  assert.equal(done, 1);
  assert.equal(turns.length, 0);
});

test('what may run at once does, until the turn has had enough of it', () => {
  const world = new Turns();
  const { pieces, waiting: turns } = world;
  const ran: string[] = [];
  const line = (from: number, to: number): void => {
    for (let index = from; index < to; index++) {
      const work = (): void => {
        world.nowMs += 2;
        ran.push(`p${index}`);
      };
      pieces.run(work, () => ran.push(`wait ${index}`));
    }
  };
  line(0, 5);
  assert.deepEqual(ran.splice(0), ['p0', 'p1', 'wait 2', 'wait 3', 'wait 4']);
  // the end of the first turn, and the pieces of the next
  for (const turn of turns.splice(0)) turn();
  assert.deepEqual(ran.splice(0), ['p2', 'p3']);
  line(5, 6);
  assert.deepEqual(ran.splice(0), ['wait 5'], 'who comes later does not go first');
  for (const turn of turns.splice(0)) turn();
  assert.deepEqual(ran.splice(0), ['p4', 'p5']);
  line(6, 7);
  assert.deepEqual(ran.splice(0), ['p6']);
});

test('steps are taken at once while the turn has room, and the rest in later turns', () => {
  const world = new Turns();
  const { pieces, waiting: turns } = world;
  const ran: string[] = [];
  const steps = function* (name: string, count: number): Generator<void, void> {
    for (let index = 0; index < count; index++) {
      world.nowMs += 1;
      ran.push(`${name}${index}`);
      yield;
    }
  };
  pieces.walk(
    steps('short', 2),
    () => assert.fail('it has room'),
    () => ran.push('short done'),
  );
  pieces.walk(
    steps('long', 10),
    () => ran.push('long waits'),
    () => ran.push('long done'),
  );
  pieces.add(() => ran.push('other'));
  const perTurn: number[] = [ran.length];
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    turn();
    perTurn.push(ran.length);
  }
  assert.deepEqual(perTurn, [8, 12, 16]);
  assert.equal(ran.indexOf('other'), 12);
  assert.equal(ran.at(-1), 'long done');
});

test('walks that begin in one turn share what it has', () => {
  const world = new Turns();
  const { pieces, waiting: turns } = world;
  let steps = 0;
  const walk = function* (): Generator<void, void> {
    for (let index = 0; index < 3; index++) {
      world.nowMs += 1;
      steps++;
      yield;
    }
  };
  let done = 0;
  let waits = 0;
  for (let index = 0; index < 20; index++) {
    pieces.walk(
      walk(),
      () => waits++,
      () => done++,
    );
  }
  assert.deepEqual([steps, done, waits], [6, 2, 18]);
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    const before = steps;
    turn();
    assert.ok(steps - before <= 6, `${steps - before} steps in a turn`);
  }
  assert.deepEqual([steps, done], [60, 20]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Event, type Operation, assertLinearizable, assertWatched } from './history.sim.ts';

const EVENTS: readonly Event[] = [
  { revision: 2, key: 'a', value: '1' },
  { revision: 3, key: 'a', value: '2' },
  { revision: 4, key: 'b', value: '3' },
];

function write(value: string, revision: number | null, startMs: number, endMs: number): Operation {
  const key = value === '3' ? 'b' : 'a';
  return { kind: 'write', key, value, revision, startMs, endMs };
}

function read(value: string | null, revision: number, startMs: number): Operation {
  return { kind: 'read', key: 'a', value, revision, startMs, endMs: startMs + 1 };
}

const GOOD = [write('1', 2, 0, 1), write('2', null, 2, 9), write('3', 4, 3, 5), read('2', 4, 6)];

test('a history of one copy passes', () => {
  assertLinearizable(GOOD, EVENTS);
  assertWatched(EVENTS.slice(1, 2), EVENTS, 3);
});

test('lost, doubled, invented and stale operations are found', () => {
  const [first, second, third, last] = EVENTS;
  assert(first !== undefined && second !== undefined && third !== undefined);
  assert.equal(last, undefined);
  const wrong: readonly (readonly [readonly Operation[], readonly Event[], RegExp])[] = [
    [GOOD, [second, third], /a=1 was acknowledged and is lost/],
    [GOOD, [...EVENTS, { revision: 5, key: 'a', value: '1' }], /1 was written twice/],
    [GOOD, [...EVENTS, { revision: 5, key: 'a', value: '9' }], /nobody wrote this/],
    [[...GOOD, read('1', 3, 20)], EVENTS, /a read at revision 3/],
    [[...GOOD, read('1', 2, 20)], EVENTS, /read of a at 2 after 4 was answered/],
    [[write('1', 3, 0, 1), ...GOOD.slice(1)], EVENTS, /Expected values/],
  ];
  for (const [operations, events, pattern] of wrong) {
    assert.throws(() => assertLinearizable(operations, events), { message: pattern });
  }
  assert.throws(() => assertWatched([third, second], EVENTS, 3));
  assert.throws(() => assertWatched([third], EVENTS, 3));
});

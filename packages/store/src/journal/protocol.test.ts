/** Every state that the protocol of docs/journal-protocol.md can reach, within bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bounds, type Broken, searchAll } from './protocol.sim.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] === '1';
const NONE = { ticks: 0, writes: 0, crashes: 0, takeOvers: 0, beats: 0, handOvers: 0, copies: 1 };
const THREE: Bounds = { ...NONE, members: 3 };

/** Each looks at other things that happen together; all of them at once are too many to visit. */
const WORLDS: readonly (readonly [string, Bounds])[] = [
  ['two who take over at once', { ...THREE, takeOvers: 3, writes: 1, ticks: 1 }],
  ['unknown outcomes', { ...THREE, takeOvers: 2, writes: 1, ticks: 2, copies: 2, members: 2 }],
  ['crashes', { ...THREE, takeOvers: 2, writes: 1, ticks: 2, crashes: 1 }],
  ['leases', { ...THREE, members: 2, takeOvers: 2, writes: 1, ticks: 3, beats: 1 }],
  ['hand-over', { ...THREE, takeOvers: 2, writes: 1, ticks: 1, handOvers: 1 }],
];
const LONG_WORLDS: readonly (readonly [string, Bounds])[] = [
  ['unknown outcomes of three', { ...THREE, takeOvers: 2, writes: 1, ticks: 2, copies: 2 }],
  ['leases of three', { ...THREE, takeOvers: 2, writes: 1, ticks: 3, beats: 1 }],
  ['leases and two writes', { ...THREE, takeOvers: 2, writes: 2, ticks: 3 }],
  [
    'crashes, unknown outcomes and hand-over at once',
    { ...THREE, takeOvers: 2, writes: 1, ticks: 2, crashes: 1, copies: 2, handOvers: 1 },
  ],
];

for (const [name, bounds] of IS_LONG ? [...WORLDS, ...LONG_WORLDS] : WORLDS) {
  test(`no reachable state breaks a promise: ${name}`, (t) => {
    const { states, violation } = searchAll(bounds);
    t.diagnostic(`${states} states`);
    assert.equal(violation, null);
    assert(states > 500, `only ${states} states were reached`);
  });
}

const BROKEN: readonly (readonly [Broken, string])[] = [
  ['forgets-unknown', 'a revision is used twice, or left out'],
  ['acknowledges-early', 'a write is lost'],
  ['takes-over-early', 'a read by lease misses an acknowledged write'],
  ['leases-from-answer', 'a read by lease misses an acknowledged write'],
  ['counts-parts', 'a write is lost'],
  ['appends-anywhere', 'two leaders in one epoch'],
];

for (const [broken, what] of BROKEN) {
  test(`the search finds what the rule prevents that ${broken} leaves out`, () => {
    const bounds = { ...THREE, members: 2, takeOvers: 2, writes: 2, ticks: 3, copies: 2 };
    assert.equal(searchAll(bounds, broken).violation, what);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectionsToMove } from './balance.ts';

const MIB = 1024 * 1024;

/** Threads with so many connections, each of which sent so much. */
function threads(...counts: readonly (readonly number[])[]): { recentBytes: readonly number[] }[] {
  return counts.map((recentBytes) => ({ recentBytes }));
}

function idle(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}

test('a thread that has all of 10,000 connections asks a quarter of what is too much', () => {
  assert.deepEqual(connectionsToMove(threads(idle(10_000), idle(0))), [1250, 0]);
  assert.deepEqual(connectionsToMove(threads(idle(0), idle(400), idle(0), idle(0))), [0, 75, 0, 0]);
});

test('step by step all have their share, and nobody is asked then', () => {
  let counts = [10_000, 0, 0];
  for (let look = 0; look < 60; look++) {
    const asked = connectionsToMove(threads(...counts.map(idle)));
    const all = asked.reduce((sum, each) => sum + each, 0);
    // they come again to whichever thread
    counts = counts.map((count, index) => count - (asked[index] ?? 0) + all / 3);
    counts = counts.map(Math.round);
  }
  assert(Math.max(...counts) < 1.3 * (10_000 / 3) + 8, String(counts));
  assert.deepEqual(connectionsToMove(threads(...counts.map(idle))), [0, 0, 0]);
});

test('few connections, or one thread, are left as they are', () => {
  assert.deepEqual(connectionsToMove(threads(idle(9), idle(1))), [0, 0]);
  assert.deepEqual(connectionsToMove(threads(idle(1000))), [0]);
  assert.deepEqual(connectionsToMove([]), []);
});

test('of two that both send much one goes to a thread that has nothing to do', () => {
  assert.deepEqual(connectionsToMove(threads([4 * MIB, 4 * MIB], [0])), [1, 0]);
  // alone it has its thread
  assert.deepEqual(connectionsToMove(threads([8 * MIB, 0], [0])), [0, 0]);
  assert.deepEqual(connectionsToMove(threads([4 * MIB, 4 * MIB], [5 * MIB])), [0, 0]);
});

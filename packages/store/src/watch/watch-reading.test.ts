import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchReading } from './watch-reading.ts';

test('cursors at one place of a range share a reading until things change', () => {
  const reading = new WatchReading();
  const first = reading.numberOf(7, 1, 40, 0);
  assert.equal(reading.numberOf(7, 1, 40, 0), first);
  const others = [
    reading.numberOf(8, 1, 40, 0),
    reading.numberOf(7, 2, 40, 0),
    reading.numberOf(7, 1, 41, 0),
    reading.numberOf(7, 1, 40, 1),
    reading.numberOf(7, 1, 40, 0),
  ];
  reading.forget();
  others.push(reading.numberOf(7, 1, 40, 0));
  assert.equal(new Set([first, ...others]).size, others.length + 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { floatOf } from './sprig-functions.ts';
import { yamlText } from './yaml-text.ts';

/** Of processor time; by the square of the length it is many times as much. */
const READ_MS_MAX = 1500;

test('text of a hundred kilobytes is read by its length, not by its square', () => {
  for (const read of [floatOf, yamlText]) {
    for (const unit of ['0', '0_', '1.', '=']) {
      const before = process.cpuUsage();
      read(`${unit.repeat(100_000)}!`);
      const { user } = process.cpuUsage(before);
      assert(user / 1000 < READ_MS_MAX, `"${unit}..." took ${user / 1000} ms`);
    }
  }
});

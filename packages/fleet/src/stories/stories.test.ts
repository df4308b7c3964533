/**
 * Each story beside this file is told anew and compared. `MEGAPLANE_RECORD=1` writes them instead:
 * then read the difference.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { scriptOf, tell } from './stories.sim.ts';

const FILES = globSync(join(import.meta.dirname, '*.txt')).toSorted();
const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;

for (const file of FILES) {
  const recorded = readFileSync(file, 'utf8');
  const script = scriptOf(recorded);
  const told = tell(script);

  test(`${basename(file, '.txt')} goes as it went`, () => {
    if (process.env['MEGAPLANE_RECORD'] === '1') writeFileSync(file, told.text);
    else assert.equal(told.text, recorded);
  });

  test(`${basename(file, '.txt')} ends alike if the shard starts anew at any step`, () => {
    const events = script.flatMap((line, at) => (/^(#|offer|takes)/.test(line) ? [] : [at]));
    const steps = IS_LONG ? events : events.filter((_, at) => at % 2 === 0);
    // time for what the start put off
    const calm = [...script, 'wait 240'];
    const wanted = tell(calm).bound;
    for (const at of steps) {
      assert.deepEqual(tell(calm, at).bound, wanted, `after "${script[at]}", line ${at + 1}`);
    }
  });
}

test('there are stories', () => {
  assert.ok(FILES.length >= 10);
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { AGAIN_MS, ChildLog } from './child-log.ts';

async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000 && !isTrue(); turn++) await setImmediate();
  assert(isTrue());
}

test('a log that could not be written goes on when it can, and says what is missing', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-log-'));
  const file = join(dir, 'later', 'child.log');
  const text = (): string => readFileSync(file, 'utf8');
  const reports: string[] = [];
  let nowMs = 0;
  const log = new ChildLog(
    file,
    (report) => reports.push(report),
    () => nowMs,
  );
  await until(() => reports.length === 1);
  log.write('first');
  nowMs += AGAIN_MS;
  // tried again, in vain: not told of a second time
  log.write('second');
  await setImmediate();
  mkdirSync(join(dir, 'later'));
  await until(() => {
    nowMs += AGAIN_MS;
    log.write('third');
    try {
      return text().includes('third');
    } catch {
      return false;
    }
  });
  assert.match(text(), /^lines are missing here, [1-9]\d* or more\n(?:second\n)?third\n/);
  assert.deepEqual(reports, [reports[0]]);
  assert.match(reports[0] ?? '', /^its log misses lines from here on: ENOENT/);
  log.end();
  rmSync(dir, { recursive: true });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { type HomeParts, keepHome } from './home.ts';

test('a last look is taken, also when another one is under way as the process stops', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-last-look-'));
  const saying = mock.method(console, 'error', () => undefined);
  mock.timers.enable({ apis: ['setInterval'] });
  const looks: ((isLost: boolean) => void)[] = [];
  let snapshots = 0;
  try {
    const home = keepHome({
      dir,
      lock: { isLost: (tell: (isLost: boolean) => void) => looks.push(tell), retake() {} },
      log: { file: 1, segment: 1 },
      snapshots: { isRunning: false, begin: () => snapshots++ },
    } as unknown as HomeParts);
    mock.timers.tick(500);
    assert.equal(looks.length, 1);
    home.stop();
    const last = home.lookLast();
    // as it was when that look began: then it went
    looks[0]?.(true);
    while (looks.length < 2) await new Promise((resolve) => setImmediate(resolve));
    looks[1]?.(true);
    await last;
    assert.equal(snapshots, 1);
  } finally {
    mock.timers.reset();
    saying.mock.restore();
    rmSync(dir, { recursive: true, force: true });
  }
});

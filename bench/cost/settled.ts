/** When processes have done what was to be done: by the processor time that they take. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSecondsExact } from '../harness.ts';

const LOOK_MS = 1000;
/** Of one processor, all of them together: what timers and renewals take. */
const SHARE_MAX = 0.08;
/** So many looks in a row: controllers come back after pauses of their own. */
const QUIET_LOOKS = 4;
const SETTLE_MS_MAX = 600_000;

/** Resolves once all of them together take next to nothing; rejects after ten minutes. */
export async function settled(pids: readonly number[]): Promise<void> {
  const sum = (): number => pids.reduce((total, pid) => total + cpuSecondsExact(pid), 0);
  const endMs = performance.now() + SETTLE_MS_MAX;
  let quiet = 0;
  let before = sum();
  while (quiet < QUIET_LOOKS) {
    if (performance.now() > endMs) throw new Error('the cluster does not come to rest');
    await sleep(LOOK_MS);
    const now = sum();
    quiet = now - before < (SHARE_MAX * LOOK_MS) / 1000 ? quiet + 1 : 0;
    before = now;
  }
}

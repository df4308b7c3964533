/** When processes have done what was to be done: by the processor time that they take. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSecondsExact } from '../harness.ts';

const LOOK_MS = 1000;
/** Of one processor, all of them together: what timers and renewals take. */
const SHARE_MAX = 0.08;
/** So many looks in a row: controllers come back after pauses of their own. */
const QUIET_LOOKS = 4;
const SETTLE_MS_MAX = 600_000;
/** On a machine with other work the same timers take more: what they take then is a level. */
const LEVEL_LOOKS = 15;
/** As far as one mean of so many looks may be from the next, as a share of it. */
const LEVEL_SPREAD = 0.15;
/** More than this is no rest, however level it is. */
const LEVEL_SHARE_MAX = 0.5;

const mean = (shares: readonly number[]): number =>
  shares.reduce((total, share) => total + share, 0) / shares.length;

/** True where shares of a processor, one a look, say that nothing is going on any more. */
export function isAtRest(shares: readonly number[]): boolean {
  const last = shares.slice(-QUIET_LOOKS);
  if (last.length === QUIET_LOOKS && last.every((share) => share < SHARE_MAX)) return true;
  if (shares.length < 2 * LEVEL_LOOKS) return false;
  const now = mean(shares.slice(-LEVEL_LOOKS));
  const before = mean(shares.slice(-2 * LEVEL_LOOKS, -LEVEL_LOOKS));
  return now < LEVEL_SHARE_MAX && Math.abs(now - before) < LEVEL_SPREAD * before;
}

/** Resolves once all of them together are at rest; rejects after ten minutes. */
export async function settled(pids: readonly number[]): Promise<void> {
  const sum = (): number => pids.reduce((total, pid) => total + cpuSecondsExact(pid), 0);
  const endMs = performance.now() + SETTLE_MS_MAX;
  const shares: number[] = [];
  let before = sum();
  let beforeMs = performance.now();
  while (!isAtRest(shares)) {
    if (performance.now() > endMs) throw new Error('the cluster does not come to rest');
    await sleep(LOOK_MS);
    const now = sum();
    const nowMs = performance.now();
    // a busy machine looks late
    shares.push((now - before) / ((nowMs - beforeMs) / 1000));
    before = now;
    beforeMs = nowMs;
  }
}

// shell: the machine's clock and timers
import { afterMs } from '@megaplane/base/deferred';
import type { Timers } from './client.ts';

/** Difference to the wall clock from which on ours follows it. */
const DRIFT_MS_MAX = 500;
/** The wall clock is looked at so often: asking for it takes as long as for the other one. */
const CHECK_MS = 5;
/** Longest delay that a timer of the platform takes. */
const DELAY_MS_MAX: number = 2 ** 31 - 1;

let offsetMs: number = Date.now() - performance.now();
let checkedMs = -Infinity;

/** Real time. `nowMs` runs with the monotonic clock and is set forward, never back. */
export const systemTimers: Timers = {
  nowMs: () => {
    const steadyMs = performance.now();
    const nowMs = steadyMs + offsetMs;
    if (steadyMs - checkedMs < CHECK_MS) return nowMs;
    checkedMs = steadyMs;
    const aheadMs = Date.now() - nowMs;
    if (aheadMs < DRIFT_MS_MAX) return nowMs;
    offsetMs += aheadMs;
    return nowMs + aheadMs;
  },
  wallMs: () => Date.now(),
  after: (delayMs, fire) => {
    const timer = afterMs(Math.min(DELAY_MS_MAX, Math.max(0, Math.ceil(delayMs))), fire);
    return () => clearTimeout(timer);
  },
};

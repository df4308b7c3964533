// shell: the machine's clocks
import type { Clock } from './clock.ts';

/** The clocks of the machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

// shell: clocks and randomness of members
import { randomBytes, randomInt } from 'node:crypto';
import { pauseMs } from '@megaplane/base/deferred';
import type { MemberWorld } from '@megaplane/store/journal/member';

/** The world of members that live in processes. */
export const SHELL_WORLD: Omit<MemberWorld, 'log'> = {
  nowMs: () => performance.now(),
  pause: pauseMs,
  random: () => randomInt(2 ** 32) / 2 ** 32,
  drawId: () => randomBytes(8),
};

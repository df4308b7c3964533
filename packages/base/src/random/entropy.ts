// shell: randomness of the machine
import { randomInt } from 'node:crypto';
import { Random } from './random.ts';

/** A stream whose seed nobody can guess, for jitter and for secrets of hash tables. */
export function systemRandom(): Random {
  return new Random(randomInt(2 ** 21) * 2 ** 32 + randomInt(2 ** 32));
}

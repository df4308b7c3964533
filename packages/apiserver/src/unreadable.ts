/** Stored values that cannot be read: sealed with a key that the server does not have. */
import { internalError } from '@megaplane/machinery/status';
import type { Call } from './call.ts';

/** Thrown where such a value would be decoded: nothing may be made up in its place. */
export class UnreadableValue extends Error {}

/** The value under `key` is sealed, and no key opens it. */
export function unreadable(key: string): UnreadableValue {
  return new UnreadableValue(`unable to transform key "${key}": no matching prefix found`);
}

/** Runs what answers a call; a value that it cannot read is answered as upstream does, by 500. */
export function answerReadable(call: Call, answer: () => void): void {
  try {
    answer();
  } catch (error) {
    if (!(error instanceof UnreadableValue)) throw error;
    // half an answer must not look like a whole one
    if (call.code === 0) call.fail(internalError(error.message));
    else call.exchange.reset();
  }
}

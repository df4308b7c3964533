/** Stored values that cannot be read: sealed with a key that the server does not have. */
import { badRequest, internalError } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';

/** Thrown where such a value would be decoded: nothing may be made up in its place. */
export class UnreadableValue extends Error {}

/** The value under `key` is sealed, and no key opens it. */
export function unreadable(key: string): UnreadableValue {
  return new UnreadableValue(`unable to transform key "${key}": no matching prefix found`);
}

const TOO_DEEP = 'the object is nested too deeply';
/** The runtime's words for a stack that is used up. */
const STACK_IS_FULL = 'Maximum call stack size exceeded';

/**
 * Runs what answers a call; a value that it cannot read is answered as upstream does, by 500. What
 * is nested deeper than the stack (patches, YAML) is refused: bodies of JSON have a limit before.
 */
export function answerReadable(call: Call, answer: () => void): void {
  try {
    answer();
  } catch (error) {
    const isDeep = error instanceof RangeError && error.message === STACK_IS_FULL;
    if (!isDeep && !(error instanceof UnreadableValue)) throw error;
    // half an answer must not look like a whole one
    if (call.code !== 0) call.exchange.reset();
    else call.fail(isDeep ? badRequest(TOO_DEEP) : internalError(error.message));
  }
}

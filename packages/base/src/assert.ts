/**
 * Ends the process's current work with an error when `condition` does not hold.
 *
 * For bugs only: a condition that bad input, a slow peer or a full disk can make false is not an
 * assertion but a value with a name. Assertions stay on in production. The message is a constant
 * or cheap to build: it is evaluated on each call.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) fail(message);
}

/** An invariant of the store does not hold. Nothing catches it but to end the process. */
export class BrokenInvariant extends Error {}

/** `assert` for the store: what goes on with broken state may write it down. */
export function assertWhole(condition: unknown, message: string): asserts condition {
  if (!condition) failWhole(message);
}

function failWhole(message: string): never {
  throw new BrokenInvariant(`assertion failed: ${message}`);
}

/** The end of an exhaustive switch: the checker proves that it is never called. */
export function unreachable(value: never): never {
  return fail(`unreachable value: ${JSON.stringify(value)}`);
}

// Apart from `assert`, so that the passing path stays small enough to be inlined everywhere.
function fail(message: string): never {
  throw new Error(`assertion failed: ${message}`);
}

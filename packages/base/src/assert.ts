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

/** The end of an exhaustive switch: the checker proves that it is never called. */
export function unreachable(value: never): never {
  return fail(`unreachable value: ${JSON.stringify(value)}`);
}

// Apart from `assert`, so that the passing path stays small enough to be inlined everywhere.
function fail(message: string): never {
  throw new Error(`assertion failed: ${message}`);
}

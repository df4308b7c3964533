/** Who writes requests down. */
import type { Call } from '../request/call.ts';

/** What is written down about requests; see `audit.ts`. */
export interface Auditor {
  /** Milliseconds of a clock that never goes back, with fractions, for parts of requests. */
  clockMs(): number;
  /**
   * A request has come; may ask the call to keep its bodies. `then` is called once, at once or
   * later: false where the request must be refused, as it cannot be written down.
   */
  received(call: Call, then: (isKept: boolean) => void): void;
  /** One has come whose sender could not be made out, and is about to be refused. */
  unauthenticated(call: Call): void;
  /** It was. */
  refused(call: Call): void;
  /** The head of an answer to a request that may last has left. */
  started(call: Call): void;
  /** The answer has been handed over. */
  complete(call: Call): void;
  /** About once a second: looks which of the lasting answers have ended. */
  tick(): void;
}

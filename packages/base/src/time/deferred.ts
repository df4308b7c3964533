// shell: turns of the event loop
/**
 * The one place where work is put off to a later turn: timers, turns, events of sockets and
 * workers, promises that nobody waits for. An error thrown there would end the process. Here it
 * ends the piece of work: the error is told of, whoever the work was done for is told too, and all
 * else goes on. `tools/laws.ts` sees to it that nothing is put off anywhere else.
 *
 * Only a broken invariant of the store (`BrokenInvariant`) still ends the process: whatever went on
 * then might write it down.
 */
import { BrokenInvariant } from '../assert.ts';

/** Whom work is done for: a request, mostly. */
export interface Owner {
  /** The work threw: ends what it was done for, and gives back what that held. */
  broke(error: unknown): void;
}

let owner: Owner | null = null;
let tell: (error: unknown) => void = (error) => console.error(error);

/** Says where errors are told; before that they are written to standard error. */
export function tellErrors(to: (error: unknown) => void): void {
  tell = to;
}

/** Ends a piece of work that threw: tells of it, and whom it was done for. */
export function blame(error: unknown, whom: Owner | null = owner): void {
  if (error instanceof BrokenInvariant) throw error;
  tell(error);
  if (whom === null) return;
  try {
    whom.broke(error);
  } catch (second) {
    tell(second);
  }
}

/** Runs work for somebody, in this turn. */
export function actFor(whom: Owner | null, work: () => void): void {
  const around = owner;
  owner = whom;
  try {
    work();
  } catch (error) {
    blame(error, whom);
  } finally {
    owner = around;
  }
}

/**
 * A function for others to call in a later turn, for whom this turn's work is done; undefined is
 * what it returns where the work throws.
 */
export function guarded<This, Args extends unknown[], Made>(
  work: (this: This, ...args: Args) => Made,
): (this: This, ...args: Args) => Made | undefined {
  const whom = owner;
  return function run(this: This, ...args: Args): Made | undefined {
    const around = owner;
    owner = whom;
    try {
      return work.apply(this, args);
    } catch (error) {
      blame(error, whom);
      return undefined;
    } finally {
      owner = around;
    }
  };
}

/** The same for nobody: one request's turn plans what is done for all. */
export function unowned(work: () => void): () => void {
  return () => actFor(null, work);
}

/** Runs work when the milliseconds are over, for whom this turn's work is done. */
export function afterMs(ms: number, work: () => void): NodeJS.Timeout {
  return setTimeout(actFor, ms, owner, work);
}

/** Runs work again and again, for nobody. */
export function everyMs(ms: number, work: () => void): NodeJS.Timeout {
  return setInterval(actFor, ms, null, work);
}

/** Runs work in a later turn, after sockets had theirs, for nobody. */
export function nextTurn(work: () => void): void {
  setImmediate(actFor, null, work);
}

/** Runs work at the end of this turn, for nobody. */
export function endOfTurn(work: () => void): void {
  process.nextTick(actFor, null, work);
}

/** Resolves when the milliseconds are over. */
export function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** Resolves in a later turn, after sockets had theirs. */
export function turnOver(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Waits for nothing: a rejection is an error of the work that began the promise. */
export function unawaited(promise: Promise<unknown>): void {
  const whom = owner;
  promise.catch((error: unknown) => blame(error, whom));
}

/**
 * Long work in pieces: lists on their way, searches for a page, watches that catch up. However many
 * of them there are, together they take a bounded part of each turn of the event loop; who comes
 * later has a later turn, first come, first served. Requests that are short never wait for them.
 */
import { guarded } from '@megaplane/base/deferred';

/** What the pieces of one turn may take; the last one may end later. */
const TURN_MS = 4;

export class Pieces {
  readonly #defer: (work: () => void) => void;
  readonly #clockMs: () => number;
  #waiting: (() => void)[] = [];
  #next = 0;
  #isPlanned = false;
  /** What was done at once in the present turn has taken. */
  #spentMs = 0;

  /** `clockMs` never goes back and has fractions; `defer` runs work in a later turn. */
  constructor(defer: (work: () => void) => void, clockMs: () => number) {
    this.#defer = defer;
    this.#clockMs = clockMs;
  }

  /** Runs a piece in a later turn. It must take no more than a millisecond or two. */
  add(work: () => void): void {
    this.#waiting.push(work);
    this.#plan();
  }

  /**
   * Runs short work of a long line at once, while the turn has room and nothing waits. Otherwise
   * calls `waits`, and runs it in a later turn.
   */
  run(work: () => void, waits: () => void): void {
    if (this.#isFull()) {
      waits();
      this.add(work);
    } else this.#spend(work);
  }

  /** Whether whoever comes now has a later turn. */
  #isFull(): boolean {
    return this.#waiting.length > 0 || this.#spentMs >= TURN_MS;
  }

  #spend(work: () => void): void {
    this.#plan();
    const startMs = this.#clockMs();
    work();
    this.#spentMs += this.#clockMs() - startMs;
  }

  /**
   * Takes the steps of long work in as many turns as they need, and calls `done` in the last one.
   * The first steps are taken at once, while the turn has room and nothing waits; where they are
   * not all, `waits` is called before the rest.
   */
  walk(steps: Iterator<void>, waits: () => void, done: () => void): void {
    let isDone = false;
    if (!this.#isFull()) this.#spend(() => (isDone = this.#advance(steps)));
    if (isDone) {
      done();
      return;
    }
    waits();
    const rest = (): void => {
      if (this.#advance(steps)) done();
      else this.add(next);
    };
    const next = guarded(rest);
    this.add(next);
  }

  /** Whether there are no more steps. */
  #advance(steps: Iterator<void>): boolean {
    const endMs = this.#clockMs() + TURN_MS;
    for (;;) {
      if (steps.next().done === true) return true;
      if (this.#clockMs() >= endMs) return false;
    }
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#defer(() => {
      this.#isPlanned = false;
      this.#spentMs = 0;
      this.#run();
    });
  }

  #run(): void {
    const endMs = this.#clockMs() + TURN_MS;
    // what these pieces add has a later turn
    const last = this.#waiting.length;
    try {
      while (this.#next < last) {
        const work = this.#waiting[this.#next++];
        work?.();
        if (this.#clockMs() >= endMs) break;
      }
    } finally {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
      if (this.#waiting.length > 0) this.#plan();
    }
  }
}

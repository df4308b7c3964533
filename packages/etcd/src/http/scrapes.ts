// shell: makes the text of metrics between other turns
/**
 * A scrape reads some 1,800 numbers, in milliseconds where that code has not run for a while. It is
 * one part a turn, so that requests wait for a part alone. Who asks meanwhile gets a text that was
 * begun afterwards, all of them the same.
 */
import { nextTurn } from '@megaplane/base/deferred';

export class Scrapes {
  readonly #begin: () => Generator<void, string>;
  #waiting: ((text: string) => void)[] = [];
  #isRunning = false;

  /** `begin` starts a text, which comes part by part. */
  constructor(begin: () => Generator<void, string>) {
    this.#begin = begin;
  }

  ask(answer: (text: string) => void): void {
    this.#waiting.push(answer);
    if (!this.#isRunning) this.#next();
  }

  #next(): void {
    const answers = this.#waiting;
    this.#waiting = [];
    this.#isRunning = answers.length > 0;
    if (!this.#isRunning) return;
    const parts = this.#begin();
    const step = (): void => {
      const part = parts.next();
      if (part.done !== true) {
        nextTurn(step);
        return;
      }
      for (const answer of answers) answer(part.value);
      this.#next();
    };
    step();
  }
}

// shell: makes the text of metrics between other turns
/**
 * A scrape reads some 1,800 numbers, in milliseconds where that code has not run for a while. It is
 * one part a turn, so that requests wait for a part alone. Who asks meanwhile gets a text that was
 * begun afterwards, all of them the same.
 */
import { actFor, blame, nextTurn } from '@megaplane/base/deferred';

export class Scrapes {
  readonly #begin: () => Generator<void, string>;
  #waiting: ((text: string | null) => void)[] = [];
  #isRunning = false;

  /** `begin` starts a text, which comes part by part. */
  constructor(begin: () => Generator<void, string>) {
    this.#begin = begin;
  }

  /** Null is what `answer` is told where no text came about: the error is told of once. */
  ask(answer: (text: string | null) => void): void {
    this.#waiting.push(answer);
    if (!this.#isRunning) this.#next();
  }

  #next(): void {
    const answers = this.#waiting;
    this.#waiting = [];
    this.#isRunning = answers.length > 0;
    if (!this.#isRunning) return;
    // whatever fails for one of them, the others are answered, and who asks next
    const all = (text: string | null): void => {
      for (const answer of answers) actFor(null, () => answer(text));
      this.#next();
    };
    const step = (parts: Generator<void, string>): void => {
      let part: IteratorResult<void, string>;
      try {
        part = parts.next();
      } catch (error) {
        all(null);
        blame(error, null);
        return;
      }
      if (part.done === true) all(part.value);
      else nextTurn(() => step(parts));
    };
    // a generator runs nothing before it is asked for its first part
    step(this.#begin());
  }
}

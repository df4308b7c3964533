/** Answers of others by what they were asked, each for its own time; the oldest go first. */
export class AnswerCache<T> {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, { readonly answer: T; readonly untilMs: number }>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: string, nowMs: number): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.untilMs > nowMs) return entry.answer;
    this.#entries.delete(key);
    return undefined;
  }

  set(key: string, answer: T, untilMs: number): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#entriesMax) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, { answer, untilMs });
  }
}

/** Questions under way: who asks the same waits for the same answer. */
export class Asking<T> {
  readonly #waiting = new Map<string, ((answer: T) => void)[]>();

  /** Calls `ask` unless the same question is under way; `then` hears the answer in both cases. */
  once(key: string, ask: (done: (answer: T) => void) => void, then: (answer: T) => void): void {
    const others = this.#waiting.get(key);
    if (others !== undefined) {
      others.push(then);
      return;
    }
    this.#waiting.set(key, [then]);
    ask((answer) => {
      const all = this.#waiting.get(key) ?? [];
      this.#waiting.delete(key);
      for (const one of all) one(answer);
    });
  }
}

/**
 * Work by key, of which only the newest counts: one piece of a key at a time, and only so many in
 * all. A piece that comes while another of its key is done waits, and replaces one that waits.
 */
export class Lanes<Work> {
  readonly #perform: (key: string, work: Work) => Promise<void>;
  readonly #atOnceMax: number;
  readonly #waiting = new Map<string, Work>();
  readonly #busy = new Set<string>();
  #idle: (() => void)[] = [];

  /** `perform` deals with its failures itself. */
  constructor(atOnceMax: number, perform: (key: string, work: Work) => Promise<void>) {
    this.#atOnceMax = atOnceMax;
    this.#perform = perform;
  }

  put(key: string, work: Work): void {
    this.#waiting.set(key, work);
    this.#go();
  }

  /** Pieces that are being done. */
  get busy(): number {
    return this.#busy.size;
  }

  /** Pieces that wait or are being done. */
  get size(): number {
    return this.#waiting.size + this.#busy.size;
  }

  /** Resolves when nothing waits and nothing is being done. */
  settled(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #go(): void {
    for (const [key, work] of this.#waiting) {
      if (this.#busy.size >= this.#atOnceMax) return;
      if (this.#busy.has(key)) continue;
      this.#waiting.delete(key);
      this.#busy.add(key);
      void this.#perform(key, work).finally(() => {
        this.#busy.delete(key);
        this.#go();
        if (this.size > 0) return;
        for (const resolve of this.#idle.splice(0)) resolve();
      });
    }
  }
}

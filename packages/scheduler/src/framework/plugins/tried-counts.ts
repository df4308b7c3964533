/**
 * Pods by domain, of which copies can be made for each node that is tried: a copy holds only what
 * it changes itself, so that as many copies as there are domains do not cost their square. What was
 * copied must not change while its copies are in use.
 */
export class TriedCounts {
  readonly #base: TriedCounts | null;
  readonly #own = new Map<string, number>();
  #size: number;
  /** The smallest count and how many have it; not known before it is asked for. */
  #least = -1;
  #atLeast = 0;

  constructor(base: TriedCounts | null = null) {
    this.#base = base;
    this.#size = base?.size ?? 0;
  }

  /** Domains. */
  get size(): number {
    return this.#size;
  }

  /** Domains with their counts. */
  *entries(): Iterable<readonly [domain: string, count: number]> {
    for (const domain of this.#domains()) yield [domain, this.get(domain) ?? 0];
  }

  get(domain: string): number | undefined {
    return this.#own.get(domain) ?? this.#base?.get(domain);
  }

  set(domain: string, count: number): void {
    if (this.get(domain) === undefined) this.#size++;
    this.#own.set(domain, count);
    this.#least = -1;
  }

  /** The smallest count; Infinity without domains. */
  least(): number {
    if (this.#base !== null && this.#least < 0) {
      const before = this.#base.least();
      let least = before;
      let changed = 0;
      for (const [domain, count] of this.#own) {
        if (count < least) least = count;
        if (this.#base.get(domain) === before) changed++;
      }
      // Some of those that were least are as they were.
      if (changed < this.#base.#found().#atLeast) return least;
    }
    return this.#found().#least;
  }

  #found(): this {
    if (this.#least >= 0) return this;
    this.#least = Infinity;
    for (const count of this.#all()) {
      if (count < this.#least) {
        this.#least = count;
        this.#atLeast = 0;
      }
      if (count === this.#least) this.#atLeast++;
    }
    return this;
  }

  *#all(): Iterable<number> {
    yield* this.#own.values();
    if (this.#base === null) return;
    for (const domain of this.#base.#domains()) {
      if (!this.#own.has(domain)) yield this.#base.get(domain) ?? 0;
    }
  }

  *#domains(): Iterable<string> {
    yield* this.#own.keys();
    if (this.#base === null) return;
    for (const domain of this.#base.#domains()) if (!this.#own.has(domain)) yield domain;
  }
}

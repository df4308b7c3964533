/** Time, luck and weather of the simulated cluster: all happens in `runUntil`. */
import { Random } from '@megaplane/base/random';

const SECOND_MS = 1000;
const OUTAGE_MS = 60_000;
const STORM_MS = 20_000;

interface Happening {
  readonly atMs: number;
  readonly order: number;
  run(): void;
}

export class World {
  readonly random: Random;
  /** What broke a law, in the order of time. */
  readonly faults: string[] = [];
  nowMs = 1_000_000;
  /** Nothing gets lost, and nobody changes anything any more. */
  isCalm = false;
  /** Somebody awaits a promise: the rest of the moment is theirs. */
  isAwaited = false;
  #happenings: Happening[] = [];
  #order = 0;
  #outageEndMs = 0;
  #stormEndMs = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  chance(percent: number): boolean {
    return !this.isCalm && this.random.below(100) < percent;
  }

  pick<T>(all: readonly T[]): T | undefined {
    return all[this.random.below(Math.max(1, all.length))];
  }

  fault(text: string): void {
    if (this.faults.length < 10) this.faults.push(`${this.nowMs / SECOND_MS} s: ${text}`);
  }

  at(delayMs: number, run: () => void): void {
    const next = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, run };
    let [low, high] = [0, this.#happenings.length];
    // The latest comes first, so that the next is taken off the end.
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#happenings[middle]!.atMs > next.atMs) low = middle + 1;
      else high = middle;
    }
    this.#happenings.splice(low, 0, next);
  }

  every(periodMs: number, run: () => void): void {
    this.at(periodMs, () => {
      run();
      this.every(periodMs, run);
    });
  }

  /** Lets what is due happen until a moment. */
  async runUntil(endMs: number): Promise<void> {
    for (;;) {
      const due = this.#happenings.at(-1);
      if (due === undefined || due.atMs > endMs) break;
      this.#happenings.pop();
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.run();
      if (!this.isAwaited) continue;
      this.isAwaited = false;
      await new Promise((resolve) => void setImmediate(resolve));
    }
    this.nowMs = endMs;
  }

  /** When the server can be reached again. */
  get outageMs(): number {
    return Math.max(0, this.#outageEndMs - this.nowMs);
  }

  /** The server is there, but takes few requests. */
  get isStormy(): boolean {
    return this.nowMs < this.#stormEndMs;
  }

  goStormy(): void {
    this.#stormEndMs = this.nowMs + STORM_MS;
  }

  goOut(): void {
    this.#outageEndMs = this.nowMs + OUTAGE_MS;
  }

  calmDown(): void {
    this.isCalm = true;
    this.#stormEndMs = this.nowMs;
    this.#outageEndMs = this.nowMs;
  }
}

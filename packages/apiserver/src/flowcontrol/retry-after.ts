/**
 * How long refused clients are told to stay away: doubled while a level keeps refusing many,
 * shortened by a second when it refuses few. The rule and its numbers are upstream's
 * (`dropped_requests_tracker.go`); at most one step a second.
 */
const SECONDS_MAX = 32;

export class RetryAfter {
  #seconds = 1;
  /** Refusals of past seconds, newest last; as many as the longest window looks back. */
  readonly #drops: { readonly second: number; count: number }[] = [];
  #lastSecond = -1;
  #raisedSecond = -Infinity;

  get seconds(): number {
    return this.#seconds;
  }

  /** A request was refused at this time. */
  drop(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    this.#step(second);
    const newest = this.#drops.at(-1);
    if (newest?.second === second) newest.count++;
    else this.#drops.push({ second, count: 1 });
    if (this.#drops.length > SECONDS_MAX + 1) this.#drops.shift();
  }

  #step(second: number): void {
    if (second === this.#lastSecond) return;
    this.#lastSecond = second;
    let dropped = 0;
    for (const one of this.#drops) {
      if (one.second >= second - this.#seconds) dropped += one.count;
    }
    if (second - this.#raisedSecond >= this.#seconds && dropped >= 3 * this.#seconds) {
      this.#raisedSecond = second;
      this.#seconds = Math.min(SECONDS_MAX, 2 * this.#seconds);
    } else if (dropped < this.#seconds && this.#seconds > 1) this.#seconds--;
  }
}

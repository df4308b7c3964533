/**
 * How long a quantity was which part of its limit: a histogram with one observation for each
 * nanosecond, as upstream counts what goes up and down (`TimingRatioHistogram`).
 */

const NS_PER_MS = 1e6;

export class TimedRatio {
  readonly #bounds: readonly number[];
  readonly #durations: Float64Array;
  #sum = 0;
  #value = 0;
  #limit = 1;
  #sinceMs: number;

  constructor(bounds: readonly number[], nowMs: number) {
    this.#bounds = bounds;
    this.#durations = new Float64Array(bounds.length + 1);
    this.#sinceMs = nowMs;
  }

  get value(): number {
    return this.#value;
  }

  /** What counts as all of it from now on; at least 1. */
  limitTo(limit: number, nowMs: number): void {
    if (limit === this.#limit) return;
    this.#pass(nowMs);
    this.#limit = Math.max(1, limit);
  }

  set(value: number, nowMs: number): void {
    if (value === this.#value) return;
    this.#pass(nowMs);
    this.#value = value;
  }

  add(delta: number, nowMs: number): void {
    this.set(this.#value + delta, nowMs);
  }

  #pass(nowMs: number): void {
    const passed = Math.round((nowMs - this.#sinceMs) * NS_PER_MS);
    this.#sinceMs = nowMs;
    if (passed <= 0) return;
    const ratio = this.#value / this.#limit;
    let index = 0;
    while (index < this.#bounds.length && ratio > (this.#bounds[index] ?? Infinity)) index++;
    this.#durations[index] = (this.#durations[index] ?? 0) + passed;
    this.#sum += ratio * passed;
  }

  print(lines: string[], name: string, labels: string, nowMs: number): void {
    this.#pass(nowMs);
    printBuckets(lines, name, labels, { bounds: this.#bounds, counts: this.#durations });
    const total = this.#durations.reduce((sum, one) => sum + one, 0);
    lines.push(`${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${total}`);
  }
}

/** The lines of a histogram's buckets, each with all that are smaller. */
export function printBuckets(
  lines: string[],
  name: string,
  labels: string,
  { bounds, counts }: { readonly bounds: readonly number[]; readonly counts: Float64Array },
): void {
  let total = 0;
  for (const [index, count] of counts.entries()) {
    total += count;
    lines.push(`${name}_bucket{${labels},le="${bounds[index] ?? '+Inf'}"} ${total}`);
  }
}

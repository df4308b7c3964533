/** A histogram of Prometheus: how many values were at most so large. */
import { edgeText } from '@megaplane/base/text-format';

export class Histogram {
  readonly #bounds: readonly number[];
  /** Values by the first bound that they are within. */
  readonly #counts: Float64Array;
  #sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** `weight`: values that it stands for. */
  observe(value: number, weight = 1): void {
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] ?? Infinity)) index++;
    this.#counts[index] = (this.#counts[index] ?? 0) + weight;
    this.#sum += value * weight;
    this.count += weight;
  }

  /** So many values, none above the first bound, of this sum. */
  observeSmall(count: number, sum: number): void {
    this.#counts[0] = (this.#counts[0] ?? 0) + count;
    this.#sum += sum;
    this.count += count;
  }

  copy(): Histogram {
    const other = new Histogram(this.#bounds);
    other.#counts.set(this.#counts);
    other.#sum = this.#sum;
    other.count = this.count;
    return other;
  }

  /** Appends its lines in the text format. */
  print(lines: string[], name: string, labels: string): void {
    let below = 0;
    for (const [index, bound] of this.#bounds.entries()) {
      below += this.#counts[index] ?? 0;
      lines.push(`${name}_bucket{${labels},le="${edgeText(bound)}"} ${below}`);
    }
    lines.push(`${name}_bucket{${labels},le="+Inf"} ${this.count}`);
    lines.push(`${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${this.count}`);
  }
}

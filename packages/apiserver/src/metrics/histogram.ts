/** A histogram of Prometheus: how many values were at most so large. */

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
      lines.push(`${name}_bucket{${labels},le="${boundText(bound)}"} ${below}`);
    }
    lines.push(`${name}_bucket{${labels},le="+Inf"} ${this.count}`);
    lines.push(`${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${this.count}`);
  }
}

/** As Go writes it: `2.592e+06` from a million on, `5e-07` below a ten thousandth. */
export function boundText(bound: number): string {
  if (bound === 0 || (bound >= 1e-4 && bound < 1e6)) return String(bound);
  const [digits = '', exponent = ''] = bound.toExponential().split('e');
  return `${digits}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`;
}

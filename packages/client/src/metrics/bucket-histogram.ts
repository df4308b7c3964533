// data plane: a histogram with the bucket edges of the metric that it stands for

export class BucketHistogram {
  readonly edges: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  /** `edges` rise; what exceeds the last counts in none of them. */
  constructor(edges: readonly number[]) {
    this.edges = edges;
    this.#counts = new Float64Array(edges.length);
  }

  get count(): number {
    return this.#count;
  }

  get sum(): number {
    return this.#sum;
  }

  record(value: number): void {
    this.#sum += value;
    this.#count++;
    for (let i = 0; i < this.edges.length; i++) {
      if (value > this.edges[i]!) continue;
      this.#counts[i]!++;
      return;
    }
  }

  /** How many values were at most the edge of a bucket. */
  upTo(bucket: number): number {
    let count = 0;
    for (let i = 0; i <= bucket; i++) count += this.#counts[i]!;
    return count;
  }
}

/**
 * Edges that double: `exponential(0.001, 15)` from a millisecond to 16 seconds. Multiplied one
 * after another, as Go's client does: the edges are labels, to the last digit.
 */
export function exponential(first: number, count: number, factor = 2): number[] {
  const edges: number[] = [];
  for (let edge = first; edges.length < count; edge *= factor) edges.push(edge);
  return edges;
}

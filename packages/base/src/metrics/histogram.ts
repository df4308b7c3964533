// data plane: distributions of numbers, recorded without allocation
import { assert } from '../assert.ts';

const SUB_BITS = 6;
const SUB_COUNT: number = 1 << SUB_BITS;
/** Values are counted in units up to 2^53. */
const BUCKETS: number = (53 - SUB_BITS + 1) * SUB_COUNT;

/**
 * A log-linear histogram: any magnitude, relative error below 1/64, 24 KiB.
 *
 * Values below 128 units have a bucket each; from there on each doubling is cut into 64 equal
 * buckets. The unit is the smallest difference of interest: with milliseconds and the default of
 * 0.001, a microsecond.
 */
export class LatencyHistogram {
  readonly #unit: number;
  readonly #counts: Float64Array = new Float64Array(BUCKETS);
  #count = 0;
  #sum = 0;
  #max = 0;

  constructor(unit = 0.001) {
    this.#unit = unit;
  }

  /** How many values were recorded. */
  get count(): number {
    return this.#count;
  }

  /** The exact sum of the values. */
  get sum(): number {
    return this.#sum;
  }

  /** The exact largest value; 0 without any. */
  get max(): number {
    return this.#max;
  }

  /** The exact mean; 0 without any value. */
  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  /** Records a value; what is below 0 (or no number) counts as 0. */
  record(value: number): void {
    const known = value > 0 ? value : 0;
    this.#counts[bucketOf(known / this.#unit)]!++;
    this.#count++;
    this.#sum += known;
    if (known > this.#max) this.#max = known;
  }

  /**
   * The value that the fraction `quantile` (0 to 1) of all values does not exceed, too high by
   * less than 1/64 and one unit; 1 gives the exact maximum. 0 without any value.
   */
  quantile(quantile: number): number {
    const wanted = Math.max(1, Math.ceil(quantile * this.#count));
    if (wanted >= this.#count) return this.#max;
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#counts[bucket]!;
      if (seen >= wanted) return Math.min(this.#max, upperEdge(bucket) * this.#unit);
    }
    return this.#max;
  }

  /** How many values were at most `value`, within the error of its bucket. */
  countUpTo(value: number): number {
    const last = bucketOf(Math.max(0, value) / this.#unit);
    let seen = 0;
    for (let bucket = 0; bucket <= last; bucket++) seen += this.#counts[bucket]!;
    return seen;
  }

  /** Adds what another histogram of the same unit recorded. */
  merge(other: LatencyHistogram): void {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      this.#counts[bucket]! += other.#counts[bucket]!;
    }
    this.#count += other.#count;
    this.#sum += other.#sum;
    if (other.#max > this.#max) this.#max = other.#max;
  }

  /** Forgets all values. */
  reset(): void {
    this.#counts.fill(0);
    this.#count = 0;
    this.#sum = 0;
    this.#max = 0;
  }
}

function bucketOf(units: number): number {
  if (units < 2 * SUB_COUNT) return Math.floor(units);
  if (units >= 2 ** 53) return BUCKETS - 1;
  let exponent = 0;
  let mantissa = units;
  if (mantissa >= 2 ** 31) {
    // 32-bit arithmetic ends here; sixteen doublings less bring it back.
    mantissa /= 2 ** 31;
    exponent = 31;
    while (mantissa < SUB_COUNT) {
      mantissa *= 2;
      exponent--;
    }
  }
  const shift = 31 - SUB_BITS - Math.clz32(mantissa);
  exponent += shift;
  return exponent * SUB_COUNT + ((mantissa | 0) >>> shift);
}

/** The first number of units that is beyond a bucket. */
function upperEdge(bucket: number): number {
  if (bucket < 2 * SUB_COUNT) return bucket + 1;
  const exponent = Math.floor(bucket / SUB_COUNT) - 1;
  return ((bucket % SUB_COUNT) + SUB_COUNT + 1) * 2 ** exponent;
}

/**
 * A histogram with chosen upper bounds, as Prometheus exposes them: a value belongs to the first
 * bucket whose bound it does not exceed, and beyond the last bound to `+Inf`.
 */
export class BoundedHistogram {
  /** Upper bounds, ascending, without infinity. */
  readonly bounds: Float64Array;
  /** One count per bound, one for infinity, then the sum. */
  readonly #cells: Float64Array;

  /**
   * `cells` (bounds + 2 of them, zero at first) may lie in memory that threads share: one of them
   * records, the others read.
   */
  constructor(
    bounds: readonly number[],
    cells: Float64Array = new Float64Array(bounds.length + 2),
  ) {
    assert(cells.length === bounds.length + 2, 'a histogram needs bounds + 2 cells');
    this.bounds = Float64Array.from(bounds).sort();
    this.#cells = cells;
  }

  /** Records a value, `times` of it. */
  record(value: number, times = 1): void {
    const bounds = this.bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.#cells[bucket]! += times;
    this.#cells[bounds.length + 1]! += value * times;
  }

  /** The sum of the values. */
  get sum(): number {
    return this.#cells[this.bounds.length + 1]!;
  }

  /** How many values were recorded. */
  get count(): number {
    return this.cumulative(this.bounds.length);
  }

  /** How many values were at most bound `index`; `bounds.length` stands for infinity. */
  cumulative(index: number): number {
    let seen = 0;
    for (let bucket = 0; bucket <= index; bucket++) seen += this.#cells[bucket]!;
    return seen;
  }
}

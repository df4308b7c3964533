/**
 * Figures since the start, in bounded memory: when the rows are used up, two become one, and every
 * row stands for twice the time from then on. So the whole life of a cluster is always there, its
 * last minutes not finer than its first.
 *
 * A figure that is not known at a moment is NaN; the mean of two rows leaves it out.
 */

/** Rows that are kept at most; with one a second the first hour has every second. */
export const HISTORY_ROWS_MAX = 3600;
/** Different figures that are kept at most: what comes beyond is left out. */
export const HISTORY_FIGURES_MAX = 128;

/** All that is known, as it is sent: a time and one value per name for each row. */
export interface HistoryDump {
  readonly timesMs: readonly number[];
  readonly names: readonly string[];
  /** By name, then by row; null where not known. */
  readonly columns: readonly (readonly (number | null)[])[];
}

export class History {
  readonly #rowsMax: number;
  readonly #timesMs: Float64Array;
  readonly #columns: Map<string, Float64Array> = new Map();
  #rows = 0;
  /** Samples that a row stands for, and how many of the next row have come. */
  #samplesPerRow = 1;
  #pending = 0;

  constructor(rowsMax: number = HISTORY_ROWS_MAX) {
    this.#rowsMax = rowsMax;
    this.#timesMs = new Float64Array(rowsMax);
  }

  get rows(): number {
    return this.#rows;
  }

  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  /** Adds what was seen at a moment. Times never go back. */
  add(timeMs: number, values: ReadonlyMap<string, number>): void {
    if (this.#pending === 0) this.#begin(timeMs);
    const row = this.#rows - 1;
    for (const [name, value] of values) {
      const column = this.#columnOf(name);
      if (column === undefined) continue;
      const before = column[row] ?? NaN;
      // the mean of a row grows with each sample of it
      const weight = 1 / (this.#pending + 1);
      column[row] = Number.isNaN(before) ? value : before + (value - before) * weight;
    }
    this.#pending = (this.#pending + 1) % this.#samplesPerRow;
  }

  /** The times of all rows in seconds since 1970, as charts take them. */
  timesSeconds(): number[] {
    return Array.from(this.#timesMs.subarray(0, this.#rows), (ms) => ms / 1000);
  }

  /** One figure at all rows; null where it is not known. */
  column(name: string): (number | null)[] {
    const column = this.#columns.get(name);
    if (column === undefined) return Array.from({ length: this.#rows }, () => null);
    return Array.from(column.subarray(0, this.#rows), (value) =>
      Number.isNaN(value) ? null : value,
    );
  }

  dump(): HistoryDump {
    const names = this.names;
    return {
      timesMs: Array.from(this.#timesMs.subarray(0, this.#rows)),
      names,
      columns: names.map((name) => this.column(name).map((value) => rounded(value))),
    };
  }

  /** Begins anew with what another history told. */
  static from({ timesMs, names, columns }: HistoryDump, rowsMax?: number): History {
    const history = new History(rowsMax);
    for (const [row, timeMs] of timesMs.entries()) {
      const values = new Map<string, number>();
      for (const [index, name] of names.entries()) {
        const value = columns[index]?.[row];
        if (value !== null && value !== undefined) values.set(name, value);
      }
      history.add(timeMs, values);
    }
    return history;
  }

  #begin(timeMs: number): void {
    if (this.#rows === this.#rowsMax) this.#halve();
    this.#timesMs[this.#rows++] = timeMs;
  }

  #columnOf(name: string): Float64Array | undefined {
    const found = this.#columns.get(name);
    if (found !== undefined || this.#columns.size >= HISTORY_FIGURES_MAX) return found;
    const column = new Float64Array(this.#rowsMax).fill(NaN);
    this.#columns.set(name, column);
    return column;
  }

  #halve(): void {
    const half = Math.floor(this.#rows / 2);
    for (let row = 0; row < half; row++) {
      this.#timesMs[row] = this.#timesMs[row * 2] ?? NaN;
      for (const column of this.#columns.values()) {
        column[row] = mean(column[row * 2] ?? NaN, column[row * 2 + 1] ?? NaN);
      }
    }
    for (const column of this.#columns.values()) column.fill(NaN, half);
    this.#rows = half;
    this.#samplesPerRow *= 2;
  }
}

function mean(first: number, second: number): number {
  if (Number.isNaN(first)) return second;
  return Number.isNaN(second) ? first : (first + second) / 2;
}

/** Four digits are more than a curve shows. */
function rounded(value: number | null): number | null {
  return value === null ? null : Number(value.toPrecision(4));
}

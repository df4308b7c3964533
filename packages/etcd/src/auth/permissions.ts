/** What a user may read and write, as merged intervals of keys. Keys are latin1 texts of bytes. */

export const READ = 0;
export const WRITE = 1;
export const READ_WRITE = 2;

export interface Permission {
  /** READ, WRITE or READ_WRITE. */
  readonly type: number;
  readonly key: string;
  /** Empty: one key; a zero byte: every key from `key` on; else the first key beyond. */
  readonly rangeEnd: string;
}

/** [start, end); an end of null has no bound. */
type Interval = readonly [string, string | null];

function intervalOf(key: string, rangeEnd: string): Interval {
  if (rangeEnd === '') return [key, `${key}\0`];
  return [key, rangeEnd === '\0' ? null : rangeEnd];
}

/** Must a permission be refused because its range is empty or without a key? */
export function isValidRange(key: string, rangeEnd: string): boolean {
  if (key === '') return false;
  return rangeEnd === '' || rangeEnd === '\0' || key < rangeEnd;
}

/** Intervals of one kind, disjoint and in order. */
class Intervals {
  readonly #merged: Interval[] = [];

  constructor(all: readonly Interval[]) {
    for (const next of [...all].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
      const last = this.#merged.at(-1);
      if (last === undefined || (last[1] !== null && last[1] < next[0])) this.#merged.push(next);
      else this.#merged[this.#merged.length - 1] = [last[0], later(last[1], next[1])];
    }
  }

  /** Is all of [start, end) inside? */
  holds([start, end]: Interval): boolean {
    return this.#merged.some(
      ([from, to]) =>
        from <= start &&
        (to === null || start < to) &&
        (to === null || (end !== null && end <= to)),
    );
  }
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return null;
  return a > b ? a : b;
}

/** The permissions of all roles of a user together: ranges that touch count as one. */
export class Rights {
  readonly #reads: Intervals;
  readonly #writes: Intervals;

  constructor(permissions: readonly Permission[]) {
    const of = (kind: number): Intervals =>
      new Intervals(
        permissions
          .filter(({ type }) => type === kind || type === READ_WRITE)
          .map(({ key, rangeEnd }) => intervalOf(key, rangeEnd)),
      );
    this.#reads = of(READ);
    this.#writes = of(WRITE);
  }

  allows(kind: number, key: string, rangeEnd: string): boolean {
    const held = kind === READ ? this.#reads : this.#writes;
    return held.holds(intervalOf(key, rangeEnd));
  }
}

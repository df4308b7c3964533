// data plane: the cheapest set of machines that covers what is wanted
//
// A covering problem in whole numbers: of each kind so many machines, at most as many as there are,
// so that together they offer what is wanted in each dimension, for the least cost.
//
//   1. Its relaxation by fractions is solved by the simplex method on the dual, which begins at
//      zero: with few dimensions and some dozens of kinds this takes microseconds. A kind of which
//      more is wanted than there is gives all that it has, and the rest is solved anew.
//   2. Whole parts are kept. What is left is the size of a few machines, and is covered by a search
//      through the best fills, bounded by steps and by the prices of step 1.
//   3. Some machines of each kind that is kept are given back on trial, and the rest covered anew.
//
// Prices of step 1 say what a unit of each dimension is worth: their sum over what is wanted, less
// what kinds that are used up pay beyond their cost, is a lower bound of all covers (`bound`).

/** One kind of machine. */
export interface CoverKind {
  readonly cost: number;
  readonly offers: Float64Array;
  readonly count: number;
}

export interface Cover {
  /** By kind. */
  readonly counts: Int32Array;
  readonly cost: number;
  /** No cover costs less. */
  readonly bound: number;
  /** False: all that there is does not cover it, and all that helps is taken. */
  readonly isWhole: boolean;
  /** Steps that the search took. */
  readonly steps: number;
}

/** Fills that the search looks at; then it takes the best one so far. */
export const STEPS_MAX = 4000;
/** More kinds than this are ranked, and the best of them looked at. */
export const KINDS_MAX = 256;
const PIVOTS_MAX = 500;
/** Trials of giving back: so many machines of a kind, so often. */
const BACK_MAX = 3;
const ROUNDS_MAX = 3;
const TINY = 1e-9;

/** Covers `wanted`. Costs are 0 or more; dimensions that no kind offers are not looked at. */
export function cheapestCover(
  kinds: readonly CoverKind[],
  wanted: Float64Array,
  stepsLeft: number = Infinity,
): Cover {
  const budget = { steps: 0, max: Math.max(0, stepsLeft) };
  const useful = kinds.map((kind) => isUseful(kind, wanted));
  const reachable = wanted.map((want, at) => {
    let sum = 0;
    for (const [index, kind] of kinds.entries()) {
      if (useful[index]!) sum += kind.offers[at]! * kind.count;
    }
    return Math.min(want, sum);
  });
  const isWhole = reachable.every((amount, at) => amount >= wanted[at]!);
  const counts = new Int32Array(kinds.length);
  const left = reachable.slice();
  const [duals, lastDuals] = keepWholeParts(kinds, useful, counts, left);
  const bound = Math.max(worthAt(kinds, reachable, duals), worthAt(kinds, reachable, lastDuals));
  fill({ kinds, useful, duals, budget }, counts, left);
  giveBack({ kinds, useful, duals, budget }, counts, reachable);
  let cost = 0;
  for (let at = 0; at < counts.length; at++)
    if (counts[at]! > 0) cost += counts[at]! * kinds[at]!.cost;
  return { counts, cost, bound: Math.min(bound, cost), isWhole, steps: budget.steps };
}

interface Problem {
  readonly kinds: readonly CoverKind[];
  readonly useful: readonly boolean[];
  readonly duals: Float64Array;
  readonly budget: { steps: number; readonly max: number };
}

function isUseful({ count, offers }: CoverKind, wanted: Float64Array): boolean {
  if (count <= 0) return false;
  for (let at = 0; at < wanted.length; at++) if (wanted[at]! > 0 && offers[at]! > 0) return true;
  return false;
}

function isCovered(left: Float64Array): boolean {
  for (let at = 0; at < left.length; at++) if (left[at]! > TINY) return false;
  return true;
}

function take(left: Float64Array, { offers }: CoverKind, times: number): void {
  for (let at = 0; at < left.length; at++) {
    const rest = left[at]! - offers[at]! * times;
    left[at] = rest > TINY ? rest : 0;
  }
}

/** What no cover costs less than, by prices of dimensions: kinds that pay more are used up. */
function worthAt(kinds: readonly CoverKind[], wanted: Float64Array, duals: Float64Array): number {
  let worth = 0;
  for (let at = 0; at < wanted.length; at++) worth += duals[at]! * wanted[at]!;
  for (const { offers, cost, count } of kinds) {
    let gain = -cost;
    for (let at = 0; at < wanted.length; at++) gain += duals[at]! * offers[at]!;
    if (gain > 0) worth -= gain * count;
  }
  return worth;
}

/** Keeps the whole parts of the solution by fractions. Answers its first and its last prices. */
function keepWholeParts(
  kinds: readonly CoverKind[],
  useful: readonly boolean[],
  counts: Int32Array,
  left: Float64Array,
): readonly [Float64Array, Float64Array] {
  let first: Float64Array | undefined;
  let last: Float64Array = new Float64Array(left.length);
  for (let round = 0; round <= kinds.length; round++) {
    const open: number[] = [];
    for (let at = 0; at < kinds.length; at++) {
      if (useful[at]! && counts[at]! < kinds[at]!.count) open.push(at);
    }
    if (open.length === 0 || isCovered(left)) break;
    const { duals, amounts } = relaxed(
      open.map((at) => kinds[at]!),
      left,
    );
    first ??= duals;
    last = duals;
    let hasFull = false;
    for (let place = 0; place < open.length; place++) {
      const at = open[place]!;
      const room = kinds[at]!.count - counts[at]!;
      if (amounts[place]! < room) continue;
      hasFull = true;
      counts[at] = counts[at]! + room;
      take(left, kinds[at]!, room);
    }
    if (hasFull) continue;
    for (let place = 0; place < open.length; place++) {
      const at = open[place]!;
      const whole = Math.floor(amounts[place]! + TINY);
      counts[at] = counts[at]! + whole;
      take(left, kinds[at]!, whole);
    }
    break;
  }
  return [first ?? last, last];
}

/**
 * Minimizes the cost of fractions of kinds that cover `left`, by the dual: maximizes the worth of
 * `left` where no kind offers more worth than it costs. Amounts of kinds are unbounded.
 */
function relaxed(
  kinds: readonly CoverKind[],
  left: Float64Array,
): { readonly duals: Float64Array; readonly amounts: Float64Array } {
  const dimensions = left.length;
  const rows = kinds.length;
  const width = dimensions + 1;
  // a row for each kind: offers, cost; `basis` names what is in a row, kinds after dimensions
  const table = new Float64Array(rows * width);
  const basis = new Int32Array(rows);
  const columns = new Int32Array(dimensions);
  for (let row = 0; row < rows; row++) {
    const { offers, cost } = kinds[row]!;
    for (let at = 0; at < dimensions; at++) table[row * width + at] = offers[at]!;
    table[row * width + dimensions] = cost;
    basis[row] = dimensions + row;
  }
  const gain = new Float64Array(width);
  for (let at = 0; at < dimensions; at++) {
    gain[at] = left[at]!;
    columns[at] = at;
  }
  for (let pivots = 0; pivots < PIVOTS_MAX; pivots++) {
    let column = -1;
    for (let at = 0; at < dimensions; at++) {
      if (gain[at]! > TINY && (column < 0 || gain[at]! > gain[column]!)) column = at;
    }
    if (column < 0) break;
    let row = -1;
    let least = Infinity;
    for (let at = 0; at < rows; at++) {
      const by = table[at * width + column]!;
      if (by <= TINY) continue;
      const ratio = table[at * width + dimensions]! / by;
      if (ratio < least - TINY || (ratio < least + TINY && row >= 0 && basis[at]! < basis[row]!)) {
        least = ratio;
        row = at;
      }
    }
    // nobody offers this dimension
    if (row < 0) gain[column] = 0;
    else pivot(table, gain, { row, column, rows, width });
    if (row >= 0) {
      const leaving = basis[row]!;
      basis[row] = columns[column]!;
      columns[column] = leaving;
    }
  }
  const duals = new Float64Array(dimensions);
  const amounts = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    if (basis[row]! < dimensions) duals[basis[row]!] = table[row * width + dimensions]!;
  }
  for (let at = 0; at < dimensions; at++) {
    const kind = columns[at]! - dimensions;
    if (kind >= 0) amounts[kind] = Math.max(0, -gain[at]!);
  }
  return { duals, amounts };
}

function pivot(
  table: Float64Array,
  gain: Float64Array,
  at: {
    readonly row: number;
    readonly column: number;
    readonly rows: number;
    readonly width: number;
  },
): void {
  const { row, column, rows, width } = at;
  const by = table[row * width + column]!;
  for (let place = 0; place < width; place++) {
    const index = row * width + place;
    table[index] = place === column ? 1 / by : table[index]! / by;
  }
  for (let other = 0; other < rows; other++) {
    if (other === row) continue;
    const factor = table[other * width + column]!;
    if (factor === 0) continue;
    for (let place = 0; place < width; place++) {
      const index = other * width + place;
      const base = place === column ? 0 : table[index]!;
      table[index] = base - factor * table[row * width + place]!;
    }
  }
  const factor = gain[column]!;
  for (let place = 0; place < width; place++) {
    const base = place === column ? 0 : gain[place]!;
    gain[place] = base - factor * table[row * width + place]!;
  }
}

/** Covers what is left by whole machines, as cheaply as a bounded search finds. */
function fill(
  { kinds, useful, duals, budget }: Problem,
  counts: Int32Array,
  left: Float64Array,
): void {
  if (isCovered(left)) return;
  const ranked: number[] = [];
  for (let at = 0; at < kinds.length; at++) {
    if (useful[at]! && counts[at]! < kinds[at]!.count) ranked.push(at);
  }
  const costOf = (at: number): number =>
    kinds[at]!.cost / Math.max(TINY, worthOf(kinds[at]!, left));
  ranked.sort((a, b) => costOf(a) - costOf(b));
  const search = new Search(kinds, counts, ranked.slice(0, KINDS_MAX), { duals, budget });
  const best = search.run(left);
  for (const at of best) counts[at] = counts[at]! + 1;
}

/** How much of what is left one machine covers, as a sum of shares. */
function worthOf({ offers }: CoverKind, left: Float64Array): number {
  let worth = 0;
  for (let at = 0; at < left.length; at++) {
    if (left[at]! > 0) worth += Math.min(1, offers[at]! / left[at]!);
  }
  return worth;
}

class Search {
  readonly #kinds: readonly CoverKind[];
  readonly #counts: Int32Array;
  readonly #ranked: readonly number[];
  readonly #duals: Float64Array;
  readonly #budget: Problem['budget'];
  #best: readonly number[] = [];
  #bestCost = Infinity;
  #steps = 0;

  constructor(
    kinds: readonly CoverKind[],
    counts: Int32Array,
    ranked: readonly number[],
    { duals, budget }: Pick<Problem, 'duals' | 'budget'>,
  ) {
    this.#budget = budget;
    this.#kinds = kinds;
    this.#counts = counts.slice();
    this.#ranked = ranked;
    this.#duals = duals;
  }

  run(left: Float64Array): readonly number[] {
    this.#greedily(left);
    this.#deepen(left, 0, 0, []);
    return this.#best;
  }

  /** A first cover, so that the search has something to beat. */
  #greedily(left: Float64Array): void {
    const rest = left.slice();
    const taken: number[] = [];
    const counts = this.#counts.slice();
    let cost = 0;
    while (!isCovered(rest)) {
      let best = -1;
      let bestRatio = Infinity;
      for (const at of this.#ranked) {
        if (counts[at]! >= this.#kinds[at]!.count) continue;
        const worth = worthOf(this.#kinds[at]!, rest);
        if (worth <= 0) continue;
        const ratio = this.#kinds[at]!.cost / worth;
        if (ratio < bestRatio) [best, bestRatio] = [at, ratio];
      }
      if (best < 0) break;
      counts[best] = counts[best]! + 1;
      cost += this.#kinds[best]!.cost;
      taken.push(best);
      take(rest, this.#kinds[best]!, 1);
    }
    this.#best = taken;
    this.#bestCost = isCovered(rest) ? cost : Infinity;
  }

  #deepen(left: Float64Array, from: number, cost: number, taken: number[]): void {
    if (this.#steps++ >= STEPS_MAX || this.#budget.steps++ >= this.#budget.max) return;
    if (isCovered(left)) {
      if (cost < this.#bestCost - TINY) {
        this.#bestCost = cost;
        this.#best = taken.slice();
      }
      return;
    }
    let least = cost;
    for (let at = 0; at < left.length; at++) least += this.#duals[at]! * left[at]!;
    if (least >= this.#bestCost - TINY) return;
    for (let place = from; place < this.#ranked.length; place++) {
      const at = this.#ranked[place]!;
      const kind = this.#kinds[at]!;
      if (this.#counts[at]! >= kind.count || worthOf(kind, left) <= 0) continue;
      if (cost + kind.cost >= this.#bestCost - TINY) continue;
      const rest = left.slice();
      take(rest, kind, 1);
      this.#counts[at] = this.#counts[at]! + 1;
      taken.push(at);
      this.#deepen(rest, place, cost + kind.cost, taken);
      taken.pop();
      this.#counts[at]--;
    }
  }
}

/** Tries whether one machine less of a kind, and the rest covered anew, is cheaper. */
function giveBack(problem: Problem, counts: Int32Array, wanted: Float64Array): void {
  const { kinds, budget } = problem;
  if (budget.steps >= budget.max) return;
  const costOf = (all: Int32Array): number => {
    let cost = 0;
    for (let at = 0; at < all.length; at++) cost += all[at]! === 0 ? 0 : all[at]! * kinds[at]!.cost;
    return cost;
  };
  const leftBy = (all: Int32Array): Float64Array => {
    const left = wanted.slice();
    for (let at = 0; at < all.length; at++) if (all[at]! > 0) take(left, kinds[at]!, all[at]!);
    return left;
  };
  let best = costOf(counts);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const before = best;
    for (let at = 0; at < counts.length; at++) {
      for (let back = 1; back <= Math.min(BACK_MAX, counts[at]!); back++) {
        const trial = counts.slice();
        trial[at] = trial[at]! - back;
        fill(problem, trial, leftBy(trial));
        const cost = costOf(trial);
        if (cost >= best - TINY || !isCovered(leftBy(trial))) continue;
        best = cost;
        counts.set(trial);
      }
    }
    if (best >= before - TINY) return;
  }
}

/** Least and most units that something can cost, or characters and members that it can have. */
export interface CostRange {
  readonly min: number;
  readonly max: number;
}

export const NONE: CostRange = { min: 0, max: 0 };
export const ONE: CostRange = { min: 1, max: 1 };
export const UNKNOWN: CostRange = { min: 0, max: Infinity };

export function fixed(cost: number): CostRange {
  return { min: cost, max: cost };
}

export function add(left: CostRange, right: CostRange): CostRange {
  return { min: left.min + right.min, max: left.max + right.max };
}

/** Nothing times anything is nothing, also where the other has no bound. */
export function times(left: number, right: number): number {
  return left === 0 || right === 0 ? 0 : left * right;
}

export function multiply(left: CostRange, right: CostRange): CostRange {
  return { min: times(left.min, right.min), max: times(left.max, right.max) };
}

export function scale({ min, max }: CostRange, factor: number): CostRange {
  return { min: Math.ceil(min * factor), max: Math.ceil(max * factor) };
}

export function union(left: CostRange, right: CostRange): CostRange {
  return { min: Math.min(left.min, right.min), max: Math.max(left.max, right.max) };
}

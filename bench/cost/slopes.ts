/** Whether a series grows: the line of least squares through it, and how sure its slope is. */

export interface Slope {
  /** Of y by x. */
  readonly slope: number;
  /** Standard error of the slope. */
  readonly error: number;
}

/** How many standard errors a slope must exceed its limit by, to be growth and not noise. */
const ERRORS = 2;
const POINTS_MIN = 3;

/** Through points in any order; NaN where there are fewer than three, or all at one place. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): Slope {
  const count = points.length;
  if (count < POINTS_MIN) return { slope: NaN, error: NaN };
  const mean = (at: 0 | 1): number => points.reduce((sum, point) => sum + point[at], 0) / count;
  const [meanX, meanY] = [mean(0), mean(1)];
  let [squares, products] = [0, 0];
  for (const [x, y] of points) {
    squares += (x - meanX) ** 2;
    products += (x - meanX) * (y - meanY);
  }
  const slope = squares === 0 ? NaN : products / squares;
  const rest = points.reduce((sum, [x, y]) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (count - 2) / squares) };
}

/** Whether it surely grows by more than `limit`. */
export function grows({ slope, error }: Slope, limit: number): boolean {
  return slope - ERRORS * error > limit;
}

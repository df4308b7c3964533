/** The three ways of scoring how full a node gets. */
import { percent } from '../../collections/integers.ts';
import { SCORE_MAX } from '../plugin.ts';

export interface ScoringStrategy {
  readonly type?: string;
  readonly resources?: readonly { readonly name: string; readonly weight?: number }[];
  readonly requestedToCapacityRatio?: {
    readonly shape?: readonly { readonly utilization: number; readonly score: number }[];
  };
}

/** One resource of a node with the pod on it. A capacity of 0 leaves the resource out. */
export interface Usage {
  readonly requested: number;
  readonly capacity: number;
  readonly weight: number;
}

/** Scores in configuration go to 10, inside to 100. */
const SHAPE_FACTOR = 10;

interface Point {
  readonly utilization: number;
  readonly score: number;
}

/** A score from 0 to 100. */
export function allocationScore(strategy: ScoringStrategy, usages: readonly Usage[]): number {
  switch (strategy.type ?? 'LeastAllocated') {
    case 'MostAllocated':
      return weighted(usages, ({ requested, capacity }) =>
        percent(Math.min(requested, capacity), capacity),
      );
    case 'RequestedToCapacityRatio':
      return ratioScore(strategy.requestedToCapacityRatio?.shape ?? [], usages);
    default:
      return weighted(usages, ({ requested, capacity }) =>
        requested > capacity ? 0 : percent(capacity - requested, capacity),
      );
  }
}

function weighted(usages: readonly Usage[], score: (usage: Usage) => number): number {
  let sum = 0;
  let weights = 0;
  for (const usage of usages) {
    if (usage.capacity === 0) continue;
    sum += score(usage) * usage.weight;
    weights += usage.weight;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}

/** A resource that scores 0 takes its weight out of the average too, as upstream has it. */
function ratioScore(shape: readonly Point[], usages: readonly Usage[]): number {
  let sum = 0;
  let weights = 0;
  for (const { requested, capacity, weight } of usages) {
    if (capacity === 0) continue;
    const utilization = requested > capacity ? SCORE_MAX : percent(requested, capacity);
    const score = shapeScore(shape, utilization);
    if (score <= 0) continue;
    sum += score * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.round(sum / weights);
}

/** The broken line through the points; each division truncates. */
function shapeScore(shape: readonly Point[], utilization: number): number {
  let before: Point | undefined;
  for (const point of shape) {
    if (utilization <= point.utilization) {
      if (before === undefined) return point.score * SHAPE_FACTOR;
      const rise = (point.score - before.score) * SHAPE_FACTOR;
      const run = point.utilization - before.utilization;
      const part = Math.trunc((rise * (utilization - before.utilization)) / run);
      return before.score * SHAPE_FACTOR + part;
    }
    before = point;
  }
  return (before?.score ?? 0) * SHAPE_FACTOR;
}

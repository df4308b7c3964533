/**
 * From the size that metrics ask for to the size that is set: upstream's stabilization windows,
 * policies of speed, and the bounds of the autoscaler. Time is an argument; the history of one
 * autoscaler is a value of its own.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { AutoscalerRules } from '../framework/autoscaler-rules.ts';

/** How far from 1 the ratio of use to target may be before anything changes. */
export interface Tolerance {
  readonly up: number;
  readonly down: number;
}

interface Recommendation {
  readonly replicas: number;
  readonly atMs: number;
}

interface ScaleEvent {
  readonly change: number;
  readonly atMs: number;
}

/** What one autoscaler has asked for and done. */
export interface ScalingHistory {
  recommendations: Recommendation[];
  ups: ScaleEvent[];
  downs: ScaleEvent[];
}

export function newHistory(replicas: number, nowMs: number): ScalingHistory {
  return { recommendations: [{ replicas, atMs: nowMs }], ups: [], downs: [] };
}

export interface Wish {
  readonly current: number;
  readonly desired: number;
  readonly min: number;
  readonly max: number;
}

/** `able` and `limited` are the reasons and texts of two conditions. */
export interface Decided {
  readonly replicas: number;
  readonly able: readonly [reason: string, message: string];
  readonly limited: readonly [isLimited: boolean, reason: string, message: string];
}

interface Policy {
  readonly isPercent: boolean;
  readonly value: number;
  readonly periodMs: number;
}

interface Direction {
  readonly windowMs: number;
  readonly select: string;
  readonly policies: readonly Policy[];
}

const READY = ['ReadyForNewScale', 'recommended size matches current size'] as const;
const STABLE_DOWN = [
  'ScaleDownStabilized',
  'recent recommendations were higher than current one, applying the highest recent recommendation',
] as const;
const STABLE_UP = [
  'ScaleUpStabilized',
  'recent recommendations were lower than current one, applying the lowest recent recommendation',
] as const;
const RANGE = ['DesiredWithinRange', 'the desired count is within the acceptable range'] as const;
const TOO_MANY = [
  'TooManyReplicas',
  'the desired replica count is more than the maximum replica count',
] as const;
const TOO_FEW = [
  'TooFewReplicas',
  'the desired replica count is less than the minimum replica count',
] as const;
const TOO_FAST_UP = [
  'ScaleUpLimit',
  'the desired replica count is increasing faster than the maximum scale rate',
] as const;
const TOO_FAST_DOWN = [
  'ScaleDownLimit',
  'the desired replica count is decreasing faster than the maximum scale rate',
] as const;

const POLICIES_UP: readonly Policy[] = [
  { isPercent: false, value: 4, periodMs: 15_000 },
  { isPercent: true, value: 100, periodMs: 15_000 },
];
const POLICIES_DOWN: readonly Policy[] = [{ isPercent: true, value: 100, periodMs: 15_000 }];

export function toleranceOf(autoscaler: JsonObject, usual: number): Tolerance {
  const of = (direction: string): number => {
    const given = valueAt(autoscaler, 'spec', 'behavior', direction, 'tolerance');
    const parsed = typeof given === 'string' ? parseQuantity(given) : 'format';
    return typeof parsed === 'string' ? usual : Number(parsed.digits) * 10 ** parsed.scale;
  };
  return { up: of('scaleUp'), down: of('scaleDown') };
}

export function isWithin(tolerance: Tolerance, ratio: number): boolean {
  return 1 - tolerance.down <= ratio && ratio <= 1 + tolerance.up;
}

/** Decides, and remembers what was asked for. */
export function decide(
  autoscaler: JsonObject,
  wish: Wish,
  history: ScalingHistory,
  { downscaleWindowMs }: AutoscalerRules,
  nowMs: number,
): Decided {
  const behavior = objectAt(autoscaler, 'spec', 'behavior');
  if (behavior === undefined) return decidePlainly(wish, history, nowMs - downscaleWindowMs, nowMs);
  const up = directionOf(behavior, 'scaleUp', 0, POLICIES_UP);
  const down = directionOf(behavior, 'scaleDown', downscaleWindowMs / 1000, POLICIES_DOWN);
  const stable = stabilize(wish, history, [up, down], nowMs);
  const steadied = wish.desired >= wish.current ? STABLE_UP : STABLE_DOWN;
  const able = stable === wish.desired ? READY : steadied;
  const [replicas, why] = limit({ ...wish, desired: stable }, history, [up, down], nowMs);
  return { replicas, able, limited: [replicas !== stable, ...why] };
}

function directionOf(
  behavior: JsonObject,
  name: string,
  windowSeconds: number,
  usual: readonly Policy[],
): Direction {
  const rules = objectAt(behavior, name);
  const given = valueAt(rules, 'stabilizationWindowSeconds');
  const policies = listAt(rules, 'policies').map((policy) => ({
    isPercent: stringAt(policy, 'type') === 'Percent',
    value: numberAt(policy, 'value'),
    periodMs: numberAt(policy, 'periodSeconds') * 1000,
  }));
  return {
    windowMs: (typeof given === 'number' ? given : windowSeconds) * 1000,
    select: stringAt(rules, 'selectPolicy') || 'Max',
    policies: policies.length === 0 ? usual : policies,
  };
}

function decidePlainly(wish: Wish, history: ScalingHistory, since: number, nowMs: number): Decided {
  const recent = history.recommendations.filter((one) => one.atMs >= since);
  const stable = Math.max(wish.desired, ...recent.map((one) => one.replicas));
  history.recommendations = [...recent, { replicas: wish.desired, atMs: nowMs }];
  const able = stable === wish.desired ? READY : STABLE_DOWN;
  const fastest = Math.max(2 * wish.current, 4);
  const most = Math.min(wish.max, fastest);
  const why = wish.max > fastest ? TOO_FAST_UP : TOO_MANY;
  if (stable < wish.min) return { replicas: wish.min, able, limited: [true, ...TOO_FEW] };
  if (stable > most) return { replicas: most, able, limited: [true, ...why] };
  return { replicas: stable, able, limited: [false, ...RANGE] };
}

/** Within what was asked for of late: no less than the least, no more than the most. */
function stabilize(
  { current, desired }: Wish,
  history: ScalingHistory,
  [up, down]: readonly [Direction, Direction],
  nowMs: number,
): number {
  let least = desired;
  let most = desired;
  for (const { replicas, atMs } of history.recommendations) {
    if (atMs > nowMs - up.windowMs) least = Math.min(least, replicas);
    if (atMs > nowMs - down.windowMs) most = Math.max(most, replicas);
  }
  const keptMs = Math.max(up.windowMs, down.windowMs);
  history.recommendations = history.recommendations.filter((one) => one.atMs >= nowMs - keptMs);
  history.recommendations.push({ replicas: desired, atMs: nowMs });
  return Math.min(Math.max(current, least), most);
}

/** No faster than the policies let it, and within the bounds. */
function limit(
  { current, desired, min, max }: Wish,
  history: ScalingHistory,
  [up, down]: readonly [Direction, Direction],
  nowMs: number,
): readonly [number, readonly [string, string]] {
  if (desired > current) {
    const fastest = Math.max(current, fastestSize(current, up, history, nowMs, 1));
    const most = Math.min(max, fastest);
    if (desired > most) return [most, max > fastest ? TOO_FAST_UP : TOO_MANY];
  } else if (desired < current) {
    const fastest = Math.min(current, fastestSize(current, down, history, nowMs, -1));
    const least = Math.max(min, fastest);
    if (desired < least) return [least, min < fastest ? TOO_FAST_DOWN : TOO_FEW];
  }
  return [desired, RANGE];
}

/** The size that the policies of a direction (1 up, -1 down) allow now. */
function fastestSize(
  current: number,
  direction: Direction,
  history: ScalingHistory,
  nowMs: number,
  sign: 1 | -1,
): number {
  if (direction.select === 'Disabled') return current;
  const sizes = direction.policies.map(({ isPercent, value, periodMs }) => {
    const since = nowMs - periodMs;
    const sum = (events: readonly ScaleEvent[]): number =>
      events.filter((one) => one.atMs > since).reduce((all, one) => all + one.change, 0);
    const before = current - sum(history.ups) + sum(history.downs);
    if (!isPercent) return before + sign * value;
    const size = before * (1 + (sign * value) / 100);
    return sign > 0 ? Math.ceil(size) : Math.trunc(size);
  });
  // `Max` is the policy that changes most, in either direction.
  const takesLargest = (direction.select === 'Min') !== sign > 0;
  return takesLargest ? Math.max(...sizes) : Math.min(...sizes);
}

/** A change was made: the policies count it. */
export function remember(
  autoscaler: JsonObject,
  history: ScalingHistory,
  before: number,
  after: number,
  nowMs: number,
): void {
  const behavior = objectAt(autoscaler, 'spec', 'behavior');
  if (behavior === undefined) return;
  const isUp = after > before;
  const name = isUp ? 'scaleUp' : 'scaleDown';
  const { policies } = directionOf(behavior, name, 0, isUp ? POLICIES_UP : POLICIES_DOWN);
  const keptMs = Math.max(...policies.map((one) => one.periodMs));
  const events = (isUp ? history.ups : history.downs).filter((one) => one.atMs > nowMs - keptMs);
  events.push({ change: Math.abs(after - before), atMs: nowMs });
  if (isUp) history.ups = events;
  else history.downs = events;
}

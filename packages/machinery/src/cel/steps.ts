/** What the steps of an expression are, and those that evaluate their operands by need. */
import { NO_OVERLOAD } from './values/overload-errors.ts';
import type { Expr, Fold } from './syntax/syntax.ts';
import {
  CelError,
  isEqual,
  Optional,
  typeNameOf,
  type ArrayList,
  type CelValue,
} from './values/values.ts';

/** Values of the variables of an environment; undefined: not bound. */
export type Bindings = Readonly<Record<string, CelValue | undefined>>;

export interface Frame {
  readonly bindings: Bindings;
  /** Variables of comprehensions. */
  readonly slots: CelValue[];
  cost: number;
  readonly costMax: number;
}

export type Step = (frame: Frame) => CelValue;

export const OVER_BUDGET: CelError = new CelError(
  'operation cancelled: actual cost limit exceeded',
);

/** Types of members that a set can be made of. */
const PRIMITIVES: ReadonlySet<string> = new Set('bool double int string uint'.split(' '));

/** What a bound name holds until it is asked for. */
export const UNSET: CelError = new CelError('not evaluated yet');

export function isBinding({ condition, range }: Fold): boolean {
  const isNever = condition.kind === 'constant' && condition.value === false;
  return isNever && range.kind === 'list' && range.items.length === 0;
}

export function lazy(slot: number, init: Step): Step {
  return (frame) => {
    frame.cost++;
    const known = frame.slots[slot] ?? null;
    return known === UNSET ? (frame.slots[slot] = init(frame)) : known;
  };
}

/** Whether upstream resolves a part by its path, for which it counts one unit at the start. */
function isPath(expr: Expr | undefined): boolean {
  if (expr?.kind === 'selection') return !expr.isTest && !expr.isOptional;
  return expr?.kind === 'identifier' || (expr?.kind === 'call' && expr.name === '_[_]');
}

/** What members are taken from: a value that was computed starts a path of its own. */
export function based(step: Step, expr: Expr | undefined): Step {
  if (isPath(expr) || (expr?.kind === 'call' && expr.name === '_?_:_')) return step;
  return (frame) => {
    frame.cost++;
    return step(frame);
  };
}

/** A path as the branch of a choice is a part of the choice's own path. */
export function branch(step: Step, expr: Expr | undefined): Step {
  if (!isPath(expr)) return step;
  return (frame) => {
    frame.cost--;
    return step(frame);
  };
}

export function logical(left: Step, right: Step, decisive: boolean): Step {
  return (frame) => {
    const first = left(frame);
    if (first === decisive) return decisive;
    const second = right(frame);
    if (second === decisive) return decisive;
    if (typeof first === 'boolean' && typeof second === 'boolean') return !decisive;
    if (first instanceof CelError) return first;
    return second instanceof CelError ? second : NO_OVERLOAD;
  };
}

export function conditional(test: Step, yes: Step, no: Step): Step {
  return (frame) => {
    const value = test(frame);
    if (value === true) return yes(frame);
    if (value === false) return no(frame);
    return value instanceof CelError ? value : NO_OVERLOAD;
  };
}

/**
 * `x in ['a', 'b']`: upstream makes a set of the constants, which costs nothing to ask. Null where
 * it cannot: of bytes, and of what has members.
 */
export function constantMembership(item: Step, { items }: ArrayList): Step | null {
  if (items.length === 0) return () => false;
  if (!items.every((one) => PRIMITIVES.has(typeNameOf(one)))) return null;
  const texts = items.every((one) => typeof one === 'string') ? new Set<CelValue>(items) : null;
  return (frame) => {
    const value = item(frame);
    if (value instanceof CelError) return value;
    return texts === null ? items.some((one) => isEqual(one, value)) : texts.has(value);
  };
}

/** `a.or(b)` and `a.orValue(b)`: the second is evaluated where the first is empty, at no cost. */
export function alternative(first: Step, second: Step, isValue: boolean): Step {
  return (frame) => {
    const own = first(frame);
    if (!(own instanceof Optional)) return own;
    if (own.value === undefined) return second(frame);
    return isValue ? own.value : own;
  };
}

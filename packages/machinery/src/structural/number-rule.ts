/**
 * Bounds and multiples of numbers, with the ways of Go's validator: what has no fraction is an
 * integer there, and bounds are cut to integers beside one.
 */
import { doubleText } from '../gotext/go-floats.ts';
import { int64Text, isGoInt, toInt64 } from '../json/go-integers.ts';
import type { NumberRule } from './schema/validation-rule.ts';

/** A number that is wrong: `text` with the path in front where `isNamed`. */
export interface NumberFault {
  /** `named` faults are about a field; `general` ones have no field of their own upstream. */
  readonly kind: 'named' | 'general';
  readonly text: string;
  readonly value: number | bigint;
  /** Compared as a float64, which is how the value is printed. */
  readonly isFloat?: boolean;
}

const NONE: readonly NumberFault[] = [];
const INT32_MAX = 2 ** 31 - 1;
const INT32_MIN = -(2 ** 31);
const FLOAT32_MAX = 3.4028234663852886e38;

function isInRange(value: number | bigint, { type, format }: NumberRule): boolean {
  if (type === 'integer') {
    // Go prints this double with the fewest digits, and then no int64 holds it
    if (!isGoInt(value) || value === -(2 ** 63)) return false;
    return format !== 'int32' || (value <= INT32_MAX && value >= INT32_MIN);
  }
  return (
    format !== 'float' ||
    Math.fround(Number(value)) !== Infinity ||
    Math.abs(Number(value)) <= FLOAT32_MAX
  );
}

function rangeFault(what: string, { type, format }: NumberRule, path: string): NumberFault {
  const form = format === '' ? '(default format)' : `with format ${format}`;
  const text = `${what} value must be of type ${type} ${form} in ${path}`;
  return { kind: 'general', text, value: 0 };
}

/** What is wrong with a number, in upstream's order; the same empty list when nothing is. */
export function numberFaults(
  rule: NumberRule,
  value: number | bigint,
  path: string,
): readonly NumberFault[] {
  const { multipleOf, maximum, minimum } = rule;
  let found: NumberFault[] | null = null;
  if (!isInRange(value, rule)) (found ??= []).push(rangeFault('Checked', rule, path));
  if (multipleOf !== undefined) {
    const fault = multipleFault(rule, value, multipleOf, path, (found ??= []));
    if (fault !== null) found.push(fault);
  }
  if (minimum !== undefined) {
    const fits = isInRange(minimum, rule);
    if (!fits) (found ??= []).push(rangeFault('Minimum boundary', rule, path));
    const bound = fits && isGoInt(value) ? toInt64(minimum) : minimum;
    const isBelow = rule.isMinimumExclusive ? value <= bound : value < bound;
    const words = rule.isMinimumExclusive ? 'greater than' : 'greater than or equal to';
    if (isBelow) (found ??= []).push(boundFault(words, bound, value, path, fits));
  }
  if (maximum !== undefined) {
    const fits = isInRange(maximum, rule);
    if (!fits) (found ??= []).push(rangeFault('Maximum boundary', rule, path));
    const bound = fits && isGoInt(value) ? toInt64(maximum) : maximum;
    const isAbove = rule.isMaximumExclusive ? value >= bound : value > bound;
    const words = rule.isMaximumExclusive ? 'less than' : 'less than or equal to';
    if (isAbove) (found ??= []).push(boundFault(words, bound, value, path, fits));
  }
  return found === null || found.length === 0 ? NONE : found;
}

function boundFault(
  words: string,
  bound: number | bigint,
  value: number | bigint,
  path: string,
  fits: boolean,
): NumberFault {
  const shown = boundText(bound, fits && isGoInt(value));
  const text = `${path} in body should be ${words} ${shown}`;
  return { kind: 'named', text, value, isFloat: !fits };
}

/** A bound is an int64 beside one that it fits, and a float64 beside all else. */
function boundText(bound: number | bigint, isWhole: boolean): string {
  return isWhole ? int64Text(bound) : doubleText(Number(bound));
}

function multipleFault(
  rule: NumberRule,
  value: number | bigint,
  multipleOf: number,
  path: string,
  found: NumberFault[],
): NumberFault | null {
  const fits = isInRange(multipleOf, rule);
  if (!fits) found.push(rangeFault('MultipleOf', rule, path));
  const isWhole = fits && isGoInt(value);
  const factor = isWhole ? toInt64(multipleOf) : multipleOf;
  if (factor <= 0) {
    const shown = boundText(factor, isWhole);
    const text = `factor MultipleOf declared for ${path} must be positive: ${shown}`;
    return { kind: 'named', text, value: factor };
  }
  const isMultiple = isWhole
    ? isWholeMultiple(value, factor)
    : isWholeFloat(quotientOf(Number(value), Number(factor)));
  if (isMultiple) return null;
  const text = `${path} in body should be a multiple of ${boundText(factor, isWhole)}`;
  return { kind: 'named', text, value, isFloat: !fits };
}

function isWholeMultiple(value: number | bigint, factor: number | bigint): boolean {
  if (typeof value === 'number' && typeof factor === 'number') return value % factor === 0;
  return BigInt(value) % BigInt(factor) === 0n;
}

function quotientOf(value: number, factor: number): number {
  return factor < 1 ? (1 / factor) * value : value / factor;
}

/**
 * Whole but for the noise of a division: swag's rule, which cuts towards zero first and so is
 * lenient above a whole number only, and never below zero.
 */
function isWholeFloat(value: number): boolean {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const whole = Math.trunc(value);
  if (value === whole) return true;
  return value >= 1 && (value - whole) / (value + whole) < 1e-9;
}

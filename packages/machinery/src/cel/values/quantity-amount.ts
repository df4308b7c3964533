/**
 * How apimachinery holds a quantity, which rules can tell: in an int64 and a power of ten where it
 * is short, as it was written (`2000m` is 2000 of -3), and in a decimal of any length otherwise.
 * Only the first kind is an integer for `isInteger` and `asInteger` (resource/amount.go), so `1.0`,
 * `1.5Gi` and `1Pi` are none.
 */
import { suffixOf } from '../../meta/quantity.ts';

/** `value * 10 ** scale` */
export interface ShortAmount {
  readonly value: bigint;
  readonly scale: number;
}

const INT_MAX = 2n ** 63n - 1n;
/** Digits that an int64 always has room for. */
const DIGITS_MAX = 18;
/** The same of what a power of two is multiplied into. */
const BINARY_DIGITS_MAX = 15;
const NANO = -9;

/** Of a text that is a quantity; null where it is held as a decimal. */
export function amountOf(text: string): ShortAmount | null {
  const [, sign = '', whole = '', fraction = '', end = ''] =
    /^([+-]?)0*(\d*)(?:\.(\d*))?(.*)$/s.exec(text) ?? [];
  const suffix = suffixOf(end);
  if (suffix === undefined) return null;
  const number = whole === '' ? '0' : whole;
  const isBinary = suffix.format === 'BinarySI';
  const { exponent } = suffix;
  if (isBinary && fraction !== '') return null;
  const room = isBinary
    ? BINARY_DIGITS_MAX - number.length - Math.trunc((exponent * 3) / 10) - 1
    : DIGITS_MAX - number.length - fraction.length;
  const scale = isBinary ? 0 : exponent - fraction.length;
  if (room < 0 || scale < NANO) return null;
  const digits = BigInt(number + fraction) * (isBinary ? 2n ** BigInt(exponent) : 1n);
  return fitting(sign === '-' ? -digits : digits, scale);
}

function fitting(value: bigint, scale: number): ShortAmount | null {
  return value <= INT_MAX && value >= -INT_MAX - 1n ? { value, scale } : null;
}

/** The sum, on the finer scale of both; null where it is held as a decimal. */
export function addAmounts(
  left: ShortAmount | null,
  right: ShortAmount | null,
): ShortAmount | null {
  if (left === null || right === null) return null;
  if (right.value === 0n) return left;
  if (left.value === 0n) return right;
  const scale = Math.min(left.scale, right.scale);
  const at = (one: ShortAmount): bigint => one.value * 10n ** BigInt(one.scale - scale);
  return fitting(at(left) + at(right), scale);
}

/** The integer that it is for rules; null where it is none. */
export function integerOf(amount: ShortAmount | null): bigint | null {
  if (amount === null || amount.scale < 0) return null;
  return fitting(amount.value * 10n ** BigInt(amount.scale), 0)?.value ?? null;
}

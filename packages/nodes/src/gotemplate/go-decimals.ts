/** Sums of floats as sprig makes them: by decimal digits, so that 0.1 and 0.2 are 0.3. */

/** `digits * 10 ** -scale`. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

/** Digits after the point that a quotient has (`decimal.DivisionPrecision`). */
const QUOTIENT_SCALE = 16;

function decimalOf(value: number): Decimal {
  if (!Number.isFinite(value)) throw new Error(`Cannot create a Decimal from ${value}`);
  const [mantissa = '0', power = '0'] = value.toExponential().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  const scale = fraction.length - Number(power);
  const digits = BigInt(whole + fraction);
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale };
}

function atScale({ digits, scale }: Decimal, wanted: number): bigint {
  return digits * 10n ** BigInt(wanted - scale);
}

function quotient(left: Decimal, right: Decimal): Decimal {
  if (right.digits === 0n) throw new Error('decimal division by 0');
  const scale = Math.max(left.scale, right.scale);
  const above = atScale(left, scale) * 10n ** BigInt(QUOTIENT_SCALE);
  const below = atScale(right, scale);
  const rest = above % below;
  const size = (value: bigint): bigint => (value < 0n ? -value : value);
  const isUp = size(rest) * 2n >= size(below);
  const away = above < 0n === below < 0n ? 1n : -1n;
  return { digits: above / below + (isUp ? away : 0n), scale: QUOTIENT_SCALE };
}

type Operation = 'add' | 'sub' | 'mul' | 'div';

const OPERATIONS: Readonly<Record<Operation, (left: Decimal, right: Decimal) => Decimal>> = {
  add: (left, right) => sum(left, right, 1n),
  sub: (left, right) => sum(left, right, -1n),
  mul: (left, right) => ({
    digits: left.digits * right.digits,
    scale: left.scale + right.scale,
  }),
  div: quotient,
};

function sum(left: Decimal, right: Decimal, sign: bigint): Decimal {
  const scale = Math.max(left.scale, right.scale);
  return { digits: atScale(left, scale) + sign * atScale(right, scale), scale };
}

/** The values one after the other; throws an Error where one divides by 0. */
export function decimalFold(
  operation: Operation,
  first: number,
  others: readonly number[],
): number {
  const { digits, scale } = others.map(decimalOf).reduce(OPERATIONS[operation], decimalOf(first));
  return Number(`${digits}e${-scale}`);
}

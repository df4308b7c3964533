/**
 * Exact vectors of resources. A dimension that is missing is zero; text that is no quantity counts
 * as zero too, as in machines of a careless provider.
 */
import { Quantity, parseQuantity } from '@megaplane/machinery/quantity';
import { byUtf8 } from '../contract/text-order.ts';

export type Amounts = ReadonlyMap<string, Quantity>;

const ZERO = new Quantity(0n, 0, 'DecimalSI');
export const NO_AMOUNTS: Amounts = new Map();

const byName = ([left]: [string, unknown], [right]: [string, unknown]): number =>
  byUtf8(left, right);

/** Reads texts; the names come out sorted. */
export function amountsOf(texts: Readonly<Record<string, string>> | undefined): Amounts {
  const entries = Object.entries(texts ?? {}).map(([name, text]): [string, Quantity] => {
    const quantity = parseQuantity(text);
    return [name, typeof quantity === 'string' ? ZERO : quantity];
  });
  return new Map(entries.toSorted(byName));
}

/** True if each text is a quantity. */
export function areQuantities(texts: Readonly<Record<string, string>> | undefined): boolean {
  return Object.values(texts ?? {}).every((text) => typeof parseQuantity(text) !== 'string');
}

export function add(left: Amounts, right: Amounts): Amounts {
  return combine(left, right, (a, b) => a.add(b));
}

/** The difference where it is positive, else zero; also where only `right` has the dimension. */
export function subtract(left: Amounts, right: Amounts): Amounts {
  return combine(left, right, (a, b) => {
    const rest = a.subtract(b);
    return rest.sign < 0 ? ZERO : rest;
  });
}

function combine(
  left: Amounts,
  right: Amounts,
  merge: (a: Quantity, b: Quantity) => Quantity,
): Amounts {
  const names = new Set([...left.keys(), ...right.keys()]);
  const entries = [...names].map((name): [string, Quantity] => {
    return [name, merge(left.get(name) ?? ZERO, right.get(name) ?? ZERO)];
  });
  return new Map(entries.toSorted(byName));
}

export function scale(amounts: Amounts, factor: number): Amounts {
  const entries = [...amounts].map(([name, { digits, scale: power, format }]) => {
    return [name, new Quantity(digits * BigInt(factor), power, format)] as const;
  });
  return new Map(entries);
}

/** True if `have` is enough in each dimension that `want` names. */
export function covers(have: Amounts, want: Amounts): boolean {
  for (const [name, quantity] of want) {
    if ((have.get(name) ?? ZERO).compare(quantity) < 0) return false;
  }
  return true;
}

/** True if nothing is left to cover: no dimension is positive. */
export function isZero(amounts: Amounts): boolean {
  for (const quantity of amounts.values()) if (quantity.sign > 0) return false;
  return true;
}

/** As texts, without zero entries. */
export function textsOf(amounts: Amounts): Record<string, string> {
  const entries = [...amounts].filter(([, quantity]) => quantity.sign !== 0);
  return Object.fromEntries(entries.map(([name, quantity]) => [name, quantity.toString()]));
}

/** Thousandths in 64 bits: what the rules of gangs count in. */
export type Millis = ReadonlyMap<string, bigint>;

/** Rounded up; beyond 64 bits the front is lost, or all of it, as in the reference. */
export function millisOf(amounts: Amounts): Millis {
  return new Map([...amounts].map(([name, quantity]) => [name, milliOf(quantity)]));
}

// The reference keeps sums as texts, and reads them anew here.
function milliOf(quantity: Quantity): bigint {
  const read = parseQuantity(quantity.toString());
  return typeof read === 'string' ? 0n : read.countedMilli;
}

export function addMillis(left: Millis, right: Millis): Millis {
  const sum = new Map(left);
  for (const [name, milli] of right) {
    sum.set(name, BigInt.asIntN(64, (sum.get(name) ?? 0n) + milli));
  }
  return sum;
}

/** True if `have` is enough where `want` is positive. */
export function coversMillis(have: Millis, want: Millis): boolean {
  for (const [name, milli] of want) {
    if (milli > 0n && (have.get(name) ?? 0n) < milli) return false;
  }
  return true;
}

/** What is there of each wanted dimension, as a fraction (at most 1 each if capped), summed. */
export function coverage(have: Millis, want: Millis, capped: boolean): number {
  let sum = 0;
  for (const [name, milli] of want) {
    if (milli <= 0n) continue;
    const ratio = Number(have.get(name) ?? 0n) / Number(milli);
    sum += capped && ratio > 1 ? 1 : ratio;
  }
  return sum;
}

/** The dimension that is covered worst, in thousandths of what is wanted. */
export function worstPerMille(have: Millis, want: Millis): number {
  let worst = 1000n;
  for (const [name, milli] of want) {
    if (milli <= 0n) continue;
    const share = ((have.get(name) ?? 0n) * 1000n) / milli;
    if (share < worst) worst = share;
  }
  return Number(worst < 0n ? 0n : worst);
}

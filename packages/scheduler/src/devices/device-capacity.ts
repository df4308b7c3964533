/** Capacity that several claims share, and what of it a request takes (KEP-5075). */
import { ownMember } from '@megaplane/base/members';
import { parseQuantity, Quantity } from '@megaplane/machinery/quantity';
import type { CapacityPolicy, CapacityRequirements, DeviceCapacity } from './device-objects.ts';

export type Amounts = ReadonlyMap<string, Quantity>;

const ZERO = new Quantity(0n, 0, 'DecimalSI');

/** A quantity of an object that the API server has checked; 0 for what is none. */
export function quantityOf(text: string | number | undefined): Quantity {
  const parsed = parseQuantity(String(text ?? '0'));
  return typeof parsed === 'string' ? ZERO : parsed;
}

/** Rounded up to what the device hands out. */
function consumedOf(wanted: string | number | undefined, capacity: DeviceCapacity): Quantity {
  const policy = capacity.requestPolicy;
  if (wanted === undefined) return quantityOf(policy?.default ?? capacity.value);
  const amount = quantityOf(wanted);
  const { min, step } = policy?.validRange ?? {};
  if (min !== undefined) {
    const least = quantityOf(min);
    if (amount.compare(least) < 0) return least;
    if (step === undefined) return amount;
    const size = quantityOf(step).scaled(0);
    if (size <= 0n) return amount;
    const above = amount.scaled(0) - least.scaled(0);
    const steps = (above + size - 1n) / size;
    return new Quantity(least.scaled(0) + steps * size, 0, 'BinarySI');
  }
  const valid = (policy?.validValues ?? []).map(quantityOf);
  return valid.find((value) => amount.compare(value) <= 0) ?? amount;
}

function breaksPolicy(amount: Quantity, policy: CapacityPolicy | undefined): boolean {
  if (policy === undefined) return false;
  if (policy.default !== undefined && amount.compare(quantityOf(policy.default)) === 0) {
    return false;
  }
  if (policy.validRange !== undefined) {
    const { min, max, step } = policy.validRange;
    if (max !== undefined && amount.compare(quantityOf(max)) > 0) return true;
    if (step === undefined) return false;
    const size = quantityOf(step).scaled(0);
    return size > 0n && (amount.scaled(0) - quantityOf(min).scaled(0)) % size !== 0n;
  }
  const valid = policy.validValues ?? [];
  return valid.length > 0 && !valid.some((value) => amount.compare(quantityOf(value)) === 0);
}

/**
 * What a request takes of a device with `taken` gone already; null if that is more than there is,
 * or the device does not have what is asked for.
 */
export function takenCapacity(
  request: CapacityRequirements | undefined,
  capacity: Readonly<Record<string, DeviceCapacity>> | undefined,
  taken: Amounts,
): Map<string, Quantity> | null {
  const wanted = request?.requests ?? {};
  const offered = capacity ?? {};
  if (Object.keys(wanted).some((name) => !Object.hasOwn(offered, name))) return null;
  const result = new Map<string, Quantity>();
  for (const [name, one] of Object.entries(offered)) {
    const amount = consumedOf(ownMember(wanted, name), one);
    if (breaksPolicy(amount, one.requestPolicy)) return null;
    const sum = amount.add(taken.get(name) ?? ZERO);
    if (sum.compare(quantityOf(one.value)) > 0) return null;
    result.set(name, amount);
  }
  return result;
}

/** `sum` and `amounts`, or their difference. */
export function addAmounts(sum: Amounts, amounts: Amounts, sign: 1 | -1): Map<string, Quantity> {
  const result = new Map(sum);
  for (const [name, amount] of amounts) {
    const present = result.get(name) ?? ZERO;
    result.set(name, sign === 1 ? present.add(amount) : present.subtract(amount));
  }
  return result;
}

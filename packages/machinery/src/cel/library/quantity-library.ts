/** Quantities and semantic versions, as Kubernetes adds them to CEL. */
import { versionFault } from '../values/version-faults.ts';
import { parseQuantity, Quantity, QUANTITY_FAILURES } from '../../meta/quantity.ts';
import type { Library } from '../values/functions.ts';
import { addAmounts, amountOf, integerOf, type ShortAmount } from '../values/quantity-amount.ts';
import { CelError, Opaque, type CelValue } from '../values/values.ts';

class QuantityValue extends Opaque {
  readonly typeName = 'kubernetes.Quantity';
  readonly value: Quantity;
  readonly amount: ShortAmount | null;
  constructor(value: Quantity, amount: ShortAmount | null) {
    super();
    this.value = value;
    this.amount = amount;
  }
  equals(other: Opaque): boolean {
    return other instanceof QuantityValue && this.value.compare(other.value) === 0;
  }
}

function quantity(text: string): QuantityValue | CelError {
  const parsed = parseQuantity(text);
  if (typeof parsed !== 'string') return new QuantityValue(parsed, amountOf(text));
  return new CelError(QUANTITY_FAILURES[parsed]);
}

function added(left: QuantityValue, right: Quantity, amount: ShortAmount | null): CelValue {
  return new QuantityValue(left.value.add(right), addAmounts(left.amount, amount));
}

function addedInteger(left: QuantityValue, value: bigint): CelValue {
  return added(left, new Quantity(value, 0, 'DecimalSI'), { value, scale: 0 });
}

function opposite(amount: ShortAmount | null): ShortAmount | null {
  return amount && { value: -amount.value, scale: amount.scale };
}

export const QUANTITY_LIBRARY: Library = {
  'string_to_quantity: quantity(string): kubernetes.Quantity': quantity,
  'is_quantity_string: isQuantity(string): bool': (text: string) =>
    quantity(text) instanceof QuantityValue,
  'quantity_sign: sign(kubernetes.Quantity): int': ({ value }: QuantityValue) => BigInt(value.sign),
  'quantity_is_greater_than: kubernetes.Quantity . isGreaterThan(kubernetes.Quantity): bool': (
    left: QuantityValue,
    right: QuantityValue,
  ) => left.value.compare(right.value) > 0,
  'quantity_is_less_than: kubernetes.Quantity . isLessThan(kubernetes.Quantity): bool': (
    left: QuantityValue,
    right: QuantityValue,
  ) => left.value.compare(right.value) < 0,
  'quantity_compare_to: kubernetes.Quantity . compareTo(kubernetes.Quantity): int': (
    left: QuantityValue,
    right: QuantityValue,
  ) => BigInt(left.value.compare(right.value)),
  'quantity_get_float: kubernetes.Quantity . asApproximateFloat(): double': ({
    value,
  }: QuantityValue) => Number(`${value.digits}e${value.scale}`),
  'quantity_get_int: kubernetes.Quantity . asInteger(): int': (own: QuantityValue) =>
    integerOf(own.amount) ?? new CelError('cannot convert value to integer'),
  'quantity_is_integer: kubernetes.Quantity . isInteger(): bool': (own: QuantityValue) =>
    integerOf(own.amount) !== null,
  'quantity_add: kubernetes.Quantity . add(kubernetes.Quantity): kubernetes.Quantity': (
    left: QuantityValue,
    right: QuantityValue,
  ) => added(left, right.value, right.amount),
  'quantity_add_int: kubernetes.Quantity . add(int): kubernetes.Quantity': (
    left: QuantityValue,
    right: bigint,
  ) => addedInteger(left, right),
  'quantity_sub: kubernetes.Quantity . sub(kubernetes.Quantity): kubernetes.Quantity': (
    left: QuantityValue,
    right: QuantityValue,
  ) => added(left, right.value.negate(), opposite(right.amount)),
  'quantity_sub_int: kubernetes.Quantity . sub(int): kubernetes.Quantity': (
    left: QuantityValue,
    right: bigint,
  ) => addedInteger(left, -right),
};

class SemverValue extends Opaque {
  readonly typeName = 'kubernetes.Semver';
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
  constructor(numbers: readonly [bigint, bigint, bigint], pre: readonly string[]) {
    super();
    this.numbers = numbers;
    this.pre = pre;
  }
  equals(other: Opaque): boolean {
    return other instanceof SemverValue && compareVersions(this, other) === 0;
  }
}

const NUMBER = String.raw`(0|[1-9]\d*)`;
const WORDS = String.raw`([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)`;
const SEMVER = new RegExp(
  `^${[NUMBER, NUMBER, NUMBER].join(String.raw`\.`)}(?:-${WORDS})?(?:\\+${WORDS})?$`,
);

function semver(text: string, isLoose = false): SemverValue | CelError {
  const whole = isLoose ? normalized(text) : text;
  if (whole === null) {
    return new CelError('short version cannot contain PreRelease/Build meta data');
  }
  const found = SEMVER.exec(whole);
  const pre = found?.[4]?.split('.') ?? [];
  if (found === null || pre.some((part) => /^0\d+$/.test(part))) {
    return new CelError(versionFault(whole));
  }
  const [, major = '0', minor = '0', patch = '0'] = found;
  const large = [major, minor, patch].find((one) => BigInt(one) >= 2n ** 64n);
  if (large !== undefined) {
    return new CelError(`strconv.ParseUint: parsing "${large}": value out of range`);
  }
  return new SemverValue([BigInt(major), BigInt(minor), BigInt(patch)], pre);
}

/**
 * `v1.2` is `1.2.0`: a leading v, leading zeros and missing parts are forgiven. Null for what goes
 * on after too few parts.
 */
function normalized(text: string): string | null {
  const [major = '', minor, ...others] = text.replace(/^v/, '').split('.');
  const rest = others.length > 0 ? [others.join('.')] : [];
  const parts = [major, ...(minor === undefined ? [] : [minor]), ...rest].map((part) =>
    part.length > 1 ? part.replace(/^0+/, '').replace(/^(?!\d)/, '0') : part,
  );
  if (parts.length < 3 && /[-+]/.test(parts.at(-1) ?? '')) return null;
  while (parts.length < 3) parts.push('0');
  return parts.join('.');
}

function compareVersions(left: SemverValue, right: SemverValue): -1 | 0 | 1 {
  for (let i = 0; i < 3; i++) {
    const own = left.numbers[i] ?? 0n;
    const other = right.numbers[i] ?? 0n;
    if (own !== other) return own < other ? -1 : 1;
  }
  if (left.pre.length === 0 || right.pre.length === 0) {
    return left.pre.length === right.pre.length ? 0 : left.pre.length === 0 ? 1 : -1;
  }
  const length = Math.min(left.pre.length, right.pre.length);
  for (let i = 0; i < length; i++) {
    const sign = comparePre(left.pre[i] ?? '', right.pre[i] ?? '');
    if (sign !== 0) return sign;
  }
  const longer = left.pre.length - right.pre.length;
  return longer === 0 ? 0 : longer < 0 ? -1 : 1;
}

function comparePre(left: string, right: string): -1 | 0 | 1 {
  if (left === right) return 0;
  const isNumber = /^\d+$/.test(left);
  if (isNumber !== /^\d+$/.test(right)) return isNumber ? -1 : 1;
  if (isNumber) return BigInt(left) < BigInt(right) ? -1 : 1;
  return left < right ? -1 : 1;
}

export const SEMVER_LIBRARY: Library = {
  'string_to_semver: semver(string): kubernetes.Semver': (text: string) => semver(text),
  'string_bool_to_semver: semver(string, bool): kubernetes.Semver': semver,
  'is_semver_string: isSemver(string): bool': (text: string) => semver(text) instanceof SemverValue,
  'is_semver_string_bool: isSemver(string, bool): bool': (text: string, isLoose: boolean) =>
    semver(text, isLoose) instanceof SemverValue,
  'semver_major: kubernetes.Semver . major(): int': ({ numbers }: SemverValue) => numbers[0],
  'semver_minor: kubernetes.Semver . minor(): int': ({ numbers }: SemverValue) => numbers[1],
  'semver_patch: kubernetes.Semver . patch(): int': ({ numbers }: SemverValue) => numbers[2],
  'semver_is_greater_than: kubernetes.Semver . isGreaterThan(kubernetes.Semver): bool': (
    left: SemverValue,
    right: SemverValue,
  ) => compareVersions(left, right) > 0,
  'semver_is_less_than: kubernetes.Semver . isLessThan(kubernetes.Semver): bool': (
    left: SemverValue,
    right: SemverValue,
  ) => compareVersions(left, right) < 0,
  'semver_compare_to: kubernetes.Semver . compareTo(kubernetes.Semver): int': (
    left: SemverValue,
    right: SemverValue,
  ) => BigInt(compareVersions(left, right)),
};

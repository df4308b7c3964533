/** Optional values, and small things of cel-go's extensions: numbers and base64. */
import type { Library } from './functions.ts';
import {
  CelError,
  CelList,
  CelMap,
  compare,
  Duration,
  Optional,
  Timestamp,
  Uint,
  ArrayList,
  type CelValue,
} from './values.ts';

/** True for values that a JSON encoder would leave out. */
function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === '' || value === 0n || value === 0) return true;
  if (value instanceof Uint) return value.value === 0n;
  if (value instanceof CelList || value instanceof Uint8Array) return value.length === 0;
  if (value instanceof CelMap) return value.size === 0;
  if (value instanceof Duration) return value.nanos === 0n;
  return value instanceof Timestamp && value.nanos === 0n;
}

function unwrap(list: CelList): CelValue {
  const items: CelValue[] = [];
  for (let i = 0; i < list.length; i++) {
    const item = list.at(i);
    if (item instanceof Optional && item.value !== undefined) items.push(item.value);
  }
  return new ArrayList(items);
}

export const OPTIONAL_LIBRARY: Library = {
  'optional_of: optional.of(V): optional(V)': (value: CelValue) => new Optional(value),
  'optional_ofNonZeroValue: optional.ofNonZeroValue(V): optional(V)': (value: CelValue) =>
    new Optional(isZero(value) ? undefined : value),
  'optional_none: optional.none(): optional(V)': () => new Optional(undefined),
  'optional_value: optional(V) . value(): V': ({ value }: Optional) =>
    value ?? (value === null ? null : new CelError('optional.none() dereference')),
  'optional_hasValue: optional(V) . hasValue(): bool': ({ value }: Optional) => value !== undefined,
  'optional_or_optional: optional(V) . or(optional(V)): optional(V)': (
    own: Optional,
    other: Optional,
  ) => (own.value === undefined ? other : own),
  'optional_orValue_value: optional(V) . orValue(V): V': (own: Optional, other: CelValue) =>
    own.value === undefined ? other : own.value,
  'optional_unwrap: optional.unwrap(list(optional(V))): list(V)': unwrap,
  'optional_unwrapOpt: list(optional(V)) . unwrapOpt(): list(V)': unwrap,
};

function pick(wanted: 1 | -1): (...args: readonly CelValue[]) => CelValue {
  return (...args) => {
    const [only] = args;
    const values = args.length === 1 && only instanceof CelList ? listed(only) : args;
    const [first, ...rest] = values;
    if (first === undefined) {
      const name = wanted > 0 ? 'greatest' : 'least';
      return new CelError(
        `math.@${wanted > 0 ? 'max' : 'min'}(list) argument must not be empty (${name})`,
      );
    }
    let best = first;
    for (const value of rest) if (compare(value, best) === wanted) best = value;
    return best;
  };
}

function listed(list: CelList): CelValue[] {
  return Array.from({ length: list.length }, (_, index) => list.at(index));
}

function extremes(name: string, wanted: 1 | -1): Library {
  const library: Record<string, (...args: readonly CelValue[]) => CelValue> = {};
  for (let count = 1; count <= 8; count++) {
    const types = Array.from({ length: count }, () => 'dyn').join(', ');
    library[`math_${name}_${count}: math.${name}(${types}): dyn`] = pick(wanted);
  }
  return library;
}

const WORD = 2n ** 64n;
const unsigned = (value: bigint): bigint => ((value % WORD) + WORD) % WORD;
const signed = (value: bigint): bigint => BigInt.asIntN(64, value);

function shift(value: bigint, by: bigint, isLeft: boolean): CelValue {
  if (by < 0n)
    return new CelError(`math.bitShift${isLeft ? 'Left' : 'Right'}() negative offset: ${by}`);
  if (by > 63n) return 0n;
  return isLeft ? signed(value << by) : signed(unsigned(value) >> by);
}

function shiftUnsigned({ value }: Uint, by: bigint, isLeft: boolean): CelValue {
  if (by < 0n)
    return new CelError(`math.bitShift${isLeft ? 'Left' : 'Right'}() negative offset: ${by}`);
  if (by > 63n) return new Uint(0n);
  return new Uint(isLeft ? unsigned(value << by) : value >> by);
}

/** Halves go away from zero. */
const rounded = (value: number): number =>
  Number.isFinite(value) ? Math.sign(value) * Math.round(Math.abs(value)) : value;

const NUMBERS: Library = {
  'math_ceil_double: math.ceil(double): double': Math.ceil,
  'math_floor_double: math.floor(double): double': Math.floor,
  'math_round_double: math.round(double): double': rounded,
  'math_trunc_double: math.trunc(double): double': Math.trunc,
  'math_abs_double: math.abs(double): double': Math.abs,
  'math_abs_int: math.abs(int): int': (value: bigint) =>
    value === -(2n ** 63n) ? new CelError('integer overflow') : value < 0n ? -value : value,
  'math_abs_uint: math.abs(uint): uint': (value: Uint) => value,
  'math_sign_double: math.sign(double): double': Math.sign,
  'math_sign_int: math.sign(int): int': (value: bigint) =>
    value > 0n ? 1n : value < 0n ? -1n : 0n,
  'math_sign_uint: math.sign(uint): uint': ({ value }: Uint) => new Uint(value > 0n ? 1n : 0n),
  'math_sqrt_double: math.sqrt(double): double': Math.sqrt,
  'math_sqrt_int: math.sqrt(int): double': (value: bigint) => Math.sqrt(Number(value)),
  'math_sqrt_uint: math.sqrt(uint): double': ({ value }: Uint) => Math.sqrt(Number(value)),
  'math_isNaN_double: math.isNaN(double): bool': Number.isNaN,
  'math_isInf_double: math.isInf(double): bool': (value: number) =>
    value === Infinity || value === -Infinity,
  'math_isFinite_double: math.isFinite(double): bool': Number.isFinite,
  'math_bitAnd_int: math.bitAnd(int, int): int': (a: bigint, b: bigint) => a & b,
  'math_bitAnd_uint: math.bitAnd(uint, uint): uint': (a: Uint, b: Uint) =>
    new Uint(a.value & b.value),
  'math_bitOr_int: math.bitOr(int, int): int': (a: bigint, b: bigint) => a | b,
  'math_bitOr_uint: math.bitOr(uint, uint): uint': (a: Uint, b: Uint) =>
    new Uint(a.value | b.value),
  'math_bitXor_int: math.bitXor(int, int): int': (a: bigint, b: bigint) => a ^ b,
  'math_bitXor_uint: math.bitXor(uint, uint): uint': (a: Uint, b: Uint) =>
    new Uint(a.value ^ b.value),
  'math_bitNot_int: math.bitNot(int): int': (a: bigint) => ~a,
  'math_bitNot_uint: math.bitNot(uint): uint': ({ value }: Uint) => new Uint(WORD - 1n - value),
  'math_bitShiftLeft_int: math.bitShiftLeft(int, int): int': (a: bigint, by: bigint) =>
    shift(a, by, true),
  'math_bitShiftLeft_uint: math.bitShiftLeft(uint, int): uint': (a: Uint, by: bigint) =>
    shiftUnsigned(a, by, true),
  'math_bitShiftRight_int: math.bitShiftRight(int, int): int': (a: bigint, by: bigint) =>
    shift(a, by, false),
  'math_bitShiftRight_uint: math.bitShiftRight(uint, int): uint': (a: Uint, by: bigint) =>
    shiftUnsigned(a, by, false),
};

function decodeBase64(text: string): CelValue {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return new CelError('illegal base64 data');
  return new Uint8Array(Buffer.from(text, 'base64'));
}

const ENCODERS: Library = {
  'base64_decode_string: base64.decode(string): bytes': decodeBase64,
  'base64_encode_bytes: base64.encode(bytes): string': (bytes: Uint8Array) =>
    Buffer.from(bytes).toString('base64'),
};

export const MATH_LIBRARY: readonly Library[] = [
  extremes('greatest', 1),
  extremes('least', -1),
  NUMBERS,
  ENCODERS,
];

/** Optional values, as cel-go has them. */
import type { Library } from '../values/functions.ts';
import {
  CelError,
  CelList,
  CelMap,
  Duration,
  Optional,
  Timestamp,
  Uint,
  ArrayList,
  type CelValue,
} from '../values/values.ts';

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

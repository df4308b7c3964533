/** Lists: those functions that Kubernetes adds, and cel-go's extension. */
import type { Library } from '../values/functions.ts';
import {
  ArrayList,
  CelError,
  CelList,
  compare,
  Duration,
  isEqual,
  Optional,
  typeNameOf,
  Uint,
  type CelValue,
} from '../values/values.ts';
import { LIST_LENGTH_MAX, TOO_LONG_LIST } from '../values/made-values.ts';
import { toInt, toUint } from './standard-library.ts';

/** What the macro `sortBy` becomes; no expression can name it. */
const SORT_BY = '@sortByAssociatedKeys';

function isSorted(list: CelList): CelValue {
  for (let i = 1; i < list.length; i++) {
    const sign = compare(list.at(i - 1), list.at(i));
    if (sign === undefined || sign > 0) return false;
  }
  return true;
}

function sum(list: CelList): CelValue {
  let total: CelValue | null = null;
  for (let i = 0; i < list.length; i++) {
    const item = list.at(i);
    total = total === null ? item : add(total, item);
    if (total instanceof CelError) return total;
  }
  return total ?? 0n;
}

function add(left: CelValue, right: CelValue): CelValue {
  if (typeof left === 'bigint' && typeof right === 'bigint') return toInt(left + right);
  if (typeof left === 'number' && typeof right === 'number') return left + right;
  if (left instanceof Uint && right instanceof Uint) return toUint(left.value + right.value);
  if (left instanceof Duration && right instanceof Duration) {
    return new Duration(left.nanos + right.nanos);
  }
  return new CelError('no such overload');
}

function extreme(wanted: 1 | -1): (list: CelList) => CelValue {
  const name = wanted < 0 ? 'min' : 'max';
  return (list) => {
    if (list.length === 0) return new CelError(`${name} called on empty list`);
    let best = list.at(0);
    for (let i = 1; i < list.length; i++) {
      const item = list.at(i);
      if (compare(item, best) === wanted) best = item;
    }
    return best;
  };
}

function indexOf(list: CelList, item: CelValue): CelValue {
  for (let i = 0; i < list.length; i++) if (isEqual(list.at(i), item)) return BigInt(i);
  return -1n;
}

function lastIndexOf(list: CelList, item: CelValue): CelValue {
  for (let i = list.length - 1; i >= 0; i--) if (isEqual(list.at(i), item)) return BigInt(i);
  return -1n;
}

function itemsOf(list: CelList): CelValue[] {
  return Array.from({ length: list.length }, (_, index) => list.at(index));
}

function slice(list: CelList, from: bigint, to: bigint): CelValue {
  if (from < 0n || to < 0n) {
    return new CelError(`cannot slice(${from}, ${to}), negative indexes not supported`);
  }
  if (from > to) {
    return new CelError(
      `cannot slice(${from}, ${to}), start index must be less than or equal to end index`,
    );
  }
  if (to > list.length)
    return new CelError(`cannot slice(${from}, ${to}), list is length ${list.length}`);
  return new ArrayList(itemsOf(list).slice(Number(from), Number(to)));
}

function flatten(list: CelList, depth = 1n): CelValue {
  if (depth < 0n) return new CelError('level must be non-negative');
  const items = itemsOf(list).flatMap((item) => {
    if (!(item instanceof CelList) || depth === 0n) return [item];
    const inner = depth > 1n ? flatten(item, depth - 1n) : item;
    return inner instanceof CelList ? itemsOf(inner) : [inner];
  });
  return new ArrayList(items);
}

function distinct(list: CelList): CelValue {
  const kept: CelValue[] = [];
  const texts = new Set<string>();
  for (const item of itemsOf(list)) {
    if (typeof item === 'string') {
      if (texts.has(item)) continue;
      texts.add(item);
      kept.push(item);
    } else if (!kept.some((one) => isEqual(one, item))) {
      kept.push(item);
    }
  }
  return new ArrayList(kept);
}

/** The members in the order that sorting the keys brings. */
function sortBy(list: CelList, keys: CelList): CelValue {
  if (list.length !== keys.length) {
    return new CelError(
      `${SORT_BY}() expected a list of the same size as the associated keys list, ` +
        `but got ${list.length} and ${keys.length} elements respectively`,
    );
  }
  if (list.length === 0) return list;
  const first = typeNameOf(keys.at(0));
  if (!ORDERED_NAMES.has(first)) return new CelError('list elements must be comparable');
  const order: number[] = [];
  for (let i = 0; i < keys.length; i++) {
    if (typeNameOf(keys.at(i)) !== first) {
      return new CelError('list elements must have the same type');
    }
    order.push(i);
  }
  order.sort((left, right) => compare(keys.at(left), keys.at(right)) ?? 0);
  return new ArrayList(order.map((index) => list.at(index)));
}

function range(end: bigint): CelValue {
  if (end > LIST_LENGTH_MAX) return TOO_LONG_LIST;
  return new ArrayList(Array.from({ length: Number(end < 0n ? 0n : end) }, (_, i) => BigInt(i)));
}

/** Items of these types have an order. */
export const ORDERED = [
  'int',
  'uint',
  'double',
  'bool',
  'duration',
  'timestamp',
  'string',
  'bytes',
] as const;
const ORDERED_NAMES: ReadonlySet<string> = new Set([
  ...ORDERED,
  'google.protobuf.Duration',
  'google.protobuf.Timestamp',
]);
/** What the sum of no members is. */
const NOTHING = { int: 0n, uint: new Uint(0n), double: 0, duration: new Duration(0n) } as const;
const SUMMED = ['int', 'uint', 'double', 'duration'] as const;

function ordered(): Library {
  const library: Record<string, (list: CelList, keys: CelList) => CelValue> = {};
  for (const type of ORDERED) {
    library[`list_${type}_is_sorted_bool: list(${type}) . isSorted(): bool`] = isSorted;
    library[`list_${type}_max_${type}: list(${type}) . max(): ${type}`] = extreme(1);
    library[`list_${type}_min_${type}: list(${type}) . min(): ${type}`] = extreme(-1);
    library[`list_${type}_sort: list(${type}) . sort(): list(${type})`] = (list) =>
      sortBy(list, list);
    library[`list_${type}_sort_by: list(T) . ${SORT_BY}(list(${type})): list(T)`] = sortBy;
  }
  for (const type of SUMMED) {
    const nothing = NOTHING[type];
    library[`list_${type}_sum_${type}: list(${type}) . sum(): ${type}`] = (list) =>
      list.length === 0 ? nothing : sum(list);
  }
  return library;
}

const MEMBERS: Library = {
  'list_a_index_of_int: list(A) . indexOf(A): int': indexOf,
  'list_a_last_index_of_int: list(A) . lastIndexOf(A): int': lastIndexOf,
  'list_slice: list(T) . slice(int, int): list(T)': slice,
  'list_flatten: list(list(T)) . flatten(): list(T)': flatten,
  'list_flatten_int: list(dyn) . flatten(int): list(dyn)': flatten,
  'list_distinct: list(T) . distinct(): list(T)': distinct,
  'list_reverse: list(T) . reverse(): list(T)': (list: CelList) =>
    new ArrayList(itemsOf(list).toReversed()),
  'lists_range: lists.range(int): list(int)': range,
  'list_first: list(T) . first(): optional(T)': (list: CelList) =>
    new Optional(list.length === 0 ? undefined : list.at(0)),
  'list_last: list(T) . last(): optional(T)': (list: CelList) =>
    new Optional(list.length === 0 ? undefined : list.at(list.length - 1)),
};

function contains(list: CelList, items: CelList): boolean {
  const own = itemsOf(list);
  return itemsOf(items).every((item) => own.some((one) => isEqual(one, item)));
}

export const SET_LIBRARY: Library = {
  'list_sets_contains_list: sets.contains(list(T), list(T)): bool': contains,
  'list_sets_equivalent_list: sets.equivalent(list(T), list(T)): bool': (
    left: CelList,
    right: CelList,
  ) => contains(left, right) && contains(right, left),
  'list_sets_intersects_list: sets.intersects(list(T), list(T)): bool': (
    left: CelList,
    right: CelList,
  ) => {
    const others = itemsOf(right);
    return itemsOf(left).some((item) => others.some((other) => isEqual(item, other)));
  },
};

export const LIST_LIBRARY: readonly Library[] = [ordered(), MEMBERS];

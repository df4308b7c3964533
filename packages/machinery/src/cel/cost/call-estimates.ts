/** What calls of functions can cost, by the sizes of what they are given. */
import { ownMember } from '@megaplane/base/members';
import {
  add,
  fixed,
  multiply,
  ONE,
  NONE,
  scale,
  times,
  UNKNOWN,
  type CostRange,
} from './cost-range.ts';
import type { Overload } from '../values/functions.ts';
import { ORDERED } from '../library/list-library.ts';
import { AUTHORIZER_CHECK_COST, LIST_COST, REGEX_LENGTH, TRAVERSAL } from './runtime-cost.ts';

/** What a call costs, and the size of what it gives. */
export interface CallEstimate {
  readonly cost: CostRange;
  readonly size?: CostRange;
}

export interface Operands {
  readonly sizes: readonly CostRange[];
  /** Operands that are whole numbers in the text; null: others. */
  readonly numbers: readonly (number | null)[];
  /** Size of the members of the first operand, where those are texts. */
  readonly item: CostRange | null;
  readonly isList: boolean;
}

export type CostRule = (operands: Operands) => CallEstimate;

const traverse: CostRule = ({ sizes: [first = UNKNOWN] }) => ({ cost: scale(first, TRAVERSAL) });
const traverseKeeping: CostRule = ({ sizes: [first = UNKNOWN] }) => ({
  cost: scale(first, TRAVERSAL),
  size: first,
});
const traverseSecond: CostRule = ({ sizes: [, second = UNKNOWN] }) => ({
  cost: scale(second, TRAVERSAL),
});
const constant =
  (cost: number): CostRule =>
  () => ({ cost: fixed(cost) });

const compareTexts: CostRule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => {
  const max = Math.min(left.max, right.max);
  return { cost: scale({ min: max > 0 ? 1 : 0, max }, TRAVERSAL) };
};

const concatenate: CostRule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => {
  const size = add(left, right);
  return { cost: scale(size, TRAVERSAL), size };
};

const match: CostRule = ({ sizes: [text = UNKNOWN, pattern = UNKNOWN] }) => ({
  cost: multiply(scale(add(text, ONE), TRAVERSAL), scale(pattern, REGEX_LENGTH)),
});

const findMatches: CostRule = (operands) => ({
  ...match(operands),
  size: { min: 0, max: operands.sizes[0]?.max ?? Infinity },
});

/** One for each member, and the characters of members that are texts. */
const wholeList: CostRule = ({ sizes: [first = UNKNOWN], item, isList }) => {
  if (!isList) return { cost: scale(first, TRAVERSAL) };
  return { cost: multiply(first, item === null ? ONE : add(ONE, scale(item, TRAVERSAL))) };
};

const replace: CostRule = ({ sizes: [text = UNKNOWN, old = UNKNOWN, next = UNKNOWN] }) => ({
  cost: scale(text, 2 * TRAVERSAL),
  size: { min: replacedMin(text, old, next), max: replacedMax(text, old, next) },
});

function replacedMax(text: CostRange, old: CostRange, next: CostRange): number {
  if (old.min === 0) return times(text.max + 1, next.max) + text.max;
  if (next.max <= old.min) return text.max;
  return times(Math.ceil(text.max / old.min), next.max);
}

function replacedMin(text: CostRange, old: CostRange, next: CostRange): number {
  if (old.max === 0) return times(text.min + 1, next.min) + text.min;
  if (old.max <= next.min) return text.min;
  return times(Math.ceil(text.min / old.max), next.min);
}

/** A written limit bounds the list; a negative one, which is none, wraps around upstream. */
const split: CostRule = ({ sizes: [text = UNKNOWN], numbers: [, , limit = null] }) => ({
  cost: scale(text, 2 * TRAVERSAL),
  size: { min: 0, max: limit === null ? text.max : limit < 0 ? Infinity : limit },
});

const join: CostRule = ({ sizes: [list = UNKNOWN, by = NONE], item }) => {
  const between = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
  const size = add(multiply(list, item ?? UNKNOWN), multiply(by, between));
  return { cost: scale(size, TRAVERSAL), size };
};

const compareAddresses = (isRange: boolean, isText: boolean): CostRule => {
  const bytes = { min: 4, max: 16 };
  const compared = scale(add(bytes, bytes), TRAVERSAL);
  const own = isRange ? add(compared, add(scale(bytes, TRAVERSAL), ONE)) : compared;
  return ({ sizes: [, other = UNKNOWN] }) => ({
    cost: isText ? add(own, scale(other, TRAVERSAL)) : own,
  });
};

/** A new list: what it takes to make it, and so much for each of its members. */
function newList(factor: number, size: CostRange): CallEstimate {
  return { cost: add(scale(size, factor), fixed(1 + LIST_COST)), size };
}

/** Each member of an operand is held against each other one. */
const compareMembers =
  (operand: number, factor: number): CostRule =>
  ({ sizes }) => {
    const list = sizes[operand] ?? UNKNOWN;
    return newList(factor, multiply(list, list));
  };

/** Sorting by keys of each type that has an order. */
function sorts(): Record<string, CostRule> {
  const rules: Record<string, CostRule> = {};
  for (const type of ORDERED) {
    const factor = type === 'string' || type === 'bytes' ? 2 + TRAVERSAL : 2;
    rules[`list_${type}_sort`] = compareMembers(0, factor);
    rules[`list_${type}_sort_by`] = compareMembers(1, factor);
  }
  return rules;
}

const slice: CostRule = ({ sizes: [list = UNKNOWN], numbers: [, start, end] }) => {
  // what ends before it starts wraps around upstream
  const length = (end ?? list.max) - (start ?? 0);
  const size = length < 0 ? Infinity : length;
  return newList(1, { min: size, max: size });
};

const flatten: CostRule = ({ sizes: [list = UNKNOWN, depth], numbers: [, levels] }) =>
  newList(depth === undefined ? 1 : (levels ?? Infinity), list);

const sets: CostRule = ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
  cost: add(ONE, multiply(left, right)),
});

const BY_NAME: Readonly<Record<string, CostRule | undefined>> = {
  check: constant(AUTHORIZER_CHECK_COST),
  isSorted: wholeList,
  sum: wholeList,
  max: wholeList,
  min: wholeList,
  indexOf: wholeList,
  lastIndexOf: wholeList,
  url: traverseKeeping,
  isIP: traverse,
  cidr: traverse,
  isCIDR: traverse,
  quantity: traverse,
  isQuantity: traverse,
  semver: traverse,
  isSemver: traverse,
  'ip.isCanonical': ({ sizes: [first = UNKNOWN] }) => ({ cost: scale(first, 2 * TRAVERSAL) }),
  lowerAscii: traverseKeeping,
  upperAscii: traverseKeeping,
  substring: traverseKeeping,
  trim: traverseKeeping,
  replace,
  split,
  join,
  find: findMatches,
  findAll: findMatches,
  validate: ({ sizes: [, text = UNKNOWN] }) => ({
    cost: multiply(scale(text, TRAVERSAL), fixed(Math.ceil(128 * REGEX_LENGTH))),
  }),
  'sets.contains': sets,
  'sets.intersects': sets,
  'sets.equivalent': ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
    cost: add(ONE, multiply(fixed(2), multiply(left, right))),
  }),
};

const BY_OVERLOAD: Readonly<Record<string, CostRule | undefined>> = {
  string_to_ip: traverse,
  list_slice: slice,
  list_flatten: flatten,
  list_flatten_int: flatten,
  list_distinct: compareMembers(0, 2),
  ...sorts(),
  list_reverse: ({ sizes: [list = UNKNOWN] }) => newList(1, list),
  lists_range: ({ numbers: [end] }) => newList(1, { min: end ?? Infinity, max: end ?? Infinity }),
  starts_with_string: traverseSecond,
  ends_with_string: traverseSecond,
  in_list: ({ sizes: [, list = UNKNOWN] }) => ({ cost: list }),
  matches_string: match,
  contains_string: ({ sizes: [text = UNKNOWN, part = UNKNOWN] }) => ({
    cost: multiply(scale(text, TRAVERSAL), scale(part, TRAVERSAL)),
  }),
  string_to_bytes: ({ sizes: [text = UNKNOWN] }) => ({
    cost: scale(text, TRAVERSAL),
    size: { min: text.min, max: text.max * 4 },
  }),
  bytes_to_string: ({ sizes: [bytes = UNKNOWN] }) => ({
    cost: scale(bytes, TRAVERSAL),
    size: { min: Math.floor(bytes.min / 4), max: bytes.max },
  }),
  strings_quote: ({ sizes: [text = UNKNOWN] }) => ({
    cost: scale(text, TRAVERSAL),
    size: { min: text.min + 2, max: text.max * 2 + 2 },
  }),
  string_format: traverse,
  add_string: concatenate,
  add_bytes: concatenate,
  add_list: ({ sizes: [left = UNKNOWN, right = UNKNOWN] }) => ({
    cost: ONE,
    size: add(left, right),
  }),
  equals: compareTexts,
  not_equals: compareTexts,
  less_string: compareTexts,
  less_equals_string: compareTexts,
  greater_string: compareTexts,
  greater_equals_string: compareTexts,
  less_bytes: compareTexts,
  less_equals_bytes: compareTexts,
  greater_bytes: compareTexts,
  greater_equals_bytes: compareTexts,
  cidr_contains_ip_ip: compareAddresses(false, false),
  cidr_contains_ip_string: compareAddresses(false, true),
  cidr_contains_cidr: compareAddresses(true, false),
  cidr_contains_cidr_string: compareAddresses(true, true),
};

/** The rule of a call; undefined: it costs 1. */
export function costRuleOf({ id, name }: Overload): CostRule | undefined {
  return ownMember(BY_OVERLOAD, id) ?? ownMember(BY_NAME, name);
}

/**
 * What calls cost while they run, in the units of cel-go's cost tracker with the additions that
 * Kubernetes makes. Everything without an entry costs 1.
 */
import { ownMember } from '@megaplane/base/members';
import type { Overload } from '../values/functions.ts';
import { ORDERED } from '../library/list-library.ts';
import { FormatValue } from '../library/format-library.ts';
import { CelList, CelMap, CelObject, Optional, sizeOf, type CelValue } from '../values/values.ts';

export type CallCost = (args: readonly CelValue[], result: CelValue) => number;

/** Of one character of a string that is looked through. */
export const TRAVERSAL = 0.1;
/** Of one character of a regular expression. */
export const REGEX_LENGTH = 0.25;
export const LIST_COST = 10;
export const MAP_COST = 30;
export const STRUCT_COST = 40;
/** An authorizer's decision: two fit into the budget of one expression. */
export const AUTHORIZER_CHECK_COST = 350_000;

/** Whether a cost can only be told when the call is over: its function takes the result, too. */
export function needsResult(cost: CallCost): boolean {
  return cost.length > 1;
}

function size(value: CelValue | undefined): number {
  return value === undefined ? 0 : sizeOf(value);
}

const traverse: CallCost = ([first]) => Math.ceil(size(first) * TRAVERSAL);
const traverseTwice: CallCost = ([first]) => Math.ceil(size(first) * 2 * TRAVERSAL);
const traverseShorter: CallCost = ([first, second]) =>
  Math.ceil(Math.min(size(first), size(second)) * TRAVERSAL);
const traverseBoth: CallCost = ([first, second]) =>
  Math.ceil((size(first) + size(second)) * TRAVERSAL);
const matching: CallCost = ([text, pattern]) =>
  Math.ceil((1 + size(text)) * TRAVERSAL) * Math.ceil(size(pattern) * REGEX_LENGTH);
const product: CallCost = ([first, second]) => 1 + size(first) * size(second);
const wholeTree: CallCost = ([first]) => treeCost(first ?? null);

function treeCost(value: CelValue): number {
  if (typeof value === 'string') return Math.floor(Buffer.byteLength(value) * TRAVERSAL);
  if (value instanceof Uint8Array) return Math.floor(value.length * TRAVERSAL);
  let cost = 0;
  if (value instanceof CelList) {
    for (let i = 0; i < value.length; i++) cost += treeCost(value.at(i));
    return cost;
  }
  if (value instanceof CelMap) {
    for (const key of value.keys()) cost += treeCost(key) + treeCost(value.get(key) ?? null);
    return cost;
  }
  if (value instanceof CelObject) {
    for (const name of value.fieldNames()) {
      cost += treeCost(name) + treeCost(value.field(name) ?? null);
    }
    return cost;
  }
  return 1;
}

/** A new list, and so much for each of its members. */
function newList(factor: number, members: number): number {
  return Math.trunc(members * factor) + 1 + LIST_COST;
}

const newMembers: CallCost = (_, result) => newList(1, size(result));
const flattening: CallCost = ([list, depth]) =>
  newList(typeof depth === 'bigint' ? Number(depth) : 1, size(list));

/** Each member is held against each other one. */
const steppedTo: CallCost = (_, result) =>
  result instanceof Optional && result.value === undefined ? 0 : 1;
const comparingMembers: CallCost = ([list]) => comparing(list);
const comparingKeys: CallCost = ([, keys]) => comparing(keys);

function comparing(list: CelValue | undefined): number {
  const members = size(list);
  const first = list instanceof CelList && members > 0 ? list.at(0) : null;
  const isText = typeof first === 'string' || first instanceof Uint8Array;
  return newList(isText ? 2 + TRAVERSAL : 2, members * members);
}

/** Of the pattern that a named format stands for. */
function patternSize(format: CelValue | undefined): number {
  return format instanceof FormatValue ? format.patternSize : 0;
}

function contains(isCidr: boolean, isText: boolean): CallCost {
  return ([own, other]) => {
    const compared = Math.ceil(2 * size(own) * TRAVERSAL);
    const masked = isCidr ? Math.ceil(size(own) * TRAVERSAL) + 1 : 0;
    return compared + masked + (isText ? Math.ceil(size(other) * TRAVERSAL) : 0);
  };
}

/** By the name of the function. */
const BY_NAME: Readonly<Record<string, CallCost>> = {
  check: () => AUTHORIZER_CHECK_COST,
  isSorted: wholeTree,
  sum: wholeTree,
  max: wholeTree,
  min: wholeTree,
  indexOf: wholeTree,
  lastIndexOf: wholeTree,
  url: traverse,
  lowerAscii: traverse,
  upperAscii: traverse,
  substring: traverse,
  trim: traverse,
  'jsonpatch.escapeKey': traverse,
  replace: traverseTwice,
  split: traverseTwice,
  join: (_, result) => Math.ceil(sizeOf(result) * 2 * TRAVERSAL),
  find: matching,
  findAll: matching,
  cidr: traverse,
  isIP: traverse,
  isCIDR: traverse,
  'ip.isCanonical': traverseTwice,
  quantity: traverse,
  isQuantity: traverse,
  semver: traverse,
  isSemver: traverse,
  validate: ([format, text]) =>
    Math.ceil((1 + size(text)) * TRAVERSAL) * Math.ceil(patternSize(format) * REGEX_LENGTH),
  'sets.contains': product,
  'sets.intersects': product,
  'sets.equivalent': ([first, second]) => 1 + 2 * size(first) * size(second),
};

function sorts(): Record<string, CallCost> {
  const costs: Record<string, CallCost> = {};
  for (const type of ORDERED) {
    costs[`list_${type}_sort`] = comparingMembers;
    costs[`list_${type}_sort_by`] = comparingKeys;
  }
  return costs;
}

/** By the overload, where the name alone does not tell. */
const BY_OVERLOAD: Readonly<Record<string, CallCost>> = {
  string_to_ip: traverse,
  list_slice: newMembers,
  list_reverse: newMembers,
  lists_range: newMembers,
  list_flatten: flattening,
  list_flatten_int: flattening,
  list_distinct: comparingMembers,
  ...sorts(),
  list_optindex_optional_int: steppedTo,
  map_optindex_optional_value: steppedTo,
  optional_list_optindex_int: steppedTo,
  optional_map_optindex_value: steppedTo,
  optional_list_index_int: steppedTo,
  optional_map_index_value: steppedTo,
  cidr_contains_ip_ip: contains(false, false),
  cidr_contains_ip_string: contains(false, true),
  cidr_contains_cidr: contains(true, false),
  cidr_contains_cidr_string: contains(true, true),
  starts_with_string: traverse,
  ends_with_string: traverse,
  string_to_bytes: traverse,
  bytes_to_string: traverse,
  strings_quote: traverse,
  string_format: traverse,
  in_list: ([, list]) => size(list),
  less_string: traverseShorter,
  less_equals_string: traverseShorter,
  greater_string: traverseShorter,
  greater_equals_string: traverseShorter,
  less_bytes: traverseShorter,
  less_equals_bytes: traverseShorter,
  greater_bytes: traverseShorter,
  greater_equals_bytes: traverseShorter,
  equals: traverseShorter,
  not_equals: traverseShorter,
  add_string: traverseBoth,
  add_bytes: traverseBoth,
  matches_string: matching,
  contains_string: ([text, part]) =>
    Math.ceil(size(text) * TRAVERSAL) * Math.ceil(size(part) * TRAVERSAL),
};

/** What a call of this overload costs; null: 1. */
export function callCostOf({ id, name }: Overload): CallCost | null {
  return ownMember(BY_OVERLOAD, id) ?? ownMember(BY_NAME, name) ?? null;
}

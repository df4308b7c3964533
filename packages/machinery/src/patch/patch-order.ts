/**
 * The order of a merged list: what the patch speaks of as the patch has it, the rest as the live
 * list has it, the two interleaved by the live list where it knows both.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonValue } from '../json/json-value.ts';

/** What tells items of a list apart: the member `mergeKey`, or with '' the scalar itself. */
export function identity(item: JsonValue | undefined, mergeKey: string): JsonValue | undefined {
  if (mergeKey === '') return item;
  return isObject(item) ? ownMember(item, mergeKey) : undefined;
}

/** Where each item of a list stands first, by what tells it apart. */
export type Ranks = Map<JsonValue | undefined, number>;

export function ranksOf(list: readonly JsonValue[], mergeKey: string): Ranks {
  const ranks: Ranks = new Map();
  for (const [index, item] of list.entries()) {
    const key = identity(item, mergeKey);
    if (!ranks.has(key)) ranks.set(key, index);
  }
  return ranks;
}

const UNKNOWN = -1;

/**
 * Sorts by the place in `order`. An item that `order` does not know goes before all that were
 * there: upstream's comparison calls it less than any other, and clients see the outcome. An item
 * that it knows goes behind the last one before it that has come already, or else to the front.
 */
function sorted(items: readonly JsonValue[], order: Ranks, mergeKey: string): JsonValue[] {
  const ranks = items.map((item) => order.get(identity(item, mergeKey)) ?? UNKNOWN);
  const before = predecessors(ranks);
  // a list of places, in which each item comes behind another or to the front
  const next = new Int32Array(items.length).fill(UNKNOWN);
  let first = UNKNOWN;
  for (const [index, behind] of before.entries()) {
    if (behind === UNKNOWN) {
      next[index] = first;
      first = index;
    } else {
      next[index] = next[behind] ?? UNKNOWN;
      next[behind] = index;
    }
  }
  const list: JsonValue[] = [];
  for (let at = first; at !== UNKNOWN; at = next[at] ?? UNKNOWN) list.push(items[at] ?? null);
  return list;
}

/** Of each item with a rank the one with the next lower or the same among those before it. */
function predecessors(ranks: readonly number[]): Int32Array {
  const known = [...ranks.keys()].filter((index) => ranks[index] !== UNKNOWN);
  known.sort((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0) || a - b);
  const previous = new Int32Array(ranks.length).fill(UNKNOWN);
  const following = new Int32Array(ranks.length).fill(UNKNOWN);
  for (const [at, index] of known.entries()) {
    previous[index] = known[at - 1] ?? UNKNOWN;
    following[index] = known[at + 1] ?? UNKNOWN;
  }
  // those that came last are taken out first: what is left beside each had come before it
  for (let index = ranks.length - 1; index >= 0; index--) {
    const [left, right] = [previous[index] ?? UNKNOWN, following[index] ?? UNKNOWN];
    if (left !== UNKNOWN) following[left] = right;
    if (right !== UNKNOWN) previous[right] = left;
  }
  return previous;
}

function isDeletion(item: JsonValue): boolean {
  return isObject(item) && item['$patch'] === 'delete';
}

/** Items split by whether the patch's order names them, brought into order. */
export function inMergedOrder(
  items: readonly JsonValue[],
  patchOrder: readonly JsonValue[],
  liveOrder: readonly JsonValue[],
  mergeKey: string,
): JsonValue[] {
  const patchRanks = ranksOf(patchOrder, mergeKey);
  const liveRanks = ranksOf(liveOrder, mergeKey);
  const isPatched = (item: JsonValue): boolean => patchRanks.has(identity(item, mergeKey));
  const patched = arranged(items.filter(isPatched), patchRanks, mergeKey);
  const others = arranged(
    items.filter((item) => !isPatched(item)),
    liveRanks,
    mergeKey,
  );
  return interleaved(others, patched, liveRanks, mergeKey);
}

function arranged(items: readonly JsonValue[], order: Ranks, mergeKey: string): JsonValue[] {
  const kept = items.filter((item) => !isDeletion(item));
  return [...sorted(kept, order, mergeKey), ...items.filter(isDeletion)];
}

/** An item of `others` goes before the next patched one where the live list says so. */
function interleaved(
  others: readonly JsonValue[],
  patched: readonly JsonValue[],
  liveOrder: Ranks,
  mergeKey: string,
): JsonValue[] {
  const rankOf = (item: JsonValue | undefined): number =>
    liveOrder.get(identity(item, mergeKey)) ?? UNKNOWN;
  const list: JsonValue[] = [];
  let next = 0;
  for (const item of patched) {
    const rank = rankOf(item);
    for (; next < others.length; next++) {
      const other = others[next];
      const otherRank = rankOf(other);
      if (other === undefined || rank < 0 || otherRank < 0 || otherRank >= rank) break;
      list.push(other);
    }
    list.push(item);
  }
  return [...list, ...others.slice(next)];
}

/**
 * The order of a merged list: what the patch speaks of as the patch has it, the rest as the live
 * list has it, the two interleaved by the live list where it knows both.
 */
import { ownMember } from '@megaplane/base/members';
import { isObject, type JsonValue } from '../json/json-value.ts';

/** What tells items of a list apart: the member `mergeKey`, or with '' the scalar itself. */
function identity(item: JsonValue | undefined, mergeKey: string): JsonValue | undefined {
  if (mergeKey === '') return item;
  return isObject(item) ? ownMember(item, mergeKey) : undefined;
}

export function rankIn(
  list: readonly JsonValue[],
  item: JsonValue | undefined,
  mergeKey: string,
): number {
  const wanted = identity(item, mergeKey);
  return list.findIndex((one) => identity(one, mergeKey) === wanted);
}

/**
 * Sorts by the place in `order`. An item that `order` does not know goes before all that were
 * there: upstream's comparison calls it less than any other, and clients see the outcome.
 */
function sorted(
  items: readonly JsonValue[],
  order: readonly JsonValue[],
  mergeKey: string,
): JsonValue[] {
  const list: JsonValue[] = [];
  for (const item of items) {
    const rank = rankIn(order, item, mergeKey);
    let at = list.length;
    for (; at > 0; at--) {
      const before = rankIn(order, list[at - 1], mergeKey);
      if (rank >= 0 && before >= 0 && rank >= before) break;
    }
    list.splice(at, 0, item);
  }
  return list;
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
  const isPatched = (item: JsonValue): boolean => rankIn(patchOrder, item, mergeKey) >= 0;
  const patched = arranged(items.filter(isPatched), patchOrder, mergeKey);
  const others = arranged(
    items.filter((item) => !isPatched(item)),
    liveOrder,
    mergeKey,
  );
  return interleaved(others, patched, liveOrder, mergeKey);
}

function arranged(
  items: readonly JsonValue[],
  order: readonly JsonValue[],
  mergeKey: string,
): JsonValue[] {
  const kept = items.filter((item) => !isDeletion(item));
  return [...sorted(kept, order, mergeKey), ...items.filter(isDeletion)];
}

/** An item of `others` goes before the next patched one where the live list says so. */
function interleaved(
  others: readonly JsonValue[],
  patched: readonly JsonValue[],
  liveOrder: readonly JsonValue[],
  mergeKey: string,
): JsonValue[] {
  const list: JsonValue[] = [];
  let next = 0;
  for (const item of patched) {
    const rank = rankIn(liveOrder, item, mergeKey);
    for (; next < others.length; next++) {
      const other = others[next];
      const otherRank = rankIn(liveOrder, other, mergeKey);
      if (other === undefined || rank < 0 || otherRank < 0 || otherRank >= rank) break;
      list.push(other);
    }
    list.push(item);
  }
  return [...list, ...others.slice(next)];
}

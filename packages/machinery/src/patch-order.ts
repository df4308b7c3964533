import { isObject, type JsonValue } from './json-value.ts';
import { equals } from './json.ts';

/** Tells items of a merged list apart: by their merge key, or scalars (key '') by themselves. */
export class MergedOrder {
  readonly mergeKey: string;

  constructor(mergeKey: string) {
    this.mergeKey = mergeKey;
  }

  isSame(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
    if (this.mergeKey === '') return equals(left, right);
    if (!isObject(left) || !isObject(right)) return false;
    const key = left[this.mergeKey];
    return key !== undefined && key === right[this.mergeKey];
  }

  rankIn(list: readonly JsonValue[], item: JsonValue | undefined): number {
    return list.findIndex((one) => this.isSame(one, item));
  }

  /** True for items that cannot take part in the order. */
  lacksKey(item: JsonValue): boolean {
    return this.mergeKey !== '' && (!isObject(item) || item[this.mergeKey] === undefined);
  }
}

/**
 * Brings a merged list into order: the items that the patch speaks of as the patch has them, the
 * others as the live list has them, and the two interleaved by the live list where it knows both.
 * `missingKey` is the first item without a merge key; the list is then of no use.
 */
export function normalized(
  by: MergedOrder,
  items: readonly JsonValue[],
  patchOrder: readonly JsonValue[],
  liveOrder: readonly JsonValue[],
): { readonly list: JsonValue[]; readonly missingKey: JsonValue | undefined } {
  const missingKey = [...items, ...patchOrder, ...liveOrder].find((item) => by.lacksKey(item));
  const patched: JsonValue[] = [];
  const others: JsonValue[] = [];
  for (const item of items) (by.rankIn(patchOrder, item) >= 0 ? patched : others).push(item);
  patched.sort((a, b) => by.rankIn(patchOrder, a) - by.rankIn(patchOrder, b));
  others.sort((a, b) => by.rankIn(liveOrder, a) - by.rankIn(liveOrder, b));
  return { list: interleaved(by, others, patched, liveOrder), missingKey };
}

/** An item of `others` goes before the next patched one where the live list says so. */
function interleaved(
  by: MergedOrder,
  others: readonly JsonValue[],
  patched: readonly JsonValue[],
  liveOrder: readonly JsonValue[],
): JsonValue[] {
  const list: JsonValue[] = [];
  let next = 0;
  for (const item of patched) {
    const rank = by.rankIn(liveOrder, item);
    for (; next < others.length; next++) {
      const other = others[next];
      const otherRank = by.rankIn(liveOrder, other);
      if (other === undefined || rank < 0 || otherRank < 0 || otherRank >= rank) break;
      list.push(other);
    }
    list.push(item);
  }
  return [...list, ...others.slice(next)];
}

// data plane: key ids in byte order of their keys, with ranks
/**
 * An order-statistic list: ids in leaves of at most LEAF_IDS, the leaves in an array, and a
 * Fenwick tree over the sizes of the leaves, so that rank, count of a range and "the id at rank
 * k" cost O(log n). The list compares the key loaded in the KeyIndex with the keys of ids.
 * Keys that arrive in order fill leaves whole, because a split at the very end moves nothing.
 */
import type { KeyIndex } from './key-index.ts';

const LEAF_IDS = 512;
const MERGE_IDS = 192;

export class KeyOrder {
  readonly #keys: KeyIndex;
  #leaves: Uint32Array[] = [new Uint32Array(LEAF_IDS)];
  #sizes: number[] = [0];
  /** Fenwick tree: #sums[i] covers the leaves (i - lowbit(i), i], counted from 1. */
  #sums: number[] = [0, 0];
  #size = 0;
  /** Place found by the last `seek`, and the rank there. */
  leaf = 0;
  slot = 0;

  constructor(keys: KeyIndex) {
    this.#keys = keys;
  }

  get size(): number {
    return this.#size;
  }

  /** Goes to the first id whose key is not below the loaded key. True when it is that key. */
  seek(): boolean {
    const keys = this.#keys;
    let low = 0;
    let high = this.#leaves.length - 1;
    // The last leaf whose first key is not above the loaded key.
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (keys.compare(this.#leaves[middle]![0]!) >= 0) low = middle;
      else high = middle - 1;
    }
    const ids = this.#leaves[low]!;
    const size = this.#sizes[low]!;
    let from = 0;
    let to = size;
    let isFound = false;
    while (from < to) {
      const middle = (from + to) >> 1;
      const order = keys.compare(ids[middle]!);
      if (order > 0) from = middle + 1;
      else {
        to = middle;
        if (order === 0) isFound = true;
      }
    }
    this.leaf = low;
    this.slot = from;
    return isFound;
  }

  /** Ids in front of the place found by `seek`. */
  rank(): number {
    let sum = this.slot;
    for (let i = this.leaf; i > 0; i -= i & -i) sum += this.#sums[i]!;
    return sum;
  }

  /** Goes to the id at a rank, which is below `size`. */
  seekRank(rank: number): void {
    let at = 0;
    let rest = rank;
    let step = 1;
    while (step * 2 < this.#sums.length) step *= 2;
    for (; step > 0; step >>= 1) {
      const next = at + step;
      if (next < this.#sums.length && this.#sums[next]! <= rest) {
        at = next;
        rest -= this.#sums[next]!;
      }
    }
    this.leaf = at;
    this.slot = rest;
  }

  /** Id at the current place, 0 at the end. Moves over the ends of leaves. */
  current(): number {
    while (this.slot >= this.#sizes[this.leaf]!) {
      if (this.leaf + 1 >= this.#leaves.length) return 0;
      this.leaf++;
      this.slot = 0;
    }
    return this.#leaves[this.leaf]![this.slot]!;
  }

  /** Inserts the id of the loaded key, which is not here yet. */
  insert(id: number): void {
    if (this.#isAfterAll()) {
      this.leaf = this.#leaves.length - 1;
      this.slot = this.#sizes[this.leaf]!;
    } else {
      this.seek();
    }
    if (this.#sizes[this.leaf] === LEAF_IDS) this.#split();
    const ids = this.#leaves[this.leaf]!;
    const size = this.#sizes[this.leaf]!;
    ids.copyWithin(this.slot + 1, this.slot, size);
    ids[this.slot] = id;
    this.#sizes[this.leaf] = size + 1;
    this.#add(this.leaf, 1);
    this.#size++;
  }

  #isAfterAll(): boolean {
    const last = this.#leaves.length - 1;
    const size = this.#sizes[last]!;
    return size > 0 && this.#keys.compare(this.#leaves[last]![size - 1]!) > 0;
  }

  #split(): void {
    const ids = this.#leaves[this.leaf]!;
    const keep = this.slot === LEAF_IDS ? LEAF_IDS : LEAF_IDS >> 1;
    const right = new Uint32Array(LEAF_IDS);
    right.set(ids.subarray(keep, LEAF_IDS));
    this.#leaves.splice(this.leaf + 1, 0, right);
    this.#sizes.splice(this.leaf + 1, 0, LEAF_IDS - keep);
    this.#sizes[this.leaf] = keep;
    if (keep === LEAF_IDS && this.leaf + 2 === this.#leaves.length) this.#appendSum();
    else this.#rebuild();
    if (this.slot >= keep && this.slot > 0) {
      this.leaf++;
      this.slot -= keep;
    }
  }

  /** A new empty last leaf: its Fenwick node is the sum of the nodes that it covers. */
  #appendSum(): void {
    const index = this.#leaves.length;
    let sum = 0;
    for (let i = index - 1; i > index - (index & -index); i -= i & -i) sum += this.#sums[i]!;
    this.#sums.push(sum);
  }

  /** Removes the id of the loaded key. False when it is not here. */
  remove(): boolean {
    if (!this.seek()) return false;
    const ids = this.#leaves[this.leaf]!;
    const size = this.#sizes[this.leaf]! - 1;
    ids.copyWithin(this.slot, this.slot + 1, size + 1);
    this.#sizes[this.leaf] = size;
    this.#add(this.leaf, -1);
    this.#size--;
    if (size < MERGE_IDS) this.#merge(this.leaf);
    return true;
  }

  #merge(leaf: number): void {
    if (this.#leaves.length === 1) return;
    const left = leaf + 1 < this.#leaves.length ? leaf : leaf - 1;
    const leftSize = this.#sizes[left]!;
    const rightSize = this.#sizes[left + 1]!;
    if (leftSize + rightSize > LEAF_IDS - MERGE_IDS && leftSize > 0 && rightSize > 0) return;
    if (leftSize + rightSize > LEAF_IDS) return;
    this.#leaves[left]!.set(this.#leaves[left + 1]!.subarray(0, rightSize), leftSize);
    this.#sizes[left] = leftSize + rightSize;
    this.#leaves.splice(left + 1, 1);
    this.#sizes.splice(left + 1, 1);
    this.#rebuild();
  }

  #add(leaf: number, by: number): void {
    for (let i = leaf + 1; i < this.#sums.length; i += i & -i) this.#sums[i]! += by;
  }

  #rebuild(): void {
    const count = this.#leaves.length;
    this.#sums.length = count + 1;
    this.#sums.fill(0);
    for (let i = 1; i <= count; i++) {
      this.#sums[i]! += this.#sizes[i - 1]!;
      const parent = i + (i & -i);
      if (parent <= count) this.#sums[parent]! += this.#sums[i]!;
    }
  }

  /** Replaces everything by ids that are already in order of their keys. */
  load(ids: Uint32Array, count: number): void {
    const leaves: Uint32Array[] = [];
    const sizes: number[] = [];
    const fill = LEAF_IDS - (LEAF_IDS >> 3);
    for (let from = 0; from < count || leaves.length === 0; from += fill) {
      const leaf = new Uint32Array(LEAF_IDS);
      const to = Math.min(count, from + fill);
      leaf.set(ids.subarray(from, to));
      leaves.push(leaf);
      sizes.push(to - from);
    }
    this.#leaves = leaves;
    this.#sizes = sizes;
    this.#size = count;
    this.#rebuild();
  }

  /** Copies all ids, in order, for a rebuild with others. */
  toArray(): Uint32Array {
    const all = new Uint32Array(this.#size);
    let at = 0;
    for (let leaf = 0; leaf < this.#leaves.length; leaf++) {
      all.set(this.#leaves[leaf]!.subarray(0, this.#sizes[leaf]), at);
      at += this.#sizes[leaf]!;
    }
    return all;
  }
}

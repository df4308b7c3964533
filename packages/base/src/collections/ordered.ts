// data plane: ids in the order of their keys, with ranks
import { assert } from '../assert.ts';
import {
  CHILDREN,
  COUNT,
  COUNTS,
  IDS,
  INNER_WORDS,
  LEAF_WORDS,
  LEVEL,
  NEXT,
  NODE_ENTRIES_MAX,
  NodePool,
  PREVIOUS,
} from './ordered-nodes.ts';
import {
  compareIds,
  EXACT,
  insertEntry,
  type KeySource,
  moveEntries,
  removeEntry,
  replaceEntry,
  searchNode,
} from './ordered-search.ts';

/**
 * An order-statistic index: ids, of a `KeyTable` or whatever else knows the keys of its ids, in the
 * byte order of the keys.
 *
 * A B+ tree of up to 256 entries a node (layout: `ordered-nodes.ts`). Inner nodes name the first
 * key of each subtree and how many ids it holds, so ranks and counts of ranges cost a walk from
 * the root. A node keeps the bytes that its keys share once, and four bytes of each key behind
 * them, so that most searches touch the keys themselves once.
 *
 * Several indexes may stand above one table. An id must be deleted here before its key is removed
 * there; where a key's bytes lie may change at any time between calls.
 *
 * A *position* is where an entry stands: a number, -1 for none. Any insert or delete invalidates
 * all positions; remember the key and seek it again.
 */
const MERGE_BELOW = 64;
const MERGE_ENTRIES_MAX = 192;
const DEPTH_MAX = 12;

export class OrderedIndex {
  readonly #keys: KeySource;
  readonly #leaves = new NodePool(LEAF_WORDS);
  readonly #inners = new NodePool(INNER_WORDS);
  #root = 0;
  #height = 0;
  #size = 0;
  // The way from the root to a leaf, by level: node, and which entry was taken.
  readonly #pathNode: Int32Array = new Int32Array(DEPTH_MAX);
  readonly #pathAt: Int32Array = new Int32Array(DEPTH_MAX);

  constructor(keys: KeySource) {
    this.#keys = keys;
    this.#root = this.#leaves.take();
  }

  /** Ids in the index. */
  get size(): number {
    return this.#size;
  }

  /** Memory of the nodes. */
  get memoryBytes(): number {
    return this.#leaves.memoryBytes + this.#inners.memoryBytes;
  }

  /** Puts an id in; false if it was there. Its key must be in the table. */
  insert(id: number): boolean {
    const keys = this.#keys;
    const bytes = keys.keyBytes(id);
    const start = keys.keyStart(id);
    const end = start + keys.keyLength(id);
    if (this.#entriesOf(this.#root, this.#height) === NODE_ENTRIES_MAX) this.#growRoot(id);
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const pool = this.#inners;
      let at = childAt(searchNode(keys, pool, node, bytes, start, end));
      let child = pool.words(node)[pool.at(node) + CHILDREN + at]!;
      if (this.#entriesOf(child, level - 1) === NODE_ENTRIES_MAX) {
        this.#splitChild(node, level, at, id);
        at = childAt(searchNode(keys, pool, node, bytes, start, end));
        child = pool.words(node)[pool.at(node) + CHILDREN + at]!;
      }
      this.#pathNode[level] = node;
      this.#pathAt[level] = at;
      node = child;
    }
    const position = searchNode(keys, this.#leaves, node, bytes, start, end);
    if (position >= EXACT) return false;
    insertEntry(keys, this.#leaves, node, position, id);
    this.#size++;
    for (let level = 1; level <= this.#height; level++) this.#addCount(level, 1);
    if (position === 0) this.#renameFirst(1, id);
    return true;
  }

  /** Takes an id out; false if it was not there. Its key must still be in the table. */
  delete(id: number): boolean {
    const keys = this.#keys;
    const start = keys.keyStart(id);
    const found = this.#descend(keys.keyBytes(id), start, start + keys.keyLength(id));
    if (found < EXACT) return false;
    const leaf = this.#pathNode[0]!;
    const position = found - EXACT;
    removeEntry(this.#leaves, leaf, position);
    this.#size--;
    for (let level = 1; level <= this.#height; level++) this.#addCount(level, -1);
    const entries = this.#entriesOf(leaf, 0);
    if (position === 0 && entries > 0) this.#renameFirst(1, this.#firstOf(leaf, 0));
    if (entries < MERGE_BELOW && this.#height > 0) this.#shrink();
    return true;
  }

  /** Whether an id is in the index. */
  has(id: number): boolean {
    const keys = this.#keys;
    const start = keys.keyStart(id);
    return this.#descend(keys.keyBytes(id), start, start + keys.keyLength(id)) >= EXACT;
  }

  /** How many ids have keys before the given one: the rank of the first key not below it. */
  lowerBound(bytes: Uint8Array, start: number, end: number): number {
    const found = this.#descend(bytes, start, end);
    let rank = found & ~EXACT;
    for (let level = this.#height; level > 0; level--) {
      const node = this.#pathNode[level]!;
      const words = this.#inners.words(node);
      const counts = this.#inners.at(node) + COUNTS;
      const at = counts + this.#pathAt[level]!;
      for (let i = counts; i < at; i++) rank += words[i]!;
    }
    return rank;
  }

  /** The rank of an id that is in the index. */
  rankOf(id: number): number {
    const start = this.#keys.keyStart(id);
    return this.lowerBound(this.#keys.keyBytes(id), start, start + this.#keys.keyLength(id));
  }

  /** How many ids have keys in [from, to). */
  countRange(
    from: Uint8Array,
    fromStart: number,
    fromEnd: number,
    to: Uint8Array,
    toStart: number,
    toEnd: number,
  ): number {
    const count = this.lowerBound(to, toStart, toEnd) - this.lowerBound(from, fromStart, fromEnd);
    return count < 0 ? 0 : count;
  }

  /** The id of a rank, -1 if there are not so many. */
  at(rank: number): number {
    return this.idAt(this.seekRank(rank));
  }

  /** The position of a rank, -1 if there are not so many. */
  seekRank(rank: number): number {
    if (rank < 0 || rank >= this.#size) return -1;
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const words = this.#inners.words(node);
      const base = this.#inners.at(node);
      let at = 0;
      while (rank >= words[base + COUNTS + at]!) rank -= words[base + COUNTS + at++]!;
      node = words[base + CHILDREN + at]!;
    }
    return (node << 8) | rank;
  }

  /** The position of the first key not below the given one, -1 if all are below. */
  seek(bytes: Uint8Array, start: number, end: number): number {
    const at = this.#descend(bytes, start, end) & ~EXACT;
    const leaf = this.#pathNode[0]!;
    if (at < this.#entriesOf(leaf, 0)) return (leaf << 8) | at;
    const next = this.#leaves.words(leaf)[this.#leaves.at(leaf) + NEXT]!;
    return next === 0 ? -1 : next << 8;
  }

  /** The position of the last key below the given one, -1 if none is. */
  seekBefore(bytes: Uint8Array, start: number, end: number): number {
    const at = this.#descend(bytes, start, end) & ~EXACT;
    const leaf = this.#pathNode[0]! << 8;
    return at > 0 ? leaf | (at - 1) : this.previous(leaf);
  }

  /** The position of the first key, -1 in an empty index. */
  first(): number {
    return this.seekRank(0);
  }

  /** The position of the last key, -1 in an empty index. */
  last(): number {
    return this.seekRank(this.#size - 1);
  }

  /** The id at a position; -1 for -1. */
  idAt(position: number): number {
    if (position < 0) return -1;
    const leaf = position >>> 8;
    return this.#leaves.words(leaf)[this.#leaves.at(leaf) + IDS + (position & 255)]!;
  }

  /** The position after one, -1 behind the last. */
  next(position: number): number {
    const leaf = position >>> 8;
    const words = this.#leaves.words(leaf);
    const base = this.#leaves.at(leaf);
    if ((position & 255) + 1 < words[base + COUNT]!) return position + 1;
    const next = words[base + NEXT]!;
    return next === 0 ? -1 : next << 8;
  }

  /** The position before one, -1 before the first. */
  previous(position: number): number {
    const leaf = position >>> 8;
    if ((position & 255) > 0) return position - 1;
    const previous = this.#leaves.words(leaf)[this.#leaves.at(leaf) + PREVIOUS]!;
    return previous === 0 ? -1 : (previous << 8) | (this.#entriesOf(previous, 0) - 1);
  }

  /** Walks to the leaf for a key, notes the way, and searches the leaf. */
  #descend(bytes: Uint8Array, start: number, end: number): number {
    const keys = this.#keys;
    const pool = this.#inners;
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const at = childAt(searchNode(keys, pool, node, bytes, start, end));
      this.#pathNode[level] = node;
      this.#pathAt[level] = at;
      node = pool.words(node)[pool.at(node) + CHILDREN + at]!;
    }
    this.#pathNode[0] = node;
    return searchNode(keys, this.#leaves, node, bytes, start, end);
  }

  #poolOf(level: number): NodePool {
    return level === 0 ? this.#leaves : this.#inners;
  }

  #entriesOf(node: number, level: number): number {
    const pool = this.#poolOf(level);
    return pool.words(node)[pool.at(node) + COUNT]!;
  }

  #firstOf(node: number, level: number): number {
    const pool = this.#poolOf(level);
    return pool.words(node)[pool.at(node) + IDS]!;
  }

  #idsBelow(node: number, level: number): number {
    const entries = this.#entriesOf(node, level);
    if (level === 0) return entries;
    const words = this.#inners.words(node);
    const counts = this.#inners.at(node) + COUNTS;
    let sum = 0;
    for (let i = 0; i < entries; i++) sum += words[counts + i]!;
    return sum;
  }

  #addCount(level: number, change: number): void {
    const node = this.#pathNode[level]!;
    const at = this.#inners.at(node) + COUNTS + this.#pathAt[level]!;
    this.#inners.words(node)[at]! += change;
  }

  /** The subtree on the noted way at `level` begins with another key now. */
  #renameFirst(level: number, id: number): void {
    for (let above = level; above <= this.#height; above++) {
      const at = this.#pathAt[above]!;
      replaceEntry(this.#keys, this.#inners, this.#pathNode[above]!, at, id);
      if (at > 0) return;
    }
  }

  #growRoot(id: number): void {
    const child = this.#root;
    assert(this.#height + 1 < DEPTH_MAX, 'an ordered index is too high');
    this.#height++;
    this.#root = this.#inners.take();
    this.#inners.words(this.#root)[this.#inners.at(this.#root) + LEVEL] = this.#height;
    this.#addChild(this.#root, 0, child, this.#height - 1);
    this.#splitChild(this.#root, this.#height, 0, id);
  }

  #addChild(node: number, position: number, child: number, level: number): void {
    insertEntry(this.#keys, this.#inners, node, position, this.#firstOf(child, level));
    const words = this.#inners.words(node);
    const base = this.#inners.at(node);
    words[base + CHILDREN + position] = child;
    words[base + COUNTS + position] = this.#idsBelow(child, level);
  }

  /** Makes two of the full child at `at` of a node that has room, for the sake of `id`. */
  #splitChild(node: number, level: number, at: number, id: number): void {
    const pool = this.#poolOf(level - 1);
    const parent = this.#inners.words(node);
    const parentBase = this.#inners.at(node);
    const left = parent[parentBase + CHILDREN + at]!;
    const right = pool.take();
    pool.words(right)[pool.at(right) + LEVEL] = level - 1;
    let middle = NODE_ENTRIES_MAX / 2;
    if (level === 1) {
      if (this.#isAppend(left, id)) middle = NODE_ENTRIES_MAX - 1;
      this.#linkAfter(left, right);
    }
    moveEntries(this.#keys, pool, left, middle, right);
    parent[parentBase + COUNTS + at] = this.#idsBelow(left, level - 1);
    this.#addChild(node, at + 1, right, level - 1);
  }

  /** Keys that come in order leave full leaves behind, not half empty ones. */
  #isAppend(leaf: number, id: number): boolean {
    const words = this.#leaves.words(leaf);
    const base = this.#leaves.at(leaf);
    if (words[base + NEXT] !== 0) return false;
    return compareIds(this.#keys, words[base + IDS + NODE_ENTRIES_MAX - 1]!, id) < 0;
  }

  #linkAfter(left: number, right: number): void {
    const pool = this.#leaves;
    const next = pool.words(left)[pool.at(left) + NEXT]!;
    pool.words(left)[pool.at(left) + NEXT] = right;
    pool.words(right)[pool.at(right) + PREVIOUS] = left;
    pool.words(right)[pool.at(right) + NEXT] = next;
    if (next !== 0) pool.words(next)[pool.at(next) + PREVIOUS] = right;
  }

  #unlink(leaf: number): void {
    const pool = this.#leaves;
    const next = pool.words(leaf)[pool.at(leaf) + NEXT]!;
    const previous = pool.words(leaf)[pool.at(leaf) + PREVIOUS]!;
    if (next !== 0) pool.words(next)[pool.at(next) + PREVIOUS] = previous;
    if (previous !== 0) pool.words(previous)[pool.at(previous) + NEXT] = next;
  }

  /** After a delete: nodes on the noted way that became small join a neighbour or vanish. */
  #shrink(): void {
    for (let level = 1; level <= this.#height; level++) {
      const node = this.#pathNode[level]!;
      const at = this.#pathAt[level]!;
      const child = this.#pathNode[level - 1]!;
      const entries = this.#entriesOf(child, level - 1);
      if (entries >= MERGE_BELOW) break;
      if (entries === 0) {
        this.#dropChild(node, at, child, level);
        if (at === 0 && this.#entriesOf(node, level) > 0) {
          this.#renameFirst(level + 1, this.#firstOf(node, level));
        }
      } else if (at > 0) this.#merge(node, at - 1, level);
      else if (this.#entriesOf(node, level) > 1) this.#merge(node, 0, level);
    }
    while (this.#height > 0 && this.#entriesOf(this.#root, this.#height) <= 1) this.#lowerRoot();
  }

  /** Joins the children at `at` and `at + 1` if they fit into one with room to spare. */
  #merge(node: number, at: number, level: number): void {
    const words = this.#inners.words(node);
    const base = this.#inners.at(node);
    const left = words[base + CHILDREN + at]!;
    const right = words[base + CHILDREN + at + 1]!;
    const sum = this.#entriesOf(left, level - 1) + this.#entriesOf(right, level - 1);
    if (sum > MERGE_ENTRIES_MAX) return;
    moveEntries(this.#keys, this.#poolOf(level - 1), right, 0, left);
    words[base + COUNTS + at]! += words[base + COUNTS + at + 1]!;
    this.#dropChild(node, at + 1, right, level);
  }

  #dropChild(node: number, at: number, child: number, level: number): void {
    removeEntry(this.#inners, node, at);
    if (level === 1) this.#unlink(child);
    this.#poolOf(level - 1).release(child);
  }

  #lowerRoot(): void {
    const root = this.#root;
    const isEmpty = this.#entriesOf(root, this.#height) === 0;
    const child = this.#inners.words(root)[this.#inners.at(root) + CHILDREN]!;
    this.#inners.release(root);
    this.#height = isEmpty ? 0 : this.#height - 1;
    this.#root = isEmpty ? this.#leaves.take() : child;
  }
}

/** The child in which a key belongs: the last whose first key is not behind it. */
function childAt(found: number): number {
  if (found >= EXACT) return found - EXACT;
  return found === 0 ? 0 : found - 1;
}

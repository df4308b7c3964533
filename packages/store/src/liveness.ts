// data plane: creations and deletions in order, to count the keys of a past revision
/**
 * count(range at r) = count(range now) - created since r + deleted since r, within the range.
 * Updates do not count, so the log holds creations (+1) and deletions (-1) only, in revision
 * order, for one class. Closed blocks of BLOCK_ENTRIES are sorted by key once past revisions are
 * asked for, a few per question and the rest by `sortNext` in idle time, with running sums; a
 * range is then a binary search per block and bound: a million changes cost about 2 ms.
 *
 * An entry after the boundary of history names a key that the index still holds (a tombstone
 * stays until the boundary passes it), which is what makes comparing by id safe.
 */
import type { KeyIndex } from './key-index.ts';

const BLOCK_BITS = 9;
const BLOCK_ENTRIES = 1 << BLOCK_BITS;
const BLOCK_MASK = BLOCK_ENTRIES - 1;
/** Blocks that one question may sort (0.5 ms each); it reads through the others. */
const SORTS_PER_QUESTION_MAX = 4;

interface Sorted {
  /** Ids in key order. */
  readonly ids: Uint32Array;
  /** Sum of the signs of ids[0..i). */
  readonly sums: Int32Array;
}

interface Block {
  readonly ids: Uint32Array;
  readonly signs: Int8Array;
  readonly revisions: Float64Array;
  sorted: Sorted | null;
}

/** Orders two keys by id. */
type Compare = (a: number, b: number) => number;

export class Liveness {
  readonly #keys: KeyIndex;
  readonly #compareIds: Compare;
  #blocks: Block[] = [];
  /** Entries in #blocks. */
  #size = 0;
  #isAsked = false;

  constructor(keys: KeyIndex, compareIds: Compare) {
    this.#keys = keys;
    this.#compareIds = compareIds;
  }

  append(revision: number, id: number, sign: number): void {
    const at = this.#size & BLOCK_MASK;
    if (at === 0) {
      this.#blocks.push({
        ids: new Uint32Array(BLOCK_ENTRIES),
        signs: new Int8Array(BLOCK_ENTRIES),
        revisions: new Float64Array(BLOCK_ENTRIES),
        sorted: null,
      });
    }
    const block = this.#blocks[this.#blocks.length - 1]!;
    block.ids[at] = id;
    block.signs[at] = sign;
    block.revisions[at] = revision;
    this.#size++;
  }

  clear(): void {
    this.#blocks = [];
    this.#size = 0;
  }

  /** Forgets entries up to a boundary, whole blocks at a time. */
  cut(boundary: number): void {
    let gone = 0;
    while (
      gone < this.#blocks.length - 1 &&
      this.#blocks[gone]!.revisions[BLOCK_MASK]! <= boundary
    ) {
      gone++;
    }
    if (gone === 0) return;
    this.#blocks.splice(0, gone);
    this.#size -= gone * BLOCK_ENTRIES;
  }

  /** Sorts one more block, once questions about the past were asked. False when none is left. */
  sortNext(): boolean {
    if (!this.#isAsked) return false;
    const closed = this.#size >> BLOCK_BITS;
    for (let index = closed - 1; index >= 0; index--) {
      const block = this.#blocks[index]!;
      if (block.sorted !== null) continue;
      block.sorted = this.#sort(block);
      return true;
    }
    return false;
  }

  /**
   * Net change of live keys after `revision`, among the keys at or above the loaded key.
   * Called twice for a range: from its start, minus from its end.
   */
  changesFromLoaded(revision: number): number {
    const total = this.#size;
    const from = this.#seek(revision, total);
    if (from === total) return 0;
    this.#isAsked = true;
    let sum = 0;
    let sorts = SORTS_PER_QUESTION_MAX;
    for (let index = from >> BLOCK_BITS; index << BLOCK_BITS < total; index++) {
      const block = this.#blocks[index]!;
      const start = index << BLOCK_BITS;
      const low = Math.max(0, from - start);
      const high = Math.min(total - start, BLOCK_ENTRIES);
      if (block.sorted === null && low === 0 && high === BLOCK_ENTRIES && sorts > 0) {
        block.sorted = this.#sort(block);
        sorts--;
      }
      if (block.sorted !== null && low === 0) sum += this.#sumFrom(block.sorted);
      else sum += this.#scan(block, low, high);
    }
    return sum;
  }

  /** Offset (from the first block) of the first entry after a revision. */
  #seek(revision: number, total: number): number {
    let low = 0;
    let high = total;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const block = this.#blocks[middle >> BLOCK_BITS]!;
      if (block.revisions[middle & BLOCK_MASK]! <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #scan(block: Block, from: number, to: number): number {
    let sum = 0;
    for (let i = from; i < to; i++) {
      if (this.#keys.compare(block.ids[i]!) <= 0) sum += block.signs[i]!;
    }
    return sum;
  }

  #sumFrom(sorted: Sorted): number {
    let low = 0;
    let high = sorted.ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#keys.compare(sorted.ids[middle]!) > 0) low = middle + 1;
      else high = middle;
    }
    return sorted.sums[sorted.ids.length]! - sorted.sums[low]!;
  }

  #sort(block: Block): Sorted {
    const order = new Uint16Array(BLOCK_ENTRIES);
    for (let i = 0; i < BLOCK_ENTRIES; i++) order[i] = i;
    order.sort((a, b) => this.#compareIds(block.ids[a]!, block.ids[b]!));
    const ids = new Uint32Array(BLOCK_ENTRIES);
    const sums = new Int32Array(BLOCK_ENTRIES + 1);
    for (let i = 0; i < BLOCK_ENTRIES; i++) {
      ids[i] = block.ids[order[i]!]!;
      sums[i + 1] = sums[i]! + block.signs[order[i]!]!;
    }
    return { ids, sums };
  }
}

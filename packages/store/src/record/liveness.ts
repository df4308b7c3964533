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
/**
 * Blocks lie in slabs of 1.5 MiB: large enough to be mapped by themselves, so that a slab that is
 * forgotten leaves no hole in the heap, and no objects per block for the collector to look at.
 */
const SLAB_BITS = 17;
const SLAB_ENTRIES = 1 << SLAB_BITS;
const SLAB_MASK = SLAB_ENTRIES - 1;
const SLAB_BLOCKS = SLAB_ENTRIES / BLOCK_ENTRIES;
/** What the first slab begins with. */
const FIRST_ENTRIES = 1024;
/** Blocks that one question may sort (0.5 ms each); it reads through the others. */
const SORTS_PER_QUESTION_MAX = 4;

interface Sorted {
  /** Ids in key order. */
  readonly ids: Uint32Array;
  /** Sum of the signs of ids[0..i). */
  readonly sums: Int32Array;
}

interface Slab {
  readonly revisions: Float64Array;
  /** An id that came; -id of one that went. */
  readonly ids: Int32Array;
}

/** Orders two keys by id. */
type Compare = (a: number, b: number) => number;

export class Liveness {
  readonly #keys: KeyIndex;
  readonly #compareIds: Compare;
  #slabs: Slab[] = [];
  /** By block from the beginning of the first slab. */
  #sorted: (Sorted | null)[] = [];
  /** Entries from the beginning of the first slab, and how many of them are forgotten. */
  #size = 0;
  #first = 0;
  #isAsked = false;

  constructor(keys: KeyIndex, compareIds: Compare) {
    this.#keys = keys;
    this.#compareIds = compareIds;
  }

  append(revision: number, id: number, sign: number): void {
    const at = this.#size & SLAB_MASK;
    const slab = this.#slabFor(at);
    slab.revisions[at] = revision;
    slab.ids[at] = sign > 0 ? id : -id;
    this.#size++;
  }

  /** The slab that the next entry goes to, with room for it. */
  #slabFor(at: number): Slab {
    const last = this.#slabs.length - 1;
    if (at === 0) {
      const fresh = newSlab(last < 0 ? FIRST_ENTRIES : SLAB_ENTRIES);
      this.#slabs.push(fresh);
      return fresh;
    }
    const slab = this.#slabs[last]!;
    if (at < slab.ids.length) return slab;
    const grown = newSlab(slab.ids.length * 2);
    grown.revisions.set(slab.revisions);
    grown.ids.set(slab.ids);
    this.#slabs[last] = grown;
    return grown;
  }

  clear(): void {
    this.#slabs = [];
    this.#sorted = [];
    this.#size = 0;
    this.#first = 0;
  }

  /** Forgets entries up to a boundary, whole blocks at a time, their memory in whole slabs. */
  cut(boundary: number): void {
    while (this.#first + BLOCK_ENTRIES < this.#size) {
      if (this.#revision(this.#first + BLOCK_ENTRIES - 1) > boundary) break;
      this.#sorted[this.#first >> BLOCK_BITS] = null;
      this.#first += BLOCK_ENTRIES;
    }
    const gone = this.#first >> SLAB_BITS;
    if (gone === 0) return;
    this.#slabs.splice(0, gone);
    this.#sorted.splice(0, gone * SLAB_BLOCKS);
    this.#size -= gone * SLAB_ENTRIES;
    this.#first -= gone * SLAB_ENTRIES;
  }

  #revision(place: number): number {
    return this.#slabs[place >> SLAB_BITS]!.revisions[place & SLAB_MASK]!;
  }

  /** Sorts one more block, once questions about the past were asked. False when none is left. */
  sortNext(): boolean {
    if (!this.#isAsked) return false;
    for (let block = (this.#size >> BLOCK_BITS) - 1; block >= this.#first >> BLOCK_BITS; block--) {
      if ((this.#sorted[block] ?? null) !== null) continue;
      this.#sort(block);
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
    for (let block = from >> BLOCK_BITS; block << BLOCK_BITS < total; block++) {
      const start = block << BLOCK_BITS;
      const end = Math.min(total, start + BLOCK_ENTRIES);
      const isWhole = from <= start && end === start + BLOCK_ENTRIES;
      let sorted = this.#sorted[block] ?? null;
      if (sorted === null && isWhole && sorts > 0) {
        sorted = this.#sort(block);
        sorts--;
      }
      if (sorted !== null && isWhole) sum += this.#sumFrom(sorted);
      else sum += this.#scan(Math.max(from, start), end);
    }
    return sum;
  }

  /** Place of the first entry after a revision. */
  #seek(revision: number, total: number): number {
    let low = this.#first;
    let high = total;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#revision(middle) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Entries of one block, one by one. */
  #scan(from: number, to: number): number {
    const { ids } = this.#slabs[from >> SLAB_BITS]!;
    let sum = 0;
    for (let place = from; place < to; place++) {
      const id = ids[place & SLAB_MASK]!;
      if (this.#keys.compare(Math.abs(id)) <= 0) sum += Math.sign(id);
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

  #sort(block: number): Sorted {
    const start = block << BLOCK_BITS;
    const entries = this.#slabs[start >> SLAB_BITS]!.ids;
    const base = start & SLAB_MASK;
    const order = new Uint16Array(BLOCK_ENTRIES);
    for (let i = 0; i < BLOCK_ENTRIES; i++) order[i] = i;
    order.sort((a, b) =>
      this.#compareIds(Math.abs(entries[base + a]!), Math.abs(entries[base + b]!)),
    );
    const ids = new Uint32Array(BLOCK_ENTRIES);
    const sums = new Int32Array(BLOCK_ENTRIES + 1);
    for (let i = 0; i < BLOCK_ENTRIES; i++) {
      const id = entries[base + order[i]!]!;
      ids[i] = Math.abs(id);
      sums[i + 1] = sums[i]! + Math.sign(id);
    }
    const sorted = { ids, sums };
    while (this.#sorted.length <= block) this.#sorted.push(null);
    this.#sorted[block] = sorted;
    return sorted;
  }
}

function newSlab(entries: number): Slab {
  const memory = new ArrayBuffer(entries * 12);
  return {
    revisions: new Float64Array(memory, 0, entries),
    ids: new Int32Array(memory, entries * 8, entries),
  };
}

// data plane: the kept records in the order of their revisions, found in slices
/**
 * What a backup holds and what HashKV is computed over: the records that etcd would have kept, as
 * of one revision, ordered by (main, sub). Keys are walked by id in slices; runs of
 * RUN_RECORDS are sorted as they fill; at the end the runs are merged through a heap, in slices
 * too. Old records never change, so writes go on; the sweep is held, so that nothing is freed or
 * moved, until `end` is called.
 */
import type { Store } from './store.ts';

/** Versions looked at per slice: a tenth of a millisecond, or half of one where memory is cold. */
const SLICE_VERSIONS = 256;
const RUN_BITS = 12;
const RUN_RECORDS: number = 1 << RUN_BITS;
const MERGES_PER_SLICE = 512;
/** Revisions further apart than this within one run do not pack into a double. */
const SPREAD_MAX: number = 2 ** (52 - RUN_BITS);

/**
 * `backup`: all that is readable; `hash`: what HashKV counts at the revision; `compaction`: the
 * same where the revision is about to be compacted, which lets its own tombstones count as kept.
 */
export type RevisionOrderMode = 'backup' | 'hash' | 'compaction';

export class RevisionOrder {
  readonly #store: Store;
  readonly #mode: RevisionOrderMode;
  readonly revision: number;
  /** The boundary as it was when the walk began. */
  readonly compactRevision: number;
  /** In order, once `step` has returned true. */
  refs: Uint32Array = new Uint32Array(0);
  length = 0;
  #nextId = 1;
  readonly #idEnd: number;
  readonly #runs: Uint32Array[] = [];
  /** Records at the boundary that count only when nothing is live at the revision. */
  readonly #spareRuns: Uint32Array[] = [];
  #run = new Uint32Array(RUN_RECORDS);
  #runSize = 0;
  #spare = new Uint32Array(0);
  #spareSize = 0;
  #isAnyLive = false;
  // The merge: a heap of runs by their next record.
  #heap: number[] = [];
  #places: number[] = [];
  #revisions: Float64Array = new Float64Array(0);
  #subs: Float64Array = new Float64Array(0);
  #isMerging = false;
  #isEnded = false;

  /** `boundary` is the compaction to go by, the store's own unless the caller knows better. */
  constructor(
    store: Store,
    revision: number,
    mode: RevisionOrderMode,
    boundary: number = store.compactRevision,
  ) {
    this.#store = store;
    this.#mode = mode;
    this.revision = revision;
    this.compactRevision = boundary;
    this.#idEnd = store.keys.idEnd;
    store.sweep.hold();
  }

  /** One slice of work; true when `refs` is complete. */
  step(): boolean {
    if (this.#nextId < this.#idEnd) {
      this.#walk();
      return false;
    }
    if (!this.#isMerging) this.#beginMerge();
    return this.#merge();
  }

  /** The records may be freed and moved again: no ref is good any more. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#store.sweep.release();
  }

  #walk(): void {
    const { keys, arenas } = this.#store;
    const runs = this.#runs.length;
    let budget = SLICE_VERSIONS;
    for (; this.#nextId < this.#idEnd && budget > 0; this.#nextId++) {
      let isNewest = true;
      let ref = keys.head(this.#nextId);
      for (; ref !== 0; ref = arenas.previous(ref)) {
        budget--;
        const mod = arenas.modRevision(ref);
        if (mod > this.revision) continue;
        if (!this.#take(ref, mod, isNewest)) break;
        isNewest = false;
      }
      // A run that is full is sorted, which is a slice of its own.
      if (this.#runs.length > runs) budget = 0;
    }
  }

  /** False when the older versions of the key are out of reach. */
  #take(ref: number, mod: number, isNewest: boolean): boolean {
    const isTombstone = this.#store.arenas.isTombstone(ref);
    const isLast = this.#mode === 'compaction' && mod === this.revision;
    if (isNewest && (!isTombstone || isLast)) this.#isAnyLive = true;
    if (mod > this.compactRevision) {
      this.#add(ref);
      return true;
    }
    if (this.#mode === 'backup') {
      if (!isTombstone || mod === this.compactRevision) this.#add(ref);
    } else if (!isTombstone) {
      if (isNewest) this.#add(ref);
      else this.#addSpare(ref);
    }
    return false;
  }

  #add(ref: number): void {
    this.#run[this.#runSize++] = ref;
    if (this.#runSize < RUN_RECORDS) return;
    this.#runs.push(this.#sorted(this.#run));
    this.#runSize = 0;
  }

  #addSpare(ref: number): void {
    if (this.#spareSize === this.#spare.length) {
      if (this.#spareSize > 0) this.#spareRuns.push(this.#sorted(this.#spare));
      this.#spare = new Uint32Array(RUN_RECORDS);
      this.#spareSize = 0;
    }
    this.#spare[this.#spareSize++] = ref;
  }

  /** A copy in order of revision, then of sub. */
  #sorted(refs: Uint32Array): Uint32Array {
    const { arenas } = this.#store;
    const size = refs.length;
    let lowest = Infinity;
    let highest = 0;
    for (let i = 0; i < size; i++) {
      const revision = arenas.modRevision(refs[i]!);
      if (revision < lowest) lowest = revision;
      if (revision > highest) highest = revision;
    }
    if (highest - lowest > SPREAD_MAX) return this.#sortedSlowly(refs);
    const packed = new Float64Array(size);
    for (let i = 0; i < size; i++) {
      packed[i] = (arenas.modRevision(refs[i]!) - lowest) * RUN_RECORDS + i;
    }
    packed.sort();
    const sorted = new Uint32Array(size);
    for (let i = 0; i < size; i++) sorted[i] = refs[packed[i]! % RUN_RECORDS]!;
    for (let from = 0; from < size;) {
      const revision = arenas.modRevision(sorted[from]!);
      let to = from + 1;
      while (to < size && arenas.modRevision(sorted[to]!) === revision) to++;
      if (to - from > 1) this.#sortBySub(sorted.subarray(from, to));
      from = to;
    }
    return sorted;
  }

  #sortBySub(refs: Uint32Array): void {
    const { arenas } = this.#store;
    const packed = new Float64Array(refs.length);
    const before = refs.slice();
    for (let i = 0; i < refs.length; i++) packed[i] = arenas.sub(refs[i]!) * RUN_RECORDS + i;
    packed.sort();
    for (let i = 0; i < refs.length; i++) refs[i] = before[packed[i]! % RUN_RECORDS]!;
  }

  #sortedSlowly(refs: Uint32Array): Uint32Array {
    const { arenas } = this.#store;
    const byRevision = (a: number, b: number): number =>
      arenas.modRevision(a) - arenas.modRevision(b) || arenas.sub(a) - arenas.sub(b);
    return refs.slice().sort(byRevision);
  }

  #beginMerge(): void {
    this.#isMerging = true;
    if (this.#runSize > 0) this.#runs.push(this.#sorted(this.#run.subarray(0, this.#runSize)));
    if (!this.#isAnyLive && this.#mode !== 'backup') {
      this.#runs.push(...this.#spareRuns);
      this.#runs.push(this.#sorted(this.#spare.subarray(0, this.#spareSize)));
    }
    const runs = this.#runs.length;
    let count = 0;
    for (const run of this.#runs) count += run.length;
    this.refs = new Uint32Array(count);
    this.#places = Array.from({ length: runs }, () => 0);
    this.#revisions = new Float64Array(runs);
    this.#subs = new Float64Array(runs);
    for (let run = 0; run < runs; run++) {
      if (this.#runs[run]!.length === 0) continue;
      this.#look(run);
      this.#heap.push(run);
      for (let at = this.#heap.length - 1; at > 0;) {
        const parent = (at - 1) >> 1;
        if (!this.#isBefore(this.#heap[at]!, this.#heap[parent]!)) break;
        this.#swap(at, parent);
        at = parent;
      }
    }
  }

  #look(run: number): void {
    const ref = this.#runs[run]![this.#places[run]!]!;
    this.#revisions[run] = this.#store.arenas.modRevision(ref);
    this.#subs[run] = this.#store.arenas.sub(ref);
  }

  #isBefore(a: number, b: number): boolean {
    const apart = this.#revisions[a]! - this.#revisions[b]!;
    return apart < 0 || (apart === 0 && this.#subs[a]! < this.#subs[b]!);
  }

  #swap(at: number, other: number): void {
    const run = this.#heap[at]!;
    this.#heap[at] = this.#heap[other]!;
    this.#heap[other] = run;
  }

  #merge(): boolean {
    const heap = this.#heap;
    for (let count = 0; count < MERGES_PER_SLICE; count++) {
      if (heap.length === 0) return true;
      const run = heap[0]!;
      const records = this.#runs[run]!;
      this.refs[this.length++] = records[this.#places[run]!]!;
      this.#places[run]!++;
      if (this.#places[run]! < records.length) this.#look(run);
      else {
        const last = heap.pop()!;
        if (heap.length === 0) return true;
        heap[0] = last;
      }
      this.#sink();
    }
    return false;
  }

  #sink(): void {
    const heap = this.#heap;
    for (let at = 0; ;) {
      let child = 2 * at + 1;
      if (child >= heap.length) return;
      if (child + 1 < heap.length && this.#isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#isBefore(heap[child]!, heap[at]!)) return;
      this.#swap(at, child);
      at = child;
    }
  }
}

// data plane: hash -> refs, growing one segment at a time
import { assert } from '../assert.ts';

/**
 * A multimap from 32-bit hashes to refs (non-zero unsigned 32-bit numbers). It compares no keys:
 * `first` and `next` walk the refs whose whole hash agrees.
 *
 * Extendible hashing: the directory is indexed by the high bits of the hash and names a segment of
 * 2048 slots, in which the low bits choose where linear probing starts. A segment that is three
 * quarters full splits in two by one more high bit; when its depth is the directory's, the
 * directory (4 bytes for some hundred keys) doubles first. So the cost of growth is one segment at
 * a time, never the table.
 *
 * While there is only one segment it has as few slots as it needs, from 16 on.
 *
 *   directory   hash >>> (32 - depth) -> segment
 *   slot        [hash, ref]; ref 0 = empty
 *   chunk       256 segments, 4 MiB; the first one starts small, for small tables
 */
const FIRST_SLOTS = 16;
const SEGMENT_SLOTS = 2048;
const SLOT_MASK: number = SEGMENT_SLOTS - 1;
const SEGMENT_WORDS: number = SEGMENT_SLOTS * 2;
const CHUNK_BITS = 8;
const CHUNK_MASK: number = (1 << CHUNK_BITS) - 1;
const CHUNK_WORDS: number = SEGMENT_WORDS << CHUNK_BITS;
/** 2^24 segments of 2048 slots: beyond any number of refs. */
const DEPTH_MAX = 24;
/** The directory of a single segment. */
const ROOT: Uint32Array = new Uint32Array(1);
/** The slots of a segment while it is split. */
const LEAVING: Int32Array = new Int32Array(SEGMENT_WORDS);

export class HashSlots {
  readonly #chunks: Int32Array[] = [new Int32Array(FIRST_SLOTS * 2)];
  #slotMask: number = FIRST_SLOTS - 1;
  #directory: Uint32Array = ROOT;
  #depth = 0;
  readonly #segmentDepth: number[] = [0];
  readonly #segmentCount: number[] = [0];
  // Where `first` stopped, for `next`.
  #slot = 0;

  /** The first ref under a hash, 0 if there is none. */
  first(hash: number): number {
    this.#slot = hash & this.#slotMask;
    return this.#scan(hash);
  }

  /** The ref after the one that the last `first` or `next` returned. No change in between. */
  next(hash: number): number {
    this.#slot = (this.#slot + 1) & this.#slotMask;
    return this.#scan(hash);
  }

  /** Adds a ref. */
  insert(hash: number, ref: number): void {
    let segment = this.#segmentOf(hash);
    while (this.#segmentCount[segment]! * 4 >= (this.#slotMask + 1) * 3) {
      if (this.#slotMask < SLOT_MASK) this.#widen();
      else this.#split(segment);
      segment = this.#segmentOf(hash);
    }
    this.#segmentCount[segment]!++;
    this.#place(segment, hash, ref);
  }

  /** Takes a ref away; it must be there. */
  remove(hash: number, ref: number): void {
    let slot = this.#slotOf(hash, ref);
    const segment = this.#segmentOf(hash);
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    const base = (segment & CHUNK_MASK) * SEGMENT_WORDS;
    this.#segmentCount[segment]!--;
    // Slots behind the hole move up, unless that would put them before where their probing starts.
    let probe = slot;
    for (;;) {
      probe = (probe + 1) & this.#slotMask;
      if (words[base + probe * 2 + 1] === 0) break;
      const home = words[base + probe * 2]! & this.#slotMask;
      if (((probe - home) & this.#slotMask) < ((probe - slot) & this.#slotMask)) continue;
      words[base + slot * 2] = words[base + probe * 2]!;
      words[base + slot * 2 + 1] = words[base + probe * 2 + 1]!;
      slot = probe;
    }
    words[base + slot * 2 + 1] = 0;
  }

  /** Puts `to` where `from` was; `from` must be there. */
  replace(hash: number, from: number, to: number): void {
    const slot = this.#slotOf(hash, from);
    const segment = this.#segmentOf(hash);
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    words[(segment & CHUNK_MASK) * SEGMENT_WORDS + slot * 2 + 1] = to;
  }

  /** Puts `to` where the ref was that the last `first` or `next` returned. No change in between. */
  replaceFound(hash: number, to: number): void {
    const segment = this.#segmentOf(hash);
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    words[(segment & CHUNK_MASK) * SEGMENT_WORDS + this.#slot * 2 + 1] = to;
  }

  /** Memory of segments and directory. */
  get memoryBytes(): number {
    let words = this.#directory.length;
    for (const chunk of this.#chunks) words += chunk.length;
    return words * 4;
  }

  #segmentOf(hash: number): number {
    // A shift by 32 would be a shift by 0.
    return this.#depth === 0 ? 0 : this.#directory[hash >>> (32 - this.#depth)]!;
  }

  #scan(hash: number): number {
    const segment = this.#segmentOf(hash);
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    const base = (segment & CHUNK_MASK) * SEGMENT_WORDS;
    let slot = this.#slot;
    for (;;) {
      const at = base + slot * 2;
      const ref = words[at + 1]!;
      if (ref === 0 || words[at] === hash) {
        this.#slot = slot;
        return ref >>> 0;
      }
      slot = (slot + 1) & this.#slotMask;
    }
  }

  #slotOf(hash: number, ref: number): number {
    let found = this.first(hash);
    while (found !== ref) {
      assert(found !== 0, 'a ref is missing from its hash slots');
      found = this.next(hash);
    }
    return this.#slot;
  }

  #place(segment: number, hash: number, ref: number): void {
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    const base = (segment & CHUNK_MASK) * SEGMENT_WORDS;
    let slot = hash & this.#slotMask;
    while (words[base + slot * 2 + 1] !== 0) slot = (slot + 1) & this.#slotMask;
    words[base + slot * 2] = hash;
    words[base + slot * 2 + 1] = ref;
  }

  /** Doubles the slots of the only segment. */
  #widen(): void {
    const old = this.#chunks[0]!;
    this.#chunks[0] = new Int32Array(old.length * 2);
    this.#slotMask = old.length - 1;
    for (let at = 0; at < old.length; at += 2) {
      if (old[at + 1] !== 0) this.#place(0, old[at]!, old[at + 1]!);
    }
  }

  /** Moves one half of a segment's slots, by the next bit of their hashes, to a new segment. */
  #split(segment: number): void {
    const depth = this.#segmentDepth[segment]!;
    assert(depth < DEPTH_MAX, 'more equal hashes than a segment holds');
    if (depth === this.#depth) this.#doubleDirectory();
    const created = this.#segmentDepth.length;
    this.#segmentDepth.push(depth + 1);
    this.#segmentCount.push(0);
    this.#segmentDepth[segment] = depth + 1;
    this.#addSegment(created);
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    const base = (segment & CHUNK_MASK) * SEGMENT_WORDS;
    const old = LEAVING;
    old.set(words.subarray(base, base + SEGMENT_WORDS));
    words.fill(0, base, base + SEGMENT_WORDS);
    this.#segmentCount[segment] = 0;
    const shift = 31 - depth;
    for (let at = 0; at < SEGMENT_WORDS; at += 2) {
      if (old[at + 1] === 0) continue;
      const target = ((old[at]! >>> shift) & 1) === 1 ? created : segment;
      this.#place(target, old[at]!, old[at + 1]!);
      this.#segmentCount[target]!++;
    }
    this.#redirect(segment, created, depth);
  }

  /** The upper half of the directory entries that named `segment` name `created` now. */
  #redirect(segment: number, created: number, depth: number): void {
    const directory = this.#directory;
    const run = 1 << (this.#depth - depth);
    // Entries of one segment are neighbours, aligned to their number; find one by any hash of it.
    const words = this.#chunks[segment >>> CHUNK_BITS]!;
    const base = (segment & CHUNK_MASK) * SEGMENT_WORDS;
    const other = this.#chunks[created >>> CHUNK_BITS]!;
    const otherBase = (created & CHUNK_MASK) * SEGMENT_WORDS;
    let hash = 0;
    for (let at = 0; at < SEGMENT_WORDS; at += 2) {
      if (words[base + at + 1] !== 0) hash = words[base + at]!;
      else if (other[otherBase + at + 1] !== 0) hash = other[otherBase + at]!;
      else continue;
      break;
    }
    const first = (hash >>> (32 - this.#depth)) & ~(run - 1);
    directory.fill(created, first + run / 2, first + run);
  }

  #doubleDirectory(): void {
    const doubled = new Uint32Array(this.#directory.length * 2);
    for (let i = 0; i < doubled.length; i++) doubled[i] = this.#directory[i >>> 1]!;
    this.#directory = doubled;
    this.#depth++;
  }

  #addSegment(segment: number): void {
    const chunk = segment >>> CHUNK_BITS;
    const needed = ((segment & CHUNK_MASK) + 1) * SEGMENT_WORDS;
    const present = this.#chunks[chunk];
    if (present === undefined) {
      this.#chunks.push(new Int32Array(CHUNK_WORDS));
    } else if (present.length < needed) {
      const grown = new Int32Array(Math.min(CHUNK_WORDS, present.length * 2));
      grown.set(present);
      this.#chunks[chunk] = grown;
    }
  }
}

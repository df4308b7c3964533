// data plane: bytes outside the JavaScript heap
import { assert } from '../assert.ts';
import { copyBytes } from '../bytes/bytes.ts';
import { Uint16Column, Uint32Column, Uint8Column } from './column.ts';
import {
  BLOCK_BYTES_MAX,
  CLASS_BLOCKS,
  CLASS_BYTES,
  CLASS_LARGE,
  CLASS_OF_UNITS,
  CLASS_PAGES,
} from './slab-classes.ts';
import { PAGE_BYTES, Regions } from './slab-regions.ts';

/**
 * Bytes are named by a *ref*: their address divided by 8, an integer of 32 bits, so that a ref
 * fits a Uint32Array and one slab reaches 32 GiB. Ref 0 names nothing.
 *
 *   ref      region | page in region | unit of 8 bytes in page
 *   region   one ArrayBuffer, `regionBytes` long; returned to the system when nothing lives in it
 *   page     8 KiB; belongs to no span, or to one
 *   span     8 or 16 pages cut into blocks of one size, or the pages of one large block
 *
 * A block has no header: what is known of it hangs on its span, in columns indexed by the number
 * of the span's first page. Freed blocks of a span are linked through their own first two bytes.
 * Spans with room are in a doubly linked list for each class of sizes.
 *
 * `compactStep` empties one sparse region at a time into the holes of the others. Who holds refs
 * learns of each move by a callback, and finds the holder by what it wrote into the block itself
 * (a record begins with the id of its row, for instance).
 */
export interface SlabOptions {
  /** Bytes of one region: a power of two from 1 MiB to 1 GiB. Also the limit of one block. */
  readonly regionBytes?: number;
  /**
   * Bytes that the first region begins with: a power of two from 128 KiB on, by default all of it.
   * It doubles until it is whole. What it holds is elsewhere then: views of its bytes are good only
   * until the next allocation.
   */
  readonly firstRegionBytes?: number;
  /** Memory that regions may take, in bytes, at most 32 GiB. */
  readonly bytesMax?: number;
  /** Memory beyond `bytesMax` that only urgent allocations may take, in bytes. */
  readonly urgentBytes?: number;
}

/** Called when a block moved; the old bytes are still readable during the call. */
export type Moved = (from: number, to: number, sizeBytes: number) => void;

const SLAB_BYTES_MAX: number = 2 ** 35;
const REGION_BYTES_DEFAULT: number = 2 ** 25;
const FIRST_REGION_BYTES_MIN: number = 2 ** 17;
const PAGE_UNITS_BITS = 10;
const SYSTEM_PAGE_BYTES = 4096;
/** Of the span that is being emptied: which of its blocks are free. */
const IS_FREE_BLOCK: Uint8Array = new Uint8Array(PAGE_BYTES);

export class Slab {
  readonly #bytesMax: number;
  readonly #urgentBytes: number;
  readonly #regionShift: number;
  readonly #regionMask: number;
  readonly #regions: Regions;
  // The arrays of `#regions`, held directly: the way to a block's bytes is the hottest of all.
  readonly #buffers: readonly Buffer[];
  readonly #words: readonly Int32Array[];
  readonly #spanOf: Uint32Column;

  // By the first page of a span.
  readonly #spanClass = new Uint8Column();
  readonly #spanPages = new Uint32Column();
  readonly #spanLive = new Uint16Column();
  readonly #spanBumped = new Uint16Column();
  readonly #spanFree = new Uint16Column();
  readonly #spanNext = new Uint32Column();
  readonly #spanPrevious = new Uint32Column();
  readonly #classHead: Uint32Array = new Uint32Array(CLASS_BYTES.length);

  #liveBytes = 0;
  #liveBlocks = 0;
  #drainRegion = -1;
  #drainPage = 0;
  #drainBlock = 0;
  // Regions whose blocks found no room elsewhere, until enough more was freed.
  readonly #isStuck: boolean[] = [];
  #drainRetryBelow = 0;
  #isMoving = false;
  #reserveBytes = 0;

  constructor(options: SlabOptions = {}) {
    const regionBytes = options.regionBytes ?? REGION_BYTES_DEFAULT;
    const bits = Math.log2(regionBytes);
    assert(Number.isInteger(bits) && bits >= 20 && bits <= 30, 'regionBytes: 1 MiB to 1 GiB');
    this.#urgentBytes = options.urgentBytes ?? 0;
    this.#bytesMax = Math.min(options.bytesMax ?? Infinity, SLAB_BYTES_MAX - this.#urgentBytes);
    assert(this.#bytesMax >= regionBytes, 'bytesMax is below one region');
    const firstBytes = options.firstRegionBytes ?? regionBytes;
    const isFirstFit = firstBytes <= regionBytes && firstBytes >= FIRST_REGION_BYTES_MIN;
    assert(isFirstFit && Number.isInteger(Math.log2(firstBytes)), 'firstRegionBytes');
    this.#regions = new Regions(regionBytes, firstBytes);
    this.#buffers = this.#regions.buffers;
    this.#words = this.#regions.words;
    this.#spanOf = this.#regions.runOf;
    this.#regionShift = bits - 3;
    this.#regionMask = 2 ** this.#regionShift - 1;
  }

  /**
   * Takes regions from the system ahead of use, until `sizeBytes` are held (or the limit is
   * reached), and touches each page, so that later allocations meet no page fault. Each region
   * takes milliseconds: this is for the start of a process. Reserved regions are not given back.
   */
  reserve(sizeBytes: number): void {
    const regions = this.#regions;
    this.#reserveBytes = Math.max(this.#reserveBytes, Math.min(sizeBytes, this.#bytesMax));
    assert(regions.growthBytes === 0 && regions.nextBytes === regions.regionBytes, 'short regions');
    while (regions.reservedBytes + regions.regionBytes <= this.#reserveBytes) {
      const bytes = this.#buffers[regions.open()]!;
      for (let at = 0; at < bytes.length; at += SYSTEM_PAGE_BYTES) bytes[at] = 0;
    }
  }

  /** Bytes of blocks in use, each counted as its whole block. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** Blocks in use. */
  get liveBlocks(): number {
    return this.#liveBlocks;
  }

  /** Bytes taken from the system and not in use: holes, free pages, tails. */
  get freeBytes(): number {
    return this.#regions.reservedBytes - this.#liveBytes;
  }

  /** Bytes taken from the system for regions. */
  get reservedBytes(): number {
    return this.#regions.reservedBytes;
  }

  /** Bytes that the slab keeps about its regions. */
  get bookkeepingBytes(): number {
    return (
      this.#spanOf.memoryBytes +
      this.#spanClass.memoryBytes +
      this.#spanPages.memoryBytes +
      this.#spanLive.memoryBytes +
      this.#spanBumped.memoryBytes +
      this.#spanFree.memoryBytes +
      this.#spanNext.memoryBytes +
      this.#spanPrevious.memoryBytes
    );
  }

  /** The largest block that can be had, in bytes. */
  get blockBytesMax(): number {
    return this.#regions.regionBytes - PAGE_BYTES;
  }

  /**
   * Takes a block of at least `sizeBytes` and returns its ref, or 0 at the memory limit or above
   * `blockBytesMax`. What the block holds is undefined. Urgent allocations (deletes, renewals)
   * may use the reserve beyond the limit.
   */
  allocate(sizeBytes: number, isUrgent = false): number {
    if (sizeBytes > BLOCK_BYTES_MAX) return this.#allocateLarge(sizeBytes, isUrgent);
    const sizeClass = CLASS_OF_UNITS[(sizeBytes + 7) >>> 3]!;
    let span = this.#classHead[sizeClass]!;
    if (span === 0) {
      span = this.#openSpan(sizeClass, isUrgent);
      if (span === 0) return 0;
    }
    const blockBytes = CLASS_BYTES[sizeClass]!;
    const units = (span << PAGE_UNITS_BITS) >>> 0;
    const free = this.#spanFree.get(span);
    let ref = 0;
    if (free === 0) {
      const block = this.#spanBumped.get(span);
      this.#spanBumped.set(span, block + 1);
      ref = units + block * (blockBytes >>> 3);
    } else {
      ref = units + (free - 1) * (blockBytes >>> 3);
      const at = this.startAt(ref);
      const buffer = this.bytesAt(ref);
      this.#spanFree.set(span, buffer[at]! | (buffer[at + 1]! << 8));
    }
    const live = this.#spanLive.add(span, 1);
    if (live === CLASS_BLOCKS[sizeClass]!) this.#unlink(span, sizeClass);
    this.#account(span, blockBytes, 1);
    return ref;
  }

  /** Takes a block and copies a range into it; 0 as `allocate` does. */
  store(bytes: Uint8Array, start: number, end: number, isUrgent = false): number {
    const ref = this.allocate(end - start, isUrgent);
    if (ref !== 0) copyBytes(bytes, start, end, this.bytesAt(ref), this.startAt(ref));
    return ref;
  }

  /** Gives a block back. The ref is dead from now on, and so are views of its bytes. */
  free(ref: number): void {
    const span = this.#spanOf.get(ref >>> PAGE_UNITS_BITS);
    assert(span !== 0, 'free of a ref that names nothing');
    const sizeClass = this.#spanClass.get(span);
    const units = (span << PAGE_UNITS_BITS) >>> 0;
    if (sizeClass === CLASS_LARGE) {
      assert(ref === units, 'free of a ref inside a block');
      this.#account(span, this.#spanPages.get(span) * PAGE_BYTES, -1);
      this.#releaseSpan(span);
      return;
    }
    const blockBytes = CLASS_BYTES[sizeClass]!;
    const block = (ref - units) / (blockBytes >>> 3);
    assert(block === Math.floor(block), 'free of a ref inside a block');
    const wasLive = this.#spanLive.get(span);
    assert(wasLive > 0 && block < this.#spanBumped.get(span), 'free of a block that is not in use');
    const at = this.startAt(ref);
    const buffer = this.bytesAt(ref);
    const next = this.#spanFree.get(span);
    buffer[at] = next & 255;
    buffer[at + 1] = next >>> 8;
    this.#spanFree.set(span, block + 1);
    this.#spanLive.set(span, wasLive - 1);
    this.#account(span, blockBytes, -1);
    const isDraining = ref >>> this.#regionShift === this.#drainRegion;
    if (wasLive === CLASS_BLOCKS[sizeClass]! && !isDraining) this.#link(span, sizeClass);
    if (wasLive === 1) {
      if (!isDraining) this.#unlink(span, sizeClass);
      this.#releaseSpan(span);
    }
  }

  /** What `bytesAt` looks up, by region: for those who know the region's size. */
  get regionBuffers(): readonly Buffer[] {
    return this.#buffers;
  }

  /** What `wordsAt` looks up, by region. */
  get regionWords(): readonly Int32Array[] {
    return this.#words;
  }

  /** The memory in which a ref's bytes lie; valid until the block is freed or moved. */
  bytesAt(ref: number): Buffer {
    return this.#buffers[ref >>> this.#regionShift]!;
  }

  /** Where in `bytesAt(ref)` the block starts. */
  startAt(ref: number): number {
    return (ref & this.#regionMask) << 3;
  }

  /** The same memory as 32-bit words of the machine's byte order. */
  wordsAt(ref: number): Int32Array {
    return this.#words[ref >>> this.#regionShift]!;
  }

  /** Where in `wordsAt(ref)` the block starts. */
  wordAt(ref: number): number {
    return (ref & this.#regionMask) << 1;
  }

  /** Bytes that the block can hold: what was asked for, or somewhat more. */
  capacity(ref: number): number {
    const span = this.#spanOf.get(ref >>> PAGE_UNITS_BITS);
    const sizeClass = this.#spanClass.get(span);
    if (sizeClass === CLASS_LARGE) return this.#spanPages.get(span) * PAGE_BYTES;
    return CLASS_BYTES[sizeClass]!;
  }

  /**
   * Moves blocks out of the sparsest region into holes elsewhere, at most about `bytesMax` bytes
   * in this call, and gives the region back once it is empty. Returns the bytes moved (a look in
   * vain counts as some); 0 when there is nothing worth doing. `moved` must put the new ref
   * wherever the old one was held, and must not allocate or free.
   */
  compactStep(bytesMax: number, moved: Moved): number {
    let movedBytes = 0;
    while (movedBytes < bytesMax) {
      if (this.#drainRegion < 0 && !this.#startDrain()) break;
      movedBytes += this.#drainSome(bytesMax - movedBytes, moved);
    }
    return movedBytes;
  }

  /** Goes on with the region that is being emptied. */
  #drainSome(bytesMax: number, moved: Moved): number {
    const region = this.#drainRegion;
    const regionPages = this.#regions.regionPages;
    let movedBytes = 0;
    while (movedBytes < bytesMax && this.#drainPage < regionPages) {
      const span = this.#spanOf.get(region * regionPages + this.#drainPage);
      if (span === 0) {
        this.#drainPage++;
        this.#drainBlock = 0;
        continue;
      }
      const pages = this.#spanPages.get(span);
      const bytes = this.#drainSpan(span, bytesMax - movedBytes, moved);
      if (bytes < 0) {
        this.#abandonDrain();
        return movedBytes + PAGE_BYTES;
      }
      movedBytes += bytes;
      if (this.#drainBlock === 0) this.#drainPage += pages;
    }
    if (this.#drainPage >= regionPages) {
      this.#drainRegion = -1;
      assert(this.#regions.isEmpty(region), 'a drained region still holds blocks');
      this.#regions.close(region);
    }
    return movedBytes;
  }

  /** Moves blocks of one span; -1 when there was no room. `#drainBlock` is 0 when it is done. */
  #drainSpan(span: number, bytesMax: number, moved: Moved): number {
    const sizeClass = this.#spanClass.get(span);
    const units = (span << PAGE_UNITS_BITS) >>> 0;
    if (sizeClass === CLASS_LARGE) {
      const sizeBytes = this.#spanPages.get(span) * PAGE_BYTES;
      return this.#moveBlock(units, sizeBytes, moved) ? sizeBytes : -1;
    }
    this.#markFreeBlocks(span);
    const blockBytes = CLASS_BYTES[sizeClass]!;
    const bumped = this.#spanBumped.get(span);
    let movedBytes = 0;
    for (let block = this.#drainBlock; block < bumped; block++) {
      if (IS_FREE_BLOCK[block] === 1) continue;
      if (movedBytes >= bytesMax) {
        this.#drainBlock = block;
        return movedBytes;
      }
      if (!this.#moveBlock(units + block * (blockBytes >>> 3), blockBytes, moved)) return -1;
      movedBytes += blockBytes;
      // The last block took the span with it.
      if (this.#spanOf.get(span) === 0) break;
    }
    this.#drainBlock = 0;
    return movedBytes;
  }

  #moveBlock(from: number, sizeBytes: number, moved: Moved): boolean {
    const to = this.#allocateElsewhere(sizeBytes);
    if (to === 0) return false;
    const start = this.startAt(from);
    this.bytesAt(from).copy(this.bytesAt(to), this.startAt(to), start, start + sizeBytes);
    moved(from, to, sizeBytes);
    this.free(from);
    return true;
  }

  /** Room for a block that moves: a hole of its size, or else of up to twice its size. */
  #allocateElsewhere(sizeBytes: number): number {
    this.#isMoving = true;
    let to = this.allocate(sizeBytes);
    // A size that few blocks have may have no other span; a little room lost frees a region.
    for (let size = sizeBytes; to === 0 && size < sizeBytes * 2 && size < BLOCK_BYTES_MAX;) {
      size = CLASS_BYTES[CLASS_OF_UNITS[(size >>> 3) + 1]!]!;
      to = this.allocate(size);
    }
    this.#isMoving = false;
    return to;
  }

  #markFreeBlocks(span: number): void {
    const blockUnits = CLASS_BYTES[this.#spanClass.get(span)]! >>> 3;
    const units = (span << PAGE_UNITS_BITS) >>> 0;
    IS_FREE_BLOCK.fill(0, 0, this.#spanBumped.get(span));
    let free = this.#spanFree.get(span);
    while (free !== 0) {
      IS_FREE_BLOCK[free - 1] = 1;
      const ref = units + (free - 1) * blockUnits;
      const at = this.startAt(ref);
      const buffer = this.bytesAt(ref);
      free = buffer[at]! | (buffer[at + 1]! << 8);
    }
  }

  /** Picks the region with the fewest live bytes, if the others have room for them. */
  #startDrain(): boolean {
    const regions = this.#regions;
    if (this.#liveBytes <= this.#drainRetryBelow) this.#isStuck.fill(false);
    let best = -1;
    for (let region = 0; region < this.#buffers.length; region++) {
      if (!regions.isOpen(region) || this.#isStuck[region] === true) continue;
      if (best < 0 || regions.liveBytes[region]! <= regions.liveBytes[best]!) best = region;
    }
    if (best < 0) return false;
    const live = regions.liveBytes[best]!;
    const bytes = regions.bytesOf(best);
    const elsewhere = regions.reservedBytes - bytes - (this.#liveBytes - live);
    if (live > bytes * 0.8 || elsewhere < live * 1.25) return false;
    if (elsewhere === 0) return false;
    if (regions.reservedBytes - bytes < this.#reserveBytes) return false;
    this.#drainRegion = best;
    this.#drainPage = best === 0 ? 1 : 0;
    this.#drainBlock = 0;
    this.#forEachOpenSpan(best, (span, sizeClass) => this.#unlink(span, sizeClass));
    return true;
  }

  /** No room elsewhere after all: the region serves again, and others are tried before it. */
  #abandonDrain(): void {
    const region = this.#drainRegion;
    this.#drainRegion = -1;
    while (this.#isStuck.length <= region) this.#isStuck.push(false);
    this.#isStuck[region] = true;
    this.#drainRetryBelow = this.#liveBytes - this.#regions.regionBytes / 8;
    this.#forEachOpenSpan(region, (span, sizeClass) => this.#link(span, sizeClass));
  }

  #forEachOpenSpan(region: number, visit: (span: number, sizeClass: number) => void): void {
    const pages = this.#regions.regionPages;
    for (let page = region * pages; page < (region + 1) * pages; page++) {
      if (this.#spanOf.get(page) !== page || page === 0) continue;
      const sizeClass = this.#spanClass.get(page);
      if (sizeClass === CLASS_LARGE) continue;
      if (this.#spanLive.get(page) < CLASS_BLOCKS[sizeClass]!) visit(page, sizeClass);
    }
  }

  #account(span: number, sizeBytes: number, sign: number): void {
    this.#regions.liveBytes[this.#regions.regionOf(span)]! += sign * sizeBytes;
    this.#liveBytes += sign * sizeBytes;
    this.#liveBlocks += sign;
  }

  #allocateLarge(sizeBytes: number, isUrgent: boolean): number {
    if (sizeBytes > this.blockBytesMax) return 0;
    const pages = Math.ceil(sizeBytes / PAGE_BYTES);
    const span = this.#takePages(pages, isUrgent);
    if (span === 0) return 0;
    this.#spanClass.set(span, CLASS_LARGE);
    this.#account(span, pages * PAGE_BYTES, 1);
    return (span << PAGE_UNITS_BITS) >>> 0;
  }

  #openSpan(sizeClass: number, isUrgent: boolean): number {
    const span = this.#takePages(CLASS_PAGES[sizeClass]!, isUrgent);
    if (span === 0) return 0;
    this.#spanClass.set(span, sizeClass);
    this.#spanLive.set(span, 0);
    this.#spanBumped.set(span, 0);
    this.#spanFree.set(span, 0);
    this.#link(span, sizeClass);
    return span;
  }

  #link(span: number, sizeClass: number): void {
    const head = this.#classHead[sizeClass]!;
    this.#spanNext.set(span, head);
    this.#spanPrevious.set(span, 0);
    if (head !== 0) this.#spanPrevious.set(head, span);
    this.#classHead[sizeClass] = span;
  }

  #unlink(span: number, sizeClass: number): void {
    const next = this.#spanNext.get(span);
    const previous = this.#spanPrevious.get(span);
    if (previous === 0) this.#classHead[sizeClass] = next;
    else this.#spanNext.set(previous, next);
    if (next !== 0) this.#spanPrevious.set(next, previous);
  }

  #takePages(pages: number, isUrgent: boolean): number {
    const regions = this.#regions;
    let page = regions.take(pages, this.#drainRegion);
    // A move makes room elsewhere: it must not itself take memory.
    while (page === 0 && !this.#isMoving) {
      const limit = isUrgent ? this.#bytesMax + this.#urgentBytes : this.#bytesMax;
      const isShort = regions.growthBytes > 0;
      const moreBytes = isShort ? regions.growthBytes : regions.nextBytes;
      if (regions.reservedBytes + moreBytes > limit) return 0;
      if (isShort) regions.grow();
      else regions.open();
      page = regions.take(pages, this.#drainRegion);
    }
    if (page !== 0) this.#spanPages.set(page, pages);
    return page;
  }

  #releaseSpan(span: number): void {
    const regions = this.#regions;
    regions.release(span, this.#spanPages.get(span));
    const region = regions.regionOf(span);
    if (regions.isEmpty(region) && region !== this.#drainRegion) this.#releaseRegion(region);
  }

  /** One empty region stays, so that use around a boundary does not take and return it at will. */
  #releaseRegion(region: number): void {
    const { regionBytes, reservedBytes } = this.#regions;
    const remaining = reservedBytes - this.#regions.bytesOf(region);
    const isSpare = remaining - this.#liveBytes < regionBytes / 4;
    if (!isSpare && remaining >= this.#reserveBytes) this.#regions.close(region);
  }
}

// data plane: large regions of memory, shared out by pages
import { Uint32Column } from './column.ts';

/** Bytes of one page, the grain in which a region is shared out. */
export const PAGE_BYTES = 8192;

/**
 * Regions come from the system whole, go back whole, and are given out as runs of pages.
 *
 * Page numbers run through all regions; page 0 is never given out, so that 0 can mean none. A
 * region that went back keeps its number for the next one, so page numbers stay below the limit.
 *
 * Region 0 may begin short: `grow` doubles it, as a copy, until it is whole.
 */
export class Regions {
  readonly regionBytes: number;
  readonly regionPages: number;
  readonly buffers: Buffer[] = [];
  readonly words: Int32Array[] = [];
  /** Bytes in use by region, kept by `account`. */
  readonly liveBytes: number[] = [];
  /** By page: the first page of the run it belongs to, 0 for a free page. */
  readonly runOf: Uint32Column = new Uint32Column();
  readonly #firstRegionBytes: number;
  /** By region: pages that it has. */
  readonly #pages: number[] = [];
  readonly #freePages: number[] = [];
  // Lower bound of the first free page, upper bound of the longest free run.
  readonly #firstFree: number[] = [];
  readonly #runMax: number[] = [];
  reservedBytes = 0;

  constructor(regionBytes: number, firstRegionBytes: number = regionBytes) {
    this.regionBytes = regionBytes;
    this.#firstRegionBytes = firstRegionBytes;
    this.regionPages = regionBytes / PAGE_BYTES;
  }

  /** Takes a run of free pages outside region `avoid`; its first page, or 0 if there is none. */
  take(pages: number, avoid: number): number {
    // The lowest region that has one: high regions run empty and can go back.
    for (let region = 0; region < this.buffers.length; region++) {
      if (this.#runMax[region]! < pages || region === avoid) continue;
      const page = this.#findRun(region, pages);
      if (page === 0) continue;
      for (let i = 0; i < pages; i++) this.runOf.set(page + i, page);
      this.#freePages[region]! -= pages;
      if (this.#firstFree[region] === page) this.#firstFree[region] = page + pages;
      return page;
    }
    return 0;
  }

  /** Gives a run back. */
  release(page: number, pages: number): void {
    const region = this.regionOf(page);
    for (let i = 0; i < pages; i++) this.runOf.set(page + i, 0);
    this.#freePages[region]! += pages;
    if (page < this.#firstFree[region]!) this.#firstFree[region] = page;
    let first = page;
    let end = page + pages;
    const regionFirst = Math.max(1, region * this.regionPages);
    const regionEnd = region * this.regionPages + this.#pages[region]!;
    while (first > regionFirst && this.runOf.get(first - 1) === 0) first--;
    while (end < regionEnd && this.runOf.get(end) === 0) end++;
    if (end - first > this.#runMax[region]!) this.#runMax[region] = end - first;
  }

  /** The region that a page lies in. */
  regionOf(page: number): number {
    return (page / this.regionPages) | 0;
  }

  /** Whether no page of an open region is in use. */
  isEmpty(region: number): boolean {
    return this.#freePages[region] === this.#pagesOf(region);
  }

  /** Whether a region's number is in use. */
  isOpen(region: number): boolean {
    return this.buffers[region]!.length > 0;
  }

  /** Bytes of an open region. */
  bytesOf(region: number): number {
    return this.#pages[region]! * PAGE_BYTES;
  }

  /** Bytes that `open` would take now. */
  get nextBytes(): number {
    return this.buffers.length === 0 ? this.#firstRegionBytes : this.regionBytes;
  }

  /** Takes one more region from the system and returns its number. */
  open(): number {
    let region = 0;
    while (region < this.buffers.length && this.isOpen(region)) region++;
    const sizeBytes = this.nextBytes;
    const memory = new ArrayBuffer(sizeBytes);
    this.buffers[region] = Buffer.from(memory);
    this.words[region] = new Int32Array(memory);
    this.liveBytes[region] = 0;
    this.#pages[region] = sizeBytes / PAGE_BYTES;
    this.#freePages[region] = this.#pagesOf(region);
    this.#firstFree[region] = Math.max(1, region * this.regionPages);
    this.#runMax[region] = this.#pagesOf(region);
    this.reservedBytes += sizeBytes;
    return region;
  }

  /** Bytes that `grow` would take now; 0 when no region is short. */
  get growthBytes(): number {
    const pages = this.#pages[0] ?? 0;
    return pages < this.regionPages ? pages * PAGE_BYTES : 0;
  }

  /** Doubles region 0, which must be short. Its bytes are elsewhere afterwards. */
  grow(): void {
    const pages = this.#pages[0]!;
    const memory = new ArrayBuffer(pages * 2 * PAGE_BYTES);
    const grown = Buffer.from(memory);
    this.buffers[0]!.copy(grown);
    this.buffers[0] = grown;
    this.words[0] = new Int32Array(memory);
    this.#pages[0] = pages * 2;
    this.#freePages[0]! += pages;
    this.#runMax[0] = this.#pagesOf(0);
    this.reservedBytes += pages * PAGE_BYTES;
  }

  /** Gives an empty region back to the system. */
  close(region: number): void {
    this.buffers[region] = Buffer.alloc(0);
    this.words[region] = new Int32Array(0);
    this.#runMax[region] = 0;
    this.#freePages[region] = -1;
    this.reservedBytes -= this.bytesOf(region);
    // What is closed comes again whole, and is never grown.
    this.#pages[region] = this.regionPages;
  }

  #pagesOf(region: number): number {
    return this.#pages[region]! - (region === 0 ? 1 : 0);
  }

  #findRun(region: number, pages: number): number {
    const end = region * this.regionPages + this.#pages[region]!;
    let run = 0;
    let runMax = 0;
    for (let page = this.#firstFree[region]!; page < end; page++) {
      if (this.runOf.get(page) !== 0) {
        run = 0;
        continue;
      }
      run++;
      if (run === pages) return page - pages + 1;
      if (run > runMax) runMax = run;
    }
    this.#runMax[region] = runMax;
    return 0;
  }
}

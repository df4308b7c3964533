// data plane: which block size serves which request

import { PAGE_BYTES } from './slab-regions.ts';

/** Largest request that shares a span with others; larger ones get pages of their own. */
export const BLOCK_BYTES_MAX = 16384;
/** The class of spans that hold a single large block. */
export const CLASS_LARGE = 255;

// Small blocks: eight pages to a span; larger ones sixteen, so that the tail of a span stays small.
const SPAN_PAGES_SMALL = 8;
const SPAN_PAGES_MEDIUM = 16;
const SMALL_BYTES_MAX = 2048;

function spanPagesFor(sizeBytes: number): number {
  return sizeBytes <= SMALL_BYTES_MAX ? SPAN_PAGES_SMALL : SPAN_PAGES_MEDIUM;
}

/**
 * Block sizes: each doubling from 128 on in sixteen steps, below that multiples of 8, each widened
 * to the largest size of which as many still fit into a span. A block wastes 3 % on average, and
 * powers of two, which people like, waste nothing.
 */
function blockSizes(): number[] {
  const sizes: number[] = [];
  for (let wanted = 8; wanted <= BLOCK_BYTES_MAX; wanted += Math.max(8, powerOf2(wanted) / 16)) {
    const spanBytes = spanPagesFor(wanted) * PAGE_BYTES;
    const size = Math.floor(spanBytes / Math.floor(spanBytes / wanted) / 8) * 8;
    if (wanted <= 128) sizes.push(wanted);
    else if (size !== sizes.at(-1)) sizes.push(size);
  }
  return sizes;
}

function powerOf2(size: number): number {
  return 2 ** Math.floor(Math.log2(size));
}

/** Bytes of a block, by class. */
export const CLASS_BYTES: Int32Array = Int32Array.from(blockSizes());
/** Pages of a span, by class. */
export const CLASS_PAGES: Int32Array = CLASS_BYTES.map(spanPagesFor);
/** Blocks in a span, by class. */
export const CLASS_BLOCKS: Int32Array = CLASS_BYTES.map((size, index) =>
  Math.floor((CLASS_PAGES[index]! * PAGE_BYTES) / size),
);

/** Class by size in units of 8 bytes, rounded up: sizes from 0 to `BLOCK_BYTES_MAX`. */
export const CLASS_OF_UNITS: Uint8Array = (() => {
  const table = new Uint8Array(BLOCK_BYTES_MAX / 8 + 1);
  let index = 0;
  for (let units = 0; units < table.length; units++) {
    while (CLASS_BYTES[index]! < units * 8) index++;
    table[units] = index;
  }
  return table;
})();

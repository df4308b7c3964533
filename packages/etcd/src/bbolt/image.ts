// data plane: a bbolt file as a stream of pages
/**
 * The first page names the root and the number of all pages, so the file is planned whole before
 * its first byte leaves: one pass over the sizes, one over the bytes. Both go in steps.
 *
 *   0, 1 metas | 2 free list, empty | the buckets' pages, one behind the other | root bucket
 */
import {
  BUCKET_HEADER_BYTES,
  ELEMENT_BUCKET,
  ELEMENT_BYTES,
  FLAG_FREELIST,
  FLAG_LEAF,
  PAGE_HEADER_BYTES,
  writeMeta,
  writePageHeader,
} from './pages.ts';
import { BucketTree, type EntrySource, PAGE_BYTES } from './tree.ts';

const FIRST_BUCKET_PAGE = 3;
const FREELIST_PAGE = 2;
/** Pieces are this large, except where one entry is larger. */
export const PIECE_BYTES: number = 64 * 1024;

export interface Bucket {
  readonly name: string;
  readonly entries: EntrySource;
}

/** Entries that are few, as pairs in order of keys. */
export function listSource(pairs: readonly (readonly [Buffer, Buffer])[]): EntrySource {
  return {
    count: pairs.length,
    keySize: (index) => pairs[index]![0].length,
    valueSize: (index) => pairs[index]![1].length,
    writeKey: (index, out, at) => at + pairs[index]![0].copy(out, at),
    writeValue: (index, out, at) => at + pairs[index]![1].copy(out, at),
  };
}

export class BboltImage {
  readonly #buckets: readonly Bucket[];
  readonly #trees: BucketTree[] = [];
  #piece: Buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  #tree = 0;
  #part: 'head' | 'buckets' | 'root' | 'end' = 'head';
  #pages = 0;

  /** Buckets in order of their names. */
  constructor(buckets: readonly Bucket[]) {
    this.#buckets = buckets;
  }

  /** Plans a little; true when `size` is known. */
  plan(): boolean {
    let tree = this.#trees.at(-1);
    if (tree === undefined || tree.root !== 0) {
      const bucket = this.#buckets[this.#trees.length];
      const page = tree?.nextPage ?? FIRST_BUCKET_PAGE;
      if (bucket === undefined) {
        this.#pages = page + 1;
        return true;
      }
      tree = new BucketTree(bucket.name, bucket.entries, page);
      this.#trees.push(tree);
    }
    tree.plan();
    return false;
  }

  /** Bytes of the whole file, once planned. */
  get size(): number {
    return this.#pages * PAGE_BYTES;
  }

  /** The next piece, whole pages, valid until the next call; null after the last. */
  next(): Buffer | null {
    switch (this.#part) {
      case 'head':
        this.#part = 'buckets';
        return this.#head();
      case 'buckets':
        return this.#nextOfBuckets();
      case 'root':
        this.#part = 'end';
        return this.#root();
      case 'end':
        return null;
    }
  }

  #clear(size: number): Buffer {
    if (size > this.#piece.length) this.#piece = Buffer.allocUnsafeSlow(size);
    return this.#piece.fill(0, 0, size);
  }

  #head(): Buffer {
    const out = this.#clear(FIRST_BUCKET_PAGE * PAGE_BYTES);
    const meta = {
      pageBytes: PAGE_BYTES,
      root: this.#pages - 1,
      freelist: FREELIST_PAGE,
      pages: this.#pages,
    };
    // bbolt writes transaction n to meta n modulo 2.
    writeMeta(out, 0, 0, { ...meta, transaction: 2n });
    writeMeta(out, PAGE_BYTES, 1, { ...meta, transaction: 1n });
    writePageHeader(out, FREELIST_PAGE * PAGE_BYTES, FREELIST_PAGE, FLAG_FREELIST, 0, 0);
    return out.subarray(0, FIRST_BUCKET_PAGE * PAGE_BYTES);
  }

  #nextOfBuckets(): Buffer | null {
    let tree = this.#trees[this.#tree];
    while (tree !== undefined && tree.nextBytes() === 0) tree = this.#trees[++this.#tree];
    if (tree === undefined) {
      this.#part = 'root';
      return this.next();
    }
    const out = this.#clear(Math.max(PIECE_BYTES, tree.nextBytes()));
    let at = 0;
    for (let bytes = tree.nextBytes(); bytes > 0 && at + bytes <= out.length;) {
      tree.renderNext(out, at);
      at += bytes;
      bytes = tree.nextBytes();
    }
    return out.subarray(0, at);
  }

  #root(): Buffer {
    const out = this.#clear(PAGE_BYTES);
    const trees = this.#trees;
    writePageHeader(out, 0, this.#pages - 1, FLAG_LEAF, trees.length, 0);
    let element = PAGE_HEADER_BYTES;
    let data = element + trees.length * ELEMENT_BYTES;
    for (const tree of trees) {
      const nameSize = out.write(tree.name, data, 'latin1');
      out.writeUInt32LE(ELEMENT_BUCKET, element);
      out.writeUInt32LE(data - element, element + 4);
      out.writeUInt32LE(nameSize, element + 8);
      out.writeUInt32LE(BUCKET_HEADER_BYTES, element + 12);
      out.writeBigUInt64LE(BigInt(tree.root), data + nameSize);
      element += ELEMENT_BYTES;
      data += nameSize + BUCKET_HEADER_BYTES;
    }
    return out.subarray(0, PAGE_BYTES);
  }
}

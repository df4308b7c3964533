// shell: reads a bbolt file that may be damaged
/**
 * Every number of the file is checked before it is followed: pages lie inside the file, elements
 * inside their page, keys rise, and no more pages are read than the file has, so that a damaged or
 * hostile file ends in an error that names the place. Nothing is kept in memory but the path from
 * the root to the current leaf.
 */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import {
  BUCKET_HEADER_BYTES,
  ELEMENT_BUCKET,
  ELEMENT_BYTES,
  FLAG_BRANCH,
  FLAG_LEAF,
  type Meta,
  PAGE_HEADER_BYTES,
  hasMagic,
  readMeta,
} from './pages.ts';

/** Sizes of pages whose second meta is looked for when the first one is damaged. */
const PAGE_SIZES = [4096, 8192, 16_384, 32_768, 65_536, 2048, 1024] as const;
const HEAD_BYTES = 128 * 1024;
const SHA256_BYTES = 32;
const SECTOR_BYTES = 512;
const DEPTH_MAX = 32;
const HASH_PIECE_BYTES: number = 1024 * 1024;

/** Where a bucket's tree begins. */
interface BucketRoot {
  readonly name: string;
  /** Page number, 0 when the page is `inline`. */
  readonly root: number;
  readonly inline: Buffer;
}

export type Entry = readonly [key: Buffer, value: Buffer];

export class BboltFile {
  readonly path: string;
  readonly #fd: number;
  readonly #meta: Meta;
  /** Bytes of pages, without a checksum behind them. */
  readonly bytes: number;
  /** Snapshots end with the SHA-256 of what is before it; plain databases do not. */
  readonly hasChecksum: boolean;
  readonly #buckets: ReadonlyMap<string, BucketRoot>;
  #pagesRead = 0;

  /** Throws an Error that says what is wrong with the file. */
  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, 'r');
    try {
      const { size } = fstatSync(this.#fd);
      this.hasChecksum = size % SECTOR_BYTES === SHA256_BYTES;
      this.bytes = this.hasChecksum ? size - SHA256_BYTES : size;
      this.#meta = this.#findMeta();
      this.#buckets = this.#readRoot();
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
  }

  #findMeta(): Meta {
    const head = Buffer.alloc(Math.min(HEAD_BYTES, this.bytes));
    readSync(this.#fd, head, 0, head.length, 0);
    const found = [0, ...PAGE_SIZES]
      .map((at) => readMeta(head, at))
      .filter((meta) => meta !== null);
    const [newest] = found.sort((a, b) => (a.transaction < b.transaction ? 1 : -1));
    if (newest === undefined) {
      const what = hasMagic(head, 0)
        ? 'is a bbolt file whose first pages are damaged'
        : 'is no bbolt file (a snapshot or database of etcd)';
      throw new Error(`${this.path} ${what}; take the snapshot again, or use another copy`);
    }
    const { pages, pageBytes } = newest;
    if (pages * pageBytes > this.bytes) {
      const needed = `${pages} pages of ${pageBytes} bytes`;
      throw new Error(
        `${this.path} is cut off: it names ${needed} and has ${this.bytes} bytes; ` +
          'copy it again, or use another one',
      );
    }
    return newest;
  }

  #readRoot(): Map<string, BucketRoot> {
    const buckets = new Map<string, BucketRoot>();
    const none = Buffer.alloc(0);
    const top: BucketRoot = { name: '(root)', root: this.#meta.root, inline: none };
    for (const [key, value, isBucket] of this.#walk(top)) {
      if (!isBucket || value.length < BUCKET_HEADER_BYTES) continue;
      const name = key.toString('latin1');
      const root = Number(value.readBigUInt64LE(0));
      buckets.set(name, { name, root, inline: Buffer.from(value.subarray(BUCKET_HEADER_BYTES)) });
    }
    return buckets;
  }

  /** Names of the buckets, in order. */
  get names(): readonly string[] {
    return [...this.#buckets.keys()];
  }

  has(bucket: string): boolean {
    return this.#buckets.has(bucket);
  }

  /** Entries of a bucket in order of keys, none when it is not there; valid until the next one. */
  *entries(bucket: string): Generator<Entry> {
    const root = this.#buckets.get(bucket);
    if (root === undefined) return;
    let before: Buffer | null = null;
    for (const [key, value] of this.#walk(root)) {
      if (before !== null && before.compare(key) >= 0) {
        throw this.#damage(`keys of bucket ${bucket} do not rise at ${key.toString('hex')}`);
      }
      before = Buffer.from(key);
      yield [key, value];
    }
  }

  /** The value of one key of a small bucket. */
  value(bucket: string, key: string): Buffer | null {
    for (const [found, value] of this.entries(bucket)) {
      if (found.toString('latin1') === key) return Buffer.from(value);
    }
    return null;
  }

  #damage(what: string): Error {
    return new Error(`${this.path} is damaged: ${what}; use another copy`);
  }

  *#walk(bucket: BucketRoot): Generator<readonly [Buffer, Buffer, boolean]> {
    this.#pagesRead = 0;
    if (bucket.root === 0) yield* this.#leaf(bucket.inline, `the inline page of ${bucket.name}`);
    else yield* this.#node(bucket.root, 0);
  }

  *#node(page: number, depth: number): Generator<readonly [Buffer, Buffer, boolean]> {
    if (depth > DEPTH_MAX) throw this.#damage(`page ${page} lies ${depth} levels deep`);
    const bytes = this.#readPage(page);
    const flags = bytes.readUInt16LE(8);
    if (flags === FLAG_LEAF) {
      yield* this.#leaf(bytes, `page ${page}`);
      return;
    }
    if (flags !== FLAG_BRANCH) throw this.#damage(`page ${page} has the kind ${flags}`);
    const count = this.#count(bytes, `page ${page}`);
    for (let i = 0; i < count; i++) {
      const child = bytes.readBigUInt64LE(PAGE_HEADER_BYTES + i * ELEMENT_BYTES + 8);
      yield* this.#node(Number(child), depth + 1);
    }
  }

  #readPage(page: number): Buffer {
    const { pageBytes, pages } = this.#meta;
    if (!(page >= 2 && page < pages)) throw this.#damage(`page ${page} of ${pages} is named`);
    if (++this.#pagesRead > pages) throw this.#damage(`page ${page} is named more than once`);
    const first = Buffer.alloc(pageBytes);
    readSync(this.#fd, first, 0, pageBytes, page * pageBytes);
    if (Number(first.readBigUInt64LE(0)) !== page) {
      throw this.#damage(`page ${page} says that it is page ${first.readBigUInt64LE(0)}`);
    }
    const overflow = first.readUInt32LE(12);
    if (overflow === 0) return first;
    if (page + overflow >= pages) {
      throw this.#damage(`page ${page} goes on for ${overflow} pages, beyond the last one`);
    }
    const whole = Buffer.alloc((overflow + 1) * pageBytes);
    readSync(this.#fd, whole, 0, whole.length, page * pageBytes);
    return whole;
  }

  #count(bytes: Buffer, where: string): number {
    if (bytes.length < PAGE_HEADER_BYTES) throw this.#damage(`${where} is too short`);
    const count = bytes.readUInt16LE(10);
    if (PAGE_HEADER_BYTES + count * ELEMENT_BYTES > bytes.length) {
      throw this.#damage(`${where} names ${count} elements`);
    }
    return count;
  }

  *#leaf(bytes: Buffer, where: string): Generator<readonly [Buffer, Buffer, boolean]> {
    const count = this.#count(bytes, where);
    for (let i = 0; i < count; i++) {
      const at = PAGE_HEADER_BYTES + i * ELEMENT_BYTES;
      const key = at + bytes.readUInt32LE(at + 4);
      const value = key + bytes.readUInt32LE(at + 8);
      const end = value + bytes.readUInt32LE(at + 12);
      if (end > bytes.length) throw this.#damage(`element ${i} of ${where} lies outside`);
      const isBucket = (bytes.readUInt32LE(at) & ELEMENT_BUCKET) !== 0;
      yield [bytes.subarray(key, value), bytes.subarray(value, end), isBucket];
    }
  }

  /** Compares the checksum behind the pages, piece by piece; throws when it does not fit. */
  *checkSum(): Generator<number> {
    const hash = createHash('sha256');
    const piece = Buffer.alloc(HASH_PIECE_BYTES);
    for (let at = 0; at < this.bytes;) {
      const count = readSync(this.#fd, piece, 0, Math.min(piece.length, this.bytes - at), at);
      if (count === 0) throw this.#damage(`it ends at byte ${at}`);
      hash.update(piece.subarray(0, count));
      at += count;
      yield at;
    }
    const expected = Buffer.alloc(SHA256_BYTES);
    readSync(this.#fd, expected, 0, SHA256_BYTES, this.bytes);
    if (expected.equals(hash.digest())) return;
    throw new Error(
      `${this.path}: the checksum at its end does not fit what is before it; copy it again, ` +
        'or use --skip-hash-check for a file that is known to be right',
    );
  }

  close(): void {
    closeSync(this.#fd);
  }
}

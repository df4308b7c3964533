// data plane
/** One page of a list: where its items stand, and what its metadata says. */
import {
  findPath,
  integerAt,
  MemberCursor,
  pathOf,
  skipSpace,
  skipValue,
  stringValue,
} from '@megaplane/machinery/scan';

const METADATA = Buffer.from('metadata');
const ITEMS = Buffer.from('items');
const CONTINUE = Buffer.from('continue');
const RESOURCE_VERSION = Buffer.from('resourceVersion');
const SHARD_INFO = Buffer.from('shardInfo');
const SELECTOR = pathOf('selector');
const UNCHANGED = Buffer.from('unchanged');
const OF = pathOf('of');

/** A page that was read; reuse it. */
export class Page {
  /** Token of the next page, '' on the last one. */
  continueToken = '';
  /** Of the list; -1 where the page has none. */
  resourceVersion = -1;
  /** Of `shardInfo`: the shard that the list is of; '' where the server tells none. */
  shardSelector = '';
  /** Of `unchanged`: objects of the collection; -1 where the list leaves nothing out. */
  unchangedOf = -1;
  readonly #top = new MemberCursor();
  readonly #inner = new MemberCursor();
  #bytes: Buffer = Buffer.alloc(0);
  #end = 0;
  #itemsStart = -1;

  /** False where the bytes hold no list. */
  read(bytes: Buffer, end: number): boolean {
    this.#bytes = bytes;
    this.#end = end;
    this.#itemsStart = -1;
    this.continueToken = '';
    this.resourceVersion = -1;
    this.shardSelector = '';
    this.unchangedOf = -1;
    const top = this.#top;
    if (!top.open(bytes, skipSpace(bytes, 0, end), end)) return false;
    while (top.next()) {
      if (top.is(ITEMS)) this.#itemsStart = top.valueStart;
      else if (top.is(METADATA)) this.#metadata(top.valueStart, top.valueEnd);
    }
    return top.isClosed && this.#itemsStart >= 0;
  }

  #metadata(start: number, end: number): void {
    const inner = this.#inner;
    if (!inner.open(this.#bytes, start, end)) return;
    while (inner.next()) {
      if (inner.is(CONTINUE)) {
        this.continueToken = stringValue(this.#bytes, inner.valueStart, inner.valueEnd);
      } else if (inner.is(RESOURCE_VERSION)) {
        this.resourceVersion = integerAt(this.#bytes, inner.valueStart, inner.valueEnd);
      } else if (inner.is(SHARD_INFO)) {
        const at = findPath(this.#bytes, inner.valueStart, inner.valueEnd, SELECTOR);
        this.shardSelector = stringValue(this.#bytes, at, inner.valueEnd);
      } else if (inner.is(UNCHANGED)) {
        const at = findPath(this.#bytes, inner.valueStart, inner.valueEnd, OF);
        this.unchangedOf = at < 0 ? -1 : integerAt(this.#bytes, at, inner.valueEnd);
      }
    }
  }

  /** Calls for each item, in order; returns their number, or -1 where the items are no list. */
  forEach(onItem: (bytes: Buffer, start: number, end: number) => void): number {
    const bytes = this.#bytes;
    const end = this.#end;
    // `items: null` is how Go writes an empty list that was never made.
    if (bytes[this.#itemsStart] !== 0x5b) return bytes[this.#itemsStart] === 0x6e ? 0 : -1;
    let count = 0;
    let at = skipSpace(bytes, this.#itemsStart + 1, end);
    while (at < end && bytes[at] !== 0x5d) {
      const itemEnd = skipValue(bytes, at, end);
      if (itemEnd < 0) return -1;
      onItem(bytes, at, itemEnd);
      count++;
      at = skipSpace(bytes, itemEnd, end);
      if (bytes[at] === 0x2c) at = skipSpace(bytes, at + 1, end);
    }
    return count;
  }
}

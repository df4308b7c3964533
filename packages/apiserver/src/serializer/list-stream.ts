// data plane
/**
 * The objects of a list or of a watch's beginning, pulled as the socket drains.
 *
 * The stream holds a position (the next key) and a revision, never objects: a list of a million
 * costs what one chunk costs. A turn encodes up to what the peer takes and visits a bounded number
 * of rows, so that a selector that matches nothing does not stall the server.
 */
import type { Encoder } from './encoder.ts';
import type { RowTest } from '../request/filter.ts';
import { keyAfter, type KeyRange } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import type { PageOutcome, Row } from '../storage/storage.ts';
import { UnreadableValue } from './unreadable.ts';
import type { Outlet, Pulled, Pullable } from '../request/answer-body.ts';
import type { RowSource } from '../storage/row-source.ts';
import type { WatchCounts } from '../metrics/watch-counts.ts';

/** Encoded bytes that are handed to the wire at once. */
const CHUNK_BYTES = 64 * 1024;
/** Encoded bytes that one turn makes before others get theirs. */
const BYTES_PER_TURN_MAX = 512 * 1024;
/** Rows that one turn looks at before others get theirs. */
export const ROWS_PER_TURN_MAX = 4000;

const sink = new Sink();

export class RowStream implements Pullable {
  readonly #source: RowSource;
  #next: Buffer;
  readonly #end: Buffer;
  readonly #revision: number;
  readonly #filter: RowTest;
  readonly #encoder: Encoder;
  /** Of the watch that begins with ADDED frames; null: these are items of a list. */
  readonly #counts: WatchCounts | null;
  #sent = 0;
  #seen = 0;

  constructor(
    source: RowSource,
    range: KeyRange,
    revision: number,
    filter: RowTest,
    encoder: Encoder,
    counts: WatchCounts | null,
  ) {
    this.#source = source;
    this.#next = range.start;
    this.#end = range.end;
    this.#revision = revision;
    this.#filter = filter;
    this.#encoder = encoder;
    this.#counts = counts;
  }

  /** Objects looked at so far. */
  get seen(): number {
    return this.#seen;
  }

  /** Objects handed over so far. */
  get sent(): number {
    return this.#sent;
  }

  /** Encodes into `outlet` until it is full, the turn is used up, or the objects are. */
  pull(outlet: Outlet): Pulled {
    try {
      return this.#pull(outlet);
    } catch (error) {
      // as with lost history, what was begun cannot be ended
      if (error instanceof UnreadableValue) return 'compacted';
      throw error;
    }
  }

  #pull(outlet: Outlet): Pulled {
    let rows = 0;
    let bytes = 0;
    let isFull = outlet.writable() <= 0;
    if (isFull) return 'full';
    const measured = this.#encoder.measuredBytes ?? 0;
    sink.length = 0;
    const outcome = this.#source.page(this.#next, this.#end, this.#revision, (row) => {
      rows++;
      if (this.#filter.matches(row)) {
        this.#encode(row);
        if (sink.length >= CHUNK_BYTES) {
          outlet.write(sink.bytes, 0, sink.length);
          bytes += sink.length;
          sink.length = 0;
          isFull = outlet.writable() <= 0;
        }
      }
      const made = bytes + (this.#encoder.measuredBytes ?? measured) - measured;
      if (!isFull && rows < ROWS_PER_TURN_MAX && made < BYTES_PER_TURN_MAX) return true;
      this.#next = keyAfter(row.key.subarray(row.keyStart, row.keyEnd));
      return false;
    });
    this.#seen += rows;
    if (sink.length > 0) outlet.write(sink.bytes, 0, sink.length);
    if (outcome !== 'stopped') return outcome;
    return isFull ? 'full' : 'yield';
  }

  #encode(row: Row): void {
    if (this.#counts !== null) {
      const before = sink.length;
      this.#encoder.frame(sink, 'ADDED', row, row.modRevision, this.#sent === 0);
      this.#counts.began(sink.length - before);
    } else {
      this.#encoder.item(sink, row, this.#sent);
    }
    this.#sent++;
  }
}

/** Items that were held until all of them were known. */
export class HeldItems implements Pullable {
  readonly #items: readonly Uint8Array[];
  readonly #append: (sink: Sink, item: Uint8Array) => void;
  #next = 0;

  constructor(items: readonly Uint8Array[], append: (sink: Sink, item: Uint8Array) => void) {
    this.#items = items;
    this.#append = append;
  }

  pull(outlet: Outlet): Pulled {
    let bytes = 0;
    while (this.#next < this.#items.length) {
      if (outlet.writable() <= 0) return 'full';
      if (bytes >= BYTES_PER_TURN_MAX) return 'yield';
      sink.length = 0;
      while (this.#next < this.#items.length && sink.length < CHUNK_BYTES) {
        this.#append(sink, this.#items[this.#next++]!);
      }
      outlet.write(sink.bytes, 0, sink.length);
      bytes += sink.length;
    }
    return 'end';
  }
}

/** Where a page of a list begins and ends. */
export interface PageEnd {
  /** First key that is shown, or the end: what lies before it need not be looked at again. */
  readonly start: Buffer;
  /** End of the page's key range, exclusive. */
  readonly end: Buffer;
  /** The last key of the page, relative to nothing; null where the page is the last. */
  readonly lastKey: Buffer | null;
  readonly outcome: 'found' | 'compacted';
}

/**
 * Finds the key after which a page of `limit` matching objects ends. The list's metadata stands
 * before its items, so this is known before the first item is written. A selector may have to look
 * at everything for it, which takes as many turns as it needs.
 */
export class PageSearch {
  readonly #source: RowSource;
  #next: Buffer;
  readonly #end: Buffer;
  readonly #revision: number;
  readonly #filter: RowTest;
  readonly #limit: number;
  #count = 0;
  #first: Buffer | null = null;
  #last: Buffer | null = null;

  constructor(
    source: RowSource,
    range: KeyRange,
    revision: number,
    filter: RowTest,
    limit: number,
  ) {
    this.#source = source;
    this.#next = range.start;
    this.#end = range.end;
    this.#revision = revision;
    this.#filter = filter;
    this.#limit = limit;
  }

  /**
   * Goes on for one turn; null where another one is needed. A page that is full and has any object
   * behind it is not the last one, whether that object matches or not (as upstream decides).
   */
  step(): PageEnd | null {
    let rows = 0;
    let hasMore = false;
    const visit = (row: Row): boolean => {
      rows++;
      if (this.#count === this.#limit) {
        hasMore = true;
        return false;
      }
      if (this.#filter.matches(row)) {
        this.#count++;
        this.#first ??= keyOfRow(row);
        if (this.#count === this.#limit) this.#last = keyOfRow(row);
      }
      if (rows < ROWS_PER_TURN_MAX) return true;
      this.#next = keyAfter(keyOfRow(row));
      return false;
    };
    const outcome = this.#read(visit);
    const start = this.#first ?? this.#end;
    if (outcome === 'compacted') return { start, end: this.#end, lastKey: null, outcome };
    if (hasMore && this.#last !== null) {
      return { start, end: keyAfter(this.#last), lastKey: this.#last, outcome: 'found' };
    }
    return outcome === 'end' ? { start, end: this.#end, lastKey: null, outcome: 'found' } : null;
  }

  #read(visit: (row: Row) => boolean): PageOutcome {
    const source = this.#source;
    if (!this.#filter.needsValues && source.keys !== undefined) {
      return source.keys(this.#next, this.#end, this.#revision, visit);
    }
    return source.page(this.#next, this.#end, this.#revision, visit);
  }
}

function keyOfRow(row: Row): Buffer {
  return Buffer.from(row.key.subarray(row.keyStart, row.keyEnd));
}

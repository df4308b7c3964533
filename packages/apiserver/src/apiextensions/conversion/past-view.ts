/**
 * Lists of a revision from before a view of converted objects: a continued list that began before
 * the definition changed, or before the view was made. The objects are read where they are kept,
 * as of that revision, and converted for the one answer.
 */
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { keyAfter } from '../../storage/served.ts';
import type { PageOutcome, Recall, RecalledRows, Row, Storage } from '../../storage/storage.ts';
import type { ConversionOutcome, Unconverted } from './conversion-webhook.ts';

/** Objects that one call of a webhook brings over. */
const BATCH_OBJECTS_MAX = 500;
/** Of one list; more is told to be forgotten. */
const LIST_BYTES_MAX: number = 16 * 1024 * 1024;

/** An object where it is kept. */
interface Found {
  readonly key: Buffer;
  readonly source: Unconverted | null;
  readonly revision: number;
  readonly createRevision: number;
}

interface PastParts {
  readonly base: Storage;
  readonly read: (row: Row) => Found;
  readonly convert: (
    sources: readonly Unconverted[],
    then: (outcome: ConversionOutcome) => void,
  ) => void;
}

type Done = (rows: RecalledRows | string | null) => void;

/** Reads rows of the past into memory; see `Storage.recall`. */
export function recallConverted(parts: PastParts, recall: Recall, done: Done): void {
  const { base } = parts;
  const { start, end, revision } = recall;
  if (revision > base.appliedRevision || revision < base.oldestRevision(start, end)) {
    done(null);
    return;
  }
  const release = base.hold(start, end, revision);
  let total = 0;
  const count = (): boolean => ++total > 0;
  if (base.keys === undefined) base.page(start, end, revision, count);
  else base.keys(start, end, revision, count);
  new PastList(parts, recall, total, (rows) => {
    release();
    done(rows);
  }).readFrom(start);
}

class PastList {
  readonly #parts: PastParts;
  readonly #recall: Recall;
  readonly #total: number;
  readonly #done: Done;
  readonly #rows: Row[] = [];
  #matches = 0;
  #bytes = 0;

  constructor(parts: PastParts, recall: Recall, total: number, done: Done) {
    this.#parts = parts;
    this.#recall = recall;
    this.#total = total;
    this.#done = done;
  }

  readFrom(start: Buffer): void {
    const { base, read, convert } = this.#parts;
    const { end, revision, limit } = this.#recall;
    const found: Found[] = [];
    const most = limit > 0 ? Math.min(limit + 1, BATCH_OBJECTS_MAX) : BATCH_OBJECTS_MAX;
    const outcome = base.page(start, end, revision, (row) => {
      found.push(read(row));
      return found.length < most;
    });
    if (outcome === 'compacted') {
      this.#done(null);
      return;
    }
    const sources = found.map(({ source }) => source).filter((source) => source !== null);
    convert(sources, (converted) => {
      if (!converted.ok) {
        this.#done(converted.why);
        return;
      }
      const last = found.at(-1);
      const isFull = this.#take(found, converted.values);
      if (this.#bytes > LIST_BYTES_MAX) this.#done(null);
      else if (isFull || outcome === 'end' || last === undefined) this.#done(this.#recalled());
      else this.readFrom(keyAfter(last.key));
    });
  }

  /** True where the page is full, and there is one object behind it. */
  #take(found: readonly Found[], values: readonly object[]): boolean {
    const { test, limit } = this.#recall;
    for (const [index, { key, revision, createRevision }] of found.entries()) {
      const isFull = limit > 0 && this.#matches === limit;
      const bytes = encodeCanonical({ ...values[index] });
      const spans = { keyStart: 0, keyEnd: key.length, start: 0, end: bytes.length };
      const row = { key, bytes, ...spans, modRevision: revision, createRevision };
      this.#rows.push(row);
      this.#bytes += bytes.length;
      if (test.matches(row)) this.#matches++;
      if (isFull) return true;
    }
    return false;
  }

  #recalled(): RecalledRows {
    const rows = this.#rows;
    const page = (
      start: Buffer,
      end: Buffer,
      _: number,
      visit: (row: Row) => boolean,
    ): PageOutcome => {
      for (const row of rows) {
        if (row.key.compare(start) < 0) continue;
        if (row.key.compare(end) >= 0) break;
        if (!visit(row)) return 'stopped';
      }
      return 'end';
    };
    return { total: this.#total, page, free: () => {} };
  }
}

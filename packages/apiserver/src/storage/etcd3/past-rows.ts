// shell: reads revisions that the replica never had
/**
 * Lists of a revision from before the replica: it begins with the state at its start, while etcd
 * keeps what was not compacted. Pages that another server began, or this one before it was started
 * anew, go on so.
 *
 * What is read is held until it was sent. So there is little of it; who asks for more is told that
 * it is forgotten, as if it were.
 */
import type { EtcdClient } from '@megaplane/etcd/client/client';
import { keyAfter } from '../served.ts';
import type { PageOutcome, Recall, RecalledRows, Row } from '../storage.ts';
import type { KeyMap } from './key-map.ts';

/** Keys asked for at once. */
const PAGE_KEYS = 200;
/** Of one list, and of all that are being sent. */
const LIST_BYTES_MAX: number = 16 * 1024 * 1024;
const TOTAL_BYTES_MAX: number = 64 * 1024 * 1024;
/** Code of gRPC that etcd gives for compacted revisions. */
const OUT_OF_RANGE = 11;

/** Rows in the order of their keys; those behind the page that was asked for may be missing. */
class PastRows implements RecalledRows {
  total = 0;
  sizeBytes = 0;
  matches = 0;
  readonly rows: Row[] = [];
  #free: (() => void) | null;

  constructor(free: () => void) {
    this.#free = free;
  }

  page(start: Buffer, end: Buffer, _: number, visit: (row: Row) => boolean): PageOutcome {
    for (const row of this.rows) {
      if (row.key.compare(start) < 0) continue;
      if (row.key.compare(end) >= 0) break;
      if (!visit(row)) return 'stopped';
    }
    return 'end';
  }

  free(): void {
    this.#free?.();
    this.#free = null;
  }
}

export class PastReader {
  readonly #client: Pick<EtcdClient, 'range'>;
  readonly #keys: KeyMap;
  readonly #decode: (key: Buffer, value: Buffer) => Buffer;
  #bytes = 0;

  constructor(
    client: Pick<EtcdClient, 'range'>,
    keys: KeyMap,
    decode: (key: Buffer, value: Buffer) => Buffer,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#decode = decode;
  }

  /** Null: etcd does not have the revision either, or it is more than may be held. */
  async read({
    start,
    end: until,
    revision,
    test,
    limit,
  }: Recall): Promise<RecalledRows | string | null> {
    const keys = this.#keys;
    const past = new PastRows(() => {
      this.#bytes -= past.sizeBytes;
    });
    const end = keys.outward(until);
    let key = keys.outward(start);
    for (;;) {
      const result = await this.#client.range({ key, end, revision, limit: PAGE_KEYS });
      if (!result.ok) {
        past.free();
        return result.code === OUT_OF_RANGE ? null : result.message;
      }
      const { kvs, more, count } = result.value;
      // etcd counts the whole of what it is asked for, however little it tells
      if (past.rows.length === 0) past.total = count;
      let isFull = false;
      for (const kv of kvs) {
        isFull = limit > 0 && past.matches === limit;
        const row = this.#rowOf(kv.key, kv.value, kv.modRevision, kv.createRevision);
        past.rows.push(row);
        if (test.matches(row)) past.matches++;
        past.sizeBytes += row.end + row.keyEnd;
        this.#bytes += row.end + row.keyEnd;
        if (isFull) break;
      }
      const last = kvs.at(-1);
      if (past.sizeBytes > LIST_BYTES_MAX || this.#bytes > TOTAL_BYTES_MAX) {
        past.free();
        return null;
      }
      if (isFull || !more || last === undefined) return past;
      key = keyAfter(last.key);
    }
  }

  #rowOf(theirs: Buffer, value: Buffer, modRevision: number, createRevision: number): Row {
    const key = this.#keys.inward(theirs);
    const bytes = this.#decode(key, value);
    const spans = { keyStart: 0, keyEnd: key.length, start: 0, end: bytes.length };
    return { key, bytes, ...spans, modRevision, createRevision };
  }
}

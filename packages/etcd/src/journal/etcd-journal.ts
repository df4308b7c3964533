// shell: a journal in etcd
/**
 * One key per entry: the journal's name, a slash, the position in sixteen digits. An append is a
 * transaction: the key of its position is not there, and the one before it is. So two writers never
 * both get a position, and a journal that somebody emptied is not written on.
 *
 * Trimming deletes keys from the front and compacts etcd behind that, unless told not to.
 */
import { afterMs, unawaited } from '@megaplane/base/deferred';
import type {
  AppendOutcome,
  EndOutcome,
  Journal,
  JournalEntry,
  ReadOutcome,
  TrimOutcome,
} from '@megaplane/store/journal';
import {
  closeMessage,
  openMessage,
  writeBytesField,
  writeInt64,
  writeTag,
  writeVarintField,
} from '@megaplane/wire/protobuf-write';
import { EtcdClient, type EtcdResult, type EtcdWatch } from '../client/client.ts';
import type { EndpointsOptions } from '../client/endpoints.ts';
import { decodeHeader, decodeWrite, type KeyValue, type WriteAnswer } from '../client/messages.ts';

/** etcd takes requests of 1.5 MiB where nothing else is said. */
const ENTRY_BYTES_MAX = 1024 * 1024;
/** Entries of one answer: with the largest ones this is what gRPC takes. */
const READ_ENTRIES_MAX = 32;
/** Keys of one deletion. */
const DIGITS = 16;
const OVERHEAD_BYTES = 256;
const COMPARE_CREATE = 1;
const COMPARE_EQUAL = 0;
const COMPARE_GREATER = 1;
const RESOURCE_EXHAUSTED = 8;
/** Well below a lease: an attempt whose answer is lost must not cost the lead. */
const CALL_MS_MAX = 1500;
const REWATCH_MS = 200;

export interface EtcdJournalOptions extends EndpointsOptions {
  /** Of the journal within etcd. */
  readonly path: string;
  /** Whether trimming compacts: not where others use that etcd. */
  readonly compacts: boolean;
}

export class EtcdJournal implements Journal {
  readonly name: string;
  readonly entryBytesMax: number = ENTRY_BYTES_MAX;
  readonly #client: EtcdClient;
  readonly #path: string;
  readonly #compacts: boolean;
  #watch: EtcdWatch | null = null;
  #isWatching = false;
  #isClosed = false;
  #waiting: (() => void)[] = [];

  constructor(options: EtcdJournalOptions) {
    this.#client = new EtcdClient({ callMsMax: CALL_MS_MAX, ...options });
    this.#path = `${options.path}/`;
    this.#compacts = options.compacts;
    this.name = `etcd journal ${options.path} at ${options.endpoints.map(({ url }) => url).join()}`;
  }

  #key(position: number): Buffer {
    return Buffer.from(this.#path + String(position).padStart(DIGITS, '0'));
  }

  get #end(): Buffer {
    return Buffer.from(`${this.#path.slice(0, -1)}0`);
  }

  async append(entry: Buffer, expected: number): Promise<AppendOutcome> {
    const key = this.#key(expected + 1);
    const before = expected === 0 ? null : this.#key(expected);
    const result = await this.#client.call(
      '/etcdserverpb.KV/Txn',
      encodeAppend(key, before, entry),
      decodeWrite,
      false,
    );
    return this.#outcome(result, expected);
  }

  async #outcome(result: EtcdResult<WriteAnswer>, expected: number): Promise<AppendOutcome> {
    if (!result.ok) {
      const { code, message } = result;
      const isFull = code === RESOURCE_EXHAUSTED && message.includes('space exceeded');
      return { kind: isFull ? 'full' : 'unknown', why: `etcd: ${message}` };
    }
    if (result.value.succeeded) return { kind: 'appended' };
    if (result.value.found !== null) return { kind: 'moved' };
    // The one before is missing: trimmed by a later leader, or everything was deleted.
    const end = await this.end();
    if (end.kind === 'unavailable') return { kind: 'unknown', why: end.why };
    if (end.kind === 'end' && end.last > expected) return { kind: 'moved' };
    return { kind: 'gone', why: `entry ${expected} of the ${this.name} was deleted by somebody` };
  }

  async read(from: number, waitMs: number): Promise<ReadOutcome> {
    this.#follow();
    const found = await this.#look(from);
    if (found.kind !== 'entries' || found.entries.length > 0 || waitMs <= 0) return found;
    await this.#wait(waitMs);
    return await this.#look(from);
  }

  async #look(from: number): Promise<ReadOutcome> {
    const result = await this.#client.range({
      key: this.#key(from),
      end: this.#end,
      limit: READ_ENTRIES_MAX,
    });
    if (!result.ok) return { kind: 'unavailable', why: `etcd: ${result.message}` };
    const entries: JournalEntry[] = [];
    for (const { key, value } of result.value.kvs) {
      const position = this.#positionOf(key);
      if (position !== from + entries.length) {
        if (entries.length > 0) break;
        return position > from
          ? { kind: 'trimmed', first: position }
          : { kind: 'gone', why: `there is a key ${key.toString()} in the ${this.name}` };
      }
      entries.push({ position, bytes: Buffer.from(value) });
    }
    return { kind: 'entries', entries };
  }

  #positionOf(key: Buffer): number {
    const digits = key.subarray(this.#path.length).toString('utf8');
    return /^\d{16}$/.test(digits) ? Number(digits) : -1;
  }

  /** Until somebody has written, or `waitMs` is over. */
  #wait(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = afterMs(waitMs, resolve);
    this.#waiting.push(() => {
      clearTimeout(timer);
      resolve();
    });
    return promise;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** One watch tells that there is something to read. */
  #follow(): void {
    if (this.#isWatching || this.#isClosed) return;
    this.#isWatching = true;
    const again = (): void => {
      this.#watch = null;
      afterMs(REWATCH_MS, () => {
        this.#isWatching = false;
        this.#wake();
      }).unref();
    };
    const begin = async (): Promise<void> => {
      const watch = await this.#client.watch(Buffer.from(this.#path), this.#end, 0, {
        onAnswer: () => this.#wake(),
        onEnd: again,
      });
      if (watch === null) again();
      else if (this.#isClosed) watch.cancel();
      else this.#watch = watch;
    };
    unawaited(begin());
  }

  async end(): Promise<EndOutcome> {
    const end = this.#end;
    const key = Buffer.from(this.#path);
    const [first, last] = await Promise.all([
      this.#client.range({ key, end, limit: 1, keysOnly: true }),
      this.#client.range({ key, end, limit: 1, keysOnly: true, isDescending: true }),
    ]);
    if (!first.ok) return { kind: 'unavailable', why: `etcd: ${first.message}` };
    if (!last.ok) return { kind: 'unavailable', why: `etcd: ${last.message}` };
    const position = (kv: KeyValue | undefined, none: number): number =>
      kv === undefined ? none : this.#positionOf(kv.key);
    const newest = position(last.value.kvs[0], 0);
    return {
      kind: 'end',
      first: position(first.value.kvs[0], newest + 1),
      last: newest,
      bytes: 0,
      bytesMax: Infinity,
    };
  }

  async trim(position: number): Promise<TrimOutcome> {
    const end = await this.end();
    if (end.kind !== 'end') return end;
    const to = Math.min(position, end.last - 1);
    if (to < end.first) return { kind: 'trimmed' };
    const result = await this.#client.call(
      '/etcdserverpb.KV/DeleteRange',
      encodeDelete(this.#key(0), this.#key(to + 1)),
      decodeHeader,
      true,
    );
    if (!result.ok) return { kind: 'unavailable', why: `etcd: ${result.message}` };
    // Who watches the journal is told of the latest entries only; others may have compacted more.
    if (this.#compacts) await this.#client.compact(result.value);
    return { kind: 'trimmed' };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.cancel();
    this.#client.close();
    this.#wake();
    return Promise.resolve();
  }
}

function writeCompare(out: Buffer, start: number, result: number, key: Buffer): number {
  const compare = openMessage(out, start, 1);
  let at = writeVarintField(out, compare, 1, result);
  at = writeVarintField(out, at, 2, COMPARE_CREATE);
  at = writeBytesField(out, at, 3, key, 0, key.length);
  // a field of a oneof is written even where it is 0
  at = writeInt64(out, writeTag(out, at, 5, 0), 0);
  return closeMessage(out, compare, at);
}

/** Puts `key` if it is not there and `before` is; else reads it. */
export function encodeAppend(key: Buffer, before: Buffer | null, value: Buffer): Buffer {
  const out = Buffer.allocUnsafe(key.length * 4 + value.length + OVERHEAD_BYTES);
  let at = writeCompare(out, 0, COMPARE_EQUAL, key);
  if (before !== null) at = writeCompare(out, at, COMPARE_GREATER, before);
  const success = openMessage(out, at, 2);
  const put = openMessage(out, success, 2);
  at = writeBytesField(out, put, 1, key, 0, key.length);
  at = writeBytesField(out, at, 2, value, 0, value.length);
  at = closeMessage(out, success, closeMessage(out, put, at));
  const failure = openMessage(out, at, 3);
  const range = openMessage(out, failure, 1);
  at = writeBytesField(out, range, 1, key, 0, key.length);
  at = closeMessage(out, failure, closeMessage(out, range, at));
  return out.subarray(0, at);
}

function encodeDelete(key: Buffer, end: Buffer): Buffer {
  const out = Buffer.allocUnsafe(key.length + end.length + OVERHEAD_BYTES);
  const at = writeBytesField(out, 0, 1, key, 0, key.length);
  return out.subarray(0, writeBytesField(out, at, 2, end, 0, end.length));
}

// data plane: Watch streams
/**
 * One call carries many watches. A watch has no queue: when its range had events, or when the
 * stream has room again, it reads on from its cursor and writes whole revisions. What does not
 * fit now stays in the store's history.
 */
import type { Store } from '@megaplane/store/store';
import type { GrpcCall, GrpcCallFactory, GrpcCallHandler } from '@megaplane/wire/grpc';
import { writeInt64, writeTextField } from '@megaplane/wire/protobuf-write';
import { type EtcdContext, MESSAGE_OVERHEAD_BYTES } from '../call/context.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import { FUTURE_MS_MAX, RESTORED_DOCUMENT } from './restored.ts';
import type { Caller } from '../call/served-methods.ts';
import { WatchEvents } from './watch-events.ts';
import {
  WATCH_CANCEL,
  WATCH_CREATE,
  WATCH_PROGRESS,
  type WatchId,
  WatchRequest,
} from './watch-request.ts';
import { HEAD_ROOM_BYTES, WatchResponse, idBytes, writeId } from './watch-response.ts';
import {
  FLAG_FRAGMENT,
  FLAG_HAS_SENT,
  FLAG_NO_DELETE,
  FLAG_NO_PUT,
  FLAG_PREV_KV,
  FLAG_PROGRESS,
  WatchIds,
  WatchTable,
} from './watch-table.ts';

/** A response ends with the revision that takes it beyond this. */
const RESPONSE_BYTES = 32 * 1024;
/** The mark of a fragment. */
const FRAGMENT_BYTES = 2;
const RANGE_EMPTY = 'mvcc: watcher range is empty';
const DUPLICATE_ID = 'mvcc: duplicate watch ID provided on the WatchStream';
const ZERO_KEY = Buffer.from([0]);

/** Decides over each watch once users are enabled. */
export interface WatchGuard {
  readonly isEnabled: boolean;
  /** Null: it may be watched. */
  refuseWatch(caller: Caller, key: string, rangeEnd: string): EtcdFailure | null;
}

const OPEN: WatchGuard = { isEnabled: false, refuseWatch: () => null };
/** Go's names of the codes that a guard answers with. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  3: 'InvalidArgument',
  7: 'PermissionDenied',
  16: 'Unauthenticated',
};

/** All watch streams of a server. */
export class WatchService {
  readonly context: EtcdContext;
  readonly events: WatchEvents;
  readonly request: WatchRequest = new WatchRequest();
  readonly table: WatchTable = new WatchTable();
  readonly #streams: Set<WatchStream> = new Set();
  readonly #guard: WatchGuard;
  /** Response under construction, shared: one is built and sent at a time. */
  out: Buffer = Buffer.alloc(512 * 1024);
  readonly response: WatchResponse;
  /** Ends of the events in `out`, for fragments. */
  readonly ends: number[] = [];

  constructor(context: EtcdContext, guard: WatchGuard = OPEN) {
    this.context = context;
    this.#guard = guard;
    this.events = new WatchEvents(context.store);
    this.response = new WatchResponse(context);
    context.store.onPublish(() => {
      this.events.clear();
      this.response.forget();
    });
  }

  readonly factory: GrpcCallFactory = (call) => {
    const stream = new WatchStream(this, call);
    this.#streams.add(stream);
    return stream;
  };

  /** Why a range must not be watched by whoever opened the stream, as a client prints it. */
  refusal(call: GrpcCall, { bytes, at, to, endAt, endTo }: WatchRange): string {
    if (!this.#guard.isEnabled) return '';
    const key = bytes.latin1Slice(at, to);
    const refused = this.#guard.refuseWatch(call, key, bytes.latin1Slice(endAt, endTo));
    if (refused === null) return '';
    return `rpc error: code = ${CODE_NAMES[refused.code] ?? 'Unknown'} desc = ${refused.text}`;
  }

  forget(stream: WatchStream): void {
    this.#streams.delete(stream);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** Watches that wait for their client to read. */
  get slowCount(): number {
    let count = 0;
    for (const stream of this.#streams) count += stream.stalledCount;
    return count;
  }

  /** Events sent so far. */
  eventCount = 0;

  /** The interval for watches that asked for progress. */
  notifyProgress(): void {
    for (const stream of this.#streams) stream.notifyProgress();
  }

  /** Once a turn or so: streams whose progress request could not be answered yet. */
  retryProgress(): void {
    for (const stream of this.#streams) {
      stream.answerProgress();
      stream.refuseFuture();
    }
  }

  /** Copies an encoded event to its place in the response. */
  keep(place: number, from: number, to: number): void {
    this.#room(place, to - from);
    this.events.bytes.copy(this.out, place, from, to);
  }

  #room(used: number, size: number): void {
    if (used + size <= this.out.length) return;
    const larger = Buffer.allocUnsafeSlow((used + size) * 2);
    this.out.copy(larger, 0, 0, used);
    this.out = larger;
  }
}

class WatchStream implements GrpcCallHandler {
  readonly #service: WatchService;
  readonly #call: GrpcCall;
  readonly #store: Store;
  readonly #table: WatchTable;
  readonly #ids: WatchIds = new WatchIds();
  /** Watches that fell behind the compaction: as in etcd, their ids are taken until cancelled. */
  readonly #lost: Set<WatchId> = new Set();
  #nextId = 0;
  #isProgressWanted = false;
  /** Watches of a restored store that wait for a revision to come, with the end of their time. */
  readonly #future: Map<number, { readonly revision: number; readonly untilMs: number }> =
    new Map();
  /** Cursors of watches that stopped because the stream was full. */
  readonly #stalled: Set<number> = new Set();

  constructor(service: WatchService, call: GrpcCall) {
    this.#service = service;
    this.#call = call;
    this.#store = service.context.store;
    this.#table = service.table;
  }

  get stalledCount(): number {
    return this.#stalled.size;
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    const { request } = this.#service;
    if (!request.decode(bytes, start, end)) {
      this.#close();
      this.#call.finish(ETCD.malformedStream.code, ETCD.malformedStream.text);
      return;
    }
    if (request.kind === WATCH_CREATE) this.#create(request);
    if (request.kind === WATCH_CANCEL) this.#cancel(request.watchId);
    if (request.kind === WATCH_PROGRESS) {
      // Without a watch there is nobody to tell, now or later.
      this.#isProgressWanted = this.#ids.size > 0;
      this.answerProgress();
    }
  }

  /** etcd goes on delivering after the client's half-close. */
  onHalfClose(): void {}

  onCancel(): void {
    this.#close();
  }

  onWritable(): void {
    // One response each, again and again: those at the same place share what the first is sent.
    for (const cursor of this.#stalled) {
      if (this.#call.writable() <= 0) return;
      this.#stalled.delete(cursor);
      if (this.#sendEvents(cursor)) this.#stalled.add(cursor);
    }
    this.answerProgress();
  }

  #close(): void {
    for (const cursor of this.#ids.cursors()) {
      this.#store.unwatch(cursor);
      this.#table.remove(cursor);
    }
    this.#ids.clear();
    this.#stalled.clear();
    this.#future.clear();
    this.#service.forget(this);
  }

  #create(request: WatchRequest): void {
    const published = this.#store.watchedRevision;
    const range = rangeOf(request);
    const refused = this.#refusal(request, range);
    if (refused !== '') {
      this.#send(-1, published, true, true, 0, refused);
      return;
    }
    const id = request.watchId !== 0 ? request.watchId : this.#freeId();
    this.#send(id, published, true, false, 0, '');
    const { bytes, at, to, endAt, endTo } = range;
    const { startRevision } = request;
    const cursor = this.#store.watch(bytes, at, to, endAt, endTo, startRevision, this);
    this.#table.add(cursor, id, flagsOf(request));
    this.#ids.add(id, cursor);
    const isFuture = startRevision > this.#store.appliedRevision + 1;
    if (!isFuture || !this.#store.documents.has(RESTORED_DOCUMENT)) return;
    const untilMs = this.#service.context.nowMs() + FUTURE_MS_MAX;
    this.#future.set(cursor, { revision: startRevision, untilMs });
  }

  /** See restored.ts. */
  refuseFuture(): void {
    if (this.#future.size === 0) return;
    const { watchedRevision } = this.#store;
    const nowMs = this.#service.context.nowMs();
    for (const [cursor, { revision, untilMs }] of this.#future) {
      if (watchedRevision >= revision - 1) this.#future.delete(cursor);
      else if (nowMs >= untilMs) {
        const id = this.#table.id(cursor);
        this.#forget(cursor);
        this.#send(id, watchedRevision, false, true, 0, ETCD.futureRevision.text);
      }
    }
  }

  /** In etcd's order. */
  #refusal({ startRevision, watchId }: WatchRequest, range: WatchRange): string {
    if (startRevision < 0) return ETCD.compacted.text;
    const refused = this.#service.refusal(this.#call, range);
    if (refused !== '') return refused;
    if (isEmpty(range)) return RANGE_EMPTY;
    return watchId !== 0 && this.#isTaken(watchId) ? DUPLICATE_ID : '';
  }

  #isTaken(id: WatchId): boolean {
    return this.#ids.get(id) !== 0 || this.#lost.has(id);
  }

  #freeId(): number {
    while (this.#isTaken(this.#nextId)) this.#nextId++;
    return this.#nextId++;
  }

  #cancel(id: WatchId): void {
    const cursor = this.#ids.get(id);
    if (cursor !== 0) this.#forget(cursor);
    else if (!this.#lost.delete(id)) return;
    this.#send(id, this.#store.watchedRevision, false, true, 0, '');
  }

  #forget(cursor: number): void {
    this.#store.unwatch(cursor);
    this.#ids.remove(this.#table.id(cursor));
    this.#table.remove(cursor);
    this.#stalled.delete(cursor);
    this.#future.delete(cursor);
    if (this.#ids.size === 0) this.#isProgressWanted = false;
  }

  /** The store: a cursor has events. */
  onEvents(cursor: number): void {
    if (this.#stalled.has(cursor)) return;
    this.#pump(cursor);
    if (this.#isProgressWanted) this.answerProgress();
  }

  /** Sends what there is, as far as the stream has room. */
  #pump(cursor: number): void {
    while (!this.#call.closed) {
      if (this.#call.writable() <= 0) {
        this.#stalled.add(cursor);
        return;
      }
      if (!this.#sendEvents(cursor)) return;
    }
  }

  /** One response of whole revisions. False when nothing is left to read now. */
  #sendEvents(cursor: number): boolean {
    const service = this.#service;
    const reading = this.#store.watchReading(cursor);
    const kind = this.#table.kind(cursor);
    if (service.response.isFor(reading, kind)) return this.#sendAgain(cursor);
    service.response.forget();
    const prevKv = this.#table.has(cursor, FLAG_PREV_KV);
    const noPut = this.#table.has(cursor, FLAG_NO_PUT);
    const noDelete = this.#table.has(cursor, FLAG_NO_DELETE);
    const { events, ends } = service;
    const start = HEAD_ROOM_BYTES;
    let at = start;
    // The first event, which is sent from where it was encoded unless more come.
    let first = 0;
    let revision = 0;
    let isMore = false;
    ends.length = 0;
    for (;;) {
      const ref = this.#store.watchNext(cursor);
      if (ref < 0) {
        this.#compacted(cursor);
        return false;
      }
      if (ref === 0) break;
      const mod = this.#store.modRevision(ref);
      if (mod !== revision && at - start > RESPONSE_BYTES) {
        this.#store.watchPutBack(cursor);
        isMore = true;
        break;
      }
      revision = mod;
      if (this.#store.isTombstone(ref) ? noDelete : noPut) continue;
      // Finding another event may overwrite the first one.
      if (ends.length === 1) service.keep(start, first, first + at - start);
      events.find(ref, prevKv);
      const size = events.to - events.at;
      if (ends.length === 0) first = events.at;
      else service.keep(at, events.at, events.to);
      at += size;
      ends.push(at);
    }
    // What was read is complete up to here; a client goes on after it.
    const isCurrent = !isMore && this.#store.watchIsCurrent(cursor);
    if ((isCurrent || isMore) && (kind & FLAG_FRAGMENT) === 0) {
      this.#store.watchShare(cursor);
      service.response.keepFor(reading, kind, ends.length, isMore);
    }
    if (at === start) return isMore;
    this.#table.set(cursor, FLAG_HAS_SENT, true);
    service.eventCount += ends.length;
    const header = isCurrent ? this.#store.watchedRevision : revision;
    if (ends.length > 1) this.#sendBatch(cursor, header, start, at);
    else this.#sendPart(cursor, header, events.bytes, first, first + at - start, false);
    return isMore;
  }

  /** What a watch like this one was just sent. */
  #sendAgain(cursor: number): boolean {
    const { response } = this.#service;
    this.#store.watchPass(cursor);
    if (response.count === 0) return response.isMore;
    this.#table.set(cursor, FLAG_HAS_SENT, true);
    this.#service.eventCount += response.count;
    response.readdress(this.#table.id(cursor));
    this.#call.send(response.bytes, response.start, response.end);
    return response.isMore;
  }

  #sendBatch(cursor: number, revision: number, start: number, end: number): void {
    const { out, ends, context } = this.#service;
    if (!this.#table.has(cursor, FLAG_FRAGMENT)) {
      this.#sendPart(cursor, revision, out, start, end, false);
      return;
    }
    // As etcd: responses are measured with all that they have, parts as if none were the last.
    const bytesMax = context.limits.requestBytesMax + MESSAGE_OVERHEAD_BYTES;
    const head = context.headerSizeOf(revision) + idBytes(this.#table.id(cursor));
    if (head + end - start < bytesMax) {
      this.#sendPart(cursor, revision, out, start, end, false);
      return;
    }
    let from = start;
    for (let i = 0; i < ends.length; i++) {
      const to = ends[i]!;
      const isLast = i === ends.length - 1;
      if (!isLast && head + FRAGMENT_BYTES + ends[i + 1]! - from < bytesMax) continue;
      // The head of a part overwrites the end of the part before, which is sent already.
      this.#sendPart(cursor, revision, out, from, to, !isLast);
      from = to;
    }
  }

  #sendPart(
    cursor: number,
    revision: number,
    out: Buffer,
    start: number,
    end: number,
    isFragment: boolean,
  ): void {
    const { response } = this.#service;
    response.make(out, start, end, this.#table.id(cursor), revision, isFragment);
    this.#call.send(response.bytes, response.start, response.end);
  }

  #compacted(cursor: number): void {
    const boundary = this.#store.hub.boundaryOf(cursor);
    const id = this.#table.id(cursor);
    this.#forget(cursor);
    this.#lost.add(id);
    this.#send(id, 0, false, true, boundary, '');
  }

  /** A response without events. */
  #send(
    id: WatchId,
    revision: number,
    created: boolean,
    canceled: boolean,
    compactRevision: number,
    reason: string,
  ): void {
    const out = Buffer.alloc(160 + reason.length);
    let at = this.#service.context.writeHeader(out, 0, revision);
    at = writeId(out, at, id);
    if (created) {
      out[at++] = 0x18;
      out[at++] = 1;
    }
    if (canceled) {
      out[at++] = 0x20;
      out[at++] = 1;
    }
    if (compactRevision !== 0) {
      out[at++] = 0x28;
      at = writeInt64(out, at, compactRevision);
    }
    if (reason !== '') at = writeTextField(out, at, 6, reason);
    this.#call.send(out, 0, at);
  }

  get #isCurrent(): boolean {
    for (const cursor of this.#ids.cursors()) {
      if (!this.#store.watchIsCurrent(cursor)) return false;
    }
    return this.#ids.size > 0;
  }

  /** A progress request is answered when every watch of the stream has been fed. */
  answerProgress(): void {
    if (!this.#isProgressWanted || this.#call.closed || !this.#isCurrent) return;
    this.#isProgressWanted = false;
    this.#send(-1, this.#store.watchedRevision, false, false, 0, '');
  }

  notifyProgress(): void {
    const table = this.#table;
    for (const cursor of this.#ids.cursors()) {
      const isDue = table.has(cursor, FLAG_PROGRESS) && !table.has(cursor, FLAG_HAS_SENT);
      table.set(cursor, FLAG_HAS_SENT, false);
      if (isDue && this.#store.watchIsCurrent(cursor)) {
        this.#send(table.id(cursor), this.#store.watchedRevision, false, false, 0, '');
      }
    }
  }
}

function flagsOf(request: WatchRequest): number {
  return (
    (request.prevKv ? FLAG_PREV_KV : 0) |
    (request.noPut ? FLAG_NO_PUT : 0) |
    (request.noDelete ? FLAG_NO_DELETE : 0) |
    (request.fragment ? FLAG_FRAGMENT : 0) |
    (request.progressNotify ? FLAG_PROGRESS : 0)
  );
}

interface WatchRange {
  readonly bytes: Buffer;
  readonly at: number;
  readonly to: number;
  readonly endAt: number;
  readonly endTo: number;
}

/** The range of a create request. An empty key is the key "\0". */
function rangeOf(request: WatchRequest): WatchRange {
  const { bytes, keyAt, keyTo, endAt, endTo } = request;
  if (keyAt < keyTo) return { bytes, at: keyAt, to: keyTo, endAt, endTo };
  const both = Buffer.concat([ZERO_KEY, bytes.subarray(endAt, endTo)]);
  return { bytes: both, at: 0, to: 1, endAt: 1, endTo: both.length };
}

function isEmpty({ bytes, at, to, endAt, endTo }: WatchRange): boolean {
  const isFromKey = endTo - endAt === 1 && bytes[endAt] === 0;
  return endAt !== endTo && !isFromKey && bytes.compare(bytes, endAt, endTo, at, to) >= 0;
}

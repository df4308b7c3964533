/**
 * One watch of one client.
 *
 * A watch begins by sending the state (or not), then reads the log of changes by a cursor of its
 * own until it has caught up, and from then on is *live*: the hub hands it each event that may
 * concern it. A client that does not read makes its watch *slow*: it keeps nothing but a revision,
 * and when the client reads again, the watch catches up from there or, if the log has moved on,
 * ends with 410.
 */
import { tooOldResourceVersion } from '@megaplane/machinery/status';
import type { Exchange } from '@megaplane/wire/exchange';
import type { Encoder, EventType } from './encoder.ts';
import type { Filter } from './filter.ts';
import type { RowStream } from './list-stream.ts';
import type { KeyRange } from './served.ts';
import { Sink } from './sink.ts';
import { emptyEvent, type Storage, type StorageEvent, type StorageWatch } from './storage.ts';

/** Events that one watch reads from the log before others get their turn. */
const EVENTS_PER_TURN_MAX = 1000;

/**
 * Bytes that a live watch may be ahead of its client before it counts as slow: a short pause of the
 * reader, or of the network, is not worth losing the shared frames for.
 */
const AHEAD_BYTES_MAX: number = 256 * 1024;

/** What a watch is made of; revisions and times as given by the request. */
export interface WatchRequest {
  readonly exchange: Exchange;
  readonly range: KeyRange;
  readonly namespace: string;
  readonly name: string;
  readonly filter: Filter;
  readonly encoder: Encoder;
  /** The state to send first, or null to start with changes. */
  readonly initial: RowStream | null;
  /** Changes after this revision are sent. */
  readonly revision: number;
  /** Send the bookmark that ends the initial state. */
  readonly marksInitialEnd: boolean;
  readonly bookmarks: boolean;
  /** Milliseconds since 1970 at which the stream ends by itself. */
  readonly deadlineMs: number;
}

export type WatchState =
  | { readonly kind: 'initial'; readonly stream: RowStream }
  | { readonly kind: 'catching'; readonly cursor: StorageWatch }
  | { readonly kind: 'slow' }
  | { readonly kind: 'live' }
  | { readonly kind: 'closed' };

/** What a watch needs from its hub. */
export interface WatchHome {
  readonly storage: Storage;
  /** Lets the hub's own reading of the log come up to the newest published event. */
  settle(): void;
  join(watcher: Watcher): void;
  leave(watcher: Watcher): void;
  /** Runs `work` in a later turn. */
  defer(work: () => void): void;
}

const sink = new Sink();
const event = emptyEvent();

export class Watcher {
  readonly request: WatchRequest;
  readonly #home: WatchHome;
  #state: WatchState;
  /** Everything up to here was sent or did not concern this watch. */
  #position: number;
  #sent = 0;
  /** Bytes written since the client last took everything. */
  #ahead = 0;
  /** When the next bookmark is due; the shell's clock. */
  bookmarkAtMs: number;

  constructor(request: WatchRequest, home: WatchHome, bookmarkAtMs: number) {
    this.request = request;
    this.#home = home;
    this.#position = request.revision;
    this.bookmarkAtMs = bookmarkAtMs;
    this.#state =
      request.initial === null ? { kind: 'slow' } : { kind: 'initial', stream: request.initial };
    request.exchange.onWritable = () => this.pump();
    request.exchange.onClose = () => this.#release();
  }

  get isLive(): boolean {
    return this.#state.kind === 'live';
  }

  /** Sends what there is to send, as far as the client takes it. */
  pump(): void {
    if (this.#state.kind === 'initial') this.#pumpInitial(this.#state.stream);
    this.#ahead = 0;
    if (this.#state.kind === 'slow') this.#reopen();
    if (this.#state.kind === 'catching') this.#catchUp(this.#state.cursor);
  }

  #pumpInitial(stream: RowStream): void {
    const pulled = stream.pull(this.#home.storage, this.request.exchange);
    switch (pulled) {
      case 'full':
        return;
      case 'yield':
        this.#home.defer(() => this.pump());
        return;
      case 'compacted':
        this.#expire();
        return;
      case 'end':
        this.#sent += stream.sent;
        if (this.request.marksInitialEnd) this.#writeBookmark(this.#position, true);
        this.#state = { kind: 'slow' };
    }
  }

  #reopen(): void {
    if (this.request.exchange.writable() <= 0) return;
    const { start, end } = this.request.range;
    const cursor = this.#home.storage.watch(start, end, this.#position, () => this.pump());
    if (cursor === null) this.#expire();
    else this.#state = { kind: 'catching', cursor };
  }

  #catchUp(cursor: StorageWatch): void {
    const { exchange } = this.request;
    for (let count = 0; count < EVENTS_PER_TURN_MAX; count++) {
      if (exchange.writable() <= 0) {
        this.#position = Math.max(this.#position, cursor.position);
        cursor.close();
        this.#state = { kind: 'slow' };
        return;
      }
      let outcome = cursor.next(event);
      if (outcome === 'idle') {
        // the hub may be behind this cursor or ahead of it: meet at the newest published event
        this.#home.settle();
        outcome = cursor.next(event);
      }
      if (outcome === 'lagging') return;
      if (outcome === 'gone') {
        cursor.close();
        this.#expire();
        return;
      }
      if (outcome === 'idle') {
        this.#position = Math.max(this.#position, cursor.position);
        cursor.close();
        this.#state = { kind: 'live' };
        this.#ahead = 0;
        this.#home.join(this);
        return;
      }
      this.#send(event, null);
    }
    this.#home.defer(() => this.pump());
  }

  /** Takes one event from the hub; only while live. */
  offer(offered: StorageEvent, frames: FrameCache): void {
    if (offered.revision <= this.#position) return;
    if (this.request.exchange.writable() > 0) this.#ahead = 0;
    else if (this.#ahead > AHEAD_BYTES_MAX) {
      this.#ahead = 0;
      this.#position = offered.revision - 1;
      this.#home.leave(this);
      this.#state = { kind: 'slow' };
      return;
    }
    this.#send(offered, frames);
  }

  #send(change: StorageEvent, frames: FrameCache | null): void {
    const { filter, encoder, exchange } = this.request;
    this.#position = Math.max(this.#position, change.revision);
    const isNow = !change.isDelete && filter.matches(change.value);
    const wasBefore = !change.isCreate && filter.matches(change.previous);
    if (!isNow && !wasBefore) return;
    const type: EventType = isNow ? (wasBefore ? 'MODIFIED' : 'ADDED') : 'DELETED';
    if (frames !== null && this.#sent > 0) {
      const shared = frames.get(encoder, type, change);
      exchange.write(shared.bytes, 0, shared.length);
      this.#ahead += shared.length;
    } else {
      sink.length = 0;
      const row = isNow ? change.value : change.previous;
      encoder.frame(sink, type, row, change.revision, this.#sent === 0);
      exchange.write(sink.bytes, 0, sink.length);
      this.#ahead += sink.length;
    }
    this.#sent++;
  }

  /** Tells the client how far it is; `revision` is the newest published one. */
  bookmark(revision: number): void {
    if (this.#state.kind !== 'live' || !this.request.bookmarks) return;
    if (this.request.exchange.writable() <= 0) return;
    this.#writeBookmark(Math.max(revision, this.#position), false);
  }

  #writeBookmark(revision: number, isInitialEnd: boolean): void {
    sink.length = 0;
    this.request.encoder.bookmark(sink, revision, isInitialEnd);
    this.request.exchange.write(sink.bytes, 0, sink.length);
  }

  #expire(): void {
    const oldest = this.#home.storage.oldestRevision(
      this.request.range.start,
      this.request.range.end,
    );
    const status = tooOldResourceVersion(this.#position, oldest);
    sink.length = 0;
    this.request.encoder.error(sink, status);
    this.request.exchange.write(sink.bytes, 0, sink.length);
    this.end();
  }

  /** The hub lost its place in the log: this watch cannot go on. */
  lose(): void {
    this.#expire();
  }

  /** Ends the stream as a timeout does: cleanly, without an event. */
  end(): void {
    if (this.#state.kind === 'closed') return;
    this.request.exchange.end();
    this.#release();
  }

  #release(): void {
    if (this.#state.kind === 'closed') return;
    if (this.#state.kind === 'catching') this.#state.cursor.close();
    this.#state = { kind: 'closed' };
    this.#home.leave(this);
  }
}

/** Frames of the event that is being handed out: each is encoded once per encoding and type. */
export class FrameCache {
  readonly #entries = new Map<string, { readonly sink: Sink; revision: number }>();

  get(encoder: Encoder, type: EventType, change: StorageEvent): Sink {
    const id = `${type} ${encoder.id}`;
    let entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, (entry = { sink: new Sink(), revision: 0 }));
    if (entry.revision !== change.revision) {
      entry.revision = change.revision;
      entry.sink.length = 0;
      const row = type === 'DELETED' ? change.previous : change.value;
      encoder.frame(entry.sink, type, row, change.revision, false);
    }
    return entry.sink;
  }
}

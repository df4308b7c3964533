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
import type { Encoder, EventType } from '../serializer/encoder.ts';
import type { Filter } from '../request/filter.ts';
import type { RowStream } from '../serializer/list-stream.ts';
import type { KeyRange } from '../storage/served.ts';
import { Sink } from '../sink/sink.ts';
import {
  emptyEvent,
  type Storage,
  type StorageEvent,
  type StorageWatch,
} from '../storage/storage.ts';
import type { Due } from './due-times.ts';
import type { FrameCache } from './frame-cache.ts';
import type { WatchCounts } from '../metrics/watch-counts.ts';

/** Events that one watch reads from the log before others get their turn. */
const EVENTS_PER_TURN_MAX = 500;

/**
 * Bytes that a live watch may be ahead of its client before it counts as slow: a pause of the
 * reader is not worth losing the shared frames for. An informer that is busy for some tens of
 * milliseconds while thousands of pods are written is ahead by megabytes.
 */
const AHEAD_BYTES_MAX: number = 4 * 1024 * 1024;
/** The same where what waits is one copy for all watches; less than what the wire takes at most. */
export const SHARED_AHEAD_BYTES_MAX: number = 32 * 1024 * 1024;
/** What it costs to remember that a shared frame waits. */
const WAITING_FRAME_BYTES = 16;
/** The same where all watches of a hub together are ahead by more than `AHEAD_BYTES_TOTAL_MAX`. */
const AHEAD_BYTES_LEAST = 16 * 1024;
export const AHEAD_BYTES_TOTAL_MAX: number = 64 * 1024 * 1024;

/** What takes the bytes of a watch: an answer, or a WebSocket. */
export type WatchOutlet = Pick<
  Exchange,
  'write' | 'end' | 'writable' | 'onWritable' | 'onClose' | 'closed'
>;

/** What a watch is made of; revisions and times as given by the request. */
export interface WatchRequest {
  readonly exchange: WatchOutlet;
  /** What the outlet cannot send at once it keeps by reference, where it is shared. */
  readonly sharesBytes: boolean;
  readonly range: KeyRange;
  readonly namespace: string;
  readonly name: string;
  readonly filter: Filter;
  readonly encoder: Encoder;
  /** Changes after this revision are sent. */
  readonly revision: number;
  /** Send the bookmark that ends the initial state. */
  readonly marksInitialEnd: boolean;
  readonly bookmarks: boolean;
  /** Milliseconds since 1970 at which the stream ends by itself. */
  readonly deadlineMs: number;
  readonly counts: WatchCounts;
  /** Told once, when the state was sent or the watch has ended before. */
  onInitialSent?: (() => void) | null;
}

type WatchState =
  | { readonly kind: 'initial'; readonly stream: RowStream }
  | { readonly kind: 'catching'; readonly cursor: StorageWatch }
  | { readonly kind: 'slow' }
  | { readonly kind: 'live' }
  | { readonly kind: 'closed' };

const SLOW: WatchState = { kind: 'slow' };
const LIVE: WatchState = { kind: 'live' };
const CLOSED: WatchState = { kind: 'closed' };

/** What a watch needs from its hub. */
export interface WatchHome {
  readonly storage: Storage;
  readonly frames: FrameCache;
  /** Bytes by which all watches are ahead of their clients; what they share counts once. */
  aheadBytes: number;
  /** Live watches whose clients have not taken what they were shown last. */
  stuck: number;
  /** Watches that are open. */
  readonly size: number;
  /** Lets the hub's own reading of the log come up to the newest published event. */
  settle(): void;
  /** The watch has caught up: it is to be offered events. */
  join(watcher: Watcher): void;
  /** The watch is not live any more. */
  leave(watcher: Watcher): void;
  /** The watch is over. */
  forget(watcher: Watcher): void;
  /** Runs `work` in a later turn. */
  defer(work: () => void): void;
}

const sink = new Sink();
const event = emptyEvent();

export class Watcher implements Due {
  readonly request: WatchRequest;
  readonly #home: WatchHome;
  readonly #encoding: number;
  #state: WatchState;
  /** Everything up to here was sent or did not concern this watch. */
  #position: number;
  /** Where the hub's events begin to count: the revision at which the watch became live. */
  #liveFrom = 0;
  #hasSent = false;
  /** Bytes written since the client last took everything. */
  #ahead = 0;
  /** The part of it that is this watch's alone. */
  #aheadOwn = 0;
  #isStuck = false;
  /** What came later is not shown: the watch is to end behind this revision. */
  #lastRevision = Infinity;
  /** Ends the hold on what the initial state is read from. */
  #unhold: (() => void) | null = null;
  dueSecond = -1;

  /** `initial` is the state to send first; null: start with changes. */
  constructor(request: WatchRequest, initial: RowStream | null, home: WatchHome) {
    this.request = request;
    this.#home = home;
    this.#encoding = home.frames.encodingOf(request.encoder);
    this.#position = request.revision;
    this.#state = initial === null ? SLOW : { kind: 'initial', stream: initial };
    request.exchange.onWritable = () => this.pump();
    request.exchange.onClose = () => this.#release();
  }

  get isLive(): boolean {
    return this.#state.kind === 'live';
  }

  get isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  /** Sends what there is to send, as far as the client takes it. */
  pump(): void {
    if (this.#state.kind === 'initial') this.#pumpInitial(this.#state.stream);
    if (this.#ahead > 0 && this.request.exchange.writable() > 0) this.#catchBreath();
    if (this.#state.kind === 'slow') this.#reopen();
    if (this.#state.kind === 'catching') this.#catchUp(this.#state.cursor);
  }

  /** The client has taken everything. */
  #catchBreath(): void {
    this.#home.aheadBytes -= this.#aheadOwn;
    this.#ahead = 0;
    this.#aheadOwn = 0;
    this.#setStuck(false);
  }

  #setStuck(isStuck: boolean): void {
    if (this.#isStuck === isStuck) return;
    this.#isStuck = isStuck;
    this.#home.stuck += isStuck ? 1 : -1;
  }

  #pumpInitial(stream: RowStream): void {
    const pulled = stream.pull(this.request.exchange);
    if (pulled === 'full' || pulled === 'yield') this.#holdInitial();
    else this.#dropHold();
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
        this.#hasSent = stream.sent > 0;
        if (this.request.marksInitialEnd) this.#writeInitialEnd();
        this.#state = SLOW;
        this.#tellInitialSent();
    }
  }

  #holdInitial(): void {
    const { range, revision } = this.request;
    this.#unhold ??= this.#home.storage.hold(range.start, range.end, revision);
  }

  #dropHold(): void {
    this.#unhold?.();
    this.#unhold = null;
  }

  #tellInitialSent(): void {
    const tell = this.request.onInitialSent;
    this.request.onInitialSent = null;
    tell?.();
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
      let outcome = cursor.next(event);
      if (outcome === 'idle') {
        // the hub may be behind this cursor or ahead of it: meet at the newest published event
        this.#home.settle();
        outcome = cursor.next(event);
      }
      if (outcome === 'lagging') return;
      if (outcome !== 'event') {
        this.#position = Math.max(this.#position, cursor.position);
        cursor.close();
        if (outcome === 'gone') this.#expire();
        else this.#goLive();
        return;
      }
      if (event.revision > this.#lastRevision) {
        cursor.close();
        this.end();
        return;
      }
      // changes of one revision go together: between them there is no place to come back to
      if (exchange.writable() <= 0 && event.revision !== this.#position) {
        cursor.close();
        this.#state = SLOW;
        return;
      }
      this.#send(event, null);
    }
    this.#home.defer(() => this.pump());
  }

  #goLive(): void {
    this.#state = LIVE;
    this.#liveFrom = this.#position;
    this.#home.join(this);
  }

  /** Takes one event from the hub, as one of `sharers` that are shown it; only while live. */
  offer(offered: StorageEvent, frames: FrameCache, sharers = 1): void {
    if (offered.revision <= this.#liveFrom) return;
    if (offered.revision > this.#lastRevision) {
      this.end();
      return;
    }
    if (this.#ahead > 0) {
      if (this.request.exchange.writable() > 0) this.#catchBreath();
      else this.#setStuck(true);
    }
    if (this.#isTooFarAhead() && offered.revision !== this.#position) {
      this.fallBehind(offered.revision - 1);
      return;
    }
    const bytes = this.#send(offered, frames);
    // a client that is hopelessly behind was cut off by it
    if (!this.isLive) return;
    // those that take it at once keep nothing; the others keep one copy together
    const keepers = this.#isStuck ? this.#home.stuck : sharers;
    const { sharesBytes } = this.request;
    const own = sharesBytes ? Math.ceil(bytes / keepers) + WAITING_FRAME_BYTES : bytes;
    this.#ahead += bytes;
    this.#aheadOwn += own;
    this.#home.aheadBytes += own;
  }

  #isTooFarAhead(): boolean {
    if (this.#ahead <= AHEAD_BYTES_LEAST) return false;
    const most = this.request.sharesBytes ? SHARED_AHEAD_BYTES_MAX : AHEAD_BYTES_MAX;
    return this.#ahead > most || this.#home.aheadBytes > AHEAD_BYTES_TOTAL_MAX;
  }

  /** Goes on by a cursor of its own, from `revision`, when the client reads again. */
  fallBehind(revision: number): void {
    this.#position = Math.max(this.#position, revision);
    this.#home.leave(this);
    this.#setStuck(false);
    this.#state = SLOW;
  }

  /** Bytes that were written. `frames` are those of the hub's event, null behind it. */
  #send(change: StorageEvent, frames: FrameCache | null): number {
    const { filter, encoder, exchange, counts } = this.request;
    this.#position = Math.max(this.#position, change.revision);
    const isNow = !change.isDelete && filter.matches(change.value);
    const wasBefore = !change.isCreate && filter.matches(change.previous);
    if (!isNow && !wasBefore) return 0;
    const type: EventType = isNow ? (wasBefore ? 'MODIFIED' : 'ADDED') : 'DELETED';
    if (frames !== null && this.#hasSent) {
      const frame = frames.frame(this.#encoding, encoder, type, change);
      counts.sent(frame.sink.length);
      exchange.write(frame.sink.bytes, 0, frame.sink.length, frame);
      return frame.sink.length;
    }
    if (this.#hasSent && this.#home.size > 1) {
      const frame = this.#home.frames.again(this.#encoding, encoder, type, change);
      counts.sent(frame.bytes.length);
      exchange.write(frame.bytes, 0, frame.bytes.length, frame);
      return frame.bytes.length;
    }
    sink.length = 0;
    const row = isNow ? change.value : change.previous;
    encoder.frame(sink, type, row, change.revision, !this.#hasSent);
    this.#hasSent = true;
    counts.sent(sink.length);
    exchange.write(sink.bytes, 0, sink.length);
    return sink.length;
  }

  /** Tells the client how far it is; `revision` is the newest that the hub has handed out. */
  bookmark(revision: number): void {
    if (this.#state.kind !== 'live' || !this.request.bookmarks) return;
    if (this.request.exchange.writable() <= 0) return;
    const frame = this.#home.frames.bookmark(this.#encoding, this.request.encoder, revision);
    this.request.counts.sent(frame.length);
    this.request.exchange.write(frame.bytes, 0, frame.length);
  }

  #writeInitialEnd(): void {
    sink.length = 0;
    this.request.encoder.bookmark(sink, this.#position, true, !this.#hasSent);
    this.#hasSent = true;
    this.request.counts.sent(sink.length);
    this.request.exchange.write(sink.bytes, 0, sink.length);
  }

  #expire(): void {
    const { start, end } = this.request.range;
    const oldest = this.#home.storage.oldestRevision(start, end);
    sink.length = 0;
    this.request.encoder.error(sink, tooOldResourceVersion(this.#position, oldest));
    this.request.counts.sent(sink.length);
    this.request.exchange.write(sink.bytes, 0, sink.length);
    this.end();
  }

  /** Shows what happened up to `revision` and then no more; the hub ends it. */
  stopAt(revision: number): void {
    this.#lastRevision = Math.min(this.#lastRevision, revision);
  }

  /** Ends the stream as a timeout does: cleanly, without an event. */
  end(): void {
    if (this.#state.kind === 'closed') return;
    this.request.exchange.end();
    this.#release();
  }

  #release(): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    if (state.kind === 'catching') state.cursor.close();
    if (state.kind === 'live') this.#home.leave(this);
    this.#catchBreath();
    this.#dropHold();
    this.#state = CLOSED;
    this.#tellInitialSent();
    this.#home.forget(this);
  }
}

// shell: follows a running etcd at its own revisions
/**
 * The directory begins as an import of the etcd's snapshot at some revision; from the next one on
 * a watch of everything tells each revision as a whole, and each is applied as a transaction of
 * its own, which gives it the same number. Every revision of etcd has an event, so a number that
 * does not fit means that something was missed, and ends it.
 *
 * Leases do not end here while the origin keeps them: their keys are deleted when it deletes them.
 */
import { afterMs, pauseMs, turnOver } from '@megaplane/base/deferred';
import type { OpenStore } from '@megaplane/store/open';
import type { Store } from '@megaplane/store/store';
import { FAILURE_NONE, ProtobufReader } from '@megaplane/wire/protobuf';
import {
  closeMessage,
  openMessage,
  writeBoolField,
  writeBytesField,
  writeInt64Field,
  writeVarint64Field,
} from '@megaplane/wire/protobuf-write';
import { KvHash } from '../kv/hash-kv.ts';
import { type Remote, type RemoteStream, headerRevision } from '../client/remote.ts';

const EVERYTHING = Buffer.from([0]);
/** Applied but not yet durable bytes above which the origin has to wait. */
const HOLD_MS = 5;
/** While a lease is followed it must not end; its true time comes with `syncLeases`. */
const PLACEHOLDER_TTL_SECONDS = 3600;
const COMPARE_TRIES_MAX = 20;
const TTLS_AT_ONCE = 64;

interface FollowedEvent {
  isDelete: boolean;
  key: Buffer;
  value: Buffer;
  modRevision: number;
  leaseHigh: number;
  leaseLow: number;
}

export interface Compared {
  readonly revision: number;
  readonly hash: number;
}

export class Follower {
  readonly #remote: Remote;
  readonly #store: Store;
  readonly #reader = new ProtobufReader();
  #stream: RemoteStream | null = null;
  #failure: Error | null = null;
  events = 0;

  constructor(remote: Remote, opened: OpenStore) {
    this.#remote = remote;
    this.#store = opened.store;
    opened.store.leases.isPaused = true;
  }

  get revision(): number {
    return this.#store.appliedRevision;
  }

  /** Begins to follow after the newest revision here. */
  start(): void {
    const request = Buffer.alloc(64);
    const create = openMessage(request, 0, 1);
    let at = writeBytesField(request, create, 1, EVERYTHING, 0, 1);
    at = writeBytesField(request, at, 2, EVERYTHING, 0, 1);
    at = writeInt64Field(request, at, 3, this.revision + 1);
    at = writeBoolField(request, at, 4, true);
    const message = request.subarray(0, closeMessage(request, create, at));
    this.#stream = this.#remote.stream('Watch/Watch', message, (bytes, start, end) => {
      if (this.#failure === null) this.#take(bytes, start, end);
    });
    this.#stream.end.then(
      () => this.#fail('the watch has ended'),
      (error: unknown) => this.#fail((error as Error).message),
    );
  }

  #fail(message: string): void {
    this.#failure ??= new Error(`${this.#remote.url}: ${message}`);
  }

  /** Throws what ended the following, if something did. */
  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  stop(): void {
    this.#failure ??= new Error('the following was stopped');
    this.#stream?.call.cancel();
  }

  #take(bytes: Buffer, start: number, end: number): void {
    const reader = this.#reader.reset(bytes, start, end);
    const events: FollowedEvent[] = [];
    let isCancelled = false;
    let reason = '';
    let compacted = 0;
    while (reader.next()) {
      if (reader.field === 4 && reader.wireType === 0) isCancelled = reader.bool();
      else if (reader.field === 5 && reader.wireType === 0) compacted = reader.int64();
      else if (reader.field === 6 && reader.wireType === 2) reason = reader.text();
      else if (reader.field === 11 && reader.wireType === 2) {
        reader.chunk();
        events.push(eventOf(bytes, reader.chunkStart, reader.chunkEnd));
      } else reader.skip();
    }
    if (reader.failure !== FAILURE_NONE) this.#fail('an answer of the watch cannot be read');
    if (isCancelled) {
      const why = compacted > 0 ? `compacted up to revision ${compacted} meanwhile` : reason;
      this.#fail(`the watch was ended (${why}); import again`);
    }
    if (this.#failure === null) this.#apply(events);
  }

  #apply(events: readonly FollowedEvent[]): void {
    for (let from = 0; from < events.length && this.#failure === null;) {
      const revision = events[from]?.modRevision ?? 0;
      let to = from;
      while (events[to]?.modRevision === revision) to++;
      // A watch that goes on after a break may repeat what is here already.
      if (revision > this.revision) this.#applyOne(events.slice(from, to), revision);
      from = to;
    }
    if (this.#store.admit(0) !== 0) this.#hold();
  }

  #applyOne(events: readonly FollowedEvent[], revision: number): void {
    if (revision !== this.revision + 1) {
      this.#fail(`revision ${revision} follows ${this.revision}: events were missed; import again`);
      return;
    }
    const store = this.#store;
    store.begin();
    for (const { isDelete, key, value, leaseHigh, leaseLow } of events) {
      if (isDelete) store.delete(key, 0, key.length);
      else {
        const lease = this.#lease(leaseHigh, leaseLow);
        store.put(key, 0, key.length, value, 0, value.length, lease);
      }
      this.events++;
    }
    store.commit();
  }

  /** Granted there after the snapshot: its true time is asked for at the end. */
  #lease(high: number, low: number): number {
    if (high === 0 && low === 0) return 0;
    const { leases } = this.#store;
    const found = leases.find(high, low);
    return found === 0
      ? leases.grant(high, low, PLACEHOLDER_TTL_SECONDS, performance.now())
      : found;
  }

  /** The disk is behind: the origin waits. */
  #hold(): void {
    const call = this.#stream?.call;
    call?.pause();
    const look = (): void => {
      if (this.#store.admit(0) === 0) call?.resume();
      else afterMs(HOLD_MS, look);
    };
    afterMs(HOLD_MS, look);
  }

  /** Revisions that the origin is ahead. */
  async lag(): Promise<number> {
    this.check();
    const request = Buffer.alloc(16);
    const at = writeBytesField(request, 0, 1, EVERYTHING, 0, 1);
    const answer = await this.#remote.call('KV/Range', request.subarray(0, at));
    const reader = new ProtobufReader().reset(answer, 0, answer.length);
    let revision = 0;
    while (reader.next()) {
      if (reader.field === 1 && reader.wireType === 2) revision = headerRevision(reader);
      else reader.skip();
    }
    return Math.max(0, revision - this.revision);
  }

  /** Compares HashKV at one revision; compactions of the origin are done here too. */
  async compare(): Promise<Compared> {
    for (let tries = 0; tries < COMPARE_TRIES_MAX; tries++) {
      this.check();
      const { revision } = this;
      const theirs = await this.#remote.hashKv(revision).catch((error: unknown) => error as Error);
      this.check();
      if (theirs instanceof Error) {
        // Compacted at or beyond this revision meanwhile: a later one will do.
        if (tries === COMPARE_TRIES_MAX - 1) throw theirs;
        await pauseMs(100);
        continue;
      }
      const { compactRevision } = theirs;
      if (compactRevision > this.#store.compactRevision) this.#store.compact(compactRevision);
      if (compactRevision < this.#store.compactRevision) continue;
      const hash = new KvHash(this.#store, revision);
      while (!hash.step()) await turnOver();
      if (hash.hash === theirs.hash) return { revision, hash: hash.hash };
      throw new Error(
        `${this.#remote.url}: at revision ${revision} its HashKV is ${theirs.hash}, here it is ` +
          `${hash.hash}: the data differ; do not use this directory`,
      );
    }
    throw new Error(`${this.#remote.url}: no revision could be compared; is it compacting?`);
  }

  /** Brings ids, times and ends of all leases in line with the origin. Returns their number. */
  async syncLeases(): Promise<number> {
    const { leases } = this.#store;
    const listed = await this.#listLeases();
    const isListed = new Set(listed.map(({ high, low }) => `${high}/${low}`));
    const gone: number[] = [];
    leases.each((lease) => {
      if (!isListed.has(`${leases.idHigh(lease)}/${leases.idLow(lease)}`)) gone.push(lease);
    });
    for (const lease of gone) leases.forget(lease);
    for (let from = 0; from < listed.length; from += TTLS_AT_ONCE) {
      const some = listed.slice(from, from + TTLS_AT_ONCE);
      await Promise.all(some.map((id) => this.#syncLease(id)));
    }
    return leases.size;
  }

  async #listLeases(): Promise<{ readonly high: number; readonly low: number }[]> {
    const answer = await this.#remote.call('Lease/LeaseLeases', Buffer.alloc(0));
    const reader = new ProtobufReader().reset(answer, 0, answer.length);
    const ids: { high: number; low: number }[] = [];
    while (reader.next()) {
      if (reader.field !== 2 || reader.wireType !== 2) {
        reader.skip();
        continue;
      }
      reader.chunk();
      const row = new ProtobufReader().reset(answer, reader.chunkStart, reader.chunkEnd);
      while (row.next()) {
        if (row.field === 1 && row.wireType === 0) {
          row.varint();
          ids.push({ high: row.high, low: row.low });
        } else row.skip();
      }
    }
    return ids;
  }

  async #syncLease({ high, low }: { high: number; low: number }): Promise<void> {
    const request = Buffer.alloc(16);
    const at = writeVarint64Field(request, 0, 1, low, high);
    const answer = await this.#remote.call('Lease/LeaseTimeToLive', request.subarray(0, at));
    const reader = new ProtobufReader().reset(answer, 0, answer.length);
    let [leftSeconds, ttlSeconds] = [0, 0];
    while (reader.next()) {
      if (reader.field === 3 && reader.wireType === 0) leftSeconds = reader.int64();
      else if (reader.field === 4 && reader.wireType === 0) ttlSeconds = reader.int64();
      else reader.skip();
    }
    if (ttlSeconds <= 0) return;
    const leftMs = Math.max(0, leftSeconds) * 1000;
    this.#store.leases.adopt(high, low, ttlSeconds, leftMs, performance.now());
  }
}

function eventOf(bytes: Buffer, start: number, end: number): FollowedEvent {
  const reader = new ProtobufReader().reset(bytes, start, end);
  const event: FollowedEvent = {
    ...{ isDelete: false, key: EVERYTHING, value: Buffer.alloc(0) },
    ...{ modRevision: 0, leaseHigh: 0, leaseLow: 0 },
  };
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === 0) event.isDelete = reader.bool();
    else if (reader.field === 2 && reader.wireType === 2) {
      reader.chunk();
      readKeyValue(bytes, reader.chunkStart, reader.chunkEnd, event);
    } else reader.skip();
  }
  return event;
}

function readKeyValue(bytes: Buffer, start: number, end: number, event: FollowedEvent): void {
  const reader = new ProtobufReader().reset(bytes, start, end);
  while (reader.next()) {
    if (reader.wireType === 2 && (reader.field === 1 || reader.field === 5)) {
      reader.chunk();
      // Valid during the turn, in which the event is applied.
      const chunk = bytes.subarray(reader.chunkStart, reader.chunkEnd);
      if (reader.field === 1) event.key = chunk;
      else event.value = chunk;
    } else if (reader.wireType === 0) {
      const value = reader.int64();
      if (reader.field === 3) event.modRevision = value;
      if (reader.field === 6) {
        event.leaseHigh = reader.high;
        event.leaseLow = reader.low;
      }
    } else reader.skip();
  }
}

// data plane: the revisioned map: one writer, reads of any kept revision
/**
 * Puts the parts together: records in arenas, ids by hash, live keys and tombstones each in an
 * order-statistic list, events in revision order, watchers as cursors. The contract stands in
 * contract.ts; what is not told there is how things stay together:
 *
 * - `head(id)` is the newest record of a key, older ones follow by `previous`;
 * - an id is in exactly one of `live` (head is a put) and `graves` (head is a tombstone);
 * - every record above its class's boundary is in its class's event log, in order.
 */
import { assertWhole } from '@megaplane/base/assert';
import { type Alarm, Alarms } from '../alarms.ts';
import { Arenas, FLAG_LEASE, FLAG_TOMBSTONE, GRANULE_BITS, arenaOf } from '../record/arenas.ts';
import { KeyClasses } from '../record/classes.ts';
import {
  FAILURE,
  type Page,
  type RevisionedStore,
  type StorageOptions,
  type Watcher,
} from '../contract.ts';
import { KeyIndex } from '../record/key-index.ts';
import { KeyOrder } from '../record/key-order.ts';
import { Leases } from '../lease/lease-table.ts';
import { LogBatch } from '../wal/log-batch.ts';
import { Ranges } from './ranges.ts';
import { Records } from './records.ts';
import { Sweep } from './sweep.ts';
import { WatchHub } from '../watch/watch-hub.ts';

/** Applied but unpublished bytes above which writes are refused. */
export const LOG_BACKLOG_BYTES_MAX: number = 256 * 1024 * 1024;
/** How often some leases are noted in the log with what is left of them. */
const LEASE_NOTE_MS = 100;
const GRANULE_MASK = (1 << GRANULE_BITS) - 1;

export class Store extends Records implements RevisionedStore {
  readonly arenas: Arenas = new Arenas();
  readonly keys: KeyIndex;
  readonly live: KeyOrder;
  readonly graves: KeyOrder;
  readonly classes: KeyClasses;
  readonly leases: Leases;
  readonly alarms: Alarms = new Alarms();
  /** Small states of the program above, by number, kept by the log and its snapshots. */
  readonly documents: Map<number, Buffer> = new Map();
  readonly hub: WatchHub;
  readonly batch: LogBatch;
  readonly sweep: Sweep;
  readonly #ranges: Ranges;
  readonly #memoryBytesMax: number;
  readonly #onPublish: ((revision: number) => void)[] = [];
  readonly #onLogFailure: ((message: string) => void)[] = [];
  /** Called when the first change of a turn was made; the shell then calls `flush` at its end. */
  onDirty: () => void = () => {};
  /** Called when another member's document has taken the place of the one here. */
  onDocument: (number: number) => void = () => {};
  /** Another member decides what changes: here no lease ends. */
  isStandby = false;
  /** The log takes no more: writes that grow the store are refused. */
  isLogFull = false;
  #isDirty = false;
  #hasFailed = false;
  #applied = 1;
  #published = 1;
  #publishedChange = 0;
  /** What the last `onPublish` said. */
  #toldRevision = 1;
  #compacted = -1;
  #noteMs = 0;
  #sub = 0;
  #touchesLog = false;
  /** Bytes of records appended and not yet published. */
  #pendingBytes = 0;
  puts = 0;
  deletes = 0;
  /** Bytes of keys and values put so far. */
  putBytes = 0;

  constructor(options: StorageOptions, seed: number) {
    super();
    this.keys = new KeyIndex(this.arenas, seed);
    this.live = new KeyOrder(this.keys);
    this.graves = new KeyOrder(this.keys);
    this.classes = new KeyClasses(options, this.arenas, this.keys);
    this.#memoryBytesMax = options.memoryBytesMax ?? Infinity;
    this.leases = new Leases(this.arenas, this.keys, {
      deleteKeys: (ids) => this.#deleteKeys(ids),
      logLease: (lease) => this.#logLease(lease),
      logLeaseEnd: (lease) => this.#logLeaseEnd(lease),
      logLeaseLeft: (lease, leftMs) => this.#logLeaseLeft(lease, leftMs),
    });
    this.hub = new WatchHub(this.arenas, this.keys, this.classes);
    this.batch = new LogBatch(this.arenas, this.classes, options.dataDir !== null);
    this.sweep = new Sweep(this);
    this.#ranges = new Ranges(this);
  }

  get appliedRevision(): number {
    return this.#applied;
  }

  get publishedRevision(): number {
    return this.#published;
  }

  get watchedRevision(): number {
    return this.hub.published;
  }

  get compactRevision(): number {
    return this.#compacted;
  }

  /** True between `begin` and `commit` once something has changed. */
  get hasUncommitted(): boolean {
    return this.#sub > 0;
  }

  get appliedChange(): number {
    return this.batch.changes;
  }

  get publishedChange(): number {
    return this.#publishedChange;
  }

  /** The log cannot go on: nothing is shown from here on that was not shown before. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  get isPending(): boolean {
    return this.#published !== this.#applied || this.batch.isPending;
  }

  onPublish(callback: (revision: number) => void): void {
    this.#onPublish.push(callback);
  }

  onLogFailure(callback: (message: string) => void): void {
    this.#onLogFailure.push(callback);
  }

  get(bytes: Buffer, startAt: number, startTo: number): number {
    const id = this.#find(bytes, startAt, startTo);
    if (id === 0) return 0;
    const ref = this.keys.head(id);
    return this.arenas.isTombstone(ref) ? 0 : ref;
  }

  /** Loads a key; the entry that it has, or 0. */
  #find(bytes: Buffer, at: number, to: number): number {
    this.keys.load(bytes, at, to);
    return this.keys.find();
  }

  getAt(bytes: Buffer, startAt: number, startTo: number, revision: number): number {
    return this.#ranges.getAt(bytes, startAt, startTo, revision);
  }

  range(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
    limit: number,
    page: Page,
  ): number {
    return this.#ranges.read(bytes, startAt, startTo, endAt, endTo, revision, limit, page);
  }

  count(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): number {
    return this.#ranges.count(bytes, startAt, startTo, endAt, endTo, revision);
  }

  admit(sizeBytes: number): number {
    if (this.#hasFailed) return FAILURE.logFailed;
    if (this.isLogFull) return FAILURE.noSpace;
    if (this.arenas.allocatedBytes + sizeBytes > this.#memoryBytesMax) return FAILURE.noSpace;
    if (this.#pendingBytes + sizeBytes > LOG_BACKLOG_BYTES_MAX) return FAILURE.tooManyRequests;
    return 0;
  }

  putIf(
    key: Buffer,
    keyAt: number,
    keyTo: number,
    expectedModRevision: number,
    value: Buffer,
    valueAt: number,
    valueTo: number,
    lease: number,
  ): number {
    const refused = this.admit(keyTo - keyAt + valueTo - valueAt);
    if (refused !== 0) return refused;
    const id = this.#find(key, keyAt, keyTo);
    if (expectedModRevision >= 0) {
      const ref = id === 0 ? 0 : this.keys.head(id);
      const isThere = ref !== 0 && !this.arenas.isTombstone(ref);
      const found = isThere ? this.arenas.modRevision(ref) : 0;
      if (found !== expectedModRevision) return FAILURE.conflict;
    }
    this.begin();
    this.put(key, keyAt, keyTo, value, valueAt, valueTo, lease, id);
    return this.commit();
  }

  deleteIf(key: Buffer, keyAt: number, keyTo: number, expectedModRevision: number): number {
    if (this.#hasFailed) return FAILURE.logFailed;
    const ref = this.get(key, keyAt, keyTo);
    const found = ref === 0 ? 0 : this.arenas.modRevision(ref);
    if (expectedModRevision >= 0 && found !== expectedModRevision) return FAILURE.conflict;
    this.begin();
    this.delete(key, keyAt, keyTo);
    return this.commit();
  }

  begin(): void {
    assertWhole(this.#sub === 0, 'a transaction begins inside another one');
    this.#sub = 0;
    this.#touchesLog = false;
  }

  /** `found`: the entry of the key, which is the one loaded last; 0: it is new. */
  put(
    key: Buffer,
    keyAt: number,
    keyTo: number,
    value: Buffer,
    valueAt: number,
    valueTo: number,
    lease: number,
    found: number = this.#find(key, keyAt, keyTo),
  ): number {
    let id = found;
    const klass = id === 0 ? this.classes.ofKey(key, keyAt, keyTo) : this.keys.classOf(id);
    const previous = id === 0 ? 0 : this.keys.head(id);
    const isNew = previous === 0 || this.arenas.isTombstone(previous);
    const create = isNew ? this.#applied + 1 : this.arenas.createRevision(previous);
    const version = isNew ? 1 : this.arenas.version(previous) + 1;
    const ref = this.#append(klass, create, version, valueTo - valueAt, lease, 0);
    if (valueTo > valueAt) {
      value.copy(this.arenas.bytes[arenaOf(ref)]!, this.arenas.valueAt(ref), valueAt, valueTo);
    }
    if (id === 0) {
      id = this.keys.insert(ref, klass);
      this.live.insert(id);
    } else {
      this.keys.setHead(id, ref);
      if (isNew) {
        this.graves.remove();
        this.live.insert(id);
      } else {
        this.classes.all[klass]!.historyBytes += this.arenas.rawSize(previous);
      }
    }
    this.#link(ref, id, previous);
    if (isNew) this.classes.all[klass]!.liveness.append(this.#applied + 1, id, 1);
    if (lease !== 0) this.leases.attach(lease, id);
    else if (!isNew && (this.arenas.flags(previous) & FLAG_LEASE) !== 0) this.leases.detach(id);
    this.puts++;
    this.putBytes += keyTo - keyAt + valueTo - valueAt;
    return ref;
  }

  delete(key: Buffer, keyAt: number, keyTo: number): number {
    const id = this.#find(key, keyAt, keyTo);
    if (id === 0 || this.arenas.isTombstone(this.keys.head(id))) return 0;
    return this.#bury(id);
  }

  /** Deletes the loaded key, which is live under `id`. */
  #bury(id: number): number {
    const klass = this.classes.all[this.keys.classOf(id)]!;
    const previous = this.keys.head(id);
    const ref = this.#append(klass.number, 0, 0, 0, 0, FLAG_TOMBSTONE);
    this.live.remove();
    this.keys.setHead(id, ref);
    this.graves.insert(id);
    this.#link(ref, id, previous);
    klass.historyBytes += this.arenas.rawSize(previous) + this.arenas.size(ref);
    klass.liveness.append(this.#applied + 1, id, -1);
    this.leases.detach(id);
    this.deletes++;
    return ref;
  }

  /** A new record for the loaded key, value left to the caller. */
  #append(
    klass: number,
    create: number,
    version: number,
    valueSize: number,
    lease: number,
    flags: number,
  ): number {
    const keySize = this.keys.scratchSize;
    const size = Arenas.sizeOf(keySize, valueSize, lease !== 0);
    const ref = this.batch.allocate(klass, size);
    const arena = ref >>> GRANULE_BITS;
    const words = this.arenas.words[arena]!;
    const doubles = this.arenas.doubles[arena]!;
    let at = (ref & GRANULE_MASK) << 2;
    // The last words may be padding: zero, whatever a reused arena held.
    words[at + (size >> 2) - 1] = 0;
    words[at + (size >> 2) - 2] = 0;
    words[at + (size >> 2) - 3] = 0;
    words[at + (size >> 2) - 4] = 0;
    doubles[(at >> 1) + 1] = this.#applied + 1;
    doubles[(at >> 1) + 2] = create;
    words[at + 6] = version;
    words[at + 7] = valueSize;
    words[at + 8] = this.#sub++;
    words[at + 9] = ((flags | (lease !== 0 ? FLAG_LEASE : 0)) << 24) | keySize;
    at += 10;
    if (lease !== 0) {
      words[at++] = this.leases.idLow(lease);
      words[at++] = this.leases.idHigh(lease);
    }
    const keyWords = this.keys.words;
    for (let i = 0; i < (keySize + 3) >> 2; i++) words[at + i] = keyWords[i]!;
    this.arenas.lastRevision[arena] = this.#applied + 1;
    this.#pendingBytes += size;
    return ref;
  }

  #link(ref: number, id: number, previous: number): void {
    this.arenas.setPrevious(ref, previous);
    const klass = this.classes.all[this.keys.classOf(id)]!;
    klass.events.append(ref);
    if (klass.durability !== 'none') this.#touchesLog = true;
  }

  commit(): number {
    if (this.#sub === 0) return this.#applied;
    this.#sub = 0;
    this.#applied++;
    const isAlone = !this.batch.isPending && this.#published === this.#applied - 1;
    if (!this.#touchesLog && isAlone && !this.#hasFailed) {
      this.#published = this.#applied;
      this.#publishedChange = this.batch.changes;
      this.#pendingBytes = 0;
    } else {
      this.batch.isPending = true;
    }
    this.#markDirty();
    return this.#applied;
  }

  #markDirty(): void {
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.onDirty();
  }

  #deleteKeys(ids: readonly number[]): number {
    this.begin();
    for (const id of ids) {
      this.keys.loadRecord(this.keys.head(id));
      this.#bury(id);
    }
    return this.commit();
  }

  #logLease(lease: number): void {
    const { leases, batch } = this;
    const ttl = leases.ttlSeconds(lease);
    batch.lease(leases.idHigh(lease), leases.idLow(lease), ttl, ttl * 1000);
    if (batch.isPending) this.#markDirty();
  }

  #logLeaseLeft(lease: number, leftMs: number): void {
    const { leases, batch } = this;
    const ttl = leases.ttlSeconds(lease);
    batch.leaseLeft(leases.idHigh(lease), leases.idLow(lease), ttl, leftMs);
    if (batch.isPending) this.#markDirty();
  }

  #logLeaseEnd(lease: number): void {
    this.batch.leaseEnd(this.leases.idHigh(lease), this.leases.idLow(lease));
    if (this.batch.isPending) this.#markDirty();
  }

  /** Replaces a document; an empty one removes it. Flushed before it counts as durable. */
  setDocument(number: number, content: Buffer): void {
    if (content.length === 0) this.documents.delete(number);
    else this.documents.set(number, content);
    this.batch.document(number, content);
    if (this.batch.isPending) this.#markDirty();
  }

  /** Raises or takes back an alarm; false when that changes nothing. */
  setAlarm(alarm: Alarm, isRaised: boolean): boolean {
    if (!this.alarms.set(alarm, isRaised)) return false;
    this.batch.alarm(alarm.kind, isRaised, alarm.memberHigh, alarm.memberLow);
    if (this.batch.isPending) this.#markDirty();
    return true;
  }

  compact(revision: number): number {
    if (revision <= this.#compacted) return FAILURE.compacted;
    if (revision > this.#applied) return FAILURE.futureRevision;
    this.setCompacted(revision);
    this.sweep.compact();
    this.batch.compaction(revision);
    this.#markDirty();
    return 0;
  }

  /** Moves the boundary, as `compact` or as found in the log. */
  setCompacted(revision: number): void {
    this.#compacted = revision;
    for (const klass of this.classes.all) klass.boundary = Math.max(klass.boundary, revision);
    this.hub.reset();
  }

  compactRevisionOf(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
  ): number {
    return this.#ranges.boundary(bytes, startAt, startTo, endAt, endTo);
  }

  holdHistory(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    revision: number,
  ): () => void {
    return this.classes.hold(bytes, startAt, startTo, endAt, endTo, revision);
  }

  get heldRevision(): number {
    return this.classes.heldRevision;
  }

  watch(
    bytes: Buffer,
    startAt: number,
    startTo: number,
    endAt: number,
    endTo: number,
    fromRevision: number,
    watcher: Watcher,
  ): number {
    const id = this.hub.open(bytes, startAt, startTo, endAt, endTo, fromRevision, watcher);
    if (this.hub.hasRestless) this.#markDirty();
    return id;
  }

  watchNext(id: number): number {
    return this.hub.next(id);
  }

  watchReading(id: number): number {
    return this.hub.reading(id);
  }

  watchShare(id: number): void {
    this.hub.share(id);
  }

  watchPass(id: number): void {
    this.hub.pass(id);
  }

  watchIsCurrent(id: number): boolean {
    return this.hub.isCurrent(id);
  }

  watchPutBack(id: number): void {
    this.hub.putBack(id);
  }

  unwatch(id: number): void {
    this.hub.close(id);
  }

  /** End of a turn: what was published in memory is shown. The log's part is the shell's. */
  flush(): void {
    this.#isDirty = false;
    if (this.#hasFailed) return;
    if (!this.batch.isPending) this.#pendingBytes = 0;
    if (this.#toldRevision !== this.#published && !this.batch.isPending) {
      this.publish(this.#published);
      return;
    }
    // Unlogged classes may be ahead of what was told while other writes are pending.
    this.hub.publish(this.#published);
    this.#wakeRestless();
  }

  /**
   * The log holds everything up to `revision` as promised. The only way to answers and watchers,
   * closed once the log has failed: whatever is told of it then comes too late.
   */
  publish(revision: number, change: number = this.batch.changes): void {
    if (this.#hasFailed) return;
    assertWhole(revision >= this.#published, 'the published revision would go back');
    assertWhole(revision <= this.#applied, 'a revision is published before it is applied');
    this.#published = revision;
    this.#publishedChange = change;
    this.#toldRevision = revision;
    if (revision === this.#applied) this.#pendingBytes = 0;
    for (const callback of this.#onPublish) callback(revision);
    this.hub.publish(revision);
    this.#wakeRestless();
  }

  /** Watchers that read history go on in the next turn, not with the next write. */
  #wakeRestless(): void {
    this.hub.wakeRestless();
    if (this.hub.hasRestless) this.#markDirty();
  }

  /** What was applied since the last publication came from the log, and is in it. */
  publishReplayed(): void {
    this.batch.skipAll();
    this.publish(this.#applied);
  }

  /** Waits for the log once more before anything is shown that was seen up to now. */
  touch(): void {
    this.batch.touch();
    this.#markDirty();
  }

  /** The log holds so many bytes more. */
  settle(bytes: number): void {
    this.#pendingBytes = Math.max(0, this.#pendingBytes - bytes);
  }

  /** The log cannot go on: nothing more is acknowledged. */
  fail(message: string): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    if (this.#onLogFailure.length === 0) throw new Error(message);
    for (const callback of this.#onLogFailure) callback(message);
  }

  /** Replay: the store continues after this revision. */
  restore(revision: number): void {
    this.#applied = revision;
    this.#published = revision;
    this.#toldRevision = revision;
    this.#pendingBytes = 0;
    for (const klass of this.classes.all) klass.publishedPosition = klass.events.next;
    this.hub.publish(revision);
  }

  /** A replica's origin is at `revision`, and nothing changed here since the last one. */
  follow(revision: number): void {
    assertWhole(!this.batch.isPending && this.#sub === 0, 'a replica has no writes of its own');
    assertWhole(revision > this.#applied, 'a replica would go back');
    this.#applied = revision;
    this.#published = revision;
    this.#markDirty();
  }

  /** A look at the clock; `endsLeases` when leases may be ended in it. */
  tick(nowMs: number, endsLeases: boolean = true): void {
    if (this.#hasFailed) return;
    if (this.isStandby) this.leases.wait(nowMs);
    else if (endsLeases) this.leases.expire(nowMs);
    if (nowMs >= this.#noteMs && !this.isStandby) {
      this.#noteMs = nowMs + LEASE_NOTE_MS;
      this.leases.note(nowMs);
    }
    this.sweep.step(nowMs);
    if (!this.sweep.hasGarbage) this.arenas.settle(nowMs);
    this.#wakeRestless();
  }
}

// data plane: etcd leases as rows of numbers, their keys as linked lists through the key ids
/**
 * Leases by number; ids (64 bits in two halves) are found by an open hash. Expiry goes by a heap
 * that is corrected lazily: a keep-alive only moves the deadline in its row, and a lease whose
 * turn in the heap comes too early is put back at its new deadline. So renewals are O(1).
 */
import { type Arenas, FLAG_LEASE } from './arenas.ts';
import { FAILURE, type LeaseTable } from './contract.ts';
import type { KeyIndex } from './key-index.ts';

/** etcd's largest TTL. */
export const LEASE_TTL_SECONDS_MAX = 9_000_000_000;
/** etcd's smallest TTL with default timings: 1.5 elections of 1 s, rounded up. */
export const LEASE_TTL_SECONDS_MIN = 2;
/** Leases that one tick may end, as in etcd's loop of 500 per 500 ms. */
const EXPIRIES_PER_TICK_MAX = 500;
/** Leases looked at per call of `note`, how often each at most, and from which age on. */
const NOTE_LOOKS_MAX = 2000;
const NOTE_CYCLE_MS = 2000;
const NOTE_AGE_MS_MIN = 1000;

/** What the lease table asks of the store. */
export interface LeaseOwner {
  /** Deletes the keys in one revision (none, no revision); returns the current revision. */
  deleteKeys(ids: readonly number[]): number;
  /** Puts a change into the log: a whole lease, or its end. */
  logLease(lease: number): void;
  logLeaseEnd(lease: number): void;
  /** Notes what is left of a lease now. */
  logLeaseLeft(lease: number, leftMs: number): void;
}

/** A copy of leases, by lease number. */
export interface LeaseRows {
  /** How many there are. */
  readonly count: number;
  /** 1 where there is one. */
  readonly used: Uint8Array;
  /** Ids. */
  readonly high: Uint32Array;
  readonly low: Uint32Array;
  readonly ttlSeconds: Float64Array;
  readonly deadlineMs: Float64Array;
}

export class Leases implements LeaseTable {
  readonly #arenas: Arenas;
  readonly #keys: KeyIndex;
  readonly #owner: LeaseOwner;
  // By lease number; 0 is no lease.
  #high = new Uint32Array(64);
  #low = new Uint32Array(64);
  #ttlSeconds = new Float64Array(64);
  #deadlineMs = new Float64Array(64);
  /** Where the lease stands in the heap; the deadline may be later. */
  #listedMs = new Float64Array(64);
  #firstKey = new Uint32Array(64);
  #used = new Uint8Array(64);
  /** 1 where the log has what was left at some time: then the next renewal is logged too. */
  #noted = new Uint8Array(64);
  /** Where the next look for leases to note begins. */
  #noteNext = 1;
  #noteCycleMs = -Infinity;
  /** Where to look for a lease that was noted. */
  #again = 1;
  readonly #free: number[] = [];
  #end = 1;
  #size = 0;
  /** Open hash of lease numbers. */
  #slots = new Uint32Array(256);
  // Lazy heap of (when, lease).
  #heapMs: number[] = [];
  #heapLease: number[] = [];
  // By key id, made when the first key is attached.
  #leaseOfKey = new Uint32Array(0);
  #nextKey = new Uint32Array(0);
  #previousKey = new Uint32Array(0);
  /** Set while another store decides when leases end. */
  isPaused = false;
  granted = 0;
  revoked = 0;
  renewed = 0;
  expired = 0;

  constructor(arenas: Arenas, keys: KeyIndex, owner: LeaseOwner) {
    this.#arenas = arenas;
    this.#keys = keys;
    this.#owner = owner;
  }

  get size(): number {
    return this.#size;
  }

  find(idHigh: number, idLow: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(idHigh, idLow) & mask; ; slot = (slot + 1) & mask) {
      const lease = this.#slots[slot]!;
      if (lease === 0) return 0;
      if (this.#low[lease] === idLow && this.#high[lease] === idHigh) return lease;
    }
  }

  grant(idHigh: number, idLow: number, ttlSeconds: number, nowMs: number): number {
    if (ttlSeconds > LEASE_TTL_SECONDS_MAX) return FAILURE.leaseTtlTooLarge;
    if (this.find(idHigh, idLow) !== 0) return FAILURE.leaseExists;
    const ttl = Math.max(LEASE_TTL_SECONDS_MIN, ttlSeconds);
    const lease = this.add(idHigh, idLow, ttl, nowMs + ttl * 1000);
    this.granted++;
    this.#owner.logLease(lease);
    return lease;
  }

  /** Takes a lease over from elsewhere, with what remains of it; replaces what is there. */
  adopt(high: number, low: number, ttlSeconds: number, leftMs: number, nowMs: number): number {
    const lease = this.add(high, low, ttlSeconds, nowMs + leftMs, true);
    this.#owner.logLeaseLeft(lease, leftMs);
    return lease;
  }

  /** Ends a lease without its keys, which go on without one. */
  forget(lease: number): void {
    this.#owner.logLeaseEnd(lease);
    while (this.#firstKey[lease] !== 0) this.detach(this.#firstKey[lease]!);
    this.remove(lease);
  }

  /** A snapshot of the log has what is left of all leases: their next renewals are logged. */
  markNoted(): void {
    this.#noted.fill(1, 0, this.#end);
  }

  /** Adds a lease as it was found in the log; replaces what is there. */
  add(
    idHigh: number,
    idLow: number,
    ttlSeconds: number,
    deadlineMs: number,
    isNoted: boolean = false,
  ): number {
    let lease = this.find(idHigh, idLow);
    if (lease === 0) {
      lease = this.#free.length > 0 ? this.#free.pop()! : this.#end++;
      if (lease >= this.#used.length) this.#growRows();
      this.#high[lease] = idHigh;
      this.#low[lease] = idLow;
      this.#used[lease] = 1;
      this.#firstKey[lease] = 0;
      this.#size++;
      if (this.#size * 2 > this.#slots.length) this.#rehash(this.#slots.length * 2);
      else this.#place(lease);
    }
    this.#ttlSeconds[lease] = ttlSeconds;
    this.#deadlineMs[lease] = deadlineMs;
    this.#noted[lease] = isNoted ? 1 : 0;
    this.#pushHeap(deadlineMs, lease);
    return lease;
  }

  #growRows(): void {
    const size = this.#used.length * 2;
    const words = (column: Uint32Array): Uint32Array<ArrayBuffer> => {
      const next = new Uint32Array(size);
      next.set(column);
      return next;
    };
    const doubles = (column: Float64Array): Float64Array<ArrayBuffer> => {
      const next = new Float64Array(size);
      next.set(column);
      return next;
    };
    this.#high = words(this.#high);
    this.#low = words(this.#low);
    this.#firstKey = words(this.#firstKey);
    this.#ttlSeconds = doubles(this.#ttlSeconds);
    this.#deadlineMs = doubles(this.#deadlineMs);
    this.#listedMs = doubles(this.#listedMs);
    const used = new Uint8Array(size);
    used.set(this.#used);
    this.#used = used;
    const noted = new Uint8Array(size);
    noted.set(this.#noted);
    this.#noted = noted;
  }

  #place(lease: number): void {
    const mask = this.#slots.length - 1;
    let slot = hashOf(this.#high[lease]!, this.#low[lease]!) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = lease;
  }

  #rehash(size: number): void {
    this.#slots = new Uint32Array(size);
    for (let lease = 1; lease < this.#end; lease++) if (this.#used[lease] === 1) this.#place(lease);
  }

  #unplace(lease: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = hashOf(this.#high[lease]!, this.#low[lease]!) & mask;
    while (slots[slot] !== lease) slot = (slot + 1) & mask;
    let hole = slot;
    for (;;) {
      slot = (slot + 1) & mask;
      const moved = slots[slot]!;
      if (moved === 0) break;
      const home = hashOf(this.#high[moved]!, this.#low[moved]!) & mask;
      if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
      slots[hole] = moved;
      hole = slot;
    }
    slots[hole] = 0;
  }

  revoke(lease: number): number {
    if (lease <= 0 || this.#used[lease] !== 1) return FAILURE.leaseNotFound;
    this.revoked++;
    return this.#finish(lease);
  }

  #finish(lease: number): number {
    const ids: number[] = [];
    for (let id = this.#firstKey[lease]!; id !== 0; id = this.#nextKey[id]!) ids.push(id);
    ids.sort((a, b) => this.#keys.compareIds(a, b));
    this.#owner.logLeaseEnd(lease);
    const revision = this.#owner.deleteKeys(ids);
    this.remove(lease);
    return revision;
  }

  /** Forgets a lease, without its keys. */
  remove(lease: number): void {
    this.#unplace(lease);
    this.#used[lease] = 0;
    this.#size--;
    this.#free.push(lease);
  }

  keepAlive(lease: number, nowMs: number): number {
    if (lease <= 0 || this.#used[lease] !== 1) return FAILURE.leaseNotFound;
    const ttl = this.#ttlSeconds[lease]!;
    this.#deadlineMs[lease] = nowMs + ttl * 1000;
    if (this.#noted[lease] === 1) {
      this.#noted[lease] = 0;
      this.#owner.logLease(lease);
    }
    this.renewed++;
    return ttl;
  }

  /** Ends it so much sooner. */
  bringForward(lease: number, byMs: number): void {
    this.#deadlineMs[lease]! -= byMs;
    this.#pushHeap(this.#deadlineMs[lease]!, lease);
  }

  /**
   * Notes one lease another time. Those that were noted age by the clock of what follows in the
   * log, and in a store that is not written to nothing would follow.
   */
  #noteAgain(nowMs: number): void {
    let lease = this.#again < this.#end ? this.#again : 1;
    const end = Math.min(this.#end, lease + NOTE_LOOKS_MAX);
    while (lease < end && (this.#used[lease] !== 1 || this.#noted[lease] !== 1)) lease++;
    this.#again = lease;
    const leftMs = lease < end ? this.#deadlineMs[lease]! - nowMs : 0;
    if (leftMs > 0) this.#owner.logLeaseLeft(lease, leftMs);
  }

  /**
   * Notes in the log what is left of some leases that were not renewed lately, so that a restart
   * neither prolongs nor cuts them: NOTE_LOOKS_MAX per call, all of them once per NOTE_CYCLE_MS or
   * as fast as calls come.
   */
  note(nowMs: number): void {
    if (this.#noteNext === 1) {
      if (nowMs - this.#noteCycleMs < NOTE_CYCLE_MS) return;
      this.#noteCycleMs = nowMs;
      this.#noteAgain(nowMs);
    }
    const end = Math.min(this.#end, this.#noteNext + NOTE_LOOKS_MAX);
    for (; this.#noteNext < end; this.#noteNext++) {
      const lease = this.#noteNext;
      if (this.#used[lease] !== 1 || this.#noted[lease] === 1) continue;
      const leftMs = this.#deadlineMs[lease]! - nowMs;
      if (this.#ttlSeconds[lease]! * 1000 - leftMs < NOTE_AGE_MS_MIN || leftMs <= 0) continue;
      this.#noted[lease] = 1;
      this.#owner.logLeaseLeft(lease, leftMs);
    }
    if (this.#noteNext >= this.#end) this.#noteNext = 1;
  }

  remainingMs(lease: number, nowMs: number): number {
    return this.#deadlineMs[lease]! - nowMs;
  }

  deadlineMs(lease: number): number {
    return this.#deadlineMs[lease]!;
  }

  ttlSeconds(lease: number): number {
    return this.#ttlSeconds[lease]!;
  }

  idHigh(lease: number): number {
    return this.#high[lease]!;
  }

  idLow(lease: number): number {
    return this.#low[lease]!;
  }

  /** All leases as they are now, for whoever reads them over several turns. */
  copyRows(): LeaseRows {
    const end = this.#end;
    return {
      count: this.#size,
      used: this.#used.slice(0, end),
      high: this.#high.slice(0, end),
      low: this.#low.slice(0, end),
      ttlSeconds: this.#ttlSeconds.slice(0, end),
      deadlineMs: this.#deadlineMs.slice(0, end),
    };
  }

  each(visit: (lease: number) => void): void {
    const all: number[] = [];
    for (let lease = 1; lease < this.#end; lease++) if (this.#used[lease] === 1) all.push(lease);
    all.sort((a, b) => this.#deadlineMs[a]! - this.#deadlineMs[b]! || a - b);
    for (const lease of all) visit(lease);
  }

  eachKey(lease: number, visit: (ref: number) => void): void {
    const ids: number[] = [];
    for (let id = this.#firstKey[lease]!; id !== 0; id = this.#nextKey[id]!) ids.push(id);
    ids.sort((a, b) => this.#keys.compareIds(a, b));
    for (const id of ids) visit(this.#keys.head(id));
  }

  /** Lease number that a key is attached to, 0 for none. */
  ofKey(id: number): number {
    return id < this.#leaseOfKey.length ? this.#leaseOfKey[id]! : 0;
  }

  /** Lease number written in a record, 0 when there is none or it has ended. */
  ofRecord(ref: number): number {
    if ((this.#arenas.flags(ref) & FLAG_LEASE) === 0) return 0;
    return this.find(this.#arenas.leaseHigh(ref), this.#arenas.leaseLow(ref));
  }

  attach(lease: number, id: number): void {
    if (id >= this.#leaseOfKey.length) this.#growKeys(id);
    if (this.#leaseOfKey[id] === lease) return;
    if (this.#leaseOfKey[id] !== 0) this.detach(id);
    const first = this.#firstKey[lease]!;
    this.#leaseOfKey[id] = lease;
    this.#nextKey[id] = first;
    this.#previousKey[id] = 0;
    if (first !== 0) this.#previousKey[first] = id;
    this.#firstKey[lease] = id;
  }

  detach(id: number): void {
    const lease = this.ofKey(id);
    if (lease === 0) return;
    const next = this.#nextKey[id]!;
    const previous = this.#previousKey[id]!;
    if (next !== 0) this.#previousKey[next] = previous;
    if (previous !== 0) this.#nextKey[previous] = next;
    else this.#firstKey[lease] = next;
    this.#leaseOfKey[id] = 0;
  }

  #growKeys(id: number): void {
    const size = Math.max(1024, 2 ** Math.ceil(Math.log2(id + 1)));
    const wider = (column: Uint32Array): Uint32Array<ArrayBuffer> => {
      const next = new Uint32Array(size);
      next.set(column);
      return next;
    };
    this.#leaseOfKey = wider(this.#leaseOfKey);
    this.#nextKey = wider(this.#nextKey);
    this.#previousKey = wider(this.#previousKey);
  }

  /** Ends leases whose time has come, one revision each, oldest deadline first. */
  expire(nowMs: number): void {
    if (this.isPaused) return;
    for (let count = 0; count < EXPIRIES_PER_TICK_MAX;) {
      if (this.#heapMs.length === 0 || this.#heapMs[0]! > nowMs) return;
      const lease = this.#heapLease[0]!;
      const listedMs = this.#heapMs[0]!;
      this.#popHeap();
      // Entries that an earlier life of the number left behind end here.
      if (this.#used[lease] !== 1 || this.#listedMs[lease] !== listedMs) continue;
      const dueMs = this.#deadlineMs[lease]!;
      if (dueMs > nowMs) {
        this.#pushHeap(dueMs, lease);
        continue;
      }
      this.expired++;
      this.#finish(lease);
      count++;
    }
  }

  /** When the next look at the heap is due, Infinity when there is none. */
  get nextExpiryMs(): number {
    return this.#heapMs.length === 0 ? Infinity : this.#heapMs[0]!;
  }

  #pushHeap(atMs: number, lease: number): void {
    const ms = this.#heapMs;
    const leases = this.#heapLease;
    let i = ms.length;
    this.#listedMs[lease] = atMs;
    ms.push(atMs);
    leases.push(lease);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (ms[parent]! <= atMs) break;
      ms[i] = ms[parent]!;
      leases[i] = leases[parent]!;
      i = parent;
    }
    ms[i] = atMs;
    leases[i] = lease;
  }

  #popHeap(): void {
    const ms = this.#heapMs;
    const leases = this.#heapLease;
    const lastMs = ms.pop()!;
    const lastLease = leases.pop()!;
    const size = ms.length;
    if (size === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && ms[child + 1]! < ms[child]!) child++;
      if (ms[child]! >= lastMs) break;
      ms[i] = ms[child]!;
      leases[i] = leases[child]!;
      i = child;
    }
    ms[i] = lastMs;
    leases[i] = lastLease;
  }
}

function hashOf(high: number, low: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  hash ^= hash >>> 15;
  return (Math.imul(hash, 0x2c1b3c6d) ^ (hash >>> 13)) >>> 0;
}

// data plane: etcd leases as rows of numbers, their keys as linked lists through the key ids
/**
 * Leases by number; ids (64 bits in two halves) are found by a hash, keyed because clients choose
 * them. Expiry goes by a heap that is corrected lazily: a keep-alive only moves the deadline in its
 * row, and a lease whose turn in the heap comes too early is put back at its new deadline. So
 * renewals are O(1). All of it grows by chunks: no grant waits for a million others to be moved.
 */
import { hashWords } from '@megaplane/base/bytes';
import { Float64Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { HashSlots } from '@megaplane/base/hash-slots';
import { type Arenas, FLAG_LEASE } from '../record/arenas.ts';
import { FAILURE, type LeaseTable } from '../contract.ts';
import type { KeyIndex } from '../record/key-index.ts';
import { LeaseRows } from './lease-rows.ts';

/** etcd's largest TTL. */
export const LEASE_TTL_SECONDS_MAX = 9_000_000_000;
/** etcd's smallest TTL with default timings: 1.5 elections of 1 s, rounded up. */
export const LEASE_TTL_SECONDS_MIN = 2;
/** Leases that one tick may end, as in etcd's loop of 500 per 500 ms. */
const EXPIRIES_PER_TICK_MAX = 500;
/** Keys of a lease up to which they are shown in order: sorting half a million takes a second. */
const SORTED_KEYS_MAX = 4096;
/** Leases looked at per call of `note`, how often each at most, and from which age on. */
const NOTE_LOOKS_MAX = 2000;
const NOTE_CYCLE_MS = 2000;
const NOTE_AGE_MS_MIN = 1000;
/** Leases looked at per tick of a store that ends none, and when an overdue one is again. */
const WAITS_PER_TICK_MAX = 5000;
const WAIT_MS = 1000;

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

export class Leases implements LeaseTable {
  readonly #arenas: Arenas;
  readonly #keys: KeyIndex;
  readonly #owner: LeaseOwner;
  readonly #rows = new LeaseRows();
  // By lease number.
  /** Where the lease stands in the heap; the deadline may be later. */
  readonly #listedMs = new Float64Column();
  readonly #firstKey = new Uint32Column();
  /** 1 where the log has what was left at some time: then the next renewal is logged too. */
  readonly #noted = new Uint8Column();
  /** Where the next look for leases to note begins. */
  #noteNext = 1;
  #noteCycleMs = -Infinity;
  /** Where to look for a lease that was noted. */
  #again = 1;
  readonly #free: number[] = [];
  readonly #slots = new HashSlots();
  readonly #seeds: { readonly low: number; readonly high: number };
  /** An id, to be hashed. */
  readonly #id = new Int32Array(3);
  // Lazy heap of (when, lease).
  readonly #heapMs = new Float64Column();
  readonly #heapLease = new Uint32Column();
  #heapSize = 0;
  // By key id.
  readonly #leaseOfKey = new Uint32Column();
  readonly #nextKey = new Uint32Column();
  readonly #previousKey = new Uint32Column();
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
    this.#seeds = keys.seeds;
  }

  get size(): number {
    return this.#rows.count;
  }

  find(idHigh: number, idLow: number): number {
    const hash = this.#hashOf(idHigh, idLow);
    let lease = this.#slots.first(hash);
    while (lease !== 0) {
      if (this.#rows.low(lease) === idLow && this.#rows.high(lease) === idHigh) return lease;
      lease = this.#slots.next(hash);
    }
    return 0;
  }

  #hashOf(idHigh: number, idLow: number): number {
    this.#id[0] = idLow;
    this.#id[1] = idHigh;
    return hashWords(this.#seeds.low, this.#seeds.high, this.#id, 8);
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
    for (let id = this.#firstKey.get(lease); id !== 0; id = this.#firstKey.get(lease)) {
      this.detach(id);
    }
    this.remove(lease);
  }

  /** A snapshot of the log has what is left of all leases: their next renewals are logged. */
  markNoted(): void {
    for (let lease = 1; lease < this.#rows.end; lease++) this.#noted.set(lease, 1);
  }

  /** Adds a lease as it was found in the log; replaces what is there. */
  add(
    idHigh: number,
    idLow: number,
    ttlSeconds: number,
    deadlineMs: number,
    isNoted: boolean = false,
  ): number {
    const rows = this.#rows;
    let lease = this.find(idHigh, idLow);
    if (lease === 0) {
      lease = this.#free.length > 0 ? this.#free.pop()! : rows.end;
      rows.add(lease, idHigh, idLow);
      this.#firstKey.set(lease, 0);
      this.#slots.insert(this.#hashOf(idHigh, idLow), lease);
    }
    rows.setTtlSeconds(lease, ttlSeconds);
    rows.setDeadlineMs(lease, deadlineMs);
    this.#noted.set(lease, isNoted ? 1 : 0);
    this.#pushHeap(deadlineMs, lease);
    return lease;
  }

  revoke(lease: number): number {
    if (!this.#rows.isUsed(lease)) return FAILURE.leaseNotFound;
    this.revoked++;
    return this.#finish(lease);
  }

  #finish(lease: number): number {
    const ids: number[] = [];
    for (let id = this.#firstKey.get(lease); id !== 0; id = this.#nextKey.get(id)) ids.push(id);
    ids.sort((a, b) => this.#keys.compareIds(a, b));
    this.#owner.logLeaseEnd(lease);
    const revision = this.#owner.deleteKeys(ids);
    this.remove(lease);
    return revision;
  }

  /** Forgets a lease, without its keys. */
  remove(lease: number): void {
    const rows = this.#rows;
    this.#slots.remove(this.#hashOf(rows.high(lease), rows.low(lease)), lease);
    rows.remove(lease);
    this.#free.push(lease);
  }

  keepAlive(lease: number, nowMs: number): number {
    if (!this.#rows.isUsed(lease)) return FAILURE.leaseNotFound;
    const ttl = this.#rows.ttlSeconds(lease);
    this.#rows.setDeadlineMs(lease, nowMs + ttl * 1000);
    if (this.#noted.get(lease) === 1) {
      this.#noted.set(lease, 0);
      this.#owner.logLease(lease);
    }
    this.renewed++;
    return ttl;
  }

  /** Renewals of leases that were not noted are not in the log: all of those begin anew. */
  takeOver(nowMs: number): void {
    for (let lease = 1; lease < this.#rows.end; lease++) {
      if (!this.#rows.isUsed(lease) || this.#noted.get(lease) === 1) continue;
      this.#rows.setDeadlineMs(lease, nowMs + this.#rows.ttlSeconds(lease) * 1000);
    }
  }

  /** Ends it so much sooner. */
  bringForward(lease: number, byMs: number): void {
    const deadlineMs = this.#rows.deadlineMs(lease) - byMs;
    this.#rows.setDeadlineMs(lease, deadlineMs);
    this.#pushHeap(deadlineMs, lease);
  }

  /**
   * Notes one lease another time. Those that were noted age by the clock of what follows in the
   * log, and in a store that is not written to nothing would follow.
   */
  #noteAgain(nowMs: number): void {
    let lease = this.#again < this.#rows.end ? this.#again : 1;
    const end = Math.min(this.#rows.end, lease + NOTE_LOOKS_MAX);
    while (lease < end && (!this.#rows.isUsed(lease) || this.#noted.get(lease) !== 1)) lease++;
    this.#again = lease;
    const leftMs = lease < end ? this.#rows.deadlineMs(lease) - nowMs : 0;
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
    const end = Math.min(this.#rows.end, this.#noteNext + NOTE_LOOKS_MAX);
    for (; this.#noteNext < end; this.#noteNext++) {
      const lease = this.#noteNext;
      if (!this.#rows.isUsed(lease) || this.#noted.get(lease) === 1) continue;
      const leftMs = this.#rows.deadlineMs(lease) - nowMs;
      if (this.#rows.ttlSeconds(lease) * 1000 - leftMs < NOTE_AGE_MS_MIN || leftMs <= 0) continue;
      this.#noted.set(lease, 1);
      this.#owner.logLeaseLeft(lease, leftMs);
    }
    if (this.#noteNext >= this.#rows.end) this.#noteNext = 1;
  }

  remainingMs(lease: number, nowMs: number): number {
    return this.#rows.deadlineMs(lease) - nowMs;
  }

  deadlineMs(lease: number): number {
    return this.#rows.deadlineMs(lease);
  }

  ttlSeconds(lease: number): number {
    return this.#rows.ttlSeconds(lease);
  }

  idHigh(lease: number): number {
    return this.#rows.high(lease);
  }

  idLow(lease: number): number {
    return this.#rows.low(lease);
  }

  /** All leases as they are now, for whoever reads them over several turns. */
  copyRows(): LeaseRows {
    return this.#rows.copy();
  }

  each(visit: (lease: number) => void): void {
    for (let lease = 1; lease < this.#rows.end; lease++) {
      if (this.#rows.isUsed(lease)) visit(lease);
    }
  }

  eachKey(lease: number, visit: (ref: number) => void): void {
    const ids: number[] = [];
    for (let id = this.#firstKey.get(lease); id !== 0; id = this.#nextKey.get(id)) ids.push(id);
    if (ids.length <= SORTED_KEYS_MAX) ids.sort((a, b) => this.#keys.compareIds(a, b));
    for (const id of ids) visit(this.#keys.head(id));
  }

  /** Lease number that a key is attached to, 0 for none. */
  ofKey(id: number): number {
    return this.#leaseOfKey.get(id);
  }

  /** Lease number written in a record, 0 when there is none or it has ended. */
  ofRecord(ref: number): number {
    if ((this.#arenas.flags(ref) & FLAG_LEASE) === 0) return 0;
    return this.find(this.#arenas.leaseHigh(ref), this.#arenas.leaseLow(ref));
  }

  attach(lease: number, id: number): void {
    const attached = this.ofKey(id);
    if (attached === lease) return;
    if (attached !== 0) this.detach(id);
    const first = this.#firstKey.get(lease);
    this.#leaseOfKey.set(id, lease);
    this.#nextKey.set(id, first);
    this.#previousKey.set(id, 0);
    if (first !== 0) this.#previousKey.set(first, id);
    this.#firstKey.set(lease, id);
  }

  detach(id: number): void {
    const lease = this.ofKey(id);
    if (lease === 0) return;
    const next = this.#nextKey.get(id);
    const previous = this.#previousKey.get(id);
    if (next !== 0) this.#previousKey.set(next, previous);
    if (previous !== 0) this.#nextKey.set(previous, next);
    else this.#firstKey.set(lease, next);
    this.#leaseOfKey.set(id, 0);
  }

  /** Ends leases whose time has come, one revision each, oldest deadline first. */
  expire(nowMs: number): void {
    if (this.isPaused) return;
    for (let count = 0; count < EXPIRIES_PER_TICK_MAX;) {
      if (this.#heapSize === 0 || this.#heapMs.get(0) > nowMs) return;
      const lease = this.#heapLease.get(0);
      const listedMs = this.#heapMs.get(0);
      this.#popHeap();
      // Entries that an earlier life of the number left behind end here.
      if (!this.#rows.isUsed(lease) || this.#listedMs.get(lease) !== listedMs) continue;
      const dueMs = this.#rows.deadlineMs(lease);
      if (dueMs > nowMs) {
        this.#pushHeap(dueMs, lease);
        continue;
      }
      this.expired++;
      this.#finish(lease);
      count++;
    }
  }

  /** Lets time pass where another store ends leases: forgets places in the heap that are past. */
  wait(nowMs: number): void {
    for (let count = 0; count < WAITS_PER_TICK_MAX; count++) {
      if (this.#heapSize === 0 || this.#heapMs.get(0) > nowMs) return;
      const lease = this.#heapLease.get(0);
      const listedMs = this.#heapMs.get(0);
      this.#popHeap();
      if (!this.#rows.isUsed(lease) || this.#listedMs.get(lease) !== listedMs) continue;
      this.#pushHeap(Math.max(this.#rows.deadlineMs(lease), nowMs + WAIT_MS), lease);
    }
  }

  /** When the next look at the heap is due, Infinity when there is none. */
  get nextExpiryMs(): number {
    return this.#heapSize === 0 ? Infinity : this.#heapMs.get(0);
  }

  #pushHeap(atMs: number, lease: number): void {
    const ms = this.#heapMs;
    const leases = this.#heapLease;
    let i = this.#heapSize++;
    this.#listedMs.set(lease, atMs);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (ms.get(parent) <= atMs) break;
      ms.set(i, ms.get(parent));
      leases.set(i, leases.get(parent));
      i = parent;
    }
    ms.set(i, atMs);
    leases.set(i, lease);
  }

  #popHeap(): void {
    const ms = this.#heapMs;
    const leases = this.#heapLease;
    const size = --this.#heapSize;
    const lastMs = ms.get(size);
    const lastLease = leases.get(size);
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && ms.get(child + 1) < ms.get(child)) child++;
      if (ms.get(child) >= lastMs) break;
      ms.set(i, ms.get(child));
      leases.set(i, leases.get(child));
      i = child;
    }
    ms.set(i, lastMs);
    leases.set(i, lastLease);
  }
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { SimulatedStore } from './simulated-store.sim.ts';

const SEEDS = 20;
const STARTS = 4;
const OPERATIONS = 40;
const IDS = 12;
const TICK_MS = 100;
/** A lease that ages is noted after a second at the earliest, and looked at each other second. */
const PROLONGED_MS_MAX = 3500;
/** What rounding takes. */
const CUT_MS_MAX = 1;

interface Known {
  readonly ttlSeconds: number;
  deadlineMs: number;
  /** An operation on it may or may not be in the log. */
  isOpen: boolean;
}

/** A store whose clock goes on only here, and what its leases should be. */
class Run {
  readonly #random: Random;
  readonly clock = { nowMs: 1000 };
  readonly known: Map<number, Known> = new Map();
  #sim: SimulatedStore;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#sim = this.#start(new Map());
  }

  #start(files: ReadonlyMap<string, Buffer>): SimulatedStore {
    const options = { durability: 'buffered', prefixes: [] } as const;
    return new SimulatedStore(options, files, this.#random, this.clock, 1);
  }

  #turn(): void {
    this.#sim.endTurn();
    this.#sim.thread.step();
    this.#sim.thread.hear();
  }

  #settle(): void {
    for (let turns = 0; turns < 6; turns++) this.#turn();
    for (const one of this.known.values()) one.isOpen = false;
  }

  #wait(ms: number): void {
    for (let left = ms; left > 0; left -= TICK_MS) {
      this.clock.nowMs += Math.min(left, TICK_MS);
      this.#sim.tick(this.clock.nowMs);
      this.#turn();
    }
    for (const [id, one] of this.known) {
      if (one.deadlineMs <= this.clock.nowMs + TICK_MS) this.known.delete(id);
    }
  }

  operate(): void {
    const { leases } = this.#sim.store;
    const { nowMs } = this.clock;
    const id = 1 + this.#random.below(IDS);
    const lease = leases.find(0, id);
    const drawn = this.#random.below(10);
    if (drawn < 3) this.#wait(this.#random.below(this.#random.below(4) === 0 ? 20_000 : 1500));
    else if (drawn === 3) this.#sim.snapshot();
    else if (lease === 0) {
      const ttlSeconds = 60 + this.#random.below(600);
      assert(leases.grant(0, id, ttlSeconds, nowMs) > 0);
      this.known.set(id, { ttlSeconds, deadlineMs: nowMs + ttlSeconds * 1000, isOpen: true });
    } else if (drawn < 9) {
      const ttlSeconds = leases.keepAlive(lease, nowMs);
      this.known.set(id, { ttlSeconds, deadlineMs: nowMs + ttlSeconds * 1000, isOpen: true });
    } else {
      leases.revoke(lease);
      this.known.delete(id);
    }
    if (this.#random.below(4) > 0) this.#settle();
    else this.#turn();
  }

  /** Kills it, and starts it again after a while that no lease pays for. */
  crash(told: string): void {
    const killedMs = this.clock.nowMs;
    const files = this.#sim.disk.survivors(false);
    this.clock.nowMs += this.#random.below(100_000);
    this.#sim = this.#start(files);
    const { leases } = this.#sim.store;
    for (const [id, { ttlSeconds, deadlineMs, isOpen }] of this.known) {
      if (isOpen) continue;
      const lease = leases.find(0, id);
      assert(lease !== 0, `${told}: lease ${id} is lost`);
      assert.equal(leases.ttlSeconds(lease), ttlSeconds, told);
      const left = leases.remainingMs(lease, this.clock.nowMs);
      const expected = deadlineMs - killedMs;
      const what = `${told}: lease ${id} of ${ttlSeconds} s had ${expected} ms left, has ${left}`;
      assert(left >= expected - CUT_MS_MAX, `${what}: cut`);
      assert(left <= expected + PROLONGED_MS_MAX, `${what}: prolonged`);
    }
    this.known.clear();
    leases.each((lease) => {
      const left = leases.remainingMs(lease, this.clock.nowMs);
      const ttlSeconds = leases.ttlSeconds(lease);
      const one = { ttlSeconds, deadlineMs: this.clock.nowMs + left, isOpen: false };
      this.known.set(leases.idLow(lease), one);
    });
  }
}

test('kills at any moment neither cut leases nor prolong them by more than a look', () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = new Run(seed);
    for (let start = 0; start < STARTS; start++) {
      for (let n = 0; n < OPERATIONS; n++) run.operate();
      run.crash(`seed ${seed}, start ${start}`);
    }
  }
});

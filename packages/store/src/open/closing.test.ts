import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { FUZZ_SECONDS } from '@megaplane/base/trials.sim';
import { SimulatedStore } from '../simulation/simulated-store.sim.ts';

const RUNS = 150;
const OPTIONS = {
  durability: 'buffered',
  prefixes: [
    { prefix: '/f/', durability: 'fsync' },
    { prefix: '/n/', durability: 'none' },
  ],
} as const;
const PREFIXES = ['/f/', '/f/', '/b/', '/n/'] as const;

/** A store that is written to, asked to end, and cut off at any step; its disk may fail at any. */
class Stop {
  readonly #random: Random;
  readonly #clock = { nowMs: 1000 };
  readonly #sim: SimulatedStore;
  /** Revisions that are promised to outlive a kill, and those that outlive a power cut too. */
  readonly #logged: number[] = [];
  readonly #flushed: number[] = [];
  #isClosed = false;
  /** When the store was told of the failure it had shown so much. */
  #shownAtFailure = Infinity;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#sim = new SimulatedStore(OPTIONS, new Map(), this.#random, this.#clock, 1);
    this.#sim.store.onLogFailure(() => {
      this.#shownAtFailure = this.#sim.store.publishedRevision;
    });
  }

  #write(): void {
    const prefix = PREFIXES[this.#random.below(PREFIXES.length)] ?? '/f/';
    const key = Buffer.from(`${prefix}${this.#random.below(4)}`);
    const value = Buffer.alloc(this.#random.below(2000), 'v');
    const { store } = this.#sim;
    const isDelete = this.#random.below(5) === 0;
    const before = store.appliedRevision;
    const revision = isDelete
      ? store.deleteIf(key, 0, key.length, -1)
      : store.putIf(key, 0, key.length, -1, value, 0, value.length, 0);
    if (revision <= before || prefix === '/n/') return;
    this.#logged.push(revision);
    if (prefix === '/f/') this.#flushed.push(revision);
  }

  #step(): void {
    const { thread } = this.#sim;
    const drawn = this.#random.below(12);
    if (drawn < 3 && !this.#isClosed) this.#write();
    else if (drawn < 5) this.#sim.endTurn();
    else if (drawn < 7) thread.step();
    else if (drawn < 8) thread.hear();
    else if (drawn < 9) thread.goOn();
    else this.#sim.tick((this.#clock.nowMs += this.#random.below(80)));
    const { faults } = this.#sim.disk;
    const fault = this.#random.below(30);
    if (fault === 0) faults.failsFlush = true;
    if (fault === 1 && this.#random.below(4) === 0) faults.spaceBytes = this.#random.below(3000);
  }

  async run(): Promise<void> {
    const { store, disk } = this.#sim;
    for (let more = this.#random.below(40); more > 0; more--) this.#step();
    void this.#sim.close().then(() => (this.#isClosed = true));
    for (let more = this.#random.below(60); more > 0; more--) {
      this.#step();
      await new Promise((resolve) => setImmediate(resolve));
      assert(store.publishedRevision <= this.#shownAtFailure, 'shown after the log had failed');
    }
    const isPowerCut = this.#random.below(2) === 0;
    const shown = store.publishedRevision;
    const files = disk.survivors(isPowerCut);
    const boot = isPowerCut ? 2 : 1;
    const after = new SimulatedStore(OPTIONS, files, this.#random, this.#clock, boot);
    const promised = isPowerCut ? this.#flushed : this.#logged;
    const lost = promised.filter((revision) => revision <= shown && revision > after.lastRevision);
    assert.deepEqual(lost, [], isPowerCut ? 'lost by a power cut' : 'lost by a kill');
  }
}

test('at no point of a stop is anything shown that is not as durable as promised', async () => {
  const endMs = FUZZ_SECONDS === 0 ? 0 : performance.now() + FUZZ_SECONDS * 1000;
  for (let seed = 1; seed <= RUNS || performance.now() < endMs; seed++) {
    try {
      await new Stop(seed).run();
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});

/**
 * A group of members on a simulated journal, under a seed: clocks, calls, crashes and clients move
 * by random steps. What anybody is ever shown is held against one history.
 */
import assert from 'node:assert/strict';
import { Random } from '@megaplane/base/random';
import { Member, type MemberEnd, type MemberWorld } from '../journal/member.ts';
import { type SimulatedClient, SimulatedJournal } from '../journal/simulated-journal.sim.ts';
import { Store } from '../mvcc/store.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e'] as const;
const LEASE_MS = 1000;
const MEMBERS = 3;

interface Waiting {
  readonly change: number;
  readonly arrive: () => void;
}

/** One life of one member. */
class Life {
  readonly store: Store;
  readonly member: Member;
  readonly journal: SimulatedClient;
  /** Answers that wait until what they saw is published. */
  waiting: Waiting[] = [];
  end: MemberEnd | null = null;
  readonly watch: number;
  /** Events up to here were told to this life's watcher. */
  watched: number;

  constructor(name: string, journal: SimulatedJournal, world: MemberWorld, watched: number) {
    const options = { dataDir: 'journal', durability: 'fsync', prefixes: [] } as const;
    this.store = new Store(options, Math.floor(world.random() * 2 ** 32));
    this.store.onLogFailure(() => {});
    this.journal = journal.client();
    this.member = new Member({
      ...{ store: this.store, journal: this.journal, world, name, clientUrls: [] },
      ...{ leaseMs: LEASE_MS, readsByJournal: false },
    });
    this.member.onEnd = (end) => (this.end = end);
    this.store.onPublish(() => this.#letGo());
    this.watched = watched;
    this.watch = this.store.watch(Buffer.from('\0'), 0, 1, 0, 1, watched + 1, {
      onEvents: () => {},
    });
    void this.member.run();
  }

  #letGo(): void {
    const { publishedChange } = this.store;
    const ready = this.waiting.filter(({ change }) => change <= publishedChange);
    this.waiting = this.waiting.filter(({ change }) => change > publishedChange);
    for (const { arrive } of ready) arrive();
  }

  /** An answer that was just made. */
  answer(arrive: () => void): void {
    if (!this.store.isPending) arrive();
    else this.waiting.push({ change: this.store.appliedChange, arrive });
  }
}

export class Group {
  readonly #random: Random;
  readonly #journal: SimulatedJournal;
  #nowMs = 1000;
  readonly #sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  readonly #lives: (Life | null)[];
  /** Revision -> what it changed, as it was first shown or acknowledged. */
  readonly #history: Map<number, string> = new Map();
  /** The highest revision that a client was told of. */
  #told = 1;
  #counter = 0;
  acknowledged = 0;
  /** Steps in which two took themselves for the leader. */
  overlaps = 0;
  crashes = 0;
  readonly epochs: Map<number, string> = new Map();
  /** Of each member's watcher: it goes on where its life ended. */
  readonly #watched: number[] = Array.from({ length: MEMBERS }, () => 1);

  constructor(seed: number) {
    this.#random = new Random(seed);
    // Small, so that groups are split.
    this.#journal = new SimulatedJournal(this.#random.fork('journal'), 300);
    this.#lives = Array.from({ length: MEMBERS }, (_, index) => this.#born(index));
  }

  #born(index: number): Life {
    const world: MemberWorld = {
      nowMs: () => this.#nowMs,
      pause: (ms) =>
        new Promise((resolve) => this.#sleepers.push({ atMs: this.#nowMs + ms, wake: resolve })),
      random: () => this.#random.below(1000) / 1000,
      drawId: () => Buffer.from(Array.from({ length: 8 }, () => this.#random.below(256))),
      log: () => {},
    };
    return new Life(`m${index}`, this.#journal, world, this.#watched[index] ?? 1);
  }

  /** One step of anything, and all that follows from it in this turn. */
  async step(): Promise<void> {
    if (this.#leaders().length > 1) this.overlaps++;
    const steps: readonly (readonly [number, () => void])[] = [
      [60, () => this.#write()],
      [50, () => this.#read()],
      [10, () => this.#readBehind()],
      [100, () => this.#journal.step()],
      [6, () => this.#journal.doubt()],
      [60, () => this.#pass(this.#random.below(100))],
      [1, () => this.#pass(LEASE_MS)],
      [20, () => this.#look()],
      [2, () => this.#crash(this.#random.below(MEMBERS))],
      [1, () => this.#handOver()],
      [1, () => (this.#journal.isAway = this.#random.below(3) === 0)],
      [2, () => this.#fill()],
      [5, () => this.#cut()],
    ];
    const total = steps.reduce((sum, [weight]) => sum + weight, 0);
    let drawn = this.#random.below(total);
    for (const [weight, run] of steps) {
      drawn -= weight;
      if (drawn >= 0) continue;
      run();
      break;
    }
    await settled();
    this.#bury();
  }

  /** Members whose state is not to be gone on with begin anew. */
  #bury(): void {
    for (const [index, life] of this.#lives.entries()) {
      if (life?.end === null || life === null) {
        if (life !== null && life.member.isLeader) this.#noteEpoch(life.member);
        continue;
      }
      assert.notEqual(life.end.kind, 'failed', JSON.stringify(life.end));
      this.#kill(index);
      this.#lives[index] = this.#born(index);
    }
  }

  #noteEpoch(member: Member): void {
    const known = this.epochs.get(member.epoch);
    assert(known === undefined || known === member.writer, 'two lead in one epoch');
    this.epochs.set(member.epoch, member.writer);
  }

  #pass(ms: number): void {
    this.#nowMs += ms;
    // What is wrong is mostly over soon.
    if (this.#random.below(10) === 0) this.#journal.bytesMax = Infinity;
    if (this.#random.below(5) === 0) this.#journal.isAway = false;
    for (const life of this.#lives) {
      if (life !== null && this.#random.below(40) === 0) life.journal.isCut = false;
    }
    const due = this.#sleepers.filter(({ atMs }) => atMs <= this.#nowMs);
    for (const sleeper of due) {
      this.#sleepers.splice(this.#sleepers.indexOf(sleeper), 1);
      sleeper.wake();
    }
    this.#journal.tick();
    for (const life of this.#lives) if (life?.end === null) life.store.tick(this.#nowMs);
  }

  #leaders(): Life[] {
    return this.#lives.filter((life) => life !== null && life.member.isLeader) as Life[];
  }

  #one<T>(all: readonly T[]): T | undefined {
    return all[this.#random.below(Math.max(1, all.length))];
  }

  #write(): void {
    const leaders = this.#leaders().toSorted((a, b) => b.member.epoch - a.member.epoch);
    // One that was replaced and does not know is mostly left to readers, who might notice.
    const life = this.#random.below(20) > 0 ? leaders[0] : this.#one(leaders);
    if (life === undefined) return;
    // Reads that wait for a write of their leader show nothing.
    if (life.journal.isCut && this.#random.below(50) > 0) return;
    const { store, member } = life;
    store.begin();
    const count = 1 + this.#random.below(3);
    for (let i = 0; i < count; i++) {
      const key = Buffer.from(this.#one(KEYS) ?? 'a');
      const size = this.#random.below(10) === 0 ? 700 : this.#random.below(20);
      const value = Buffer.from(`${++this.#counter}`.padEnd(size, '.'));
      if (this.#random.below(4) === 0) store.delete(key, 0, key.length);
      else store.put(key, 0, key.length, value, 0, value.length, 0);
    }
    const before = store.appliedRevision;
    const revision = store.commit();
    member.submit();
    if (revision === before) return;
    const text = changesAt(store, revision);
    life.answer(() => {
      this.#show(revision, text);
      this.acknowledged++;
      this.#told = Math.max(this.#told, revision);
    });
  }

  /** Everybody must be shown the same of a revision. */
  #show(revision: number, text: string): void {
    const known = this.#history.get(revision);
    assert(known === undefined || known === text, `revision ${revision}: ${known} and ${text}`);
    this.#history.set(revision, text);
  }

  /** At whoever takes itself for the leader. */
  #read(): void {
    const life = this.#one(this.#leaders());
    if (life === undefined) return;
    const asked = this.#told;
    const { store, member } = life;
    member.confirm();
    const revision = store.appliedRevision;
    life.answer(() => {
      assert(revision >= asked, `a read at ${revision} is behind ${asked}, which was told before`);
      this.#told = Math.max(this.#told, revision);
    });
  }

  /** At any member, of what it has published. */
  #readBehind(): void {
    const life = this.#one(this.#lives);
    if (life === undefined || life === null || life.member.isLeader) return;
    const { store } = life;
    assert(!store.isPending, 'a standby shows what is not published');
    for (let revision = 2; revision <= store.publishedRevision; revision++) {
      this.#show(revision, changesAt(store, revision));
    }
  }

  /** Events of a member's watcher come in order, all of them, and go on after a restart. */
  #look(): void {
    const index = this.#random.below(MEMBERS);
    const life = this.#lives[index];
    if (life === undefined || life === null) return;
    const { store } = life;
    let ref = store.watchNext(life.watch);
    while (ref > 0) {
      const revision = store.modRevision(ref);
      assert(revision === life.watched || revision === life.watched + 1, 'an event is missing');
      life.watched = revision;
      this.#show(revision, changesAt(store, revision));
      this.#told = Math.max(this.#told, revision);
      ref = store.watchNext(life.watch);
    }
    assert.equal(ref, 0);
    this.#watched[index] = life.watched;
  }

  #kill(index: number): void {
    const life = this.#lives[index];
    if (life === undefined || life === null) return;
    life.member.stop();
    void life.journal.close();
    this.#lives[index] = null;
  }

  #crash(index: number): void {
    this.crashes++;
    this.#kill(index);
    this.#lives[index] = this.#born(index);
  }

  #handOver(): void {
    const to = this.#random.below(2) === 0 ? '' : `m${this.#random.below(MEMBERS)}`;
    this.#one(this.#leaders())?.member.handOver(to, false);
  }

  /** The journal is there, but not for everybody; mostly the leader is missing. */
  #cut(): void {
    const life = this.#random.below(2) === 0 ? this.#one(this.#leaders()) : this.#one(this.#lives);
    if (life !== null && life !== undefined) life.journal.isCut = this.#random.below(3) > 0;
  }

  #fill(): void {
    const room = this.#random.below(2) === 0 ? Infinity : this.#random.below(600);
    this.#journal.bytesMax = this.#journal.bytes + room;
  }

  /** All is well again: then everything that was acknowledged is at all members. */
  async heal(): Promise<void> {
    this.#journal.isAway = false;
    this.#journal.bytesMax = Infinity;
    for (const life of this.#lives) if (life !== null) life.journal.isCut = false;
    for (let i = 0; i < 4000; i++) {
      this.#journal.step();
      this.#pass(20);
      await settled();
      this.#bury();
      const last = this.#journal.last;
      const isEven = this.#lives.every((life) => life?.member.position === last);
      if (i > 200 && isEven && this.#leaders().some(({ store }) => !store.isPending)) break;
    }
    const top = Math.max(...this.#history.keys(), 1);
    for (const life of this.#lives) {
      assert(life !== null && life.store.publishedRevision >= top, 'a member does not come along');
      for (let revision = 2; revision <= life.store.publishedRevision; revision++) {
        this.#show(revision, changesAt(life.store, revision));
      }
    }
  }
}

/** Promises that wait for nothing but each other go on. */
async function settled(): Promise<void> {
  for (let i = 0; i < 24; i++) await Promise.resolve();
}

/** What a revision changed, as text. */
function changesAt(store: Store, revision: number): string {
  const rows: string[] = [];
  for (const key of KEYS) {
    const bytes = Buffer.from(key);
    const ref = store.getAt(bytes, 0, bytes.length, revision);
    if (ref === 0) {
      rows.push(`${key}-`);
      continue;
    }
    assert(ref > 0, `revision ${revision} of ${key} cannot be read: ${ref}`);
    const value = store.record(ref).toString('latin1', store.valueAt(ref), store.valueTo(ref));
    rows.push(
      `${key}=${Number.parseInt(value, 10)}/${store.modRevision(ref)}/${store.version(ref)}`,
    );
  }
  return rows.join(' ');
}

/**
 * The live root's side of its shards: who is there, which epoch it is, what they have been told,
 * and the rounds that are asked of them. A round that is not answered by all in time fails, and the
 * root decides without the shards: what is slow or gone costs time, never a decision.
 */
import type { Answer } from '../extenders/extender-answer.ts';
import type { Child, Gathering, GatheringCounts } from './gathering.ts';
import { encodeRound } from './protocol/round-codec.ts';
import type { Reply, Round } from './protocol/rounds.ts';
import { encodeState } from './protocol/state.ts';
import type { Outcome, ShardPort } from './scatter/summed-try.ts';
import { ShardFeed, type FeedTables } from './shard-feed.ts';

/** Time, as the process or a simulation has it. */
export interface HostClock {
  /** Milliseconds since any moment. */
  nowMs(): number;
  /** Runs something after so long; returns what takes that back. */
  after(delayMs: number, run: () => void): () => void;
}

export interface ShardHostOptions {
  readonly gathering: Gathering;
  readonly tables: FeedTables;
  readonly clock: HostClock;
  /** A round that takes longer has failed. */
  readonly roundMsMax?: number;
  /** There was something to wait for, and it has come. */
  readonly onTrouble: (message: string) => void;
}

/** Default of the time that a round may take. */
export const ROUND_MS_MAX = 5000;
/** The same for shards that are being told of the cluster: much may come before they can answer. */
const TELLING_MS_MAX = 60_000;
/** Messages between two looks at whether the shards keep up. */
const STEP = 2000;
/** Shards that could not be told of everything are told again after this. */
const AGAIN_MS = 1000;
/** News that are told in one go before a round. */
const BACKLOG_MAX = 4096;
/** Rounds in a row that a child may be late for; then it has to join anew. */
const LATE_MAX = 3;
/** How long a decision waits for shards that are being told of the cluster. */
const PATIENCE_MS = 10_000;

export interface HostCounts {
  readonly outcomes: Record<Outcome, number>;
  late: number;
  dropped: number;
}

export class ShardHost implements ShardPort {
  readonly counts: HostCounts = {
    outcomes: { found: 0, failed: 0, unavailable: 0, refused: 0 },
    ...{ late: 0, dropped: 0 },
  };
  readonly feed: ShardFeed;
  readonly #options: ShardHostOptions;
  readonly #lateness = new Map<Child, number>();
  /** What each shard was when it was last told of everything. */
  #incarnations = new Map<string, string>();
  #members: readonly string[] = [];
  #epoch = 0;
  /** The epoch that the shards have been told of. */
  #toldEpoch = 0;
  #number = 0;
  #pump: Promise<void> | null = null;

  constructor(options: ShardHostOptions) {
    this.#options = options;
    this.feed = new ShardFeed(options.tables, (to, change) => {
      const frame = { to, state: encodeState(change), round: null, number: 0 };
      options.gathering.pass(frame);
    });
  }

  get isThere(): boolean {
    return this.#members.length > 0;
  }

  get isReady(): boolean {
    return this.#toldEpoch === this.#epoch && this.feed.backlog <= BACKLOG_MAX;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get size(): number {
    return this.#members.length;
  }

  get members(): readonly string[] {
    return this.#members;
  }

  get traffic(): GatheringCounts {
    return this.#options.gathering.counts;
  }

  decided(how: Outcome): void {
    this.counts.outcomes[how]++;
  }

  /** Some child came or went, or others are behind it: nodes are shared out anew. */
  membersChanged(): void {
    const { gathering } = this.#options;
    const members = gathering.members;
    const now = new Map(members.map((name) => [name, gathering.incarnationOf(name)]));
    const before = this.#incarnations;
    const isSame =
      before.size === now.size && members.every((name) => before.get(name) === now.get(name));
    if (isSame) return;
    const fresh = members.filter((name) => before.get(name) !== now.get(name));
    this.#incarnations = now;
    this.#members = members;
    this.#epoch++;
    this.feed.reshard(members, fresh);
    if (members.length > 0) void this.#ready();
    else this.feed.stop();
  }

  /** Answers a question of a decision; `null`: it wants the shards to know all. */
  async ask(round: Round | null): Promise<readonly Answer[]> {
    if (round === null) {
      await this.#patiently(this.#ready());
      return [{ ok: true, value: null }];
    }
    if (round.kind === 'begin') {
      if (round.epoch !== this.#epoch || !this.isReady) {
        return [{ ok: false, text: 'the shards have changed' }];
      }
      this.feed.flush();
    }
    const reply = await this.#round(round);
    return [{ ok: true, value: null, reply }];
  }

  async #patiently(wait: Promise<void>): Promise<void> {
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(PATIENCE_MS, resolve);
    });
    await Promise.race([wait, late]);
    cancel();
  }

  /** Tells the shards what they do not know yet, no faster than they take it in. */
  #ready(): Promise<void> {
    this.#pump ??= this.#pumpAll();
    return this.#pump;
  }

  async #pumpAll(): Promise<void> {
    // the caller must know of it before it ends
    await Promise.resolve();
    try {
      await this.#tellAll();
    } finally {
      this.#pump = null;
    }
    // a child was late, or left just now: nobody else may come and ask for a long time
    if (this.isThere && !this.isReady) {
      this.#options.clock.after(AGAIN_MS, () => void this.#ready());
    }
  }

  async #tellAll(): Promise<void> {
    while (this.isThere && !this.isReady) {
      const epoch = this.#epoch;
      this.feed.step(STEP);
      if (!this.feed.isScanning && this.feed.backlog <= BACKLOG_MAX) {
        this.#tellEpoch(epoch);
        return;
      }
      const { trouble } = await this.#round({ kind: 'sync' });
      // a child is gone: its parent hears of it, and then there is another epoch
      if (trouble !== '' && epoch === this.#epoch) return this.#options.onTrouble(trouble);
    }
  }

  #tellEpoch(number: number): void {
    this.#toldEpoch = number;
    const state = encodeState({ kind: 'epoch', number });
    this.#options.gathering.pass({ to: '', state, round: null, number: 0 });
  }

  #round(round: Round): Promise<Reply> {
    const { gathering, clock } = this.#options;
    const asked = this.#options.roundMsMax ?? ROUND_MS_MAX;
    const roundMsMax = round.kind === 'sync' ? Math.max(asked, TELLING_MS_MAX) : asked;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const number = ++this.#number;
    const cancel = clock.after(roundMsMax, () => this.#isLate(number, roundMsMax));
    const frame = { to: '', state: null, round: encodeRound(round), number };
    gathering.ask(frame, (reply) => {
      cancel();
      if (reply.trouble === '') this.#lateness.clear();
      resolve(reply);
    });
    return promise;
  }

  #isLate(number: number, roundMsMax: number): void {
    const { gathering, onTrouble } = this.#options;
    this.counts.late++;
    for (const child of gathering.giveUp(number, `no answer within ${roundMsMax} ms`)) {
      const times = (this.#lateness.get(child) ?? 0) + 1;
      this.#lateness.set(child, times);
      const who = child.hello.members.join(', ');
      onTrouble(`shard ${who} has not answered within ${roundMsMax} ms`);
      if (times < LATE_MAX) continue;
      this.#lateness.delete(child);
      this.counts.dropped++;
      child.drop?.(`late ${LATE_MAX} times in a row`);
    }
  }
}

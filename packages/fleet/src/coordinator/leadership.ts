/**
 * Who leads among coordinators: whoever made the key `leader`, which hangs on a lease. No protocol
 * of our own: etcd says who was first, and lets go of a leader that renews no more.
 *
 *     following   another one leads, or nobody, or etcd does not answer
 *     leading     until a time that each renewal puts off; past it nothing is answered
 *
 * The term is the revision at which the key was made, so terms only rise. Each write of a leader
 * asks etcd that this very key is still there: a leader that slept past its lease writes nothing.
 */
import { unawaited } from '@megaplane/base/deferred';
import type { Keeping, LeaseId } from './keeping.ts';

/** A renewal is begun when so much of the time is gone. */
const RENEW_SHARE = 1 / 3;
/** So much less than etcd's time a leader takes for its own, for clocks that differ in pace. */
const MARGIN_SHARE = 0.15;

export interface Clock {
  nowMs(): number;
  after(delayMs: number, fire: () => void): () => void;
}

export interface LeadershipOptions {
  readonly keeping: Keeping;
  readonly clock: Clock;
  readonly prefix: string;
  /** Where clients reach this one: it stands in the key. */
  readonly self: string;
  readonly ttlSeconds: number;
  /** Reads the state; a rejection, or false, ends the attempt. */
  readonly load: () => Promise<boolean>;
  readonly log: (level: 'info' | 'warn', message: string) => void;
}

type State =
  | { readonly kind: 'following'; readonly leader: string }
  | {
      readonly kind: 'leading';
      readonly term: number;
      readonly lease: LeaseId;
      untilMs: number;
    };

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #key: Buffer;
  #state: State = { kind: 'following', leader: '' };
  #cancel: (() => void) | null = null;
  #isStopped = false;
  /** Why etcd could not be asked last; '' while it can be. */
  fault = 'etcd was not asked yet';

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#key = Buffer.from(`${options.prefix}leader`);
  }

  /** The term in which this one leads now; 0: it does not. */
  get term(): number {
    const state = this.#state;
    if (state.kind !== 'leading') return 0;
    return this.#options.clock.nowMs() < state.untilMs ? state.term : 0;
  }

  /** Address of the leader as far as it is known; '' if it is not. */
  get leader(): string {
    if (this.#state.kind === 'following') return this.#state.leader;
    return this.term > 0 ? this.#options.self : '';
  }

  /** What a write of this leader must ask for. Throws where it does not lead. */
  get guard(): { readonly key: Buffer; readonly createRevision: number } {
    const { term } = this;
    if (term === 0) throw new Error('this coordinator does not lead');
    return { key: this.#key, createRevision: term };
  }

  start(): void {
    this.#again(0);
  }

  /** Lets go at once, so that another one can lead. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#letGo();
  }

  /** What is known may no longer be what is kept: stands for election anew. */
  async resign(why: string): Promise<void> {
    if (this.#state.kind !== 'leading') return;
    this.#options.log('warn', `lets go of the lead: ${why}`);
    await this.#letGo();
    this.#again(0);
  }

  async #letGo(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'following', leader: '' };
    if (state.kind === 'leading') await this.#options.keeping.revokeLease(state.lease);
  }

  #again(delayMs: number): void {
    this.#cancel?.();
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      unawaited(this.#turn().then((nextMs) => this.#again(nextMs)));
    });
  }

  get #pauseMs(): number {
    return this.#options.ttlSeconds * 1000 * RENEW_SHARE;
  }

  /** One step; resolves with the time to the next one. */
  async #turn(): Promise<number> {
    const state = this.#state;
    if (state.kind === 'leading') await this.#renew(state);
    else await this.#stand();
    return this.#pauseMs;
  }

  #termMs(askedMs: number): number {
    return askedMs + this.#options.ttlSeconds * 1000 * (1 - MARGIN_SHARE);
  }

  async #renew(state: Extract<State, { readonly kind: 'leading' }>): Promise<void> {
    const { clock, keeping, log } = this.#options;
    const askedMs = clock.nowMs();
    const answer = await keeping.keepLease(state.lease);
    if (this.#state !== state) return;
    this.fault = answer.ok ? '' : answer.message;
    if (answer.ok && answer.value > 0) {
      state.untilMs = this.#termMs(askedMs);
    } else if (answer.ok || clock.nowMs() >= state.untilMs) {
      log('warn', `leads no more: ${answer.ok ? 'the lease ended' : answer.message}`);
      this.#state = { kind: 'following', leader: '' };
    }
  }

  async #stand(): Promise<void> {
    const { keeping, clock, ttlSeconds, self, log } = this.#options;
    const seen = await keeping.range({ key: this.#key });
    this.fault = seen.ok ? '' : seen.message;
    const holder = seen.ok ? seen.value.kvs[0] : undefined;
    if (!seen.ok || holder !== undefined) {
      this.#state = { kind: 'following', leader: holder?.value.toString() ?? '' };
      return;
    }
    const askedMs = clock.nowMs();
    const lease = await keeping.grantLease(ttlSeconds);
    if (!lease.ok) return void (this.fault = lease.message);
    const value = Buffer.from(self);
    const won = await keeping.write({ key: this.#key, expected: 0, value, lease: lease.value });
    if (!won.ok || !won.value.succeeded || this.#isStopped) {
      await keeping.revokeLease(lease.value);
      return;
    }
    const untilMs = this.#termMs(askedMs);
    const isLoaded = await this.#options.load().catch((error: unknown) => {
      log('warn', `the state cannot be read: ${(error as Error).message}`);
      return false;
    });
    if (!isLoaded || this.#isStopped) {
      await keeping.revokeLease(lease.value);
      return;
    }
    const term = won.value.revision;
    this.#state = { kind: 'leading', term, lease: lease.value, untilMs };
    log('info', `leads, in term ${term}`);
  }
}

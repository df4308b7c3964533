// shell: a follower of a group, which never leads
/**
 * Holds the state of a group from its journal, and asks the leader for what it may not do itself.
 * It is on no list: nobody waits for it, and the journal may be trimmed in front of it. Then it
 * begins anew with the state of the leader, and says so.
 */
import { unawaited } from '@megaplane/base/deferred';
import { startClockwork } from '@megaplane/store/clockwork';
import { Member, type MemberEnd } from '@megaplane/store/journal/member';
import type { Store } from '@megaplane/store/store';
import type { EtcdResult } from '../client/client.ts';
import {
  type ConditionalWrite,
  type LeaseId,
  type WriteAnswer,
  decodeHeader,
  decodeLeaseGrant,
  decodeWrite,
  encodeCompaction,
  encodeLeaseGrant,
  encodeTurn,
  encodeWrite,
} from '../client/messages.ts';
import { type FirstStateOptions, firstState } from './first-state.ts';
import { LeaderLink } from './leader-link.ts';
import { READ_INDEX, decodeIndex } from './member-router.ts';
import { SHELL_WORLD } from './shell-world.ts';

const CALL_MS_MAX = 10_000;
/** Calls that wait for the leader; more are refused: a group without one must cost no memory. */
const CALLS_MAX = 50_000;
const TOO_MANY = { ok: false, code: 8, message: 'etcdserver: too many requests' } as const;
const NO_LEADER = 'etcdserver: no leader';

export interface GroupReaderOptions extends FirstStateOptions {
  /** That of the members: for telling whether anybody leads. */
  readonly leaseMs: number;
  /** It began anew, with another store, which is further than the one before. */
  readonly onRenewed: (store: Store) => void;
  /** It cannot go on. */
  readonly onFailure: (why: string) => void;
}

interface Life {
  readonly store: Store;
  readonly member: Member;
  readonly link: LeaderLink;
  readonly ended: Promise<MemberEnd>;
  stop(): void;
}

type Decode<T> = (bytes: Buffer, start: number, end: number) => T;

export class GroupReader {
  readonly #options: GroupReaderOptions;
  #life: Life;
  #isClosed = false;
  #calls = 0;

  private constructor(options: GroupReaderOptions, life: Life) {
    this.#options = options;
    this.#life = life;
    unawaited(this.#follow());
  }

  /** Resolves once it has the state that was there at the start, and somebody has led the group. */
  static async open(options: GroupReaderOptions): Promise<GroupReader> {
    return new GroupReader(options, await begin(options));
  }

  /** Of the life that goes on. */
  get store(): Store {
    return this.#life.store;
  }

  get member(): Member {
    return this.#life.member;
  }

  /** Why it falls behind, or cannot ask the leader; null while it can do both. */
  get fault(): string | null {
    const { member } = this.#life;
    if (member.fault !== '') return member.fault;
    return member.hasLeader ? null : NO_LEADER;
  }

  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      const life = this.#life;
      const end = await life.ended;
      if (this.#isClosed) return;
      if (end.kind !== 'behind') {
        this.#options.onFailure(end.why);
        return;
      }
      const { journal, log } = this.#options;
      log(
        `entries up to ${end.first} of the ${journal.name} were trimmed before they were read ` +
          'here: the state of the leader takes their place',
      );
      try {
        this.#life = await begin(this.#options);
      } catch (error) {
        this.#options.onFailure((error as Error).message);
        return;
      }
      life.stop();
      this.#options.onRenewed(this.#life.store);
    }
  }

  /** A failure may have been worked on all the same. */
  write(write: ConditionalWrite): Promise<EtcdResult<WriteAnswer>> {
    return this.#call('/etcdserverpb.KV/Txn', encodeWrite(write), decodeWrite);
  }

  takeTurn(key: Buffer, version: number, value: Buffer): Promise<EtcdResult<WriteAnswer>> {
    return this.#call('/etcdserverpb.KV/Txn', encodeTurn(key, version, value), decodeWrite);
  }

  compact(revision: number): Promise<EtcdResult<number>> {
    return this.#call('/etcdserverpb.KV/Compact', encodeCompaction(revision), decodeHeader);
  }

  grantLease(ttlSeconds: number): Promise<EtcdResult<LeaseId>> {
    const message = encodeLeaseGrant(ttlSeconds);
    return this.#call('/etcdserverpb.Lease/LeaseGrant', message, decodeLeaseGrant);
  }

  /** The newest revision that anybody was told of before this was called. */
  newest(): Promise<EtcdResult<number>> {
    return this.#call(READ_INDEX, Buffer.alloc(0), decodeIndex);
  }

  async #call<T>(path: string, message: Buffer, decode: Decode<T>): Promise<EtcdResult<T>> {
    if (this.#calls >= CALLS_MAX) return TOO_MANY;
    this.#calls++;
    const answer = await this.#life.link.ask(path, message, [], CALL_MS_MAX);
    this.#calls--;
    if (Buffer.isBuffer(answer)) return { ok: true, value: decode(answer, 0, answer.length) };
    if (answer === 'here') return { ok: false, code: 14, message: NO_LEADER };
    return { ok: false, code: answer.code, message: answer.text };
  }

  /** The journal stays open. */
  close(): void {
    this.#isClosed = true;
    this.#life.stop();
  }
}

async function begin(options: GroupReaderOptions): Promise<Life> {
  const { journal, leaseMs, log, tls } = options;
  const { store, place } = await firstState(options);
  const world = { ...SHELL_WORLD, log };
  const member = new Member({
    ...{ store, journal, world, name: '', clientUrls: [], leaseMs, readsByJournal: false },
    isReader: true,
    ...(place === null ? {} : { from: place }),
  });
  const link = new LeaderLink({
    tls,
    log,
    leadsHere: () => false,
    isOver: () => member.isEnded,
  });
  const turn = (): void => {
    const { leader } = member;
    link.turnTo(leader && { clientUrls: leader.clientUrls, secret: leader.writer });
  };
  const { promise: ended, resolve: end } = Promise.withResolvers<MemberEnd>();
  member.onEnd = end;
  member.onRole = turn;
  turn();
  const clockwork = startClockwork(store, null, null);
  const stop = (): void => {
    member.stop();
    clockwork.stop();
    link.close();
  };
  unawaited(member.run());
  const early = await Promise.race([member.ready.then(() => null), ended]);
  if (early === null) return { store, member, link, ended, stop };
  stop();
  if (early.kind === 'behind') return await begin(options);
  throw new Error(early.why);
}

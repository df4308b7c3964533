// shell: one member of a group that shares a journal, served as etcd
/**
 * A member has one life after another: one ends when changes were applied that the journal does
 * not hold, as another member led already. The next begins with an empty store, on the same ports.
 */
import { afterMs, everyMs, pauseMs, unawaited } from '@megaplane/base/deferred';
import { defragment, startClockwork } from '@megaplane/store/clockwork';
import type { Journal } from '@megaplane/store/journal';
import { Member, type MemberEnd } from '@megaplane/store/journal/member';
import type { OpenStore } from '@megaplane/store/open';
import type { Store } from '@megaplane/store/store';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { writeInt64Field } from '@megaplane/wire/protobuf-write';
import type { EtcdContext } from '../call/context.ts';
import type { GroupView } from '../call/router.ts';
import { ETCD } from '../codec/failures.ts';
import {
  type EtcdServer,
  type RunStoreOptions,
  type ServedMember,
  serveEtcd,
} from '../server/run-store.ts';
import { CrossCheck } from './cross-check.ts';
import { GroupList, memberIdOf, readListed } from './group-list.ts';
import { LeaderLink, SECRET } from './leader-link.ts';
import { firstState } from './first-state.ts';
import { MemberRouter, READ_INDEX } from './member-router.ts';
import { SHELL_WORLD } from './shell-world.ts';
import { Copies } from './state-copies.ts';
import { STATE, StateServer } from './state-stream.ts';

const HELLO = '/megaplane.Group/Hello';
const HELLO_MS = 1000;
const TICK_MS = 250;
const LOOK_MS = 500;
const HASH_EVERY_MS: number = 10 * 60_000;
/** Entries of the journal between two copies of the state. */
const STATE_EVERY = 50_000;
const MOVE_MS_MAX = 5000;
/** How long a member that leaves waits for another one to lead. */
const LEAVE_MS_MAX = 2000;

export interface RunMemberOptions extends RunStoreOptions {
  /** Stays open when the member closes. */
  readonly journal: Journal;
  readonly memberName: string;
  readonly leaseMs: number;
  readonly readsByJournal: boolean;
  /** Where a copy of the state is kept; without one the journal is never trimmed. */
  readonly stateDir?: string;
  /** A new copy is made when so many entries have come since the last one. */
  readonly stateEvery?: number;
  /** So often a standby compares its hash with the leader's; 0: never. */
  readonly hashEveryMs?: number;
  /** For calls to the leader; null without TLS. */
  readonly tls: () => ConnectTls | null;
  readonly log: (message: string) => void;
}

export interface RunningMember {
  readonly addresses: EtcdServer['addresses'];
  /** Of the life that goes on. */
  readonly member: Member;
  readonly store: Store;
  /** Hands over when it leads, then ends. */
  close(graceMs?: number): Promise<void>;
}

interface Life {
  readonly store: Store;
  readonly member: Member;
  readonly server: EtcdServer;
  readonly ended: Promise<MemberEnd>;
  close(graceMs: number): Promise<void>;
}

/** Opens a member and serves it; resolves when it has the state of its group. */
export async function runMember(options: RunMemberOptions): Promise<RunningMember> {
  let isClosed = false;
  let life = await begin(options);
  // A later life serves where the first one did.
  const again: RunMemberOptions = {
    ...options,
    listen: fixed(options.listen, life.server.addresses),
    listenHttp: fixed(options.listenHttp ?? [], life.server.httpAddresses),
    listenMetrics: fixed(options.listenMetrics ?? [], life.server.metricsAddresses),
  };
  const watch = async (): Promise<void> => {
    while (!isClosed) {
      const end = await life.ended;
      if (isClosed) return;
      await life.close(0);
      if (end.kind === 'failed') {
        options.onFailure(end.why);
        return;
      }
      try {
        life = await begin(again);
      } catch (error) {
        options.onFailure((error as Error).message);
        return;
      }
    }
  };
  unawaited(watch());
  return {
    get addresses() {
      return life.server.addresses;
    },
    get member() {
      return life.member;
    },
    get store() {
      return life.store;
    },
    close: async (graceMs = 0) => {
      isClosed = true;
      await leave(life.member);
      await life.close(graceMs);
    },
  };
}

function fixed<T extends { readonly port?: number }>(
  asked: readonly T[],
  found: readonly { readonly port: number }[],
): readonly T[] {
  return asked.map((address, index) => ({ ...address, port: found[index]?.port ?? address.port }));
}

function textOf(end: MemberEnd): string {
  if (end.kind !== 'behind') return end.why;
  return `the journal was trimmed up to entry ${end.first} while this member began; start it again`;
}

/** A leader lets another one lead before it goes. */
async function leave(member: Member): Promise<void> {
  if (!member.isLeader) return;
  member.handOver('', true);
  const endMs = performance.now() + LEAVE_MS_MAX;
  while (member.isHandingOver && performance.now() < endMs) await pauseMs(5);
}

async function begin(options: RunMemberOptions): Promise<Life> {
  const { journal, memberName, leaseMs, readsByJournal, log } = options;
  const { store, place } = await firstState(options);
  const clientUrls = options.advertiseClientUrls ?? [];
  const world = { ...SHELL_WORLD, log };
  const member = new Member({
    ...{ store, journal, world, name: memberName, clientUrls, leaseMs, readsByJournal },
    ...(place === null ? {} : { from: place }),
  });
  const { promise: ended, resolve: end } = Promise.withResolvers<MemberEnd>();
  member.onEnd = end;
  store.onLogFailure((why) => end({ kind: 'failed', why }));
  const clockwork = startClockwork(store, member, null);
  const stop = (): void => {
    member.stop();
    clockwork.stop();
  };
  unawaited(member.run());
  const early = await Promise.race([member.ready.then(() => null), ended]);
  if (early !== null) {
    stop();
    throw new Error(textOf(early));
  }
  const leaves = (why: string): void => end({ kind: 'failed', why });
  const parts = new MemberParts(options, store, member, leaves);
  const server = await parts.serve();
  const close = async (graceMs: number): Promise<void> => {
    await server.close(graceMs);
    parts.stop();
    stop();
  };
  return { store, member, server, ended, close };
}

/** What stands around the member of one life. */
class MemberParts {
  readonly #options: RunMemberOptions;
  readonly #store: Store;
  readonly #member: Member;
  readonly #link: LeaderLink;
  readonly #check: CrossCheck;
  readonly #list: GroupList;
  #router: MemberRouter | null = null;
  #context: EtcdContext | null = null;
  #moves: (() => void)[] = [];
  readonly #copies: Copies;
  /** What the leader of an epoch was told that is kept here. */
  #told = 0;
  #toldTo = 0;
  readonly #states: StateServer;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(
    options: RunMemberOptions,
    store: Store,
    member: Member,
    onDifferent: (why: string) => void,
  ) {
    this.#options = options;
    this.#store = store;
    this.#member = member;
    this.#link = new LeaderLink({
      tls: options.tls,
      log: options.log,
      leadsHere: () => member.isLeader,
      isOver: () => member.isEnded,
    });
    const { hashEveryMs: everyMs = HASH_EVERY_MS } = options;
    const { nowMs } = SHELL_WORLD;
    const link = this.#link;
    this.#check = new CrossCheck({ member, store, link, everyMs, nowMs, onDifferent });
    this.#list = new GroupList(store, () => member.group);
    this.#states = new StateServer(store, member);
    const { journal, stateDir = null, stateEvery = STATE_EVERY, log } = options;
    this.#copies = new Copies({
      ...{ member, journal, log, dir: stateDir, every: stateEvery },
      ...{ states: this.#states, link: this.#link },
      names: () => this.#list.members.map(({ name }) => name),
      own: options.memberName,
    });
  }

  async serve(): Promise<EtcdServer> {
    const member = this.#member;
    member.onRole = () => this.#onRole();
    const opened: OpenStore = {
      store: this.#store,
      clusterId: member.group,
      memberId: memberIdOf(member.group, this.#options.memberName),
      term: member.epoch,
      replayed: { records: 0, bytes: 0, cutBytes: 0 },
      log: null,
      snapshot: () => {},
      defragment: () => defragment(this.#store, null),
      close: () => Promise.resolve(),
    };
    const served: ServedMember = {
      group: this.#view(),
      router: (context, auth) => {
        this.#context = context;
        this.#router = new MemberRouter({
          ...{ member, store: this.#store, link: this.#link, nowMs: SHELL_WORLD.nowMs },
          endHeld: () => context.endHeld(),
          passesUsers: () => auth.state.enabled && !auth.sharesTokens,
        });
        return this.#router;
      },
      register: (routes, context) => this.#register(routes, context),
    };
    const server = await serveEtcd(opened, { ...this.#options, member: served });
    this.#onRole();
    this.#timers.push(everyMs(TICK_MS, () => this.#router?.tick()));
    this.#timers.push(everyMs(HELLO_MS, () => this.#sayHello()));
    this.#timers.push(everyMs(HELLO_MS, () => this.#copies.look()));
    this.#timers.push(everyMs(LOOK_MS, () => this.#check.look()));
    for (const timer of this.#timers) timer.unref();
    this.#sayHello();
    return server;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#link.close();
  }

  #onRole(): void {
    const member = this.#member;
    this.#context?.setTerm(member.epoch);
    const { leader } = member;
    if (member.isLeader) {
      this.#link.turnTo(null);
      this.#list.add(this.#own);
    } else {
      this.#router?.stepDown();
      const place = leader && { clientUrls: leader.clientUrls, secret: leader.writer };
      this.#link.turnTo(place);
    }
    if (leader !== null) for (const moved of this.#moves.splice(0)) moved();
  }

  get #own(): {
    readonly name: string;
    readonly clientUrls: readonly string[];
    readonly kept: number;
  } {
    const { memberName, advertiseClientUrls } = this.#options;
    const { kept } = this.#copies;
    return { name: memberName, clientUrls: advertiseClientUrls ?? [], kept };
  }

  /** A standby asks to be put on the list, until it is; and tells when it keeps a newer copy. */
  #sayHello(): void {
    const own = this.#own;
    const isTold = own.kept === this.#told && this.#member.epoch === this.#toldTo;
    if (this.#member.leader === null || (isTold && this.#list.has(own))) return;
    this.#told = own.kept;
    this.#toldTo = this.#member.epoch;
    if (this.#member.isLeader) this.#list.add(own);
    else unawaited(this.#link.ask(HELLO, Buffer.from(JSON.stringify(own)), [], HELLO_MS));
  }

  /** Of members among each other: only who can read the journal knows what the leader is called. */
  #register(routes: GrpcRoutes, context: EtcdContext): void {
    const member = this.#member;
    const isOurs = (secret: string | undefined): boolean =>
      member.isLeader && secret === member.writer;
    routes.unary(READ_INDEX, (_bytes, _start, _end, out, offset, call) => {
      if (!isOurs(call.metadata(SECRET))) return call.fail(ETCD.noLeader.code, ETCD.noLeader.text);
      member.confirm();
      context.guard(call.connection);
      return writeInt64Field(out, offset, 1, this.#store.appliedRevision);
    });
    routes.unary(HELLO, (bytes, start, end, _out, offset, call) => {
      if (!isOurs(call.metadata(SECRET))) return call.fail(ETCD.noLeader.code, ETCD.noLeader.text);
      const listed = readListed(bytes.toString('utf8', start, end));
      if (listed === null || !this.#list.add(listed)) {
        return call.fail(3, 'megaplane: this is no member, or there are too many');
      }
      this.#copies.heard(listed.name, listed.kept ?? 0);
      return offset;
    });
    routes.call(STATE, (call) => this.#states.factory(call), 'server_stream');
  }

  #view(): GroupView {
    const member = this.#member;
    const list = this.#list;
    return {
      get isLeader() {
        return member.isLeader;
      },
      get hasLeader() {
        return member.hasLeader;
      },
      get leaderChanges() {
        return member.leaderChanges;
      },
      get position() {
        return member.position;
      },
      leaderId: () =>
        member.leader === null ? null : memberIdOf(member.group, member.leader.name),
      members: () => list.members,
      remove: (id) => list.remove(id),
      moveTo: (id, done) => this.#moveTo(id, done),
    };
  }

  #moveTo(id: Buffer, done: (isMoved: boolean) => void): boolean {
    const target = this.#list.members.find((member) => member.id.equals(id));
    if (target === undefined) return false;
    let isDone = false;
    const finish = (isMoved: boolean): void => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      done(isMoved);
    };
    const timer = afterMs(MOVE_MS_MAX, () => finish(false));
    this.#moves.push(() => finish(this.#member.leader?.name === target.name));
    this.#member.handOver(target.name, false);
    return true;
  }
}

// data plane: which member works on a call
/**
 * The leader works on everything. A standby works on what it can tell by itself: serializable
 * reads, watches, what is asked of this one member. For a linearizable read it asks the leader
 * how far the group is, one question for all reads that wait, and answers from its own state once
 * that is as far. All else it passes on.
 */
import { unawaited } from '@megaplane/base/deferred';
import type { Member } from '@megaplane/store/journal/member';
import type { Store } from '@megaplane/store/store';
import {
  GRPC_CODES,
  type GrpcCall,
  type GrpcCallFactory,
  type GrpcCallHandler,
  IN_PLACE_ROOM_BYTES,
  type InPlaceCall,
  type InPlaceHandler,
} from '@megaplane/wire/grpc';
import { ProtobufReader } from '@megaplane/wire/protobuf';
import type { Router } from '../call/router.ts';
import { RefusedCall } from '../call/refused-call.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import { FORWARDED, type LeaderLink, passedMetadata } from './leader-link.ts';

export const READ_INDEX = '/megaplane.Group/ReadIndex';
const RANGE = '/etcdserverpb.KV/Range';
const WATCH = '/etcdserverpb.Watch/Watch';
/** A read that the group does not come along with for so long has failed. */
const READ_MS_MAX = 7000;
/** What the journal has not taken for so long has failed; etcd waits as long for its own. */
const WRITE_MS_MAX = 7000;
/** Asked of one member. */
const HERE = new Set([
  ...['Status', 'Defragment', 'Hash', 'HashKV', 'Snapshot', 'MoveLeader', 'Downgrade'].map(
    (name) => `/etcdserverpb.Maintenance/${name}`,
  ),
  '/etcdserverpb.Cluster/MemberList',
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
]);
/** What changes nothing, but must have seen everything. */
const READS = new Set([
  RANGE,
  '/etcdserverpb.KV/RangeStream',
  '/etcdserverpb.KV/Txn',
  '/etcdserverpb.Lease/LeaseTimeToLive',
  '/etcdserverpb.Lease/LeaseLeases',
]);
const LEADER_CHANGED: EtcdFailure = { code: 14, text: 'etcdserver: leader changed' };

/** Where a stream is that only the leader may work on. */
interface LeaderStream {
  readonly call: GrpcCall;
  readonly handler: GrpcCallHandler;
}

interface Waiting {
  readonly revision: number;
  readonly go: (failure: EtcdFailure | null) => void;
  readonly untilMs: number;
}

export interface RouterParts {
  readonly member: Member;
  readonly store: Store;
  readonly link: LeaderLink;
  /** Users are known by what only the member knows that let them in. */
  readonly passesUsers: () => boolean;
  /** Ends connections whose answers wait for the journal. */
  readonly endHeld: () => void;
  readonly nowMs: () => number;
}

export class MemberRouter implements Router {
  readonly #parts: RouterParts;
  readonly #reader = new ProtobufReader();
  readonly #out: Buffer = Buffer.allocUnsafeSlow(IN_PLACE_ROOM_BYTES);
  #streams: LeaderStream[] = [];
  #waiting: Waiting[] = [];
  /** The next question, which nobody has asked yet. */
  #nextIndex: Promise<number | EtcdFailure> | null = null;
  #lastIndex: Promise<unknown> = Promise.resolve();
  /** The last change that was published, and when a look found it first. */
  #movedTo = -1;
  #movedMs = 0;

  constructor(parts: RouterParts) {
    this.#parts = parts;
    parts.store.onPublish((revision) => this.#published(revision));
  }

  unary(
    path: string,
    here: InPlaceHandler,
    bytes: Buffer,
    start: number,
    end: number,
    out: Buffer,
    offset: number,
    call: InPlaceCall,
  ): number {
    const { member } = this.#parts;
    if (HERE.has(path)) return here(bytes, start, end, out, offset, call);
    if (member.isLeader) {
      if (READS.has(path) && !member.hasLease && !this.#isSerializable(path, bytes, start, end)) {
        member.confirm();
      }
      return here(bytes, start, end, out, offset, call);
    }
    if (call.metadata(FORWARDED) !== undefined || member.isEnded) {
      return call.fail(ETCD.noLeader.code, ETCD.noLeader.text);
    }
    if (path !== RANGE || this.#parts.passesUsers()) {
      return this.#pass(path, here, bytes, start, end, call);
    }
    if (this.#isSerializable(path, bytes, start, end)) {
      return here(bytes, start, end, out, offset, call);
    }
    return this.#readHere(here, bytes, start, end, call);
  }

  #isSerializable(path: string, bytes: Buffer, start: number, end: number): boolean {
    if (path !== RANGE) return false;
    const reader = this.#reader.reset(bytes, start, end);
    let isSerializable = false;
    while (reader.next()) {
      if (reader.field === 7 && reader.wireType === 0) isSerializable = reader.bool();
      else reader.skip();
    }
    return isSerializable;
  }

  #pass(
    path: string,
    here: InPlaceHandler,
    bytes: Buffer,
    start: number,
    end: number,
    call: InPlaceCall,
  ): number {
    const message = Buffer.from(bytes.subarray(start, end));
    const { timeoutMs } = call;
    const { link } = this.#parts;
    return call.defer((deferred) => {
      const pass = async (): Promise<void> => {
        const answer = await link.ask(path, message, passedMetadata(deferred), timeoutMs);
        if (deferred.closed) return;
        if (answer === 'here') {
          if (READS.has(path)) this.#parts.member.confirm();
          this.#run(here, message, deferred);
          return;
        }
        if (!Buffer.isBuffer(answer)) {
          deferred.finish(answer.code, answer.text);
          return;
        }
        deferred.send(answer);
        deferred.finish(GRPC_CODES.ok);
      };
      unawaited(pass());
    });
  }

  #readHere(
    here: InPlaceHandler,
    bytes: Buffer,
    start: number,
    end: number,
    call: InPlaceCall,
  ): number {
    const message = Buffer.from(bytes.subarray(start, end));
    return call.defer((deferred) => {
      const read = async (): Promise<void> => {
        const revision = await this.#index();
        const failure = typeof revision === 'number' ? await this.#reached(revision) : revision;
        if (this.#parts.member.isLeader) this.#parts.member.confirm();
        if (deferred.closed) return;
        if (failure !== null) {
          deferred.finish(failure.code, failure.text);
          return;
        }
        this.#run(here, message, deferred);
      };
      unawaited(read());
    });
  }

  /** Serves a call here that was put off. */
  #run(here: InPlaceHandler, message: Buffer, deferred: GrpcCall): void {
    const to = here(message, 0, message.length, this.#out, 0, unaryOf(deferred));
    if (to < 0) return;
    deferred.send(this.#out, 0, to);
    deferred.finish(GRPC_CODES.ok);
  }

  /** How far the group is, asked after this call was made; all that wait share one question. */
  #index(): Promise<number | EtcdFailure> {
    if (this.#nextIndex !== null) return this.#nextIndex;
    const ask = async (): Promise<number | EtcdFailure> => {
      await this.#lastIndex;
      this.#nextIndex = null;
      const answer = await this.#parts.link.ask(READ_INDEX, Buffer.alloc(0), [], READ_MS_MAX);
      if (answer !== 'here')
        return Buffer.isBuffer(answer) ? decodeIndex(answer, 0, answer.length) : answer;
      // What it holds is all there is, once it knows that it still leads.
      this.#parts.member.confirm();
      return 0;
    };
    const next = ask();
    this.#nextIndex = next;
    this.#lastIndex = next;
    return next;
  }

  /** Until this member has published the revision. */
  #reached(revision: number): Promise<EtcdFailure | null> {
    const { store, member, nowMs } = this.#parts;
    if (member.isEnded) return Promise.resolve(ETCD.noLeader);
    if (store.publishedRevision >= revision) return Promise.resolve(null);
    const { promise, resolve } = Promise.withResolvers<EtcdFailure | null>();
    this.#waiting.push({ revision, go: resolve, untilMs: nowMs() + READ_MS_MAX });
    return promise;
  }

  #published(revision: number): void {
    if (this.#waiting.length === 0) return;
    const ready = this.#waiting.filter((one) => one.revision <= revision);
    this.#waiting = this.#waiting.filter((one) => one.revision > revision);
    for (const { go } of ready) go(null);
  }

  /** Reads that have waited for too long fail, and so do writes that the journal does not take. */
  tick(): void {
    const nowMs = this.#parts.nowMs();
    this.#lookAtWrites(nowMs);
    const late = this.#waiting.filter(({ untilMs }) => untilMs <= nowMs);
    if (late.length === 0) return;
    this.#waiting = this.#waiting.filter(({ untilMs }) => untilMs > nowMs);
    for (const { go } of late) go(ETCD.timeout);
  }

  /** Answers that wait are written already; their connections end, as with a leader that failed. */
  #lookAtWrites(nowMs: number): void {
    const { member, store, endHeld } = this.#parts;
    const { publishedChange } = store;
    if (!member.isLeader || !store.isPending || publishedChange !== this.#movedTo) {
      this.#movedTo = publishedChange;
      this.#movedMs = nowMs;
    } else if (nowMs - this.#movedMs > WRITE_MS_MAX) endHeld();
  }

  stream(path: string, here: GrpcCallFactory): GrpcCallFactory {
    if (HERE.has(path)) return here;
    return (call) => {
      const { member, link } = this.#parts;
      if (path === WATCH && !this.#parts.passesUsers()) return here(call);
      if (!member.isLeader) {
        if (call.metadata(FORWARDED) === undefined && !member.isEnded) return link.pass(call);
        return new RefusedCall(call, ETCD.noLeader);
      }
      if (path === WATCH) return here(call);
      if (READS.has(path)) member.confirm();
      const handler = here(call);
      this.#streams = this.#streams.filter((one) => !one.call.closed);
      this.#streams.push({ call, handler });
      return handler;
    };
  }

  /** This member leads no more: whoever is at work with it as the leader must look for another. */
  stepDown(): void {
    const streams = this.#streams;
    this.#streams = [];
    for (const { call, handler } of streams) {
      if (call.closed) continue;
      call.finish(LEADER_CHANGED.code, LEADER_CHANGED.text);
      handler.onCancel('aborted');
    }
  }
}

/** A call that is answered later, for a handler that answers at once. */
function unaryOf(call: GrpcCall): InPlaceCall {
  return {
    connection: call.connection,
    timeoutMs: call.timeoutMs,
    metadata: (name) => call.metadata(name),
    fail: (code, text) => {
      call.finish(code, text);
      return -1;
    },
    reply: (bytes) => {
      call.send(bytes);
      call.finish(GRPC_CODES.ok);
      return -2;
    },
    defer: (take) => {
      take(call);
      return -3;
    },
  };
}

/** Reads an answer to READ_INDEX. */
export function decodeIndex(bytes: Buffer, start: number, end: number): number {
  const reader = new ProtobufReader().reset(bytes, start, end);
  let revision = 0;
  while (reader.next()) {
    if (reader.field === 1 && reader.wireType === 0) revision = reader.int64();
    else reader.skip();
  }
  return revision;
}

/**
 * The queue that a lock and an election are: keys below `name/`, each held by a lease, in the
 * order of their creation. Keys, transactions and errors are those of etcd's own client library,
 * so that its clients and this server's services stand in one queue.
 */
import type { EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import { Message, type MessageField, encodeMessage } from '../codec/message.ts';
import type { OwnCalls, Principal } from './own-calls.ts';

/** Seconds of a lease that is granted where the caller names none. */
const SESSION_TTL_SECONDS = 60n;
const ORDER_ASCEND = 1n;
const ORDER_DESCEND = 2n;
const TARGET_CREATE = 2n;
/** Compare.target, and the member of its union. */
const COMPARE_CREATE = 1n;
const COMPARE_CREATE_FIELD = 5;
const OP_RANGE = 1;
const OP_PUT = 2;
const SLASH = Buffer.from('/');
const AFTER_SLASH = Buffer.from('0');

/** A key in the queue. */
export interface Place {
  readonly key: Buffer;
  readonly createRevision: bigint;
  readonly lease: bigint;
  /** Header of the answer that gave or found it. */
  readonly header: Buffer;
  /** Null when the key was made now; else what it held. */
  readonly found: Buffer | null;
  /** Nobody stood before it when it was looked at. */
  readonly isFirst: boolean;
}

/** The oldest key of a queue, or the one just before a revision. */
export function firstOf(name: Buffer): MessageField[] {
  return top(name, ORDER_ASCEND);
}

/** The keys of a queue: from the first one on, and the first that is none of it. */
export function rangeOf(name: Buffer): { readonly key: Buffer; readonly end: Buffer } {
  return { key: Buffer.concat([name, SLASH]), end: Buffer.concat([name, AFTER_SLASH]) };
}

function top(name: Buffer, order: bigint): MessageField[] {
  const { key, end } = rangeOf(name);
  return [
    [1, key],
    [2, end],
    [3, 1n],
    [5, order],
    [6, TARGET_CREATE],
  ];
}

function createdAt(key: Buffer, revision: bigint): Buffer {
  return encodeMessage([
    [2, COMPARE_CREATE],
    [3, key],
    [COMPARE_CREATE_FIELD, revision],
  ]);
}

function op(member: number, fields: readonly MessageField[]): Buffer {
  return encodeMessage([[member, encodeMessage(fields)]]);
}

/** If `key` was created at `revision`, one operation. */
export function onlyIfCreated(
  key: Buffer,
  revision: bigint,
  member: number,
  fields: readonly MessageField[],
): MessageField[] {
  return [
    [1, createdAt(key, revision)],
    [2, op(member, fields)],
  ];
}

/** The lease given, or a new one. */
export function session(calls: OwnCalls, caller: Principal, lease: bigint): bigint | EtcdFailure {
  if (lease !== 0n) return lease;
  const granted = calls.ask(caller, 'Lease/LeaseGrant', [[1, SESSION_TTL_SECONDS]]);
  return 'code' in granted ? granted : granted.number(2);
}

/** Joins the queue; a session that is in it already keeps its place. */
export function join(
  calls: OwnCalls,
  caller: Principal,
  name: Buffer,
  wanted: bigint,
  value: Buffer,
): Place | EtcdFailure {
  const lease = session(calls, caller, wanted);
  if (typeof lease !== 'bigint') return lease;
  const key = Buffer.concat([name, SLASH, Buffer.from(lease.toString(16))]);
  const first = op(OP_RANGE, firstOf(name));
  const put: MessageField[] = [
    [1, key],
    [2, value],
    [3, lease],
  ];
  const answer = calls.ask(caller, 'KV/Txn', [
    [1, createdAt(key, 0n)],
    [2, op(OP_PUT, put)],
    [2, first],
    [3, op(OP_RANGE, [[1, key]])],
    [3, first],
  ]);
  if ('code' in answer) return answer;
  const [own, oldest] = answer.messages(3);
  const header = answer.bytes(1);
  const isNew = answer.number(2) === 1n;
  const old = isNew ? null : (own?.message(OP_RANGE).message(2) ?? null);
  const createRevision = old?.number(2) ?? new Message(header).number(3);
  const owner = oldest?.message(OP_RANGE).message(2);
  const isFirst = owner === undefined || owner.number(2) === createRevision;
  return { key, createRevision, lease, header, found: old?.bytes(5) ?? null, isFirst };
}

/** Resolves when every key of the queue that is older than the place is gone; null then. */
export async function waitForOlder(
  calls: OwnCalls,
  caller: Principal,
  name: Buffer,
  place: Place,
): Promise<EtcdFailure | null> {
  const request: MessageField[] = [...top(name, ORDER_DESCEND), [13, place.createRevision - 1n]];
  for (;;) {
    if (caller.isGone) return ETCD.stopped;
    const answer = calls.ask(caller, 'KV/Range', request);
    if ('code' in answer) return answer;
    const [older] = answer.messages(2);
    if (older === undefined) return null;
    const from = Number(answer.message(1).number(3));
    const failure = await deletion(calls.context, caller, older.bytes(1), from);
    if (failure !== null) return failure;
  }
}

/** Resolves with null when the key has been deleted at or after a revision. */
function deletion(
  { store }: EtcdContext,
  caller: Principal,
  key: Buffer,
  from: number,
): Promise<EtcdFailure | null> {
  return new Promise((resolve) => {
    let id = 0;
    const done = (failure: EtcdFailure | null): void => {
      store.unwatch(id);
      caller.onGone = null;
      resolve(failure);
    };
    const read = (): void => {
      for (let ref = store.watchNext(id); ref !== 0; ref = store.watchNext(id)) {
        if (ref < 0) return done(ETCD.compacted);
        if (store.isTombstone(ref)) return done(null);
      }
    };
    id = store.watch(key, 0, key.length, 0, 0, from, { onEvents: read });
    caller.onGone = () => done(ETCD.stopped);
    read();
  });
}

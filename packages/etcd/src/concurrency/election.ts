/** `v3electionpb.Election`: the oldest key below `name/` is the leader, its value what it says. */
import { ETCD, type EtcdFailure, unknown } from '../codec/failures.ts';
import type { Serve } from './lock.ts';
import { type Message, encodeMessage } from '../codec/message.ts';
import type { OwnCalls, Principal } from './own-calls.ts';
import { LeaderWatch } from './leader-watch.ts';
import {
  type Place,
  firstOf,
  join,
  onlyIfCreated,
  rangeOf,
  session,
  waitForOlder,
} from './queue.ts';

const NO_LEADER = unknown('election: no leader');
const NOT_LEADER = unknown('election: not leader');
const LEADER_MISSING = unknown('"leader" field must be provided');
const OP_PUT = 2;
const OP_DELETE = 3;
const NOTHING = Buffer.alloc(0);

/** What a leader knows of itself, as it sends it with each call. */
interface LeaderKey {
  readonly key: Buffer;
  readonly revision: bigint;
  readonly lease: bigint;
}

export const campaign: Serve = async (calls, caller, request) => {
  const name = request.bytes(1);
  const value = request.bytes(3);
  const place = join(calls, caller, name, request.number(2), value);
  if ('code' in place) return place;
  const { key, createRevision, lease, header } = place;
  const own = { key, revision: createRevision, lease };
  const failure =
    correct(calls, caller, place, own, value) ?? (await waitForOlder(calls, caller, name, place));
  if (failure !== null) {
    if (caller.isGone) resignKey(calls, caller, own);
    return failure;
  }
  const leader = encodeMessage([
    ...(name.length > 0 ? [[1, name] as const] : []),
    [2, key],
    [3, createRevision],
    [4, lease],
  ]);
  return encodeMessage([
    [1, header],
    [2, leader],
  ]);
};

/** A session that stands again says what it says now. */
function correct(
  calls: OwnCalls,
  caller: Principal,
  { found }: Place,
  own: LeaderKey,
  value: Buffer,
): EtcdFailure | null {
  if (found === null || found.equals(value)) return null;
  const answer = proclaimValue(calls, caller, own, value);
  return 'code' in answer ? answer : null;
}

export const leader: Serve = (calls, caller, request) => {
  const answer = calls.ask(caller, 'KV/Range', firstOf(request.bytes(1)));
  if ('code' in answer) return answer;
  if (!answer.has(2)) return NO_LEADER;
  return encodeMessage([
    [1, answer.bytes(1)],
    [2, answer.bytes(2)],
  ]);
};

/** The leader that a request names, its lease granted where it names none. */
function leaderKey(calls: OwnCalls, caller: Principal, request: Message): LeaderKey | EtcdFailure {
  if (!request.has(1)) return LEADER_MISSING;
  const sent = request.message(1);
  if (!sent.isWhole) return ETCD.malformed;
  const lease = session(calls, caller, sent.number(4));
  if (typeof lease !== 'bigint') return lease;
  return { key: Buffer.from(sent.bytes(2)), revision: sent.number(3), lease };
}

function proclaimValue(
  calls: OwnCalls,
  caller: Principal,
  { key, revision, lease }: LeaderKey,
  value: Buffer,
): Message | EtcdFailure {
  const answer = calls.ask(
    caller,
    'KV/Txn',
    onlyIfCreated(key, revision, OP_PUT, [
      [1, key],
      [2, value],
      [3, lease],
    ]),
  );
  if ('code' in answer) return answer;
  return answer.number(2) === 1n ? answer : NOT_LEADER;
}

export const proclaim: Serve = (calls, caller, request) => {
  const own = leaderKey(calls, caller, request);
  if ('code' in own) return own;
  const answer = proclaimValue(calls, caller, own, request.bytes(2));
  return 'code' in answer ? answer : encodeMessage([[1, answer.bytes(1)]]);
};

function resignKey(
  calls: OwnCalls,
  caller: Principal,
  { key, revision }: LeaderKey,
): Message | EtcdFailure {
  return calls.ask(caller, 'KV/Txn', onlyIfCreated(key, revision, OP_DELETE, [[1, key]]));
}

/** Whoever is not the leader any more has resigned already. */
export const resign: Serve = (calls, caller, request) => {
  const own = leaderKey(calls, caller, request);
  if ('code' in own) return own;
  const answer = resignKey(calls, caller, own);
  return 'code' in answer ? answer : encodeMessage([[1, answer.bytes(1)]]);
};

/** Sends each leader and all that it says, one behind the other, until the caller goes. */
export const observe: Serve = async (calls, caller, request, call) => {
  const name = request.bytes(1);
  const watch = new LeaderWatch(calls.context, caller, call);
  while (!caller.isGone) {
    const answer = calls.ask(caller, 'KV/Range', firstOf(name));
    // etcd ends the stream in order where it may not read on.
    if ('code' in answer) break;
    const revision = Number(answer.message(1).number(3));
    if (answer.has(2)) watch.sendKv(answer.bytes(1), answer.bytes(2), revision);
    else if (!(await watch.untilPut(rangeOf(name), revision))) break;
    if (!(await watch.untilDeleted())) break;
  }
  return NOTHING;
};

/** `v3lockpb.Lock`: Lock waits until nobody older holds the name, Unlock deletes the key. */
import type { GrpcCall } from '@megaplane/wire/grpc';
import { type EtcdFailure, unknown } from '../codec/failures.ts';
import { type Message, encodeMessage } from '../codec/message.ts';
import type { OwnCalls, Principal } from './own-calls.ts';
import { join, waitForOlder } from './queue.ts';

const EXPIRED = unknown('mutex: session is expired');

/** A call's answer; nothing is sent when nobody waits any more. */
export type Serve = (
  calls: OwnCalls,
  caller: Principal,
  request: Message,
  call: GrpcCall,
) => Promise<Buffer | EtcdFailure> | Buffer | EtcdFailure;

export const lock: Serve = async (calls, caller, request) => {
  const name = request.bytes(1);
  const place = join(calls, caller, name, request.number(2), Buffer.alloc(0));
  if ('code' in place) return place;
  if (place.isFirst) return locked(place.header, place.key);
  const failure = await waitForOlder(calls, caller, name, place);
  if (failure !== null) {
    // Whoever stops waiting leaves the queue; those behind must not wait for its lease to end.
    calls.ask(caller, 'KV/DeleteRange', [[1, place.key]]);
    return failure;
  }
  const own = calls.ask(caller, 'KV/Range', [[1, place.key]]);
  if ('code' in own) return own;
  return own.has(2) ? locked(own.bytes(1), place.key) : EXPIRED;
};

function locked(header: Buffer, key: Buffer): Buffer {
  return encodeMessage([
    [1, header],
    [2, key],
  ]);
}

export const unlock: Serve = (calls, caller, request) => {
  const answer = calls.ask(caller, 'KV/DeleteRange', [[1, request.bytes(1)]]);
  return 'code' in answer ? answer : encodeMessage([[1, answer.bytes(1)]]);
};

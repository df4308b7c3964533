/**
 * Calls of this server's own methods on behalf of a caller: what the Lock and Election services
 * are made of. They go through the same table as calls from outside, so permissions, alarms and
 * the gate count for them as for anybody.
 */
import type { Connection } from '@megaplane/wire/exchange';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCode, InPlaceCall } from '@megaplane/wire/grpc';
import { assert } from '@megaplane/base/assert';
import type { EtcdContext } from '../call/context.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import type { Caller, ServedMethods } from '../call/served-methods.ts';
import { Message, type MessageField, encodeMessage } from '../codec/message.ts';

/** Metadata that tells who somebody is; the wire forgets it when the call has ended. */
const IDENTITY = ['token', 'authorization', 'client-api-version'];

/** Who asked, for as long as the work for them goes on. */
export class Principal implements Caller {
  readonly connection: Connection;
  readonly #metadata: Map<string, string> = new Map();
  /** True when nobody waits for the answer any more. */
  isGone = false;
  onGone: (() => void) | null = null;
  /** The client has read: there is room for more messages. */
  onRoom: (() => void) | null = null;

  constructor(call: GrpcCall) {
    this.connection = call.connection;
    for (const name of IDENTITY) {
      const value = call.metadata(name);
      if (value !== undefined) this.#metadata.set(name, value);
    }
  }

  metadata(name: string): string | undefined {
    return this.#metadata.get(name);
  }

  gone(): void {
    this.isGone = true;
    this.onGone?.();
  }
}

/** The call of one request, answered in place. */
class OwnCall implements InPlaceCall {
  readonly connection: Connection;
  readonly timeoutMs: number = Infinity;
  readonly #caller: Principal;
  answer: Buffer | EtcdFailure = ETCD.stopped;

  constructor(caller: Principal) {
    this.connection = caller.connection;
    this.#caller = caller;
  }

  metadata(name: string): string | undefined {
    return this.#caller.metadata(name);
  }

  fail(code: GrpcCode, text: string): number {
    this.answer = { code, text };
    return -1;
  }

  reply(bytes: Uint8Array): number {
    this.answer = Buffer.from(bytes);
    return -2;
  }

  defer(): number {
    throw new Error('a call of the server to itself is answered in its turn');
  }
}

export class OwnCalls {
  readonly context: EtcdContext;
  readonly #methods: ServedMethods;
  readonly #out: Buffer = Buffer.allocUnsafeSlow(IN_PLACE_ROOM_BYTES);

  constructor(context: EtcdContext, methods: ServedMethods) {
    this.context = context;
    this.#methods = methods;
  }

  /** Asks `Service/Method` of etcd for a caller, in this turn. */
  ask(caller: Principal, method: string, fields: readonly MessageField[]): Message | EtcdFailure {
    const handler = this.#methods.inPlace(`/etcdserverpb.${method}`);
    assert(handler !== undefined, method);
    const request = encodeMessage(fields);
    const call = new OwnCall(caller);
    const to = handler(request, 0, request.length, this.#out, 0, call);
    if (to >= 0) return new Message(Buffer.from(this.#out.subarray(0, to)));
    return Buffer.isBuffer(call.answer) ? new Message(call.answer) : call.answer;
  }
}

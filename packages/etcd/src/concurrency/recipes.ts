/** `v3lockpb.Lock` and `v3electionpb.Election` as methods of a server. */
import type { CloseReason } from '@megaplane/wire/exchange';
import type { GrpcCall, GrpcCallHandler } from '@megaplane/wire/grpc';
import type { EtcdContext } from '../call/context.ts';
import { ETCD, unknown } from '../codec/failures.ts';
import type { ServedMethods } from '../call/served-methods.ts';
import { campaign, leader, observe, proclaim, resign } from './election.ts';
import { type Serve, lock, unlock } from './lock.ts';
import { Message } from '../codec/message.ts';
import { OwnCalls, Principal } from './own-calls.ts';

const METHODS: readonly (readonly [string, Serve])[] = [
  ['v3lockpb.Lock/Lock', lock],
  ['v3lockpb.Lock/Unlock', unlock],
  ['v3electionpb.Election/Campaign', campaign],
  ['v3electionpb.Election/Proclaim', proclaim],
  ['v3electionpb.Election/Leader', leader],
  ['v3electionpb.Election/Observe', observe],
  ['v3electionpb.Election/Resign', resign],
];

/** One call, which may wait for others for long. */
class RecipeCall implements GrpcCallHandler {
  readonly #calls: OwnCalls;
  readonly #serve: Serve;
  readonly #call: GrpcCall;
  readonly #caller: Principal;

  constructor(calls: OwnCalls, serve: Serve, call: GrpcCall) {
    this.#calls = calls;
    this.#serve = serve;
    this.#call = call;
    this.#caller = new Principal(call);
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    const request = new Message(Buffer.from(bytes.subarray(start, end)));
    if (request.isWhole) void this.#run(request);
    else {
      const isStream = this.#serve === observe;
      const { code, text } = isStream ? ETCD.malformedStream : ETCD.malformed;
      this.#call.finish(code, text);
    }
  }

  async #run(request: Message): Promise<void> {
    const call = this.#call;
    const answer = await this.#serve(this.#calls, this.#caller, request, call);
    if (call.closed) return;
    this.#calls.context.guard(call.connection);
    if ('code' in answer) {
      // etcd's services are clients of their own server: what they were told loses its code.
      const { code, text } = answer === ETCD.malformed ? answer : unknown(answer.text);
      call.finish(code, text);
      return;
    }
    if (answer.length > 0) call.send(answer);
    call.finish(0);
  }

  onHalfClose(): void {}

  onCancel(_reason: CloseReason): void {
    this.#caller.gone();
  }

  onWritable(): void {
    this.#caller.onRoom?.();
  }
}

export function registerRecipes(methods: ServedMethods, context: EtcdContext): void {
  const calls = new OwnCalls(context, methods);
  for (const [path, serve] of METHODS) {
    methods.call(`/${path}`, (call) => new RecipeCall(calls, serve, call));
  }
}

// data plane: calls that are counted as they end
/** Unary calls as their handlers see them; streams are in served-methods.ts. */
import type { Connection } from '@megaplane/wire/exchange';
import type { GrpcCall, GrpcCode, InPlaceCall } from '@megaplane/wire/grpc';
import type { FieldList } from '@megaplane/wire/fields';

/** Where an answer is counted. */
export interface AnswerCount {
  /** See ServingRules. */
  readonly gate: (connection: Connection) => void;
  /** A call ended that was begun at `startMs`. */
  ended(code: GrpcCode, startMs: number): void;
  sent(bytes: number): void;
}

/** The call that is served now: one object for all of them. */
export class CountedUnary implements InPlaceCall {
  #inner: InPlaceCall | null = null;
  #count: AnswerCount | null = null;
  #startMs = 0;
  /** Code of the failure, once it has failed. */
  failedCode: GrpcCode = 0;

  /** From here on it is this call; no handler of a unary method asks another one in its turn. */
  begin(inner: InPlaceCall, count: AnswerCount, startMs: number): void {
    this.#inner = inner;
    this.#count = count;
    this.#startMs = startMs;
  }

  get connection(): Connection {
    return this.#inner!.connection;
  }

  get timeoutMs(): number {
    return this.#inner!.timeoutMs;
  }

  metadata(name: string): string | undefined {
    return this.#inner!.metadata(name);
  }

  fail(code: GrpcCode, message: string): number {
    this.failedCode = code;
    return this.#inner!.fail(code, message);
  }

  reply(bytes: Uint8Array): number {
    this.#count!.sent(bytes.length);
    return this.#inner!.reply(bytes);
  }

  defer(take: (call: GrpcCall) => void): number {
    const count = this.#count!;
    const startMs = this.#startMs;
    return this.#inner!.defer((call) => take(new CountedAnswer(call, count, startMs)));
  }
}

/** A call as its handler sees it: everything goes on to the wire's. */
export class PassedCall implements GrpcCall {
  readonly #call: GrpcCall;

  constructor(call: GrpcCall) {
    this.#call = call;
  }

  get connection(): Connection {
    return this.#call.connection;
  }

  get path(): string {
    return this.#call.path;
  }

  get timeoutMs(): number {
    return this.#call.timeoutMs;
  }

  get closed(): boolean {
    return this.#call.closed;
  }

  get slot(): unknown {
    return this.#call.slot;
  }

  set slot(value: unknown) {
    this.#call.slot = value;
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata(name);
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.#call.send(bytes, start, end);
  }

  writable(): number {
    return this.#call.writable();
  }

  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  finish(code: GrpcCode, message?: string, trailers?: FieldList): void {
    this.#call.finish(code, message, trailers);
  }
}

/**
 * A unary call that is answered later. What its handler ends it with counts, as in Go's
 * middleware, also when the client has left meanwhile.
 */
class CountedAnswer extends PassedCall {
  readonly #count: AnswerCount;
  readonly #startMs: number;
  #isOver = false;

  constructor(call: GrpcCall, count: AnswerCount, startMs: number) {
    super(call);
    this.#count = count;
    this.#startMs = startMs;
  }

  override send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.#count.gate(this.connection);
    this.#count.sent(end - start);
    super.send(bytes, start, end);
  }

  override finish(code: GrpcCode, message?: string, trailers?: FieldList): void {
    this.#count.gate(this.connection);
    if (!this.#isOver) this.#count.ended(code, this.#startMs);
    this.#isOver = true;
    super.finish(code, message, trailers);
  }
}

// data plane: the methods as they are served: counted, and asked for permission first
/**
 * Every gRPC method is registered through this table. It counts what dashboards query (started,
 * handled by code, messages, bytes) in cells of typed arrays, asks the guard when users are
 * enabled, and keeps the handlers by path for the JSON gateway, which calls them in place.
 */
import { RefusedCall } from './refused-call.ts';
import { isUtf8 } from 'node:buffer';
import { BoundedHistogram } from '@megaplane/base/histogram';
import type {
  GrpcCall,
  GrpcCallFactory,
  GrpcCallHandler,
  GrpcCode,
  GrpcMethods,
  GrpcShape,
  InPlaceHandler,
} from '@megaplane/wire/grpc';
import type { CloseReason, Connection } from '@megaplane/wire/exchange';
import { type AnswerCount, CountedUnary, PassedCall } from './counted-call.ts';
import { ETCD, type EtcdFailure } from '../codec/failures.ts';
import type { FieldList } from '@megaplane/wire/fields';
import type { Router } from './router.ts';

/** What it sends was published before: it never waits for the log. */
const WATCH_PATH = '/etcdserverpb.Watch/Watch';
const CODES = 17;
/** What handlers return in place of an offset; see `InPlaceCall`. */
const FAILED = -1;
const DEFERRED = -3;
/** Bounds of grpc_server_handling_seconds, those of the usual Go middleware. */
const HANDLING_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Versions of clients that are counted apart; they come from clients and have no end. */
const CLIENT_VERSIONS_MAX = 64;

/** What one method has served. */
export class MethodCount {
  readonly service: string;
  readonly method: string;
  readonly type: GrpcShape;
  started = 0;
  received = 0;
  sent = 0;
  /** By code. */
  readonly handled: Float64Array = new Float64Array(CODES);
  /** Streams that ended with a failure of ours or were cut. */
  broken = 0;
  /** Null unless histograms were asked for. */
  readonly seconds: BoundedHistogram | null;

  constructor(path: string, type: GrpcShape, isTimed: boolean) {
    const slash = path.lastIndexOf('/');
    this.service = path.slice(1, slash);
    this.method = path.slice(slash + 1);
    this.type = type;
    this.seconds = isTimed ? new BoundedHistogram(HANDLING_S) : null;
  }
}

/** What a call of either kind tells about who calls. */
export interface Caller {
  readonly connection: Connection;
  metadata(name: string): string | undefined;
}

/** Decides over each request once users are enabled. */
export interface MethodGuard {
  readonly isEnabled: boolean;
  /** Null: it may go on. `path` is `/package.Service/Method`. */
  refuse(
    path: string,
    bytes: Buffer,
    start: number,
    end: number,
    caller: Caller,
  ): EtcdFailure | null;
}

/** Kept at a connection by the table: read once, not at every request. */
interface PeerNote {
  readonly unary: number;
  readonly stream: number;
  /** Of its calls: the name that the client gives its version is no text. */
  readonly failure: EtcdFailure | null;
}

/** What holds for every method. */
export interface ServingRules {
  readonly guard: MethodGuard;
  /** Keeps the answer that was just made, whatever it says, until what it saw is durable. */
  readonly gate: (connection: Connection) => void;
  /** Only when the time of each call is to be measured. */
  readonly nowMs: (() => number) | null;
  /** Null where there is one member. */
  readonly router: Router | null;
}

export class ServedMethods implements GrpcMethods {
  readonly counts: MethodCount[] = [];
  receivedBytes = 0;
  sentBytes = 0;
  /** Calls by client version and shape; indices are kept at the connections. */
  readonly clientLabels: { readonly type: string; readonly version: string }[] = [];
  readonly clientCalls: Float64Array = new Float64Array(CLIENT_VERSIONS_MAX * 2);
  readonly #unary = new CountedUnary();
  readonly #routes: GrpcMethods;
  readonly #rules: ServingRules;
  readonly #inPlace: Map<string, InPlaceHandler> = new Map();
  readonly #factories: Map<string, GrpcCallFactory> = new Map();

  constructor(routes: GrpcMethods, rules: ServingRules) {
    this.#routes = routes;
    this.#rules = rules;
  }

  inPlace(path: string): InPlaceHandler | undefined {
    return this.#inPlace.get(path);
  }

  factory(path: string): GrpcCallFactory | undefined {
    return this.#factories.get(path);
  }

  unary(path: string, handler: InPlaceHandler): void {
    const count = new MethodCount(path, 'unary', this.#rules.nowMs !== null);
    const { guard, gate } = this.#rules;
    const counted = this.#unary;
    const answers = this.#answersOf(count);
    this.counts.push(count);
    const served: InPlaceHandler = (bytes, start, end, out, offset, call) => {
      count.started++;
      this.receivedBytes += end - start;
      const note = this.#note(call);
      this.clientCalls[note.unary]!++;
      const startMs = this.startMsOf(count);
      let { failure } = note;
      if (guard.isEnabled) failure ??= guard.refuse(path, bytes, start, end, call);
      if (failure !== null) {
        count.handled[failure.code]!++;
        gate(call.connection);
        return call.fail(failure.code, failure.text);
      }
      counted.begin(call, answers, startMs);
      const to = handler(bytes, start, end, out, offset, counted);
      if (to === DEFERRED) return to;
      gate(call.connection);
      if (to >= 0) this.sentBytes += to - offset;
      count.handled[to === FAILED ? counted.failedCode : 0]!++;
      if (count.seconds !== null) count.seconds.record((this.#rules.nowMs!() - startMs) / 1000);
      return to;
    };
    const { router } = this.#rules;
    const routed: InPlaceHandler =
      router === null
        ? served
        : (...request) => {
            const [bytes, start, end, out, offset, call] = request;
            return router.unary(path, served, bytes, start, end, out, offset, call);
          };
    this.#inPlace.set(path, routed);
    this.#routes.unary(path, routed);
  }

  /** Counts what a method answers later, or at length. */
  #answersOf(count: MethodCount): AnswerCount {
    return {
      gate: this.#rules.gate,
      sent: (bytes) => {
        this.sentBytes += bytes;
      },
      ended: (code, startMs) => this.note(count, code, startMs),
    };
  }

  /** A call has ended that was begun at `startMs`. */
  note(count: MethodCount, code: GrpcCode, startMs: number): void {
    count.handled[code]!++;
    if (count.seconds !== null) count.seconds.record((this.#rules.nowMs!() - startMs) / 1000);
  }

  /** When a call begins, 0 where nobody wants to know. */
  startMsOf(count: MethodCount): number {
    return count.seconds === null ? 0 : this.#rules.nowMs!();
  }

  call(path: string, factory: GrpcCallFactory): void {
    const count = new MethodCount(path, typeOf(path), this.#rules.nowMs !== null);
    this.counts.push(count);
    const served: GrpcCallFactory = (call) => {
      count.started++;
      const note = this.#note(call);
      this.clientCalls[count.type === 'unary' ? note.unary : note.stream]!++;
      const { failure } = note;
      const make: GrpcCallFactory =
        failure === null ? factory : (refused) => new RefusedCall(refused, failure);
      return new CountedCall(this, count, this.#rules, call, make);
    };
    const routed = this.#rules.router?.stream(path, served) ?? served;
    this.#factories.set(path, routed);
    this.#routes.call(path, routed, count.type);
  }

  /** Who calls, by the first request of a connection. */
  #note(caller: Caller): PeerNote {
    const { connection } = caller;
    const found = connection.slot as PeerNote | undefined;
    if (found !== undefined) return found;
    const version = caller.metadata('client-api-version') ?? 'unknown';
    const failure = isUtf8(Buffer.from(version, 'latin1')) ? null : ETCD.clientVersionInvalid;
    const [unary, stream] = [this.#label('unary', version), this.#label('stream', version)];
    const note = { unary, stream, failure };
    connection.slot = note;
    return note;
  }

  #label(type: string, version: string): number {
    const known = this.clientLabels.findIndex(
      (label) => label.type === type && label.version === version,
    );
    if (known >= 0) return known;
    if (this.clientLabels.length < CLIENT_VERSIONS_MAX) {
      return this.clientLabels.push({ type, version }) - 1;
    }
    return type === 'unary' ? 0 : 1;
  }
}

/** The shape of a method that is served by calls. */
function typeOf(path: string): GrpcShape {
  if (path === WATCH_PATH || path.endsWith('KeepAlive')) return 'bidi_stream';
  const isUnary = /^\/v3(?:lock|election)pb\./.test(path) && !path.endsWith('/Observe');
  return isUnary ? 'unary' : 'server_stream';
}

/** A stream, counted on both sides. */
class CountedCall extends PassedCall implements GrpcCallHandler {
  readonly #table: ServedMethods;
  readonly #count: MethodCount;
  readonly #rules: ServingRules;
  readonly #handler: GrpcCallHandler;
  readonly #startMs: number;
  #isOver = false;

  constructor(
    table: ServedMethods,
    count: MethodCount,
    rules: ServingRules,
    call: GrpcCall,
    factory: GrpcCallFactory,
  ) {
    super(call);
    this.#table = table;
    this.#count = count;
    this.#startMs = table.startMsOf(count);
    this.#rules = rules;
    this.#handler = factory(this);
  }

  override send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.path !== WATCH_PATH) this.#rules.gate(this.connection);
    this.#count.sent++;
    this.#table.sentBytes += end - start;
    super.send(bytes, start, end);
  }

  override finish(code: GrpcCode, message?: string, trailers?: FieldList): void {
    this.#rules.gate(this.connection);
    this.#end(code);
    super.finish(code, message, trailers);
  }

  #end(code: GrpcCode): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#table.note(this.#count, code, this.#startMs);
  }

  onMessage(bytes: Buffer, start: number, end: number): void {
    this.#count.received++;
    this.#table.receivedBytes += end - start;
    const { guard } = this.#rules;
    if (guard.isEnabled) {
      const refused = guard.refuse(this.path, bytes, start, end, this);
      if (refused !== null) {
        this.finish(refused.code, refused.text);
        this.#handler.onCancel('aborted');
        return;
      }
    }
    this.#handler.onMessage(bytes, start, end);
  }

  onHalfClose(): void {
    this.#handler.onHalfClose();
  }

  onCancel(reason: CloseReason): void {
    if (reason !== 'cancelled') this.#count.broken++;
    this.#end(1);
    this.#handler.onCancel(reason);
  }

  onWritable(): void {
    this.#handler.onWritable?.();
  }
}

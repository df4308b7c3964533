/**
 * `/v3/*`: JSON over HTTP in front of the same handlers that serve gRPC. A request is turned into
 * the bytes of its message and given to the method's handler in this process; streams answer one
 * `{"result":...}` a line. Forms, texts and codes are those of etcd 3.4's gateway.
 */
import type { CloseReason, Connection, Exchange } from '@megaplane/wire/exchange';
import { IN_PLACE_ROOM_BYTES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCallHandler, GrpcCode, InPlaceCall } from '@megaplane/wire/grpc';
import { GATEWAY_MARK } from '../auth/service/auth-guard.ts';
import type { ServedMethods } from '../call/served-methods.ts';
import { encodeJson } from './json-request.ts';
import { goString, showJson } from './json-response.ts';
import { JsonDocuments, JsonError, JsonPieces } from './json-text.ts';
import { GATEWAY_ROUTES, type GatewayRoute } from '../codec/schema.ts';
import type { FieldList } from '@megaplane/wire/fields';

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';
const NO_SNIFF = ['x-content-type-options', 'nosniff'];
const FROM_GRPC = ['grpc-metadata-content-type', 'application/grpc'];
const PREFIX = /^\/v3(?:beta|alpha)?\//;
/** HTTP status by gRPC code, as etcd 3.4's gateway maps it. */
const STATUS: readonly number[] = [
  ...[200, 408, 500, 400, 504, 404, 409, 403, 429, 412],
  ...[409, 400, 501, 500, 503, 500, 401],
];
/** Bytes of JSON documents of a stream that are not whole yet. */
const DOCUMENT_BYTES_MAX: number = 4 * 1024 * 1024;

export interface GatewayOptions {
  readonly methods: ServedMethods;
  readonly messageBytesMax: number;
  /** Calls back once after so many milliseconds, unless the function that it returns was called. */
  readonly later: (ms: number, callback: () => void) => () => void;
}

/** Is this a path whose body arrives piece by piece? For the listener. */
export function streamsBody(method: string, path: string): boolean {
  return method === 'POST' && GATEWAY_ROUTES.get(path.replace(PREFIX, ''))?.isStream === true;
}

export class Gateway {
  readonly #methods: ServedMethods;
  readonly #messageBytesMax: number;
  readonly #later: GatewayOptions['later'];
  readonly #out: Buffer = Buffer.allocUnsafeSlow(IN_PLACE_ROOM_BYTES);

  constructor({ methods, messageBytesMax, later }: GatewayOptions) {
    this.#methods = methods;
    this.#messageBytesMax = messageBytesMax;
    this.#later = later;
  }

  /**
   * True when the path is below `/v3/` and was answered. `headers` go with every answer; null: a
   * page of an origin that may not call asks.
   */
  answer(exchange: Exchange, path: string, headers: FieldList | null): boolean {
    if (!PREFIX.test(path)) return false;
    if (headers === null) {
      // A page from elsewhere must not use the rights of whoever opened it.
      const body = 'requests of web pages need their origin in --cors\n';
      exchange.respond(403, TEXT_TYPE, body, NO_SNIFF);
      return true;
    }
    const route = GATEWAY_ROUTES.get(path.replace(PREFIX, ''));
    if (route === undefined) {
      exchange.respond(404, TEXT_TYPE, 'Not Found\n', [...NO_SNIFF, ...headers]);
    } else if (exchange.method !== 'POST') {
      exchange.respond(405, TEXT_TYPE, 'Method Not Allowed\n', [...NO_SNIFF, ...headers]);
    } else this.#call(exchange, route, headers);
    return true;
  }

  /** `Grpc-Timeout` is looked at before the body, and counts from here. */
  #call(exchange: Exchange, route: GatewayRoute, headers: FieldList): void {
    const asked = exchange.header('grpc-timeout') ?? '';
    const timeoutMs = asked === '' ? Infinity : gatewayTimeoutMs(asked);
    if (timeoutMs === null) {
      respondFailure(exchange, 3, `invalid grpc-timeout: ${asked}`, headers);
    } else if (timeoutMs < TIMEOUT_MS_MIN) respondFailure(exchange, 4, DEADLINE, headers);
    else if (route.isStream) this.#stream(exchange, route, headers, timeoutMs);
    else this.#unary(exchange, route, headers, timeoutMs);
  }

  /** Ends a call when its time is over, unless it ends before. */
  #limit(timeoutMs: number, expire: () => void): () => void {
    return timeoutMs === Infinity ? () => {} : this.#later(timeoutMs, expire);
  }

  #unary(exchange: Exchange, route: GatewayRoute, headers: FieldList, timeoutMs: number): void {
    const call = new UnaryCall(exchange, route, headers, timeoutMs);
    const message = this.#decode(exchange.body.toString('utf8'), route, call);
    if (message === null) return;
    const handler = this.#methods.inPlace(route.method);
    if (handler === undefined) {
      this.#wait(exchange, route, call, message);
      return;
    }
    const to = handler(message, 0, message.length, this.#out, 0, call);
    if (to >= 0) call.reply(this.#out.subarray(0, to));
    const { deferred } = call;
    if (deferred === null || deferred.closed) return;
    deferred.onOver = this.#limit(timeoutMs, () => deferred.finish(4, DEADLINE));
  }

  /** A unary method whose answer may take long. */
  #wait(exchange: Exchange, route: GatewayRoute, unary: UnaryCall, message: Buffer): void {
    const factory = this.#methods.factory(route.method);
    if (factory === undefined) {
      unary.fail(12, `unknown method ${route.method.slice(route.method.lastIndexOf('/') + 1)}`);
      return;
    }
    const call = new DeferredCall(unary, exchange, route);
    const handler = factory(call);
    call.onOver = this.#limit(unary.timeoutMs, () => {
      call.finish(4, DEADLINE);
      handler.onCancel('aborted');
    });
    exchange.onClose = (reason) => {
      call.onOver();
      handler.onCancel(reason);
    };
    handler.onMessage(message, 0, message.length);
    if (!call.closed) handler.onHalfClose();
  }

  /** The first document of a body as a message; null when it was refused. */
  #decode(text: string, route: GatewayRoute, call: UnaryCall): Buffer | null {
    try {
      const document = new JsonDocuments(text).next();
      const message = document === null ? Buffer.alloc(0) : encodeJson(document, route.request);
      if (message.length <= this.#messageBytesMax) return message;
      call.fail(8, tooLarge(message.length, this.#messageBytesMax));
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      call.fail(3, error.message);
    }
    return null;
  }

  #stream(exchange: Exchange, route: GatewayRoute, headers: FieldList, timeoutMs: number): void {
    const call = new StreamCall(exchange, route, headers, this.#messageBytesMax);
    const factory = this.#methods.factory(route.method);
    if (factory === undefined) {
      call.finish(12, `unknown method for ${exchange.path}`);
      return;
    }
    call.onOver = this.#limit(timeoutMs, () => call.expire());
    call.start(factory(call));
  }
}

/** Nanoseconds of each unit of a `Grpc-Timeout`. */
const TIMEOUT_UNITS_NS = new Map<string, bigint>([
  ['H', 3_600_000_000_000n],
  ['M', 60_000_000_000n],
  ['S', 1_000_000_000n],
  ['m', 1_000_000n],
  ['u', 1000n],
  ['n', 1n],
]);
const DEADLINE = 'context deadline exceeded';
/** Less is over before anything can be done. */
const TIMEOUT_MS_MIN = 0.01;
/** The longest that timers take. */
const TIMER_MS_MAX = 2_147_483_647;

/**
 * Milliseconds as etcd's gateway reads them: any number of 64 bits, whose product with the unit is
 * cut to 64 bits, and 0 for no limit. Null for what it refuses.
 */
function gatewayTimeoutMs(text: string): number | null {
  const unit = TIMEOUT_UNITS_NS.get(text.slice(-1));
  const digits = text.slice(0, -1);
  if (unit === undefined || !/^[-+]?\d{1,20}$/.test(digits)) return null;
  const count = BigInt(digits.replace(/^\+/, ''));
  if (count !== BigInt.asIntN(64, count)) return null;
  const ms = Number(BigInt.asIntN(64, count * unit)) / 1e6;
  return ms === 0 || ms > TIMER_MS_MAX ? Infinity : ms;
}

function tooLarge(bytes: number, bytesMax: number): string {
  return `grpc: received message larger than max (${bytes} vs. ${bytesMax})`;
}

/**
 * The token of the caller: the gateway has it in the header `authorization`. What comes this way is
 * marked as etcd's own gateway marks it.
 */
function metadataOf(exchange: Exchange, name: string): string | undefined {
  if (name === GATEWAY_MARK) return exchange.header('accept') ?? '*/*';
  return name === 'token' ? exchange.header('authorization') : exchange.header(name);
}

/** What went wrong before anything was answered. */
function respondFailure(
  exchange: Exchange,
  code: GrpcCode,
  message: string,
  headers: FieldList,
): void {
  const text = goString(message);
  const body = `{"error":${text},"message":${text},"code":${code}}`;
  exchange.respond(STATUS[code] ?? 500, JSON_TYPE, body, headers);
}

/** One unary request, for its in-place handler. */
class UnaryCall implements InPlaceCall {
  readonly #exchange: Exchange;
  readonly #route: GatewayRoute;
  readonly #headers: FieldList;
  readonly timeoutMs: number;
  /** What answers it later, if it is answered later. */
  deferred: DeferredCall | null = null;

  constructor(exchange: Exchange, route: GatewayRoute, headers: FieldList, timeoutMs: number) {
    this.#exchange = exchange;
    this.#route = route;
    this.#headers = headers;
    this.timeoutMs = timeoutMs;
  }

  get connection(): Connection {
    return this.#exchange.connection;
  }

  metadata(name: string): string | undefined {
    return metadataOf(this.#exchange, name);
  }

  fail(code: GrpcCode, message: string): number {
    respondFailure(this.#exchange, code, message, this.#headers);
    return -1;
  }

  reply(bytes: Uint8Array): number {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const body = showJson(view, 0, view.length, this.#route.response);
    this.#exchange.respond(200, JSON_TYPE, body, [...FROM_GRPC, ...this.#headers]);
    return -2;
  }

  defer(take: (call: GrpcCall) => void): number {
    const deferred = new DeferredCall(this, this.#exchange, this.#route);
    this.deferred = deferred;
    take(deferred);
    return -3;
  }
}

/** A unary request that is answered later. */
class DeferredCall implements GrpcCall {
  readonly #unary: UnaryCall;
  readonly #exchange: Exchange;
  readonly path: string;
  slot: unknown = undefined;
  /** Called at its end. */
  onOver: () => void = () => {};

  constructor(unary: UnaryCall, exchange: Exchange, route: GatewayRoute) {
    this.#unary = unary;
    this.#exchange = exchange;
    this.path = route.method;
  }

  get timeoutMs(): number {
    return this.#unary.timeoutMs;
  }

  get connection(): Connection {
    return this.#exchange.connection;
  }

  get closed(): boolean {
    return this.#exchange.closed;
  }

  metadata(name: string): string | undefined {
    return metadataOf(this.#exchange, name);
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (!this.closed) this.#unary.reply(bytes.subarray(start, end));
  }

  writable(): number {
    return Number.MAX_SAFE_INTEGER;
  }

  pause(): void {}

  resume(): void {}

  finish(code: GrpcCode, message = ''): void {
    this.onOver();
    if (code !== 0 && !this.closed) this.#unary.fail(code, message);
  }
}

/** A stream: documents in as they come, lines out as the peer takes them. */
class StreamCall implements GrpcCall {
  readonly #exchange: Exchange;
  readonly #route: GatewayRoute;
  readonly #headers: FieldList;
  readonly #messageBytesMax: number;
  #handler: GrpcCallHandler | null = null;
  #isOpen = false;
  #isOver = false;
  /** A document was given to the handler. */
  #isBegun = false;
  /** No document comes any more. */
  #isHalfClosed = false;
  #pending = '';
  readonly #pieces = new JsonPieces();
  /** Length of what is pending at which it is looked at again, if no document ends before. */
  #lookAt = 0;
  slot: unknown = undefined;
  readonly timeoutMs: number = Infinity;
  /** Called at its end. */
  onOver: () => void = () => {};

  constructor(
    exchange: Exchange,
    route: GatewayRoute,
    headers: FieldList,
    messageBytesMax: number,
  ) {
    this.#exchange = exchange;
    this.#route = route;
    this.#headers = headers;
    this.#messageBytesMax = messageBytesMax;
  }

  get connection(): Connection {
    return this.#exchange.connection;
  }

  get path(): string {
    return this.#route.method;
  }

  get closed(): boolean {
    return this.#isOver || this.#exchange.closed;
  }

  metadata(name: string): string | undefined {
    return metadataOf(this.#exchange, name);
  }

  start(handler: GrpcCallHandler): void {
    const exchange = this.#exchange;
    this.#handler = handler;
    const decoder = new TextDecoder();
    exchange.onWritable = () => handler.onWritable?.();
    exchange.onClose = (reason: CloseReason) => this.#lost(reason);
    exchange.onBody = (bytes, start, end) =>
      this.#take(decoder.decode(bytes.subarray(start, end), { stream: true }), false);
    exchange.onBodyEnd = () => {
      this.#take('', true);
      this.#halfClose();
    };
  }

  #lost(reason: CloseReason): void {
    if (this.#isOver) return;
    this.#end();
    this.#handler?.onCancel(reason);
  }

  /** Gives the handler every document that is whole. */
  #take(text: string, isEnd: boolean): void {
    this.#pending += text;
    const isDue = this.#pieces.mayEnd(text) || isEnd || this.#pending.length >= this.#lookAt;
    if (this.closed || this.#isHalfClosed || !isDue) return;
    const documents = new JsonDocuments(this.#pending);
    let read = 0;
    try {
      for (;;) {
        const document = documents.next();
        read = documents.at;
        if (document === null) break;
        const message = encodeJson(document, this.#route.request);
        if (message.length > this.#messageBytesMax) {
          this.#refuse(8, tooLarge(message.length, this.#messageBytesMax));
          return;
        }
        this.#isBegun = true;
        this.#handler?.onMessage(message, 0, message.length);
        if (this.closed) return;
      }
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      const isCut = error.message === 'unexpected EOF' && !isEnd;
      if (!isCut || this.#pending.length > DOCUMENT_BYTES_MAX) this.#wrong(error.message);
    }
    this.#pending = this.#pending.slice(read);
    this.#lookAt = Math.min(this.#pending.length * 2, DOCUMENT_BYTES_MAX + 1);
  }

  /** As in etcd, only the first document is answered for; a later one ends the requests. */
  #wrong(message: string): void {
    if (this.#isBegun) {
      this.#halfClose();
      return;
    }
    this.#end();
    respondFailure(this.#exchange, 2, message, this.#headers);
    this.#handler?.onCancel('aborted');
  }

  #end(): void {
    this.#isOver = true;
    this.onOver();
  }

  /** Its time is over. */
  expire(): void {
    if (this.closed) return;
    if (this.#isOpen) this.finish(4, DEADLINE);
    else {
      this.#end();
      respondFailure(this.#exchange, 4, DEADLINE, this.#headers);
    }
    this.#handler?.onCancel('aborted');
  }

  #halfClose(): void {
    if (this.closed || this.#isHalfClosed) return;
    this.#isHalfClosed = true;
    this.#handler?.onHalfClose();
  }

  #refuse(code: GrpcCode, message: string): void {
    this.finish(code, message);
    this.#handler?.onCancel('aborted');
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.closed) return;
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#open(200);
    const message = showJson(view, start, end, this.#route.response);
    this.#exchange.write(Buffer.concat([RESULT, message, RESULT_END]));
  }

  #open(status: number): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#exchange.open(status, JSON_TYPE, [...FROM_GRPC, ...this.#headers]);
  }

  writable(): number {
    return this.closed ? 0 : this.#exchange.writable();
  }

  pause(): void {
    this.#exchange.pauseBody();
  }

  resume(): void {
    this.#exchange.resumeBody();
  }

  finish(code: GrpcCode, message = ''): void {
    if (this.closed) return;
    this.#end();
    const status = STATUS[code] ?? 500;
    this.#open(status);
    if (code !== 0) {
      const error =
        `{"error":{"grpc_code":${code},"http_code":${status},"message":${goString(message)},` +
        `"http_status":${goString(STATUS_TEXTS[status] ?? '')}}}`;
      this.#exchange.write(Buffer.from(error));
    }
    this.#exchange.end();
  }
}

const RESULT: Buffer = Buffer.from('{"result":');
const RESULT_END: Buffer = Buffer.from('}\n');
const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  409: 'Conflict',
  412: 'Precondition Failed',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

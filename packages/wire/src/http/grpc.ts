/**
 * gRPC as a contract: codes, calls and handlers, both ends.
 *
 * Two kinds of server methods exist. An *in-place* unary method is the hot one: it reads the
 * request inside the received chunk and writes the response inside the output buffer; no object
 * is made for the call. A *call* method gets an object per call and serves all four shapes of
 * methods (asynchronous unary, server, client and bidirectional streams).
 */
import type { ClientConnection, RequestFailure } from './client.ts';
import type { Connection, CloseReason } from './exchange.ts';
import type { FieldList } from '../fields.ts';

/** The status codes of gRPC, as their documentation numbers them. */
export const GRPC_CODES = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;
export type GrpcCode = (typeof GRPC_CODES)[keyof typeof GRPC_CODES];

/** Room in `out` that an in-place handler finds at least, octets from `offset`. */
export const IN_PLACE_ROOM_BYTES = 32_768;

/**
 * What an in-place handler may ask of the call that it serves. One object serves all calls: it is
 * valid until the handler returns.
 */
export interface InPlaceCall {
  readonly connection: Connection;
  /** Metadata of the request, by lower-case name; `-bin` values come decoded from base64 by
   *  `Buffer.from(value, 'base64')` of the caller. */
  metadata(name: string): string | undefined;
  /** Milliseconds that the client gives the call, Infinity without `grpc-timeout`. */
  readonly timeoutMs: number;
  /** `return call.fail(code, message)`: an error in place of a response. */
  fail(code: GrpcCode, message: string): number;
  /** `return call.reply(bytes)`: a response that does not fit the room; belongs to the wire. */
  reply(bytes: Uint8Array): number;
  /** `return call.defer(take)`: answered later. `take` receives the call at once. The request's
   *  bytes are not valid after the handler. */
  defer(take: (call: GrpcCall) => void): number;
}

/**
 * Reads the request message in `bytes[start..end)`, writes the response message into `out` from
 * `offset` on (at most `IN_PLACE_ROOM_BYTES`) and returns the offset after it. Must not keep
 * `bytes` or `out`, must not throw.
 */
export type InPlaceHandler = (
  bytes: Buffer,
  start: number,
  end: number,
  out: Buffer,
  offset: number,
  call: InPlaceCall,
) => number;

/** One call of the second kind, at the server. Ignores everything after its end. */
export interface GrpcCall {
  readonly connection: Connection;
  /** `/package.Service/Method`. */
  readonly path: string;
  metadata(name: string): string | undefined;
  /** Milliseconds that the client gives the call, Infinity without `grpc-timeout`. The wire ends
   *  the call with `deadlineExceeded` by itself (within a second after). */
  readonly timeoutMs: number;
  readonly closed: boolean;
  /** For the user. */
  slot: unknown;
  /** Sends a message; copied before it returns. Leaves with all else of the turn. */
  send(bytes: Uint8Array, start?: number, end?: number): void;
  /** As `Exchange.writable`: send while it is above 0, then wait for `onWritable`. */
  writable(): number;
  /** Stops giving window to the client; messages under way still arrive. */
  pause(): void;
  resume(): void;
  /** Ends the call. `message` is percent-encoded by the wire. Trailers as `[name, value, ...]`. */
  finish(code: GrpcCode, message?: string, trailers?: FieldList): void;
}

/** The handler's side of a call. */
export interface GrpcCallHandler {
  /** Each message, in order; valid during the call only. */
  onMessage(bytes: Buffer, start: number, end: number): void;
  /** The client sends no more. A unary or server-streaming call has had its one message. */
  onHalfClose(): void;
  /** The call ended before `finish`: cancelled, deadline, connection lost. Not after `finish`. */
  onCancel(reason: CloseReason): void;
  /** After `writable()` returned 0: it is above 0 again. */
  onWritable?(): void;
}

/** Makes the handler of one call, as its head is in. */
export type GrpcCallFactory = (call: GrpcCall) => GrpcCallHandler;

/** How many messages each side of a method sends, by the words of gRPC's metrics. */
export type GrpcShape = 'unary' | 'server_stream' | 'bidi_stream';

/** A server's methods. Give it to `listen`; the same table may serve several listeners. */
export interface GrpcMethods {
  /** Registers `/package.Service/Method` as in-place unary. */
  unary(path: string, handler: InPlaceHandler): void;
  /**
   * Registers any shape of method by a call object, both sides streaming if nothing is said. The
   * wire counts requests as grpc-go does: of a unary call it gives the handler the first one, a
   * server stream with more than one or none fails, before `onHalfClose`.
   */
  call(path: string, factory: GrpcCallFactory, shape?: GrpcShape): void;
}

export interface GrpcOptions {
  /** Octets of one received message; above it the call fails with `resourceExhausted`. */
  readonly messageBytesMax: number;
  /** Text of that failure; etcd's clients match on etcd's own. */
  readonly messageTooLargeText: (bytes: number, bytesMax: number) => string;
}

/** Result of a client's call. */
export interface GrpcStatus {
  readonly code: GrpcCode;
  readonly message: string;
  readonly trailers: FieldList;
  /** Set when the status was not the server's own word but the transport's. */
  readonly failure: RequestFailure | null;
}

/** One call at the client. */
export interface GrpcClientCall {
  tag: number;
  readonly closed: boolean;
  send(bytes: Uint8Array, start?: number, end?: number): void;
  writable(): number;
  onWritable: (() => void) | null;
  pause(): void;
  resume(): void;
  /** No more messages from this side. */
  halfClose(): void;
  cancel(): void;
}

/** Receives a client's answers; may serve any number of calls (see `tag`). */
export interface GrpcSink {
  onMessage(call: GrpcClientCall, bytes: Buffer, start: number, end: number): void;
  /** Last, exactly once. */
  onStatus(call: GrpcClientCall, status: GrpcStatus): void;
}

export interface GrpcClient {
  readonly connection: ClientConnection;
  /** A unary call: sends the message (copied) and half-closes. */
  unary(
    path: string,
    message: Uint8Array,
    sink: GrpcSink,
    options?: { readonly tag?: number; readonly timeoutMs?: number },
  ): GrpcClientCall;
  /** Any other shape: `send` and `halfClose` are the caller's. */
  open(
    path: string,
    sink: GrpcSink,
    options?: { readonly tag?: number; readonly timeoutMs?: number },
  ): GrpcClientCall;
}

/** A registered method: one of the two handlers is set. */
export interface GrpcRoute {
  readonly path: string;
  readonly inPlace: InPlaceHandler | null;
  readonly factory: GrpcCallFactory | null;
  readonly shape: GrpcShape;
}

export interface GrpcRefusal {
  readonly code: GrpcCode;
  readonly message: string;
  /** Of HTTP: not 200 where what is wrong is no call. */
  readonly status: number;
}

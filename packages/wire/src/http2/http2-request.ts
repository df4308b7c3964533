// data plane
/** A client's request over HTTP/2: the user's handle, and the stream's owner. */
import type {
  ClientConnection,
  ClientStream,
  PreparedFields,
  RequestFailure,
  ResponseSink,
} from '../http/client.ts';
import type { CloseReason } from '../http/exchange.ts';
import { ERRORS } from './frames.ts';
import type { Http2Session } from './http2-session.ts';
import type { H2Stream, StreamOwner } from './stream.ts';
import type { FieldList } from '../fields.ts';

const NO_FIELDS: readonly string[] = [];
/** Error codes of RFC 9113 7 by number, for people. */
export const ERROR_NAMES: readonly string[] = [
  ...['none', 'protocol error', 'internal error', 'flow control error', 'settings timeout'],
  ...['stream closed', 'frame size error', 'refused stream', 'cancel', 'compression error'],
  ...['connect error', 'enhance your calm', 'inadequate security', 'HTTP/1.1 required'],
];

/** What waits for a stream: the head, and the body so far. */
export interface PendingRequest {
  readonly method: string;
  readonly path: string;
  readonly fields: PreparedFields;
  readonly extra: FieldList;
  readonly indexPath: boolean;
  readonly chunks: Buffer[];
  ended: boolean;
  wantsReady: boolean;
  deadlineMs: number;
}

type SessionOfRequests = Pick<
  Http2Session,
  'giveStreamBack' | 'sendData' | 'sendEnd' | 'writable' | 'transport'
>;

/** The connection as its requests see it. */
export interface RequestConnection extends ClientConnection, SessionOfRequests {
  /** Why the connection ends, for people. */
  readonly reason: string;
  /** Gives a request up; its stream is reset. */
  cancel(request: Http2Request): void;
}

/** A request in flight: the user's handle and the stream's owner. */
export class Http2Request implements ClientStream, StreamOwner {
  tag: number;
  onWritable: (() => void) | null = null;
  readonly connection: RequestConnection;
  readonly sink: ResponseSink;
  stream: H2Stream | null = null;
  /** What waits for a stream: fields and the body so far. */
  pending: PendingRequest | null = null;
  closed = false;
  #paused = false;

  constructor(connection: RequestConnection, sink: ResponseSink, tag: number) {
    this.connection = connection;
    this.sink = sink;
    this.tag = tag;
  }

  pause(): void {
    this.#paused = true;
    if (this.stream !== null) this.stream.paused = true;
  }

  resume(): void {
    this.#paused = false;
    if (this.stream === null) return;
    this.stream.paused = false;
    this.connection.giveStreamBack(this.stream);
  }

  cancel(): void {
    this.connection.cancel(this);
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (this.stream !== null) this.connection.sendData(this.stream, view, start, end);
    else this.pending?.chunks.push(Buffer.from(view.subarray(start, end)));
  }

  end(): void {
    if (this.stream !== null) this.connection.sendEnd(this.stream, null);
    else if (this.pending !== null) this.pending.ended = true;
  }

  writable(): number {
    if (this.stream !== null) return this.connection.writable(this.stream);
    if (this.pending !== null) this.pending.wantsReady = true;
    return 0;
  }

  /** When the owner of a deadline wants to hear of it: monotonic milliseconds. */
  deadline(timeoutMs: number): void {
    const atMs = this.connection.transport.nowMs() + timeoutMs;
    if (this.stream !== null) this.stream.deadlineMs = atMs;
    else if (this.pending !== null) this.pending.deadlineMs = atMs;
  }

  attach(stream: H2Stream): void {
    this.stream = stream;
    stream.owner = this;
    stream.paused = this.#paused;
  }

  onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.sink.onData(this, bytes, start, end, isLast);
  }

  onEnd(trailers: FieldList): void {
    if (this.closed) return;
    this.closed = true;
    this.sink.onEnd(this, null, trailers);
  }

  onDone(): void {
    this.stream = null;
  }

  onLost(reason: CloseReason, code: number): void {
    this.stream = null;
    if (reason === 'cancelled') {
      const kind = code === ERRORS.refusedStream ? 'refused' : 'reset';
      this.fail(kind, code, `the server reset the request: ${ERROR_NAMES[code] ?? code}`);
    } else if (reason === 'aborted') {
      this.fail('cancelled', code, 'the request was given up');
    } else {
      this.fail('disconnected', code, this.connection.reason);
    }
  }

  fail(kind: RequestFailure['kind'], code: number, message: string): void {
    if (this.closed) return;
    this.closed = true;
    this.stream = null;
    this.pending = null;
    this.sink.onEnd(this, { kind, code, message }, NO_FIELDS);
  }

  onReady(): void {
    this.onWritable?.();
  }

  onExpired(): void {
    this.connection.cancel(this);
  }
}

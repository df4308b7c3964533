/**
 * The client's end of an HTTP/1.1 connection: one request at a time, the others wait in order.
 *
 * Requests are not pipelined: when a connection breaks, all that is behind the first one may or may
 * not have been processed, and a client that cannot tell must not have sent it.
 */
import { assert } from '@megaplane/base/assert';
import {
  REQUESTS_WAITING_MAX,
  type ClientConnection,
  type ClientStream,
  type PreparedFields,
  type RequestFailure,
  type ResponseSink,
} from '../http/client.ts';
import { HTTP1_FAILURES, type Http1Head } from './http1-head.ts';
import { fieldLines, Http1Output } from './http1-output.ts';
import {
  Http1Parser,
  STEP_DATA,
  STEP_END,
  STEP_FAILED,
  STEP_HEAD,
  STEP_MORE,
} from './http1-parser.ts';
import { STREAM_QUEUE_BYTES_MAX } from '../limits.ts';
import type { ClientOptions, Protocol, Transport } from '../transport/transport.ts';
import type { FieldList } from '../fields.ts';

type RequestState = 'waiting' | 'sent' | 'closed';

class Http1ClientStream implements ClientStream {
  tag: number;
  readonly connection: Http1Client;
  readonly method: string;
  readonly sink: ResponseSink;
  onWritable: (() => void) | null = null;
  state: RequestState = 'waiting';
  /** Head and body, or head and the part of the body written so far, until it is its turn. */
  early: Http1Output | null = new Http1Output();
  /** The whole body was given. */
  isRequestOut: boolean;
  hasHead = false;
  isPaused = false;
  /** Its producer was told to wait. */
  wantsWritable = false;

  constructor(
    connection: Http1Client,
    method: string,
    sink: ResponseSink,
    tag: number,
    isRequestOut: boolean,
  ) {
    this.connection = connection;
    this.method = method;
    this.sink = sink;
    this.tag = tag;
    this.isRequestOut = isRequestOut;
  }

  get closed(): boolean {
    return this.state === 'closed';
  }

  pause(): void {
    this.isPaused = true;
    this.connection.changed();
  }

  resume(): void {
    this.isPaused = false;
    this.connection.changed();
  }

  cancel(): void {
    this.connection.cancel(this);
  }

  write(bytes: Uint8Array, start: number = 0, end: number = bytes.length): void {
    if (this.closed || this.isRequestOut) return;
    const output = this.early ?? this.connection.output;
    output.putChunk(bytes, start, end);
    if (output.length > STREAM_QUEUE_BYTES_MAX) this.cancel();
    else this.connection.changed();
  }

  end(): void {
    if (this.closed || this.isRequestOut) return;
    this.isRequestOut = true;
    (this.early ?? this.connection.output).putText('0\r\n\r\n');
    this.connection.changed();
  }

  writable(): number {
    if (this.closed || this.isRequestOut) return 0;
    const bytes = this.early === null ? Math.max(0, this.connection.budget()) : 0;
    if (bytes === 0) this.wantsWritable = true;
    return bytes;
  }

  offerWritable(): void {
    if (!this.wantsWritable || this.closed || this.connection.budget() <= 0) return;
    this.wantsWritable = false;
    this.onWritable?.();
  }
}

export class Http1Client implements Protocol, ClientConnection {
  readonly protocol = 'http/1.1' as const;
  readonly output: Http1Output = new Http1Output();
  onClosed: ((reason: string) => void) | null = null;
  onOpen: (() => void) | null = null;
  onDraining: (() => void) | null = null;
  readonly #transport: Transport;
  readonly #options: ClientOptions;
  readonly #parser: Http1Parser;
  #state: 'connecting' | 'open' | 'draining' | 'closed' = 'connecting';
  #isConnected = false;
  #current: Http1ClientStream | null = null;
  #waiting: Http1ClientStream[] = [];
  /** The present answer says that the connection ends with it. */
  #endsAfter = false;
  #isInterim = false;
  #isPaused = false;
  /** Nothing is read and written any more; what is left waits for the socket's end. */
  #isEnded = false;
  #reason = 'the connection was closed';
  readonly #bornMs: number;
  #progressMs: number;
  #pendingBytes = 0;

  constructor(transport: Transport, options: ClientOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#parser = new Http1Parser(true, options.limits.headBytesMax);
    this.#bornMs = transport.nowMs();
    this.#progressMs = this.#bornMs;
    transport.requestFlush();
  }

  get state(): 'connecting' | 'open' | 'draining' | 'closed' {
    return this.#state;
  }

  get capacity(): number {
    return this.#state === 'open' &&
      !this.#isEnded &&
      this.#current === null &&
      this.#waiting.length === 0
      ? 1
      : 0;
  }

  get inFlight(): number {
    return this.#waiting.length + (this.#current === null ? 0 : 1);
  }

  request(
    method: string,
    path: string,
    fields: PreparedFields,
    body: Uint8Array | string | null,
    sink: ResponseSink,
    tag: number = 0,
  ): ClientStream {
    const stream = new Http1ClientStream(this, method, sink, tag, true);
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    // A method that has a body by its nature says so also when it is empty (RFC 9110 8.6).
    const isCounted = bytes !== null || /^(POST|PUT|PATCH)$/.test(method);
    const framing = isCounted ? `content-length: ${bytes?.length ?? 0}\r\n` : '';
    this.#putHead(stream, method, path, fields, framing);
    if (bytes !== null) stream.early?.put(bytes, 0, bytes.length);
    this.#admit(stream);
    return stream;
  }

  open(
    method: string,
    path: string,
    fields: PreparedFields,
    sink: ResponseSink,
    tag: number = 0,
  ): ClientStream {
    const stream = new Http1ClientStream(this, method, sink, tag, false);
    this.#putHead(stream, method, path, fields, 'transfer-encoding: chunked\r\n');
    this.#admit(stream);
    return stream;
  }

  #putHead(
    stream: Http1ClientStream,
    method: string,
    path: string,
    { fields }: PreparedFields,
    framing: string,
  ): void {
    assert(/^[\w!#$%&'*+.^`|~-]+ [\x21-\x7e]+$/.test(`${method} ${path}`), 'method and path');
    const host = fieldLines(['host', this.#options.authority]);
    stream.early?.putText(
      `${method} ${path} HTTP/1.1\r\n${host}${fieldLines(fields)}${framing}\r\n`,
    );
  }

  #admit(stream: Http1ClientStream): void {
    const isRefused = this.#state === 'draining' || this.#state === 'closed';
    if (isRefused || this.#waiting.length >= REQUESTS_WAITING_MAX) {
      const why = isRefused ? `the connection is ${this.#state}` : 'too many requests wait';
      return this.#fail(stream, 'refused', why);
    }
    this.#waiting.push(stream);
    this.changed();
  }

  cancel(stream: Http1ClientStream): void {
    if (stream.closed) return;
    this.#waiting = this.#waiting.filter((other) => other !== stream);
    const isCurrent = this.#current === stream;
    if (isCurrent) this.#current = null;
    this.#fail(stream, 'cancelled', 'the request was given up');
    // There is no way to stop an answer but to cut the connection.
    if (isCurrent) this.#cut('a request was given up');
  }

  #fail(stream: Http1ClientStream, kind: RequestFailure['kind'], message: string): void {
    stream.state = 'closed';
    stream.early?.discard();
    stream.early = null;
    stream.sink.onEnd(stream, { kind, code: 0, message }, []);
  }

  #cut(reason: string): void {
    this.#isEnded = true;
    this.#reason = reason;
    this.#transport.destroy();
  }

  changed(): void {
    if (this.#state !== 'closed') this.#transport.requestFlush();
  }

  budget(): number {
    return this.#options.limits.outputBytesMax - this.output.length - this.#transport.pending();
  }

  // What the shell calls.

  receive(bytes: Buffer, start: number, end: number): void {
    if (this.#isEnded) return;
    this.#parser.push(bytes, start, end);
    this.#run();
  }

  #run(): void {
    while (!this.#isEnded && this.#current?.isPaused !== true && this.#takeStep());
    this.#parser.keep();
    const isPaused = this.#current?.isPaused === true;
    if (isPaused === this.#isPaused || this.#isEnded) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#transport.pause();
    else this.#transport.resume();
  }

  #takeStep(): boolean {
    const parser = this.#parser;
    if (this.#current === null && parser.rest > 0) {
      this.#cut('the server sent bytes that belong to no answer');
      return false;
    }
    switch (parser.step()) {
      case STEP_HEAD:
        this.#takeHead(parser.head);
        return true;
      case STEP_DATA:
        if (!this.#isInterim && this.#current !== null) {
          const { sink } = this.#current;
          sink.onData(this.#current, parser.input, parser.dataStart, parser.dataEnd, false);
        }
        return true;
      case STEP_END:
        this.#takeEnd();
        return true;
      case STEP_FAILED:
        this.#cut(`the server sent no HTTP/1.1: ${HTTP1_FAILURES[parser.failure].text}`);
        return false;
      case STEP_MORE:
      default:
        return false;
    }
  }

  #takeHead(head: Http1Head): void {
    const stream = this.#current;
    if (stream === null) return;
    if (head.status === 101)
      return this.#cut('the server changed the protocol without being asked');
    this.#isInterim = head.status < 200;
    if (this.#isInterim) return;
    this.#endsAfter = !head.isPersistent;
    if (stream.method === 'HEAD') this.#parser.skipBody();
    stream.hasHead = true;
    stream.sink.onHead(stream, head.status, fieldsOf(head));
  }

  #takeEnd(): void {
    const stream = this.#current;
    if (stream === null || this.#isInterim) {
      this.#isInterim = false;
      return;
    }
    // An answer before the end of the request: the rest of the request would stand in the way.
    if (!stream.isRequestOut) this.#endsAfter = true;
    const trailers = this.#parser.hasTrailers ? fieldsOf(this.#parser.trailers) : [];
    this.#current = null;
    stream.state = 'closed';
    stream.sink.onEnd(stream, null, trailers);
    if (this.#endsAfter) this.#refuseWaiting();
    this.changed();
  }

  /** No further request will be taken. */
  #refuseWaiting(): void {
    if (this.#state === 'draining' || this.#state === 'closed') return;
    this.#state = 'draining';
    for (const stream of this.#waiting.splice(0)) {
      this.#fail(stream, 'refused', 'the server closes the connection');
    }
    this.onDraining?.();
  }

  flush(): void {
    if (this.#state === 'closed' || this.#isEnded) return;
    if (!this.#isConnected && !this.#hasConnected()) return;
    this.#run();
    if (this.#current === null) this.#begin();
    this.#flushOutput();
    if (this.#current?.wantsWritable === true && this.budget() > 0) this.#transport.requestTurn();
    if (this.#state !== 'draining' || this.#current !== null || this.#waiting.length > 0) return;
    this.#isEnded = true;
    this.#transport.end();
  }

  /** Looks whether the socket is connected; the shell asks for a flush when that comes about. */
  #hasConnected(): boolean {
    this.#isConnected = this.#options.whyClosed?.().reached ?? true;
    if (!this.#isConnected) return false;
    if (this.#state === 'connecting') this.#state = 'open';
    this.onOpen?.();
    return true;
  }

  #begin(): void {
    const stream = this.#waiting.shift();
    if (stream === undefined) return;
    this.#current = stream;
    stream.state = 'sent';
    if (stream.early !== null) this.output.putAll(stream.early);
    stream.early = null;
  }

  #flushOutput(): void {
    if (this.#transport.pending() === 0) this.#progressMs = this.#transport.nowMs();
    this.output.flush(this.#transport);
    this.#pendingBytes = this.#transport.pending();
  }

  drained(): void {
    this.#progressMs = this.#transport.nowMs();
    this.#current?.offerWritable();
    this.changed();
  }

  ended(): void {
    this.#reason = 'the server closed the connection';
    if (this.#current !== null && this.#parser.finish()) {
      this.#endsAfter = true;
      this.#run();
    }
    this.#cut(this.#reason);
  }

  closed(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#isEnded = true;
    const why = this.#options.whyClosed?.().text ?? '';
    const reason = why === '' ? this.#reason : why;
    const current = this.#current;
    this.#current = null;
    if (current !== null) this.#fail(current, 'disconnected', reason);
    for (const stream of this.#waiting.splice(0)) this.#fail(stream, 'refused', reason);
    this.output.discard();
    this.onClosed?.(reason);
  }

  tick(nowMs: number): void {
    const pending = this.#transport.pending();
    if (pending === 0 || pending < this.#pendingBytes) this.#progressMs = nowMs;
    this.#pendingBytes = pending;
    const { handshakeMsMax, stallMsMax } = this.#options.limits;
    if (!this.#isConnected && nowMs - this.#bornMs > handshakeMsMax) {
      this.#cut(`no connection within ${handshakeMsMax} ms`);
    } else if (nowMs - this.#progressMs > stallMsMax) {
      this.#cut(`the server took nothing for ${stallMsMax} ms`);
    }
  }

  /** Takes no new requests; those given go on. */
  drain(): void {
    if (this.#state === 'draining' || this.#state === 'closed') return;
    this.#state = 'draining';
    this.changed();
  }

  destroy(): void {
    this.#cut('the connection was cut by this side');
  }
}

function fieldsOf(head: Http1Head): FieldList {
  const fields: string[] = [];
  for (let field = 0; field < head.fieldCount; field++) {
    fields.push(head.name(field), head.value(field));
  }
  return fields;
}

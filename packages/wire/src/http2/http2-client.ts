// data plane
/**
 * The client end of an HTTP/2 connection.
 *
 * Fields given as `PreparedFields` are encoded once per connection: later requests copy the octets
 * and write only their path, as long as the dynamic table has not changed.
 */
import { copyBytes, ownBytes } from '@megaplane/base/bytes';
import type {
  ClientConnection,
  ClientStream,
  PreparedFields,
  ResponseSink,
} from '../http/client.ts';
import { REQUESTS_WAITING_MAX } from '../http/client.ts';
import { AlikeBlocks } from '../hpack/alike-blocks.ts';
import {
  ERRORS,
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FRAME_HEAD_BYTES,
  FRAMES,
  PREFACE,
  SETTINGS,
  STREAM_ID_MAX,
  writeFrameHead,
} from './frames.ts';
import { fieldBytesMax, HpackEncoder, writeField } from '../hpack/hpack-encoder.ts';
import { areTrailers, fieldValue, readStatus } from './http2-head.ts';
import { ERROR_NAMES, Http2Request } from './http2-request.ts';
import { Http2Session } from './http2-session.ts';
import { KnownBlocks } from '../hpack/known-blocks.ts';
import type { H2Stream } from './stream.ts';
import type { ClientOptions, Transport } from '../transport/transport.ts';
import type { FieldList } from '../fields.ts';

const NO_FIELDS: readonly string[] = [];
/** Kubernetes API servers give each answer a name of its own. */
const VARYING = 'audit-id';
/** Streams that are opened before the server said how many it allows (RFC 9113 6.5.2). */
const STREAMS_UNTIL_SETTINGS = 100;
/** Octets of a dynamic table for requests that this side will use. */
const ENCODER_TABLE_BYTES = 16_384;
/** Encoded prefixes kept by a connection. */
const PREPARED_MAX = 256;
/** Encoded fields: what comes before `:path`, and after it; or with the path, all in `before`. */
interface Prepared {
  readonly epoch: number;
  readonly method: string;
  readonly path: string | null;
  readonly before: Buffer;
  readonly after: Buffer;
}

interface ResponseHead {
  readonly status: number;
  readonly fields: readonly string[];
}

export class Http2Client extends Http2Session implements ClientConnection {
  readonly protocol = 'h2' as const;
  onClosed: ((reason: string) => void) | null = null;
  onOpen: (() => void) | null = null;
  onDraining: (() => void) | null = null;
  state: 'connecting' | 'open' | 'draining' | 'closed' = 'connecting';
  /** Why the connection is no more. */
  reason = 'the connection was closed';
  readonly #options: ClientOptions;
  readonly #encoder: HpackEncoder = new HpackEncoder(ENCODER_TABLE_BYTES);
  readonly #prepared = new Map<PreparedFields, Prepared>();
  readonly #known: KnownBlocks<ResponseHead> = new KnownBlocks();
  readonly #alike: AlikeBlocks<ResponseHead> = new AlikeBlocks();
  readonly #knownTrailers: KnownBlocks<FieldList> = new KnownBlocks();
  #streamsMax = STREAMS_UNTIL_SETTINGS;
  #waiting: Http2Request[] = [];
  #waitingAt = 0;
  #nextId = 1;
  /** `content-length` of the body before: the next one is often as long. */
  #length = -1;
  #lengthFields: FieldList = NO_FIELDS;

  constructor(transport: Transport, options: ClientOptions) {
    super(transport, options.limits);
    this.decoder.varying = VARYING;
    this.#options = options;
    const out = this.reserve(PREFACE.length);
    PREFACE.copy(out.bytes, out.at);
    out.at += PREFACE.length;
    this.sendSettings(false);
  }

  get inFlight(): number {
    return this.streams.count + this.#waiting.length - this.#waitingAt;
  }

  get capacity(): number {
    if (this.state === 'draining' || this.state === 'closed') return 0;
    return Math.max(0, this.#streamsMax - this.inFlight);
  }

  request(
    method: string,
    path: string,
    fields: PreparedFields,
    body: Uint8Array | string | null,
    sink: ResponseSink,
    tag = 0,
  ): ClientStream {
    const request = new Http2Request(this, sink, tag);
    const bytes = typeof body === 'string' ? Buffer.from(body) : asBuffer(body);
    const extra = bytes === null ? NO_FIELDS : this.#lengthOf(bytes.length);
    this.start(request, method, path, fields, extra, bytes, true, false);
    return request;
  }

  open(
    method: string,
    path: string,
    fields: PreparedFields,
    sink: ResponseSink,
    tag = 0,
  ): ClientStream {
    const request = new Http2Request(this, sink, tag);
    this.start(request, method, path, fields, NO_FIELDS, null, false, false);
    return request;
  }

  #lengthOf(length: number): FieldList {
    if (length === this.#length) return this.#lengthFields;
    this.#length = length;
    this.#lengthFields = ['content-length', String(length)];
    return this.#lengthFields;
  }

  /** Sends the head and what there is of the body, or keeps them until a stream is free. */
  start(
    request: Http2Request,
    method: string,
    path: string,
    fields: PreparedFields,
    extra: FieldList,
    body: Buffer | null,
    ends: boolean,
    indexPath: boolean,
  ): void {
    if (this.state === 'draining' || this.state === 'closed') {
      return request.fail('refused', 0, `the connection is ${this.state}: ${this.reason}`);
    }
    if (this.streams.count >= this.#streamsMax || this.#waiting.length > 0) {
      if (this.#waiting.length - this.#waitingAt >= REQUESTS_WAITING_MAX) {
        return request.fail('refused', 0, `more than ${REQUESTS_WAITING_MAX} requests wait`);
      }
      const chunks = body === null ? [] : [Buffer.from(body)];
      const rest = { chunks, ended: ends, wantsReady: false, deadlineMs: Infinity };
      request.pending = { method, path, fields, extra, indexPath, ...rest };
      this.#waiting.push(request);
      return;
    }
    this.#begin(request, method, path, fields, extra, indexPath, ends && body === null);
    if (body !== null && request.stream !== null) {
      if (ends) this.sendLastCopy(request.stream, body, 0, body.length);
      else this.sendData(request.stream, body, 0, body.length);
    }
  }

  #begin(
    request: Http2Request,
    method: string,
    path: string,
    fields: PreparedFields,
    extra: FieldList,
    indexPath: boolean,
    endStream: boolean,
  ): void {
    const id = this.#nextId;
    this.#nextId += 2;
    this.lastId = id;
    const stream = this.newStream(id, this.initialReceiveWindow());
    request.attach(stream);
    if (id >= STREAM_ID_MAX - 2) this.#startDraining('its stream identifiers are used up');
    this.#writeHead(stream, method, path, fields, extra, indexPath, endStream);
  }

  #writeHead(
    stream: H2Stream,
    method: string,
    path: string,
    prepared: PreparedFields,
    extra: FieldList,
    indexPath: boolean,
    endStream: boolean,
  ): void {
    const encoder = this.#encoder;
    const epoch = encoder.table.epoch;
    let known = this.#prepared.get(prepared);
    const fresh =
      known === undefined ||
      known.epoch !== epoch ||
      known.method !== method ||
      known.path !== (indexPath ? path : null);
    let bytesMax = 64 + path.length;
    for (let i = 0; i < extra.length; i += 2) bytesMax += fieldBytesMax(extra[i]!, extra[i + 1]!);
    if (fresh) bytesMax += this.#preparedBytesMax(prepared, method);
    else bytesMax += known!.before.length + known!.after.length;
    const long = bytesMax > this.peerFrameBytes;
    const out = long ? null : this.reserve(FRAME_HEAD_BYTES + bytesMax);
    const bytes = out === null ? Buffer.allocUnsafe(bytesMax) : out.bytes;
    const start = out === null ? 0 : out.at + FRAME_HEAD_BYTES;
    let at = encoder.begin(bytes, start);
    const first = at;
    if (fresh) at = this.#writeBefore(bytes, at, method);
    else at = copyWhole(known!.before, bytes, at);
    const middle = at;
    if (!indexPath) at = encoder.writeOnce(bytes, at, ':path', path, false);
    else if (fresh) at = encoder.write(bytes, at, ':path', path);
    const after = at;
    if (fresh) at = this.#writeAfter(bytes, at, prepared.fields);
    else at = copyWhole(known!.after, bytes, at);
    // Octets that entered fields into the table must not be sent a second time.
    if (fresh && encoder.table.epoch === epoch) {
      known = {
        epoch,
        method,
        path: indexPath ? path : null,
        before: ownBytes(bytes, first, indexPath ? at : middle),
        after: ownBytes(bytes, indexPath ? at : after, at),
      };
      this.#remember(prepared, known);
    }
    for (let i = 0; i < extra.length; i += 2) {
      at = writeField(bytes, at, extra[i]!, extra[i + 1]!);
    }
    if (out === null) return this.sendHeaders(stream, bytes, 0, at, endStream);
    const flags = FLAG_END_HEADERS | (endStream ? FLAG_END_STREAM : 0);
    writeFrameHead(bytes, start - FRAME_HEAD_BYTES, at - start, FRAMES.headers, flags, stream.id);
    out.at = at;
    if (endStream) this.sentEnd(stream);
  }

  #preparedBytesMax(prepared: PreparedFields, method: string): number {
    let bytesMax = 128 + method.length + this.#options.authority.length;
    for (let i = 0; i < prepared.fields.length; i += 2) {
      bytesMax += fieldBytesMax(prepared.fields[i]!, prepared.fields[i + 1]!);
    }
    return bytesMax;
  }

  #writeBefore(bytes: Buffer, at: number, method: string): number {
    const encoder = this.#encoder;
    at = encoder.write(bytes, at, ':method', method);
    at = encoder.write(bytes, at, ':scheme', this.transport.secure ? 'https' : 'http');
    return encoder.write(bytes, at, ':authority', this.#options.authority);
  }

  #writeAfter(bytes: Buffer, at: number, fields: FieldList): number {
    for (let i = 0; i < fields.length; i += 2) {
      at = this.#encoder.write(bytes, at, fields[i]!, fields[i + 1]!);
    }
    return at;
  }

  #remember(prepared: PreparedFields, known: Prepared): void {
    if (this.#prepared.size >= PREPARED_MAX) this.#prepared.clear();
    this.#prepared.set(prepared, known);
  }

  cancel(request: Http2Request): void {
    if (request.closed) return;
    const stream = request.stream;
    if (stream !== null) {
      request.stream = null;
      stream.owner = null;
      this.sendReset(stream, ERRORS.cancel);
      this.#startWaiting();
    }
    request.fail('cancelled', ERRORS.cancel, 'the request was given up');
  }

  drain(): void {
    this.#startDraining('this side drains it');
    if (this.inFlight === 0) this.#leave();
  }

  destroy(): void {
    this.reason = 'this side cut the connection';
    this.transport.destroy();
  }

  #startDraining(reason: string): void {
    if (this.state === 'draining' || this.state === 'closed') return;
    this.state = 'draining';
    this.reason = reason;
    this.onDraining?.();
  }

  #leave(): void {
    if (this.dead) return;
    this.sendGoaway(0, ERRORS.none, '');
    this.flushData();
    this.dead = true;
    this.stopReading();
    this.transport.end();
  }

  override fail(code: number, text: string): void {
    this.reason = `the server broke the protocol: ${text}`;
    super.fail(code, text);
  }

  closed(): void {
    const found = this.#options.whyClosed?.();
    if (found !== undefined && found.text !== '') this.reason = found.text;
    const reached = found?.reached ?? true;
    this.state = 'closed';
    const waiting = this.#waiting.slice(this.#waitingAt);
    this.#waiting = [];
    this.#waitingAt = 0;
    if (!reached) {
      for (const stream of this.streams.list()) {
        (stream.owner as Http2Request | null)?.fail('refused', 0, this.reason);
      }
    }
    this.loseAll();
    for (const request of waiting) request.fail('refused', 0, this.reason);
    this.onClosed?.(this.reason);
  }

  #startWaiting(): void {
    while (this.#waitingAt < this.#waiting.length && this.streams.count < this.#streamsMax) {
      if (this.dead || this.state === 'closed') return;
      const request = this.#waiting[this.#waitingAt++]!;
      const pending = request.pending;
      if (pending === null) continue;
      request.pending = null;
      const { method, path, fields, extra, indexPath, chunks, ended } = pending;
      this.#begin(request, method, path, fields, extra, indexPath, ended && chunks.length === 0);
      const stream = request.stream;
      if (stream === null) continue;
      stream.deadlineMs = pending.deadlineMs;
      for (const chunk of chunks) this.sendData(stream, chunk, 0, chunk.length);
      if (ended && chunks.length > 0) this.sendEnd(stream, null);
      if (pending.wantsReady && this.writable(stream) > 0) request.onReady();
    }
    if (this.#waitingAt > 1024 || this.#waitingAt === this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#waitingAt);
      this.#waitingAt = 0;
    }
  }

  protected readPreface(_bytes: Buffer, start: number, _end: number): number {
    return start;
  }

  protected isIdle(id: number): boolean {
    return (id & 1) === 0 || id > this.lastId;
  }

  protected onSettings(id: number, value: number): void {
    if (id === SETTINGS.maxConcurrentStreams) this.#streamsMax = value;
    else if (id === SETTINGS.headerTableSize) this.#encoder.setPeerMax(value);
  }

  protected override onSettingsDone(): void {
    if (this.state === 'connecting') {
      this.state = 'open';
      this.onOpen?.();
    }
    this.#startWaiting();
  }

  protected onGoaway(lastId: number, code: number, text: string): void {
    const why =
      code === 0 ? 'the server drains it' : `the server ended it: ${ERROR_NAMES[code] ?? code}`;
    const reason = text === '' ? why : `${why} (${text})`;
    this.#startDraining(reason);
    this.reason = reason;
    const waiting = this.#waiting.slice(this.#waitingAt);
    this.#waiting = [];
    this.#waitingAt = 0;
    for (const stream of this.streams.list()) {
      if (stream.id <= lastId || stream.id === 0) continue;
      const owner = stream.owner as Http2Request | null;
      this.forget(stream);
      owner?.fail('refused', code, reason);
    }
    for (const request of waiting) request.fail('refused', code, reason);
    if (this.streams.count === 0) this.onIdle();
  }

  protected onIdle(): void {
    if (this.state === 'draining') this.transport.requestTurn();
  }

  override drained(): void {
    super.drained();
    if (this.state === 'draining' && this.inFlight === 0) this.#leave();
  }

  override forget(stream: H2Stream): void {
    super.forget(stream);
    if (this.#waiting.length > 0) this.transport.requestTurn();
  }

  override receive(bytes: Buffer, start: number, end: number): void {
    super.receive(bytes, start, end);
    if (this.#waiting.length > 0) this.#startWaiting();
  }

  protected onPingAnswered(): void {
    // It lives: the session noted that already.
  }

  protected onSentEarly(_stream: H2Stream): void {
    // The answer is yet to come.
  }

  protected onBlock(
    bytes: Buffer,
    start: number,
    end: number,
    id: number,
    endStream: boolean,
  ): void {
    const stream = this.streams.get(id);
    const wantsHead = stream !== null && !stream.headReceived;
    if (stream !== null && !wantsHead && endStream) {
      const trailers = this.#knownTrailers.find(this.decoder, bytes, start, end);
      if (trailers !== null && !stream.endReceived) return this.#receivedEnd(stream, trailers);
    }
    const known = wantsHead ? this.#findHead(stream, bytes, start, end) : null;
    if (known === null && !this.decoder.decode(bytes, start, end)) {
      return this.fail(ERRORS.compression, 'header block that cannot be decoded');
    }
    if (stream === null) {
      if (this.isIdle(id)) this.fail(ERRORS.protocol, `HEADERS on idle stream ${id}`);
      return;
    }
    this.earn();
    if (known === null && (this.decoder.malformed || this.decoder.overflow)) {
      return this.resetStream(stream, ERRORS.protocol);
    }
    if (!wantsHead) {
      if (!this.#mayEnd(stream, endStream)) return this.resetStream(stream, ERRORS.protocol);
      const trailers = this.decoder.fields;
      this.#knownTrailers.keep(this.decoder, bytes, start, end, trailers);
      return this.#receivedEnd(stream, trailers);
    }
    const head = known ?? this.#readHead(bytes, start, end);
    if (head === null || (head.status < 200 && endStream)) {
      return this.resetStream(stream, ERRORS.protocol);
    }
    if (head.status < 200) return;
    stream.headReceived = true;
    const request = stream.owner as Http2Request;
    request.sink.onHead(request, head.status, head.fields);
    if (endStream && stream.owner === request) this.#receivedEnd(stream, NO_FIELDS);
  }

  /** The head of a response that is one before it, but perhaps for the name of the request. */
  #findHead(stream: H2Stream, bytes: Buffer, start: number, end: number): ResponseHead | null {
    const { sink } = stream.owner as Http2Request;
    if (sink.takesAnyName === true && this.#alike.has(this.decoder, bytes, start, end)) {
      return this.#alike.meaning;
    }
    const name = this.#alike.find(this.decoder, bytes, start, end);
    if (name === null) return this.#known.find(this.decoder, bytes, start, end);
    const { status, fields } = this.#alike.meaning!;
    const own = fields.slice();
    for (let i = 0; i < own.length; i += 2) if (own[i] === VARYING) own[i + 1] = name;
    return { status, fields: own };
  }

  #readHead(bytes: Buffer, start: number, end: number): ResponseHead | null {
    const { decoder } = this;
    const all = decoder.fields;
    const status = readStatus(all);
    if (status < 0) return null;
    const head = { status, fields: all.slice(2) };
    const name = fieldValue(head.fields, VARYING) ?? '';
    if (!this.#alike.keep(decoder, bytes, start, end, name, head)) {
      this.#known.keep(decoder, bytes, start, end, head);
    }
    return head;
  }

  #mayEnd(stream: H2Stream, endStream: boolean): boolean {
    return endStream && !stream.endReceived && areTrailers(this.decoder.fields);
  }

  protected onBody(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    const request = stream.owner!;
    if (start < end) request.onData(bytes, start, end, endStream);
    if (endStream && stream.owner === request) this.#receivedEnd(stream, NO_FIELDS);
  }

  #receivedEnd(stream: H2Stream, trailers: FieldList): void {
    const request = stream.owner!;
    stream.endReceived = true;
    if (!stream.endSent) {
      // The server does not want the rest of the request.
      this.rememberReset(stream.id);
      this.writeReset(stream.id, ERRORS.cancel);
    }
    this.complete(stream);
    request.onEnd(trailers);
  }
}

function copyWhole(part: Buffer, target: Buffer, at: number): number {
  copyBytes(part, 0, part.length, target, at);
  return at + part.length;
}

function asBuffer(bytes: Uint8Array | null): Buffer | null {
  if (bytes === null || Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

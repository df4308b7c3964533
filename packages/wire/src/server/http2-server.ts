// data plane
/**
 * The server end of an HTTP/2 connection: streams become exchanges and gRPC calls.
 *
 * A gRPC client sends the same header block with each request of a method, as long as it indexes
 * all of it or none: such a block is recognised by its bytes and not decoded again; nor is one
 * that has another path than the one before it, and is the same otherwise.
 */
import { endOfTurn } from '@megaplane/base/deferred';
import { assert, BrokenInvariant } from '@megaplane/base/assert';
import { AlikeBlocks } from '../hpack/alike-blocks.ts';
import type { AnswerBudget } from '../transport/answer-budget.ts';
import { shareOfPeer } from '../transport/body-budget.ts';
import type { Connection, PeerCertificate, BodyShare } from '../http/exchange.ts';
import { HeadRoom } from '../transport/head-room.ts';
import { ERRORS, PREFACE, STREAM_ID_MAX } from '../http2/frames.ts';
import { grpcRefuse, grpcRefuseLarge } from '../grpc/grpc-replies.ts';
import type { GrpcRoutes } from '../grpc/grpc-routes.ts';
import { startGrpcCall } from '../grpc/grpc-call.ts';
import { Http2Exchange } from '../http2/http2-exchange.ts';
import { areTrailers, readRequestHead } from '../http2/http2-head.ts';
import type { RequestHead } from '../http2/http2-head.ts';
import { Http2Session } from '../http2/http2-session.ts';
import { KnownBlocks } from '../hpack/known-blocks.ts';
import type { H2Stream } from '../http2/stream.ts';
import type { ServerOptions, Transport } from '../transport/transport.ts';

/** What a server of HTTP/2 serves with. */
export interface Http2ServerOptions extends ServerOptions {
  /** gRPC methods; null or absent: such requests reach `handler` as any other. */
  readonly grpc?: GrpcRoutes | null;
}

const NONE: Buffer = Buffer.alloc(0);
const SLASH = 47;
const NO_FIELDS: readonly string[] = [];

export class Http2Server extends Http2Session implements Connection {
  readonly options: Http2ServerOptions;
  readonly id: number;
  readonly protocol = 'h2' as const;
  readonly secure: boolean;
  readonly unix: boolean;
  readonly remoteAddress: string;
  slot: unknown = undefined;
  #prefaceAt = 0;
  readonly #known: KnownBlocks<RequestHead> = new KnownBlocks();
  readonly #alike: AlikeBlocks<RequestHead> = new AlikeBlocks();
  readonly #headRoom: HeadRoom;
  /** Of the last request that was decoded. */
  #head: RequestHead | null = null;
  /** Octets of unfinished collected bodies. */
  #bodiesBytes = 0;
  /** The share of those that are not asked who they are. */
  #peerShare: BodyShare | null = null;
  #drain: 'no' | 'announced' | 'final' = 'no';
  #idleSinceMs: number;
  #closeCallbacks: (() => void)[] | null = null;
  #isClosed = false;
  readonly #grpc: GrpcRoutes | null;
  readonly #answers: AnswerBudget | null;

  constructor(transport: Transport, options: Http2ServerOptions) {
    super(transport, options.limits);
    this.options = options;
    this.id = transport.id;
    this.secure = transport.secure;
    this.unix = transport.unix;
    this.remoteAddress = transport.remoteAddress;
    this.#headRoom = new HeadRoom(options.bodies, this);
    this.#grpc = options.grpc ?? null;
    this.#answers = options.answers ?? null;
    this.date = options.date ?? null;
    this.#idleSinceMs = transport.nowMs();
    this.decoder.varying = ':path';
    this.sendSettings(true);
  }

  peerCertificate(): PeerCertificate | null {
    return this.transport.peerCertificate();
  }

  hold(): void {
    this.holds++;
  }

  release(): void {
    assert(this.holds > 0, 'release follows hold');
    if (--this.holds > 0 || this.dead) return;
    if (this.data.size > 0 || this.hasRound || this.isWaiting()) this.transport.requestFlush();
    if (this.#drain === 'final') this.transport.requestTurn();
  }

  abort(why: string): void {
    this.fail(ERRORS.internal, why);
  }

  onceClosed(callback: () => void): void {
    if (this.#isClosed) endOfTurn(callback);
    else (this.#closeCallbacks ??= []).push(callback);
  }

  drain(): void {
    if (this.#drain !== 'no' || this.dead) return;
    // In two steps (RFC 9113 6.8): requests that cross with the first GOAWAY are still served.
    this.#drain = 'announced';
    this.sendGoaway(STREAM_ID_MAX, ERRORS.none, '');
    this.sendPing();
  }

  protected onPingAnswered(): void {
    if (this.#drain === 'announced') this.#endDrain();
  }

  #endDrain(): void {
    this.#drain = 'final';
    this.sendGoaway(this.lastId, ERRORS.none, '');
    if (this.streams.count === 0) this.#finish();
  }

  /**
   * Everything was answered: leave, after what is in the output. What is held was answered but must
   * not leave yet: then `release` comes back to this, or the connection ends without it.
   */
  #finish(): void {
    if (this.dead || this.holds > 0) return;
    this.control.flush(this.transport);
    this.flushData();
    this.dead = true;
    this.stopReading();
    this.transport.end();
  }

  closed(): void {
    this.#isClosed = true;
    this.#headRoom.hold(0);
    this.loseAll();
    for (const callback of this.#closeCallbacks ?? []) callback();
    this.#closeCallbacks = null;
  }

  override tick(nowMs: number): void {
    super.tick(nowMs);
    if (this.dead) return;
    if (this.#drain === 'announced' && this.settingsReceived) return this.#endDrain();
    if (this.streams.count > 0) return this.#tickBodies(nowMs);
    if (this.#drain === 'final') return this.#finish();
    if (nowMs - this.#idleSinceMs > this.limits.idleMsMax) this.drain();
  }

  #tickBodies(nowMs: number): void {
    for (const stream of this.streams.list()) {
      if (stream.id === 0 || stream.endReceived) continue;
      if (nowMs - stream.cutSinceMs > this.limits.bodyMsMax) {
        this.resetStream(stream, ERRORS.cancel);
        continue;
      }
      if (stream.paused) continue;
      const { owner } = stream;
      if (owner === null) this.#tickBody(stream, null, nowMs);
      else if (owner instanceof Http2Exchange && !owner.answered) {
        this.#tickBody(stream, owner, nowMs);
      }
    }
  }

  #tickBody(stream: H2Stream, exchange: Http2Exchange | null, nowMs: number): void {
    const { bodyIdleMsMax, bodyMsMax } = this.limits;
    const isKept = stream.collects || exchange === null;
    const isLate = isKept && nowMs - stream.bornMs > bodyMsMax;
    if (isLate || nowMs - stream.touchedMs > bodyIdleMsMax) {
      this.resetStream(stream, ERRORS.cancel);
    } else if (stream.collects && exchange !== null) {
      this.#claimBody(stream, exchange);
    }
  }

  protected onIdle(): void {
    this.#idleSinceMs = this.transport.nowMs();
    // Not at once: the stream's last frames are being written.
    if (this.#drain === 'final') this.transport.requestTurn();
  }

  override drained(): void {
    super.drained();
    if (this.streams.count === 0 && this.#drain === 'final') this.#finish();
  }

  protected readPreface(bytes: Buffer, start: number, end: number): number {
    if (this.#prefaceAt === PREFACE.length) return start;
    while (this.#prefaceAt < PREFACE.length) {
      if (start === end) return -1;
      if (bytes[start++] !== PREFACE[this.#prefaceAt++]) {
        this.fail(ERRORS.protocol, 'not the preface of HTTP/2');
        return -1;
      }
    }
    return start;
  }

  protected isIdle(id: number): boolean {
    return (id & 1) === 0 || id > this.lastId;
  }

  protected onGoaway(_lastId: number, _code: number, _text: string): void {
    // The client opens no more streams; those that are open go on.
    if (this.streams.count === 0) this.onIdle();
  }

  protected onSettings(_id: number, _value: number): void {
    // Blocks of a server do not touch the dynamic table: nothing to adapt.
  }

  protected onSentEarly(stream: H2Stream): void {
    // The answer is complete and the request is not wanted any more (RFC 9113 8.1).
    const id = stream.id;
    this.rememberReset(id);
    this.writeReset(id, ERRORS.none);
    this.complete(stream);
  }

  protected onBlock(
    bytes: Buffer,
    start: number,
    end: number,
    id: number,
    endStream: boolean,
  ): void {
    const stream = this.streams.get(id);
    if (stream !== null) return this.#onTrailers(stream, bytes, start, end, endStream);
    if (id <= this.lastId || (id & 1) === 0) return this.#onLateBlock(bytes, start, end, id);
    const known =
      this.#findAlike(bytes, start, end) ?? this.#known.find(this.decoder, bytes, start, end);
    if (known === null && !this.decoder.decode(bytes, start, end)) {
      return this.fail(ERRORS.compression, 'header block that cannot be decoded');
    }
    if (this.#drain === 'final') return;
    this.lastId = id;
    const isFull = this.streams.count >= this.limits.streamsMax;
    if (isFull || this.#hasTooMuchWaiting()) {
      this.rememberReset(id);
      this.useless();
      return this.writeReset(id, ERRORS.refusedStream);
    }
    const fresh = this.newStream(id, this.initialReceiveWindow());
    fresh.headReceived = true;
    fresh.endReceived = endStream;
    if (known === null && this.decoder.malformed) return this.resetStream(fresh, ERRORS.protocol);
    const head = known ?? this.#readHead(bytes, start, end);
    if (head === null || (endStream && head.bodyBytes > 0)) {
      return this.resetStream(fresh, ERRORS.protocol);
    }
    fresh.bodyExpected = head.bodyBytes;
    fresh.head = head;
    this.#dispatch(fresh, head, known === null && this.decoder.overflow);
  }

  #hasTooMuchWaiting(): boolean {
    if (this.queuedBytes > this.limits.queuesBytesMax) return true;
    return this.queuedBytes > 0 && this.#answers?.isOver === true;
  }

  protected override holdBlock(bytes: number): boolean {
    return this.#headRoom.hold(bytes);
  }

  protected override mayWait(): boolean {
    return this.#answers === null || this.#answers.makeRoom(this.transport.nowMs(), this);
  }

  protected override countQueued(change: number): void {
    super.countQueued(change);
    this.#answers?.count(this, change);
  }

  /** The head of a request that is, but for its path, one before it. */
  #findAlike(bytes: Buffer, start: number, end: number): RequestHead | null {
    const path = this.#alike.find(this.decoder, bytes, start, end);
    if (path === null || path.charCodeAt(0) !== SLASH) return null;
    const { method, authority, fields, bodyBytes, expectsContinue, grpc } = this.#alike.meaning!;
    const route = null;
    const refusal = null;
    return { method, path, authority, fields, bodyBytes, expectsContinue, grpc, route, refusal };
  }

  #readHead(bytes: Buffer, start: number, end: number): RequestHead | null {
    const head = readRequestHead(this.decoder.fields, this.#head);
    if (head === null) return null;
    this.#head = head;
    if (head.grpc && this.#grpc !== null) {
      head.route = this.#grpc.find(head.path);
      head.refusal = this.#grpc.refusal(head);
    }
    if (head.grpc || !this.#alike.keep(this.decoder, bytes, start, end, head.path, head)) {
      this.#known.keep(this.decoder, bytes, start, end, head);
    }
    return head;
  }

  #onLateBlock(bytes: Buffer, start: number, end: number, id: number): void {
    if (!this.decoder.decode(bytes, start, end)) {
      return this.fail(ERRORS.compression, 'header block that cannot be decoded');
    }
    if ((id & 1) === 0) return this.fail(ERRORS.protocol, `stream ${id} is not a client's`);
    if (!this.useless() || this.wasReset(id)) return;
    // Which lower streams were used and which were skipped is not kept; the last one was used.
    if (id === this.lastId) this.fail(ERRORS.streamClosed, `HEADERS on closed stream ${id}`);
    else this.fail(ERRORS.protocol, `stream ${id} comes after stream ${this.lastId}`);
  }

  #onTrailers(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    if (!this.decoder.decode(bytes, start, end)) {
      return this.fail(ERRORS.compression, 'header block that cannot be decoded');
    }
    const decoder = this.decoder;
    if (stream.endReceived) return this.resetStream(stream, ERRORS.streamClosed);
    const wrong = !endStream || decoder.malformed || decoder.overflow;
    if (wrong || !areTrailers(decoder.fields)) return this.resetStream(stream, ERRORS.protocol);
    if (stream.bodyExpected >= 0 && stream.bodyReceived !== stream.bodyExpected) {
      return this.resetStream(stream, ERRORS.protocol);
    }
    this.#onWhole(stream, NONE, 0, 0, decoder.fields);
  }

  #dispatch(stream: H2Stream, head: RequestHead, overflow: boolean): void {
    if (head.grpc && this.#grpc !== null && !overflow) return this.#dispatchGrpc(stream, head);
    if (!overflow && stream.endReceived && head.method !== 'CONNECT') {
      return this.#handle(new Http2Exchange(this, this, stream, head));
    }
    const exchange = new Http2Exchange(this, this, stream, head);
    if (overflow) {
      return exchange.respond(
        431,
        'text/plain',
        tooLarge('header fields', this.limits.headBytesMax),
      );
    }
    if (head.method === 'CONNECT') {
      return exchange.respond(501, 'text/plain', 'CONNECT is not offered here\n');
    }
    if (head.bodyBytes > this.limits.bodyBytesMax) {
      if (!this.options.streamsBody(head.method, head.path)) {
        if (this.#claimBody(stream, exchange)) this.#refuseBody(exchange);
        return;
      }
    }
    const isStreamed = this.options.streamsBody(head.method, head.path);
    if (head.expectsContinue && !isStreamed && !this.#claimBody(stream, exchange)) return;
    if (head.expectsContinue) this.sendHeaders(stream, CONTINUE, 0, CONTINUE.length, false);
    if (isStreamed) this.#handle(exchange);
    else stream.collects = true;
  }

  /** Finds out whose a body is that has not come at once. False: nobody wants it. */
  #claimBody(stream: H2Stream, exchange: Http2Exchange | null): boolean {
    if (stream.share !== null) return true;
    const { bodyOwner } = this.options;
    if (exchange === null || bodyOwner === undefined) {
      stream.share = this.#sharedByPeer();
      return true;
    }
    const { id } = stream;
    let share: BodyShare | null = null;
    try {
      share = bodyOwner(exchange);
    } catch (error) {
      if (!exchange.answered) exchange.respond(500, null, null);
      this.options.onError(error);
    }
    if (exchange.answered || exchange.closed || stream.id !== id) return false;
    stream.share = share;
    stream.collects = share !== null;
    return stream.collects;
  }

  #sharedByPeer(): BodyShare {
    return (this.#peerShare ??= shareOfPeer(this, false));
  }

  #refuseBody(exchange: Http2Exchange): void {
    exchange.respond(413, 'text/plain', tooLarge('the request body', this.limits.bodyBytesMax));
  }

  #handle(exchange: Http2Exchange): void {
    try {
      this.options.handler(exchange);
    } catch (error) {
      if (error instanceof BrokenInvariant) throw error;
      if (!exchange.answered) exchange.respond(500, null, null);
      else exchange.reset();
      this.options.onError(error);
    }
  }

  protected onBody(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    stream.touchedMs = this.receivedMs;
    if (stream.owner === null && isInPlace(stream)) {
      return this.#onInPlaceBody(stream, bytes, start, end, endStream);
    }
    if (!stream.collects) {
      const owner = stream.owner!;
      if (start < end) owner.onData(bytes, start, end, endStream);
      if (endStream && stream.owner === owner) this.receivedEnd(stream, NO_FIELDS);
      return;
    }
    if (endStream && stream.bodyLength === 0) {
      return this.#onWhole(stream, bytes, start, end, NO_FIELDS);
    }
    if (!this.#collect(stream, bytes, start, end)) return;
    if (endStream) this.#onWhole(stream, NONE, 0, 0, NO_FIELDS);
  }

  /** The request is complete: its last piece, or its trailers, came. */
  #onWhole(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    trailers: readonly string[],
  ): void {
    if (stream.owner === null && isInPlace(stream)) {
      return this.#onInPlaceBody(stream, bytes, start, end, true);
    }
    if (!stream.collects) return this.receivedEnd(stream, trailers);
    const exchange = stream.owner as Http2Exchange;
    if (stream.bodyLength === 0 && end - start > this.limits.bodyBytesMax) {
      return this.#refuseBody(exchange);
    }
    stream.endReceived = true;
    const collected = stream.body;
    if (collected === null) {
      exchange.lendBody(bytes.subarray(start, end), true);
    } else {
      exchange.lendBody(collected.subarray(0, stream.bodyLength), false);
      this.#releaseBody(stream);
    }
    this.#handle(exchange);
    if (exchange.bodyBorrowed) exchange.lendBody(NONE, false);
  }

  receivedEnd(stream: H2Stream, trailers: readonly string[]): void {
    stream.endReceived = true;
    const owner = stream.owner;
    if (stream.endSent) this.complete(stream);
    else owner?.onEnd(trailers);
  }

  /** Appends to the stream's body. False: it was too large and answered so. */
  #collect(stream: H2Stream, bytes: Buffer, start: number, end: number): boolean {
    const length = stream.bodyLength + end - start;
    const exchange = stream.owner as Http2Exchange | null;
    if (length > this.limits.bodyBytesMax && exchange !== null) {
      this.#releaseBody(stream);
      this.#refuseBody(exchange);
      return false;
    }
    const body = stream.body;
    if (body === null || length > body.length) {
      if (!this.#claimBody(stream, exchange)) return false;
      const room = Math.max(length, stream.bodyExpected, (body?.length ?? 0) * 2);
      const size = Math.min(room, Math.max(length, FIRST_BODY_BYTES, (body?.length ?? 0) * 2));
      if (!this.#reserveBody(stream, size - (body?.length ?? 0), exchange)) return false;
      const larger = Buffer.allocUnsafeSlow(size);
      body?.copy(larger, 0, 0, stream.bodyLength);
      stream.body = larger;
    }
    bytes.copy(stream.body!, stream.bodyLength, start, end);
    stream.bodyLength = length;
    return true;
  }

  #reserveBody(stream: H2Stream, bytes: number, exchange: Http2Exchange | null): boolean {
    const isRoom = this.#bodiesBytes + bytes <= this.limits.bodiesBytesMax;
    if (isRoom && this.options.bodies.take(stream.share!, bytes)) {
      this.#bodiesBytes += bytes;
      return true;
    }
    this.#releaseBody(stream);
    if (exchange === null) {
      this.resetStream(stream, ERRORS.enhanceYourCalm);
    } else {
      exchange.respond(503, 'text/plain', 'too many request bodies at once\n');
    }
    return false;
  }

  #releaseBody(stream: H2Stream): void {
    if (stream.body !== null) {
      this.#bodiesBytes -= stream.body.length;
      this.options.bodies.give(stream.share!, stream.body.length);
    }
    stream.body = null;
    stream.bodyLength = 0;
  }

  override holdMessage(bytes: number): boolean {
    if (this.#bodiesBytes + bytes > this.limits.bodiesBytesMax) return false;
    if (!this.options.bodies.take(this.#sharedByPeer(), bytes)) return false;
    this.#bodiesBytes += bytes;
    return true;
  }

  override freeMessage(bytes: number): void {
    this.#bodiesBytes -= bytes;
    this.options.bodies.give(this.#sharedByPeer(), bytes);
  }

  override forget(stream: H2Stream): void {
    this.#releaseBody(stream);
    super.forget(stream);
  }

  #dispatchGrpc(stream: H2Stream, head: RequestHead): void {
    if (head.refusal !== null) return grpcRefuse(this, stream, head.refusal);
    if (head.route!.inPlace === null) {
      startGrpcCall(this, this, stream, head, this.#grpc!.options);
    }
    if (!stream.endReceived || stream.id === 0) return;
    if (head.route!.inPlace === null) stream.owner?.onEnd(NO_FIELDS);
    else this.#onInPlaceBody(stream, NONE, 0, 0, true);
  }

  /** The request message of an in-place method: in this frame, or in what was collected. */
  #onInPlaceBody(
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
    endStream: boolean,
  ): void {
    const grpc = this.#grpc!;
    if (stream.bodyLength > 0 || !endStream) {
      if (stream.bodyLength + end - start > grpc.options.messageBytesMax + 5) {
        const prefix = stream.bodyLength > 0 ? stream.body! : bytes;
        return grpcRefuseLarge(
          this,
          stream,
          prefix,
          stream.bodyLength > 0 ? 0 : start,
          grpc.options,
        );
      }
      if (!this.#collect(stream, bytes, start, end) || !endStream) return;
      const body = stream.body!;
      const length = stream.bodyLength;
      stream.endReceived = true;
      this.#releaseBody(stream);
      return grpc.inPlace.serve(this, this, stream, body, 0, length);
    }
    stream.endReceived = true;
    grpc.inPlace.serve(this, this, stream, bytes, start, end);
  }
}

function isInPlace(stream: H2Stream): boolean {
  const route = stream.head!.route;
  return route !== null && route.inPlace !== null;
}

const FIRST_BODY_BYTES = 16_384;
/** `:status: 100`. */
const CONTINUE: Buffer = Buffer.from([0x08, 3, 0x31, 0x30, 0x30]);

function tooLarge(what: string, bytesMax: number): string {
  return `${what} of more than ${bytesMax} bytes\n`;
}

// data plane
/** A gRPC call at the server, with an object of its own: all shapes of methods. */
import { asBuffer } from '@megaplane/base/bytes';
import type { CloseReason, Connection } from '../http/exchange.ts';
import { ERRORS, readUint32, writeUint32 } from '../http2/frames.ts';
import {
  GRPC_HEAD,
  GRPC_PREFIX_BYTES,
  grpcFinishBare,
  grpcPayloadFault,
  grpcTrailers,
} from './grpc-replies.ts';
import { timeoutOf } from './grpc-head.ts';
import { inflate, mayBeCompressed } from './grpc-inflate.ts';
import type { GrpcCall, GrpcCallHandler, GrpcCode, GrpcOptions, GrpcShape } from '../http/grpc.ts';
import { fieldValue } from '../http2/http2-head.ts';
import type { RequestHead } from '../http2/http2-head.ts';
import type { Http2Session } from '../http2/http2-session.ts';
import type { H2Stream, StreamOwner } from '../http2/stream.ts';
import type { FieldList } from '../fields.ts';

/** What stands before a message: not compressed, and its length. */
const prefix: Buffer = Buffer.alloc(GRPC_PREFIX_BYTES);
const MESSAGE_BYTES_FIRST = 1024;
const CARDINALITY = 'cardinality violation:';
const STREAMED = 'non-client-streaming RPC';
/** Memory of messages that came in pieces, kept for the next ones: new memory costs more. */
const PARTIALS_KEPT_MAX = 16;
const PARTIAL_BYTES_KEPT_MIN = 16 * 1024;
const PARTIAL_BYTES_KEPT_MAX = 512 * 1024;
const keptPartials: Buffer[] = [];

function takePartial(bytes: number): Buffer {
  const kept = keptPartials.pop();
  if (kept !== undefined && kept.length >= bytes) return kept;
  return Buffer.allocUnsafeSlow(bytes);
}

function givePartial(partial: Buffer): void {
  if (partial.length < PARTIAL_BYTES_KEPT_MIN || partial.length > PARTIAL_BYTES_KEPT_MAX) return;
  if (keptPartials.length < PARTIALS_KEPT_MAX) keptPartials.push(partial);
}

/** Begins a call on a stream whose head is in. */
export function startGrpcCall(
  session: Http2Session,
  connection: Connection,
  stream: H2Stream,
  head: RequestHead,
  options: GrpcOptions,
): void {
  const call = new GrpcServerCall(session, connection, stream, options);
  const { factory, shape } = head.route!;
  call.accept(factory!(call), shape);
}

/** Who counts the octets of messages that have come in part. */
export interface MessageRoom {
  holdMessage(bytes: number): boolean;
  freeMessage(bytes: number): void;
}

/** What `MessageReader.read` returns when a message in part found no room. */
export const NO_ROOM = -256;

/** Takes each message that a reader finds, its prefix before `start`; false: no more. */
export interface MessageTaker {
  takeMessage(bytes: Buffer, start: number, end: number): boolean;
}

/**
 * Cuts a stream of octets into messages: `[0, length u32, message]...`. Used by both ends.
 */
export class MessageReader {
  readonly #room: MessageRoom | null;
  #partial: Buffer | null = null;
  #length = 0;
  readonly #bytesMax: number;
  readonly #flagMax: number;

  /** `flagMax` is 1 where the taker can read messages that are compressed. */
  constructor(bytesMax: number, flagMax: 0 | 1 = 0, room: MessageRoom | null = null) {
    this.#room = room;
    this.#bytesMax = bytesMax;
    this.#flagMax = flagMax;
  }

  /** True in the middle of a message, or of its prefix. */
  get isCut(): boolean {
    return this.#length > 0;
  }

  /** True behind the prefix of a message that has not come whole. */
  get isInMessage(): boolean {
    return this.#length >= GRPC_PREFIX_BYTES;
  }

  /**
   * Gives each complete message to `taker`, until it returns false. Returns 0, or the length of
   * a message that is too large, or minus the first byte of one that is compressed or worse, or
   * `NO_ROOM`.
   */
  read(bytes: Buffer, start: number, end: number, taker: MessageTaker): number {
    while (start < end) {
      if (this.#length === 0) {
        const room = end - start;
        if (room >= GRPC_PREFIX_BYTES) {
          const wrong = this.#judge(bytes, start);
          if (wrong !== 0) return wrong;
          const length = readUint32(bytes, start + 1);
          if (room >= GRPC_PREFIX_BYTES + length) {
            const from = start + GRPC_PREFIX_BYTES;
            start = from + length;
            if (!taker.takeMessage(bytes, from, start)) return 0;
            continue;
          }
        }
      }
      const need = this.#need();
      const count = Math.min(need - this.#length, end - start);
      if (!this.#append(bytes, start, start + count)) return NO_ROOM;
      start += count;
      if (this.#length < GRPC_PREFIX_BYTES) return 0;
      const wrong = this.#judge(this.#partial!, 0);
      if (wrong !== 0) return wrong;
      if (this.#length < this.#need()) continue;
      const message = this.#partial!;
      const length = this.#length;
      this.#partial = null;
      this.#length = 0;
      this.#room?.freeMessage(message.length);
      const goesOn = taker.takeMessage(message, GRPC_PREFIX_BYTES, length);
      givePartial(message);
      if (!goesOn) return 0;
    }
    return 0;
  }

  #need(): number {
    if (this.#length < GRPC_PREFIX_BYTES) return GRPC_PREFIX_BYTES;
    return GRPC_PREFIX_BYTES + readUint32(this.#partial!, 1);
  }

  #judge(bytes: Buffer, at: number): number {
    const length = readUint32(bytes, at + 1);
    if (length > this.#bytesMax) return length;
    return bytes[at]! > this.#flagMax ? 0 - bytes[at]! : 0;
  }

  /** Nobody waits for the rest of a message. */
  drop(): void {
    if (this.#partial !== null) this.#room?.freeMessage(this.#partial.length);
    this.#partial = null;
    this.#length = 0;
  }

  #append(bytes: Buffer, start: number, end: number): boolean {
    const length = this.#length + end - start;
    if (this.#partial === null || length > this.#partial.length) {
      const size = Math.max(length, MESSAGE_BYTES_FIRST, (this.#partial?.length ?? 0) * 2);
      const larger = takePartial(size);
      const more = larger.length - (this.#partial?.length ?? 0);
      if (this.#room?.holdMessage(more) === false) return false;
      this.#partial?.copy(larger, 0, 0, this.#length);
      if (this.#partial !== null) givePartial(this.#partial);
      this.#partial = larger;
    }
    bytes.copy(this.#partial, this.#length, start, end);
    this.#length = length;
    return true;
  }
}

/** Sends one message with its prefix; the head must have been sent. */
export function sendMessage(
  session: Http2Session,
  stream: H2Stream,
  bytes: Uint8Array,
  start: number,
  end: number,
): void {
  writeUint32(prefix, 1, end - start);
  if (session.sendJoined(stream, prefix, GRPC_PREFIX_BYTES, bytes, start, end)) return;
  session.sendData(stream, prefix, 0, GRPC_PREFIX_BYTES);
  if (stream.id !== 0) session.sendData(stream, asBuffer(bytes), start, end);
}

export class GrpcServerCall implements GrpcCall, StreamOwner, MessageTaker {
  readonly connection: Connection;
  slot: unknown = undefined;
  readonly #session: Http2Session;
  readonly #head: RequestHead;
  readonly #options: GrpcOptions;
  #stream: H2Stream | null;
  #handler: GrpcCallHandler | null = null;
  #reader: MessageReader | null = null;
  #shape: GrpcShape = 'bidi_stream';
  #hasRequest = false;
  #headSent = false;

  constructor(
    session: Http2Session,
    connection: Connection,
    stream: H2Stream,
    options: GrpcOptions,
  ) {
    this.#session = session;
    this.connection = connection;
    this.#stream = stream;
    this.#head = stream.head!;
    this.#options = options;
    stream.owner = this;
    const timeoutMs = this.timeoutMs;
    if (timeoutMs !== Infinity) stream.deadlineMs = session.transport.nowMs() + timeoutMs;
  }

  /** A call whose request was read already. */
  static deferred(
    session: Http2Session,
    connection: Connection,
    stream: H2Stream,
    options: GrpcOptions,
  ): GrpcServerCall {
    return new GrpcServerCall(session, connection, stream, options);
  }

  /** For the session: the factory's handler, and how many requests it may see. */
  accept(handler: GrpcCallHandler, shape: GrpcShape): void {
    this.#handler = handler;
    this.#shape = shape;
  }

  get path(): string {
    return this.#head.path;
  }

  get closed(): boolean {
    return this.#stream === null;
  }

  metadata(name: string): string | undefined {
    return fieldValue(this.#head.fields, name);
  }

  get timeoutMs(): number {
    return timeoutOf(this.#head.fields);
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.#sendHead(stream);
    sendMessage(this.#session, stream, bytes, start, end);
  }

  /** Lets the client know at once that the call was accepted, before the first message. */
  sendHead(): void {
    if (this.#stream !== null) this.#sendHead(this.#stream);
  }

  #sendHead(stream: H2Stream): void {
    if (this.#headSent) return;
    this.#headSent = true;
    this.#session.sendHeaders(stream, GRPC_HEAD, 0, GRPC_HEAD.length, false);
  }

  writable(): number {
    return this.#stream === null ? 0 : this.#session.writable(this.#stream);
  }

  pause(): void {
    if (this.#stream !== null) this.#stream.paused = true;
  }

  resume(): void {
    const stream = this.#stream;
    if (stream === null || !stream.paused) return;
    stream.paused = false;
    this.#session.giveStreamBack(stream);
  }

  finish(code: GrpcCode, message = '', trailers?: FieldList): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.#stream = null;
    this.#reader?.drop();
    stream.deadlineMs = Infinity;
    stream.cutSinceMs = Infinity;
    if (this.#headSent) this.#session.sendEnd(stream, grpcTrailers(code, message, trailers));
    else grpcFinishBare(this.#session, stream, code, message, trailers);
  }

  onData(bytes: Buffer, start: number, end: number): void {
    // Nothing behind the one request of a unary call is looked at.
    if (this.#shape === 'unary' && this.#hasRequest) return;
    this.#reader ??= this.#makeReader();
    const wrong = this.#reader.read(bytes, start, end, this);
    if (wrong === 0) this.#noteCut(this.#reader);
    else if (wrong === NO_ROOM) this.#abort(8, 'too many messages in part at once');
    else if (wrong > 0) {
      this.#abort(8, this.#options.messageTooLargeText(wrong, this.#options.messageBytesMax));
    } else if (wrong < 0) {
      this.#abort(13, grpcPayloadFault(-wrong));
    }
  }

  /** A message that has begun has a time to end. */
  #noteCut(reader: MessageReader): void {
    const stream = this.#stream;
    if (stream === null) return;
    if (!reader.isCut) stream.cutSinceMs = Infinity;
    else if (stream.cutSinceMs === Infinity) stream.cutSinceMs = this.#session.transport.nowMs();
  }

  #makeReader(): MessageReader {
    const flagMax = mayBeCompressed(this.#head.fields) ? 1 : 0;
    return new MessageReader(this.#options.messageBytesMax, flagMax, this.#session);
  }

  takeMessage(bytes: Buffer, start: number, end: number): boolean {
    if (this.#stream !== null) this.#stream.cutSinceMs = Infinity;
    if (bytes[start - GRPC_PREFIX_BYTES] !== 0) {
      const message = inflate(bytes, start, end, this.#options.messageBytesMax);
      if (!Buffer.isBuffer(message)) {
        this.#abort(message.code, message.message);
        return false;
      }
      return this.#takePlain(message, 0, message.length);
    }
    return this.#takePlain(bytes, start, end);
  }

  #takePlain(bytes: Buffer, start: number, end: number): boolean {
    if (this.#hasRequest && this.#shape === 'server_stream') {
      this.#abort(13, `${CARDINALITY} received multiple request messages for ${STREAMED}`);
      return false;
    }
    this.#hasRequest = true;
    this.#handler?.onMessage(bytes, start, end);
    return this.#stream !== null && this.#shape !== 'unary';
  }

  /** Ends a call for a fault of the client or the clock; the handler hears of it. */
  #abort(code: GrpcCode, message: string): void {
    if (this.#stream === null) return;
    const handler = this.#handler;
    this.finish(code, message);
    handler?.onCancel('aborted');
  }

  onEnd(): void {
    if (this.#stream === null) return;
    const isUnary = this.#shape === 'unary';
    if (isUnary && this.#hasRequest) this.#handler?.onHalfClose();
    else if (this.#reader?.isInMessage === true) this.#abort(isUnary ? 2 : 13, 'unexpected EOF');
    else if (this.#shape === 'bidi_stream' || this.#hasRequest) this.#handler?.onHalfClose();
    else if (isUnary) this.#abort(2, 'EOF');
    else this.#abort(13, `${CARDINALITY} received no request message from ${STREAMED}`);
  }

  onDone(): void {
    this.#stream = null;
    this.#reader?.drop();
  }

  onLost(reason: CloseReason, code: number): void {
    if (this.#stream === null) return;
    this.#stream = null;
    this.#reader?.drop();
    this.#handler?.onCancel(code === ERRORS.cancel ? 'cancelled' : reason);
  }

  onReady(): void {
    this.#handler?.onWritable?.();
  }

  onExpired(): void {
    this.#abort(4, 'context deadline exceeded');
  }
}

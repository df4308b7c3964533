// data plane
/**
 * Unary gRPC without an object per call: the request is read where it was received, the response
 * is written where it will be sent from.
 *
 *   output:  HEADERS (constant) | DATA head | prefix | message by the handler | HEADERS (constant)
 *
 * The frames around the message are written after the handler returned, when its length is known.
 */
import type { Connection } from '../http/exchange.ts';
import {
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FRAME_HEAD_BYTES,
  FRAMES,
  readUint32,
  writeFrameHead,
  writeUint32,
} from '../http2/frames.ts';
import { GrpcServerCall } from './grpc-call.ts';
import {
  GRPC_HEAD,
  GRPC_OK,
  GRPC_PREFIX_BYTES,
  grpcFinishBare,
  grpcPayloadFault,
  grpcRefuseLarge,
} from './grpc-replies.ts';
import { timeoutOf } from './grpc-head.ts';
import { inflate, mayBeCompressed } from './grpc-inflate.ts';
import { IN_PLACE_ROOM_BYTES } from '../http/grpc.ts';
import type { GrpcCall, GrpcCode, GrpcOptions, InPlaceCall } from '../http/grpc.ts';
import { fieldValue } from '../http2/http2-head.ts';
import type { Http2Session } from '../http2/http2-session.ts';
import { Output } from '../http2/output.ts';
import type { H2Stream } from '../http2/stream.ts';

/** The constant frames: head of the stream's identifier at 5. */
const HEAD_FRAME: Buffer = constantFrame(GRPC_HEAD, FLAG_END_HEADERS);
const END_FRAME: Buffer = constantFrame(GRPC_OK, FLAG_END_HEADERS | FLAG_END_STREAM);
const HEAD_BYTES = HEAD_FRAME.length + FRAME_HEAD_BYTES + GRPC_PREFIX_BYTES;
const RESERVED_BYTES = HEAD_BYTES + IN_PLACE_ROOM_BYTES + END_FRAME.length;

function constantFrame(block: Buffer, flags: number): Buffer {
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + block.length);
  writeFrameHead(frame, 0, block.length, FRAMES.headers, flags, 0);
  block.copy(frame, FRAME_HEAD_BYTES);
  return frame;
}

/** Copies a constant frame under the stream's identifier; octet by octet beats a call for 30. */
function writeConstant(out: Buffer, at: number, frame: Buffer, id: number): number {
  const length = frame.length;
  for (let i = 0; i < length; i++) out[at + i] = frame[i]!;
  writeUint32(out, at + 5, id);
  return at + length;
}

/** Stands where a prefix was read already. */
const NO_PREFIX: Buffer = Buffer.alloc(GRPC_PREFIX_BYTES);

function isCompressed(stream: H2Stream, flag: number): boolean {
  return flag === 1 && mayBeCompressed(stream.head!.fields);
}

const FAILED = -1;
const LARGE = -2;
const DEFERRED = -3;

/** Writes for other streams that a handler causes meanwhile; almost always empty. */
const diverted: Output = new Output();

export class GrpcInPlace implements InPlaceCall {
  readonly #options: GrpcOptions;
  #connection: Connection | null = null;
  #stream: H2Stream | null = null;
  #code: GrpcCode = 0;
  #message = '';
  #large: Uint8Array | null = null;
  #take: ((call: GrpcCall) => void) | null = null;

  constructor(options: GrpcOptions) {
    this.#options = options;
  }

  get connection(): Connection {
    return this.#connection!;
  }

  metadata(name: string): string | undefined {
    return fieldValue(this.#stream!.head!.fields, name);
  }

  get timeoutMs(): number {
    return timeoutOf(this.#stream!.head!.fields);
  }

  fail(code: GrpcCode, message: string): number {
    this.#code = code;
    this.#message = message;
    return FAILED;
  }

  reply(bytes: Uint8Array): number {
    this.#large = bytes;
    return LARGE;
  }

  defer(take: (call: GrpcCall) => void): number {
    this.#take = take;
    return DEFERRED;
  }

  /** Serves the request body `bytes[start..end)` of a stream whose request is complete. */
  serve(
    session: Http2Session,
    connection: Connection,
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    let messageEnd = this.#messageEnd(session, stream, bytes, start, end);
    if (messageEnd < 0) return;
    if (bytes[start] !== 0) {
      const message = this.#inflated(session, stream, bytes, start, messageEnd);
      if (message === null) return;
      bytes = message;
      start = 0;
      messageEnd = message.length;
    }
    const out = session.reserve(RESERVED_BYTES);
    const at = out.at;
    const from = at + HEAD_BYTES;
    this.#connection = connection;
    this.#stream = stream;
    session.data = diverted;
    const head = stream.head!;
    const handler = head.route!.inPlace!;
    const to = handler(bytes, start + GRPC_PREFIX_BYTES, messageEnd, out.bytes, from, this);
    session.data = out;
    const size = to - from + GRPC_PREFIX_BYTES;
    const fits =
      size >= GRPC_PREFIX_BYTES &&
      size <= session.peerFrameBytes &&
      size <= stream.sendWindow &&
      size <= session.sendWindow &&
      !session.hasRound;
    if (fits) {
      const id = stream.id;
      let next = writeConstant(out.bytes, at, HEAD_FRAME, id);
      next = writeFrameHead(out.bytes, next, size, FRAMES.data, 0, id);
      out.bytes[next] = 0;
      writeUint32(out.bytes, next + 1, size - GRPC_PREFIX_BYTES);
      out.at = writeConstant(out.bytes, to, END_FRAME, id);
      session.sendWindow -= size;
      session.earn();
      stream.endSent = true;
      session.forget(stream);
    } else {
      this.#answerOtherwise(session, stream, out.bytes, from, to);
    }
    if (diverted.size > 0) diverted.moveTo(session);
  }

  /**
   * Where the request's message ends, what follows it is left alone; -1 when there is none and that
   * was answered, in the words and the order of grpc-go.
   */
  #messageEnd(
    session: Http2Session,
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
  ): number {
    const size = end - start - GRPC_PREFIX_BYTES;
    const length = size < 0 ? 0 : readUint32(bytes, start + 1);
    if (size < 0) {
      grpcFinishBare(session, stream, 2, 'EOF');
    } else if (length > this.#options.messageBytesMax) {
      grpcRefuseLarge(session, stream, bytes, start, this.#options);
    } else if (length > size) {
      grpcFinishBare(session, stream, 2, 'unexpected EOF');
    } else if (bytes[start] !== 0 && !isCompressed(stream, bytes[start]!)) {
      grpcFinishBare(session, stream, 13, grpcPayloadFault(bytes[start]!));
    } else return start + GRPC_PREFIX_BYTES + length;
    return -1;
  }

  /** Prefix and message of one that came compressed; null when it was answered that it is none. */
  #inflated(
    session: Http2Session,
    stream: H2Stream,
    bytes: Buffer,
    start: number,
    end: number,
  ): Buffer | null {
    const message = inflate(bytes, start + GRPC_PREFIX_BYTES, end, this.#options.messageBytesMax);
    if (Buffer.isBuffer(message)) return Buffer.concat([NO_PREFIX, message]);
    grpcFinishBare(session, stream, message.code, message.message);
    return null;
  }

  #answerOtherwise(
    session: Http2Session,
    stream: H2Stream,
    out: Buffer,
    from: number,
    to: number,
  ): void {
    if (to === FAILED) {
      grpcFinishBare(session, stream, this.#code, this.#message);
    } else if (to === DEFERRED) {
      const take = this.#take!;
      this.#take = null;
      take(GrpcServerCall.deferred(session, this.#connection!, stream, this.#options));
    } else {
      const large = to === LARGE ? this.#large! : Buffer.from(out.subarray(from, to));
      this.#large = null;
      const call = GrpcServerCall.deferred(session, this.#connection!, stream, this.#options);
      call.send(large);
      call.finish(0);
    }
  }
}

// data plane
/** The client end of gRPC, over one HTTP/2 connection. */
import { assert } from '@megaplane/base/assert';
import type {
  ClientConnection,
  PreparedFields,
  RequestFailure,
  ResponseSink,
} from '../http/client.ts';
import { readUint32, writeUint32 } from '../http2/frames.ts';
import { MessageReader } from './grpc-call.ts';
import type { MessageTaker } from './grpc-call.ts';
import { GRPC_PREFIX_BYTES } from './grpc-replies.ts';
import { decodeMessage, formatTimeout } from './grpc-text.ts';
import type { GrpcClient, GrpcClientCall, GrpcCode, GrpcSink, GrpcStatus } from '../http/grpc.ts';
import { Http2Client } from '../http2/http2-client.ts';
import { Http2Request } from '../http2/http2-request.ts';
import { fieldValue } from '../http2/http2-head.ts';
import type { FieldList } from '../fields.ts';

const NO_FIELDS: FieldList = [];
let scratch: Buffer = Buffer.allocUnsafeSlow(65_536);

export interface GrpcClientOptions {
  /** Octets of one received message; default 64 MiB. */
  readonly messageBytesMax?: number;
  /** Metadata of all calls, names in lower case (`authorization`, say). */
  readonly metadata?: FieldList;
}

/** Code of a call by the transport's failure (gRPC over HTTP/2, "HTTP2 Transport Mapping"). */
const CODE_OF_RESET: Readonly<Record<number, GrpcCode>> = { 7: 14, 8: 1, 11: 8, 12: 7 };

/** Code of a call by the status of a response that is not gRPC. */
const CODE_OF_STATUS: Readonly<Record<number, GrpcCode>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  429: 14,
  502: 14,
  503: 14,
  504: 14,
};

class Call extends Http2Request implements GrpcClientCall, MessageTaker {
  readonly grpcSink: GrpcSink;
  /** Made for the first piece that is not one whole message. */
  reader: MessageReader | null = null;
  status = 0;
  fields: FieldList = NO_FIELDS;
  expired = false;
  /** The reader's verdict on a wrong message. */
  wrong: GrpcStatus | null = null;

  constructor(connection: Http2Client, responses: ResponseSink, sink: GrpcSink, tag: number) {
    super(connection, responses, tag);
    this.grpcSink = sink;
  }

  send(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.closed) return;
    const length = frame(bytes, start, end);
    this.write(scratch, 0, length);
  }

  halfClose(): void {
    if (!this.closed) this.end();
  }

  override onExpired(): void {
    this.expired = true;
    super.onExpired();
  }

  takeMessage(bytes: Buffer, start: number, end: number): boolean {
    this.grpcSink.onMessage(this, bytes, start, end);
    return !this.closed;
  }
}

/** Writes prefix and message to the scratch; returns their octets. */
function frame(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length + GRPC_PREFIX_BYTES > scratch.length) {
    scratch = Buffer.allocUnsafeSlow((length + GRPC_PREFIX_BYTES) * 2);
  }
  scratch[0] = 0;
  writeUint32(scratch, 1, length);
  const whole = start === 0 && end === bytes.length;
  scratch.set(whole ? bytes : bytes.subarray(start, end), GRPC_PREFIX_BYTES);
  return length + GRPC_PREFIX_BYTES;
}

/** A gRPC client on an HTTP/2 connection of `connect`; several may share one. */
export function grpcClient(
  connection: ClientConnection,
  options: GrpcClientOptions = {},
): GrpcClient {
  assert(connection instanceof Http2Client, 'gRPC needs HTTP/2');
  return new H2GrpcClient(connection, options);
}

class H2GrpcClient implements GrpcClient, ResponseSink {
  readonly connection: Http2Client;
  readonly #messageBytesMax: number;
  readonly #metadata: FieldList;
  #last: GrpcStatus | null = null;
  /** One per path, so that the whole block of a method is made once. */
  readonly #prepared = new Map<string, PreparedFields>();

  constructor(connection: Http2Client, options: GrpcClientOptions) {
    this.connection = connection;
    this.#messageBytesMax = options.messageBytesMax ?? 64 * 1024 * 1024;
    this.#metadata = options.metadata ?? NO_FIELDS;
  }

  unary(
    path: string,
    message: Uint8Array,
    sink: GrpcSink,
    options?: { readonly tag?: number; readonly timeoutMs?: number },
  ): GrpcClientCall {
    const length = frame(message, 0, message.length);
    return this.#start(path, sink, options, scratch.subarray(0, length));
  }

  open(
    path: string,
    sink: GrpcSink,
    options?: { readonly tag?: number; readonly timeoutMs?: number },
  ): GrpcClientCall {
    return this.#start(path, sink, options, null);
  }

  #start(
    path: string,
    sink: GrpcSink,
    options: { readonly tag?: number; readonly timeoutMs?: number } | undefined,
    body: Buffer | null,
  ): Call {
    const call = new Call(this.connection, this, sink, options?.tag ?? 0);
    const timeoutMs = options?.timeoutMs;
    const extra = timeoutMs === undefined ? NO_FIELDS : ['grpc-timeout', formatTimeout(timeoutMs)];
    const fields = this.#fieldsOf(path);
    this.connection.start(call, 'POST', path, fields, extra, body, body !== null, true);
    if (timeoutMs !== undefined) call.deadline(timeoutMs);
    return call;
  }

  #fieldsOf(path: string): PreparedFields {
    let found = this.#prepared.get(path);
    if (found === undefined) {
      const own = ['te', 'trailers', 'content-type', 'application/grpc'];
      found = { fields: [...own, 'user-agent', 'grpc-megaplane/0.1', ...this.#metadata] };
      this.#prepared.set(path, found);
    }
    return found;
  }

  onHead(stream: Call, status: number, fields: FieldList): void {
    stream.status = status;
    stream.fields = fields;
  }

  onData(stream: Call, bytes: Buffer, start: number, end: number): void {
    if (stream.status !== 200 || stream.wrong !== null) return;
    const size = end - start - GRPC_PREFIX_BYTES;
    if (stream.reader === null && size >= 0 && size <= this.#messageBytesMax) {
      if (bytes[start] === 0 && readUint32(bytes, start + 1) === size) {
        return stream.grpcSink.onMessage(stream, bytes, start + GRPC_PREFIX_BYTES, end);
      }
    }
    stream.reader ??= new MessageReader(this.#messageBytesMax);
    const wrong = stream.reader.read(bytes, start, end, stream);
    if (wrong === 0 || stream.closed) return;
    const message =
      wrong < 0
        ? 'the server sent a compressed message that nobody asked for'
        : `received message larger than max (${wrong} vs. ${this.#messageBytesMax})`;
    stream.wrong = { code: wrong < 0 ? 13 : 8, message, trailers: NO_FIELDS, failure: null };
    stream.cancel();
  }

  onEnd(stream: Call, failure: RequestFailure | null, trailers: FieldList): void {
    // The same array means the same block: most calls end alike.
    const last = this.#last;
    const plain = failure === null && stream.wrong === null && stream.reader === null;
    if (plain && last !== null && last.trailers === trailers && trailers.length > 0) {
      return stream.grpcSink.onStatus(stream, last);
    }
    const status = statusOf(stream, failure, trailers);
    if (plain && !stream.expired && stream.status === 200) this.#last = status;
    stream.grpcSink.onStatus(stream, status);
  }
}

function statusOf(call: Call, failure: RequestFailure | null, trailers: FieldList): GrpcStatus {
  if (call.wrong !== null) return call.wrong;
  if (call.expired) {
    return { code: 4, message: 'context deadline exceeded', trailers, failure };
  }
  if (failure !== null) {
    return { code: codeOfFailure(failure), message: failure.message, trailers, failure };
  }
  const fields = trailers.length > 0 ? trailers : call.fields;
  const code = fieldValue(fields, 'grpc-status');
  if (code === undefined || !/^\d{1,2}$/.test(code)) {
    const message = `the server answered HTTP ${call.status} without a gRPC status`;
    return { code: CODE_OF_STATUS[call.status] ?? 2, message, trailers, failure };
  }
  if (code === '0' && call.reader?.isCut === true) {
    return { code: 13, message: 'the response ends inside a message', trailers, failure };
  }
  const message = decodeMessage(fieldValue(fields, 'grpc-message') ?? '');
  return { code: Math.min(16, Number(code)) as GrpcCode, message, trailers: fields, failure };
}

function codeOfFailure(failure: RequestFailure): GrpcCode {
  switch (failure.kind) {
    case 'refused':
    case 'disconnected':
      return 14;
    case 'cancelled':
      return 1;
    case 'reset':
      return CODE_OF_RESET[failure.code] ?? 13;
  }
}

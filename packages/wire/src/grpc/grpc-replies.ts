// data plane
/** Header blocks of gRPC answers: constant ones prepared, the others written here. */
import { encodeMessage } from './grpc-text.ts';
import type { GrpcCode, GrpcOptions, GrpcRefusal } from '../http/grpc.ts';
import { readUint32 } from '../http2/frames.ts';
import { writeStatus } from '../hpack/hpack-encoder.ts';
import { fieldBlock } from '../hpack/hpack-encoder.ts';
import type { Http2Session } from '../http2/http2-session.ts';
import type { H2Stream } from '../http2/stream.ts';
import type { FieldList } from '../fields.ts';

export const GRPC_PREFIX_BYTES = 5;
const STATUS_BYTES_MAX = 8;
/** `:status: 200`, `content-type: application/grpc`. */
export const GRPC_HEAD: Buffer = Buffer.concat([
  Buffer.from([0x88]),
  fieldBlock(['content-type', 'application/grpc']),
]);
/** `grpc-status: 0`. */
export const GRPC_OK: Buffer = fieldBlock(['grpc-status', '0']);

/** The fields at the end of a call. */
export function grpcTrailers(code: GrpcCode, message: string, more?: FieldList): Buffer {
  if (code === 0 && message === '' && more === undefined) return GRPC_OK;
  const fields = ['grpc-status', String(code)];
  if (message !== '') fields.push('grpc-message', encodeMessage(message));
  if (more !== undefined) fields.push(...more);
  return fieldBlock(fields);
}

/** Ends a call that has sent nothing: one block for head and trailers. */
export function grpcFinishBare(
  session: Http2Session,
  stream: H2Stream,
  code: GrpcCode,
  message: string,
  more?: FieldList,
): void {
  const block = Buffer.concat([GRPC_HEAD, grpcTrailers(code, message, more)]);
  session.sendHeaders(stream, block, 0, block.length, true);
}

export function grpcRefuse(session: Http2Session, stream: H2Stream, refusal: GrpcRefusal): void {
  const { code, message, status } = refusal;
  if (status === 200) return grpcFinishBare(session, stream, code, message);
  const head = Buffer.alloc(STATUS_BYTES_MAX);
  const type = fieldBlock(['content-type', 'application/grpc']);
  const written = head.subarray(0, writeStatus(head, 0, status));
  const block = Buffer.concat([written, type, grpcTrailers(code, message)]);
  session.sendHeaders(stream, block, 0, block.length, true);
}

/** Refuses a message whose prefix lies at `at`. */
export function grpcRefuseLarge(
  session: Http2Session,
  stream: H2Stream,
  bytes: Buffer,
  at: number,
  options: GrpcOptions,
): void {
  const length = bytes.length >= at + GRPC_PREFIX_BYTES ? readUint32(bytes, at + 1) : 0;
  const text = options.messageTooLargeText(length, options.messageBytesMax);
  grpcFinishBare(session, stream, 8, text);
}

/** What grpc-go says of a message whose first byte is not 0: nobody agreed to compression. */
export function grpcPayloadFault(flag: number): string {
  return flag === 1
    ? 'grpc: compressed flag set with identity or empty encoding'
    : `grpc: received unexpected payload format ${flag}`;
}

/** Messages that a client compressed: gzip is what etcd's servers have for them since 3.6. */
import { gunzipSync } from 'node:zlib';
import { lastValue } from './grpc-head.ts';
import { GRPC_CODES } from '../http/grpc.ts';
import type { GrpcCode } from '../http/grpc.ts';

const MEMBER_HEAD_BYTES = 10;
/** The texts of Go's readers for what zlib says. */
const GO_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/unexpected end of file/, 'unexpected EOF'],
  [/incorrect header check/, 'gzip: invalid header'],
  [/incorrect (?:data|length) check/, 'gzip: invalid checksum'],
];

export interface InflateFault {
  readonly code: GrpcCode;
  readonly message: string;
}

/** True if the messages of a call with these fields may be compressed. */
export function mayBeCompressed(fields: readonly string[]): boolean {
  return lastValue(fields, 'grpc-encoding') === 'gzip';
}

/** True for what `grpc-encoding` may say here. */
export function isKnownEncoding(encoding: string): boolean {
  return encoding === '' || encoding === 'identity' || encoding === 'gzip';
}

/** The message in `bytes[start..end)`, or what grpc-go says of it. */
export function inflate(
  bytes: Buffer,
  start: number,
  end: number,
  bytesMax: number,
): Buffer | InflateFault {
  const packed = bytes.subarray(start, end);
  const headFault = memberHeadFault(packed);
  if (headFault !== null) {
    const message = `grpc: failed to decompress the message: ${headFault}`;
    return { code: GRPC_CODES.internal, message };
  }
  try {
    return gunzipSync(packed, { maxOutputLength: bytesMax });
  } catch (error) {
    return faultOf(error as NodeJS.ErrnoException, bytesMax);
  }
}

function memberHeadFault(packed: Buffer): string | null {
  if (packed.length === 0) return 'EOF';
  if (packed.length < MEMBER_HEAD_BYTES) return 'unexpected EOF';
  return packed.readUIntBE(0, 3) === 0x1f8b08 ? null : 'gzip: invalid header';
}

function faultOf(error: NodeJS.ErrnoException, bytesMax: number): InflateFault {
  if (error.code === 'ERR_BUFFER_TOO_LARGE') {
    const message = `grpc: received message after decompression larger than max ${bytesMax}`;
    return { code: GRPC_CODES.resourceExhausted, message };
  }
  const known = GO_TEXTS.find(([pattern]) => pattern.test(error.message));
  const message = `grpc: failed to read decompressed data: ${known?.[1] ?? error.message}`;
  return { code: GRPC_CODES.internal, message };
}

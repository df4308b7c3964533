// data plane
/** Frames of HTTP/2 (RFC 9113 section 6): numbers, and writers of each kind. */

export const FRAME_HEAD_BYTES = 9;
export const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const FRAMES = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const FLAG_END_STREAM = 0x1;
export const FLAG_ACK = 0x1;
export const FLAG_END_HEADERS = 0x4;
export const FLAG_PADDED = 0x8;
export const FLAG_PRIORITY = 0x20;

export const SETTINGS = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const ERRORS = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  connect: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const;

/** Least and initial SETTINGS_MAX_FRAME_SIZE. */
export const FRAME_BYTES_LEAST = 16_384;
export const WINDOW_DEFAULT_BYTES = 65_535;
export const WINDOW_MAX_BYTES = 0x7fff_ffff;
export const STREAM_ID_MAX = 0x7fff_ffff;

export function writeFrameHead(
  out: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  out[at] = length >>> 16;
  out[at + 1] = length >>> 8;
  out[at + 2] = length;
  out[at + 3] = type;
  out[at + 4] = flags;
  out[at + 5] = stream >>> 24;
  out[at + 6] = stream >>> 16;
  out[at + 7] = stream >>> 8;
  out[at + 8] = stream;
  return at + 9;
}

/** Gives a frame whose head is at `at` another length. */
export function writeFrameLength(out: Uint8Array, at: number, length: number): void {
  out[at] = length >>> 16;
  out[at + 1] = length >>> 8;
  out[at + 2] = length;
}

export function writeUint32(out: Uint8Array, at: number, value: number): number {
  out[at] = value >>> 24;
  out[at + 1] = value >>> 16;
  out[at + 2] = value >>> 8;
  out[at + 3] = value;
  return at + 4;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! << 24) | (bytes[at + 1]! << 16);
  return (high | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

/** RST_STREAM, WINDOW_UPDATE: frames whose payload is one number. */
export function writeNumberFrame(
  out: Uint8Array,
  at: number,
  type: number,
  stream: number,
  value: number,
): number {
  return writeUint32(out, writeFrameHead(out, at, 4, type, 0, stream), value);
}

export function writeSetting(out: Uint8Array, at: number, id: number, value: number): number {
  out[at] = 0;
  out[at + 1] = id;
  return writeUint32(out, at + 2, value);
}

/**
 * A header block as HEADERS and as many CONTINUATIONs as the peer's frame size asks for, at most
 * `headerFramesBytes` octets. `block` may lie in `out`, at or after where its first frame's
 * payload goes.
 */
export function writeHeaderFrames(
  out: Buffer,
  at: number,
  stream: number,
  block: Buffer,
  start: number,
  end: number,
  endStream: boolean,
  frameBytesMax: number,
): number {
  let type: number = FRAMES.headers;
  let flags = endStream ? FLAG_END_STREAM : 0;
  do {
    const length = Math.min(end - start, frameBytesMax);
    if (start + length === end) flags |= FLAG_END_HEADERS;
    at = writeFrameHead(out, at, length, type, flags, stream);
    block.copy(out, at, start, start + length);
    at += length;
    start += length;
    type = FRAMES.continuation;
    flags = 0;
  } while (start < end);
  return at;
}

export function headerFramesBytes(blockBytes: number, frameBytesMax: number): number {
  return blockBytes + FRAME_HEAD_BYTES * (Math.floor(blockBytes / frameBytesMax) + 1);
}

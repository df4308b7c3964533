/**
 * WebSocket messages of one connection at its server end (RFC 6455 section 5): what the client
 * sends is unmasked and handed on piece by piece, control frames are answered.
 */

const OP_CLOSE = 8;
const OP_PING = 9;
const OP_PONG = 10;
/** Control frames are no longer. */
const CONTROL_BYTES_MAX = 125;
/** A frame of more is refused; clients that tunnel send some dozens of KiB. */
const FRAME_BYTES_MAX: number = 16 * 1024 * 1024;

export interface FrameSink {
  /** A piece of the data of a message, in order; `isContinued`: of one that has begun before. */
  onData(bytes: Buffer, isContinued: boolean): void;
  /** Bytes to send to the client now. */
  onReply(bytes: Buffer): void;
  /** The client is done, or has broken the rules: nothing follows. */
  onClose(): void;
}

export class FrameReader {
  readonly #sink: FrameSink;
  #rest: Buffer = Buffer.alloc(0);
  #isClosed = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    while (!this.#isClosed && this.#readFrame());
  }

  #readFrame(): boolean {
    const rest = this.#rest;
    const [first = 0, second = 0] = rest;
    if (rest.length < 2) return false;
    const opcode = first & 0x0f;
    const isMasked = (second & 0x80) !== 0;
    let length = second & 0x7f;
    let at = 2;
    if (length === 126) {
      if (rest.length < 4) return false;
      length = rest.readUInt16BE(2);
      at = 4;
    } else if (length === 127) {
      if (rest.length < 10) return false;
      length = rest.readUInt32BE(2) * 4294967296 + rest.readUInt32BE(6);
      at = 10;
    }
    const isControl = opcode >= OP_CLOSE;
    const isTooLong = length > (isControl ? CONTROL_BYTES_MAX : FRAME_BYTES_MAX);
    if (!isMasked || (first & 0x70) !== 0 || isTooLong) {
      this.#close();
      return false;
    }
    if (rest.length < at + 4 + length) return false;
    const data = unmasked(rest, at, length);
    this.#rest = rest.subarray(at + 4 + length);
    this.#take(opcode, data);
    return true;
  }

  #take(opcode: number, data: Buffer): void {
    if (opcode === OP_CLOSE) {
      this.#sink.onReply(frameOf(OP_CLOSE, data.subarray(0, 2)));
      this.#close();
    } else if (opcode === OP_PING) this.#sink.onReply(frameOf(OP_PONG, data));
    else if (opcode <= 2 && data.length > 0) this.#sink.onData(data, opcode === 0);
  }

  #close(): void {
    this.#isClosed = true;
    this.#sink.onClose();
  }
}

function unmasked(bytes: Buffer, maskAt: number, length: number): Buffer {
  const data = Buffer.from(bytes.subarray(maskAt + 4, maskAt + 4 + length));
  for (let at = 0; at < length; at++) {
    data[at] = (data[at] ?? 0) ^ (bytes[maskAt + (at & 3)] ?? 0);
  }
  return data;
}

/** One unfragmented frame of binary data, as servers send it. */
export function binaryFrame(data: Buffer): Buffer {
  return frameOf(2, data);
}

/** The end of the stream: a normal closure. */
export function closeFrame(): Buffer {
  return frameOf(OP_CLOSE, Buffer.from([0x03, 0xe8]));
}

function frameOf(opcode: number, data: Buffer): Buffer {
  const { length } = data;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = length;
  else if (length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeUInt32BE(Math.floor(length / 4294967296), 2);
    head.writeUInt32BE(length % 4294967296, 6);
  }
  return Buffer.concat([head, data]);
}

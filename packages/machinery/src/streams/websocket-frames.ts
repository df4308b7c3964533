/**
 * WebSocket messages of one connection at its server end (RFC 6455 section 5): what the client
 * sends is unmasked and handed on piece by piece, control frames are answered. Who breaks the rules
 * is told so by the code of a close.
 */

const OP_TEXT = 1;
const OP_BINARY = 2;
const OP_CLOSE = 8;
const OP_PING = 9;
const OP_PONG = 10;
/** Control frames are no longer. */
const CONTROL_BYTES_MAX = 125;
/** A frame of more is refused; clients that tunnel send some dozens of KiB. */
const FRAME_BYTES_MAX: number = 16 * 1024 * 1024;

/** Codes of a closure (section 7.4.1). */
const NORMAL = 1000;
const PROTOCOL_ERROR = 1002;
const TOO_BIG = 1009;
/** Two bytes, the length, and the mask. */
const HEAD_BYTES_MAX = 14;
const MASK_BYTES = 4;

export interface FrameSink {
  /**
   * A piece of the data of a message, in order, as it comes: a frame may come in many.
   * `isContinued`: of a message of which there was a piece before.
   */
  onData(bytes: Buffer, isContinued: boolean): void;
  /** Bytes to send to the client now. */
  onReply(bytes: Buffer): void;
  /** The client is done, or has broken the rules: nothing follows. */
  onClose(): void;
}

type FrameState =
  | { readonly kind: 'head'; size: number }
  | {
      readonly kind: 'data';
      readonly mask: Buffer;
      readonly length: number;
      readonly isLast: boolean;
      taken: number;
    }
  | {
      readonly kind: 'control';
      readonly opcode: number;
      readonly mask: Buffer;
      readonly data: Buffer;
      taken: number;
    }
  | { readonly kind: 'closed' };

/** Nothing but heads and control frames is kept: a frame of megabytes may come byte by byte. */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES_MAX);
  #state: FrameState = { kind: 'head', size: 0 };
  /** A message has begun and not ended; a piece of it was told. */
  #isWithin = false;
  #isTold = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(bytes: Buffer): void {
    for (let at = 0; at < bytes.length || this.#isWhole();) {
      const state = this.#state;
      if (state.kind === 'closed') return;
      if (state.kind === 'head') at = this.#readHead(state, bytes, at);
      else if (state.kind === 'control') at = this.#readControl(state, bytes, at);
      else at = this.#readData(state, bytes, at);
    }
  }

  /** A frame without data ends where its head does. */
  #isWhole(): boolean {
    const state = this.#state;
    if (state.kind === 'control') return state.taken === state.data.length;
    return state.kind === 'data' && state.taken === state.length;
  }

  #readHead(state: { readonly kind: 'head'; size: number }, bytes: Buffer, from: number): number {
    const head = this.#head;
    let at = from;
    for (; at < bytes.length; at++) {
      head[state.size++] = bytes[at] ?? 0;
      if (state.size < 2) continue;
      const size = headSize(head);
      if (state.size < size) continue;
      this.#begin(head.subarray(0, size));
      return at + 1;
    }
    return at;
  }

  #begin(head: Buffer): void {
    const [first = 0, second = 0] = head;
    const opcode = first & 0x0f;
    const isLast = (first & 0x80) !== 0;
    const length = lengthOf(head);
    const isControl = opcode >= OP_CLOSE;
    const isKnown = isControl ? isLast && opcode <= OP_PONG : (opcode === 0) === this.#isWithin;
    const isMasked = (second & 0x80) !== 0;
    if (!isMasked || !isKnown || (!isControl && opcode > OP_BINARY) || (first & 0x70) !== 0) {
      return this.#fail(PROTOCOL_ERROR);
    }
    if (isControl && length > CONTROL_BYTES_MAX) return this.#fail(PROTOCOL_ERROR);
    if (length > FRAME_BYTES_MAX) return this.#fail(TOO_BIG);
    const mask = Buffer.from(head.subarray(head.length - MASK_BYTES));
    if (isControl) {
      this.#state = { kind: 'control', opcode, mask, data: Buffer.alloc(length), taken: 0 };
      return;
    }
    if (opcode !== 0) this.#isTold = false;
    this.#isWithin = true;
    this.#state = { kind: 'data', mask, length, isLast, taken: 0 };
  }

  #readControl(state: Extract<FrameState, { kind: 'control' }>, bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + state.data.length - state.taken);
    bytes.copy(state.data, state.taken, at, end);
    state.taken += end - at;
    if (state.taken < state.data.length) return end;
    this.#state = { kind: 'head', size: 0 };
    unmask(state.data, state.mask, 0);
    if (state.opcode === OP_CLOSE) this.#close(state.data.subarray(0, 2));
    else if (state.opcode === OP_PING) this.#sink.onReply(frameOf(OP_PONG, state.data));
    return end;
  }

  #readData(state: Extract<FrameState, { kind: 'data' }>, bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + state.length - state.taken);
    const piece = Buffer.from(bytes.subarray(at, end));
    unmask(piece, state.mask, state.taken);
    state.taken += piece.length;
    if (state.taken === state.length) {
      this.#state = { kind: 'head', size: 0 };
      if (state.isLast) this.#isWithin = false;
    }
    if (piece.length > 0) {
      const isContinued = this.#isTold;
      this.#isTold = true;
      this.#sink.onData(piece, isContinued);
    }
    return end;
  }

  #fail(code: number): void {
    this.#close(codeOf(code));
  }

  #close(reason: Buffer): void {
    this.#state = { kind: 'closed' };
    this.#sink.onReply(frameOf(OP_CLOSE, reason));
    this.#sink.onClose();
  }
}

/** How long a head is by its second byte. */
function headSize(head: Buffer): number {
  const second = head[1] ?? 0;
  const length = second & 0x7f;
  const more = length === 127 ? 8 : length === 126 ? 2 : 0;
  return 2 + more + ((second & 0x80) === 0 ? 0 : MASK_BYTES);
}

function lengthOf(head: Buffer): number {
  const length = (head[1] ?? 0) & 0x7f;
  if (length === 126) return head.readUInt16BE(2);
  if (length === 127) return head.readUInt32BE(2) * 4294967296 + head.readUInt32BE(6);
  return length;
}

function unmask(data: Buffer, mask: Buffer, offset: number): void {
  for (let at = 0; at < data.length; at++) {
    data[at] = (data[at] ?? 0) ^ (mask[(offset + at) & 3] ?? 0);
  }
}

function codeOf(code: number): Buffer {
  return Buffer.from([code >> 8, code & 255]);
}

/** One unfragmented frame of binary data, as servers send it. */
export function binaryFrame(data: Buffer): Buffer {
  return frameOf(OP_BINARY, data);
}

/** The same of text in UTF-8. */
export function textFrame(data: Buffer): Buffer {
  return frameOf(OP_TEXT, data);
}

/** The end of the stream: a normal closure. */
export function closeFrame(): Buffer {
  return frameOf(OP_CLOSE, codeOf(NORMAL));
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

/**
 * Frames of SPDY/3.1 (draft 3.1) as kubectl and API servers speak it to kubelets: streams that the
 * client opens, data both ways, and little else. There is no flow control: neither end of
 * Kubernetes keeps one.
 *
 *     control   1 | version 15 bits | type 16 | flags 8 | length 24 | ...
 *     data      0 | stream 31 bits            | flags 8 | length 24 | bytes
 *
 * Headers are compressed with one zlib context for the whole connection. Each block of a client
 * ends with a sync flush, thus begins at a byte: so it is inflated by itself, with the last 32 KiB
 * of what was inflated before as its dictionary. What we send back are stored blocks.
 */
import { constants, inflateRawSync } from 'node:zlib';
import { SPDY_DICTIONARY } from './spdy-dictionary.ts';

const VERSION = 3;
const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GOAWAY = 7;
const HEADERS = 8;
const FLAG_FIN = 1;
const HEAD_BYTES = 8;
const WINDOW_BYTES = 32_768;
/** A zlib header and the id of the dictionary. */
const ZLIB_HEAD_BYTES = 6;
/** A frame with headers that claims more is broken: clients send some hundred bytes. */
export const CONTROL_BYTES_MAX: number = 64 * 1024;
const HEADERS_BYTES_MAX: number = 64 * 1024;
/** Some hundred bytes may inflate to all of that, in a tenth of a millisecond each. */
export const BLOCKS_PER_TURN_MAX = 64;

export interface SpdySink {
  onStream(id: number, headers: ReadonlyMap<string, string>, isLast: boolean): void;
  /** A piece of a stream, as it comes: a frame may come in many. */
  onData(id: number, bytes: Buffer, isLast: boolean): void;
  onReset(id: number): void;
  /** Bytes to send now. */
  onReply(bytes: Buffer): void;
  /** The client ends the connection. */
  onGoaway(): void;
  /** The bytes are no SPDY; nothing follows. */
  onBroken(why: string): void;
}

type ReadState =
  | { readonly kind: 'head'; size: number }
  /** The whole frame is kept, with its head. */
  | { readonly kind: 'control'; readonly frame: Buffer; size: number }
  | { readonly kind: 'data'; readonly id: number; readonly isLast: boolean; left: number }
  | { readonly kind: 'broken' };

/** Reads what a client sends. Only heads and control frames are kept until they are whole. */
export class SpdyReader {
  readonly #sink: SpdySink;
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #state: ReadState = { kind: 'head', size: 0 };
  #window: Buffer = SPDY_DICTIONARY;
  #isFirst = true;
  /** Of headers, inflated in this turn. */
  #blocks = 0;

  constructor(sink: SpdySink) {
    this.#sink = sink;
  }

  /** Returns how many bytes were read: all of them, or so many that others have their turn. */
  read(bytes: Buffer): number {
    this.#blocks = 0;
    let at = 0;
    while (at < bytes.length && this.#blocks < BLOCKS_PER_TURN_MAX) {
      const state = this.#state;
      if (state.kind === 'broken') return bytes.length;
      if (state.kind === 'data') {
        const piece = bytes.subarray(at, at + state.left);
        at += piece.length;
        this.#pass(state, piece);
        continue;
      }
      const to = state.kind === 'head' ? this.#head : state.frame;
      const taken = bytes.copy(to, state.size, at, at + to.length - state.size);
      at += taken;
      state.size += taken;
      if (state.size < to.length) break;
      if (state.kind === 'head') this.#begin(to);
      else this.#end(to);
    }
    return at;
  }

  /** Of a frame, whose head is whole. */
  #begin(head: Buffer): void {
    const length = head.readUIntBE(5, 3);
    if (((head[0] ?? 0) & 0x80) === 0) {
      const isLast = ((head[4] ?? 0) & FLAG_FIN) !== 0;
      const state = { kind: 'data' as const, id: head.readUInt32BE(0), isLast, left: length };
      this.#state = state;
      // a frame without data ends where its head does
      if (length === 0) this.#pass(state, Buffer.alloc(0));
      return;
    }
    if (length > CONTROL_BYTES_MAX) return this.#break(`a frame of ${length} bytes`);
    const frame = Buffer.alloc(HEAD_BYTES + length);
    head.copy(frame);
    this.#state = { kind: 'control', frame, size: HEAD_BYTES };
    if (length === 0) this.#end(frame);
  }

  #pass(state: ReadState & { readonly kind: 'data' }, piece: Buffer): void {
    state.left -= piece.length;
    if (state.left === 0) this.#state = { kind: 'head', size: 0 };
    this.#sink.onData(state.id, piece, state.isLast && state.left === 0);
  }

  #end(frame: Buffer): void {
    this.#state = { kind: 'head', size: 0 };
    this.#take(frame);
  }

  #break(why: string): void {
    this.#state = { kind: 'broken' };
    this.#sink.onBroken(why);
  }

  #take(frame: Buffer): void {
    const isLast = ((frame[4] ?? 0) & FLAG_FIN) !== 0;
    const body = frame.subarray(HEAD_BYTES);
    const version = frame.readUInt16BE(0) & 0x7fff;
    if (version !== VERSION) return this.#break(`version ${version} of SPDY`);
    const type = frame.readUInt16BE(2);
    const lengthMin = type === SYN_STREAM ? 10 : type === HEADERS || type === PING ? 4 : 0;
    if (body.length < lengthMin) return this.#break(`a frame of type ${type} that is cut off`);
    if (type === SYN_STREAM)
      this.#open(body.readUInt32BE(0) & 0x7fffffff, body.subarray(10), isLast);
    else if (type === HEADERS) this.#headers(body.subarray(4));
    else if (type === RST_STREAM && body.length >= 4) {
      this.#sink.onReset(body.readUInt32BE(0) & 0x7fffffff);
    } else if (type === PING) this.#sink.onReply(frame);
    else if (type === GOAWAY) this.#sink.onGoaway();
    // settings and windows of others say nothing to us
  }

  #open(id: number, block: Buffer, isLast: boolean): void {
    const headers = this.#headers(block);
    if (headers !== null) this.#sink.onStream(id, headers, isLast);
  }

  /** Every block has to be read, for the sake of those behind it; null: it is broken. */
  #headers(block: Buffer): Map<string, string> | null {
    const deflated = this.#isFirst ? block.subarray(ZLIB_HEAD_BYTES) : block;
    this.#isFirst = false;
    this.#blocks++;
    let text: Buffer;
    try {
      text = inflateRawSync(deflated, {
        dictionary: this.#window,
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: HEADERS_BYTES_MAX,
      });
    } catch (error) {
      this.#break(`headers that cannot be inflated: ${(error as Error).message}`);
      return null;
    }
    this.#window = Buffer.concat([this.#window, text]).subarray(-WINDOW_BYTES);
    const headers = readHeaders(text);
    if (headers === null) this.#break('headers that are cut off');
    return headers;
  }
}

function readHeaders(text: Buffer): Map<string, string> | null {
  let at = 0;
  const word = (): string | null => {
    if (at + 4 > text.length) return null;
    const end = at + 4 + text.readUInt32BE(at);
    if (end > text.length) return null;
    const found = text.toString('latin1', at + 4, end);
    at = end;
    return found;
  };
  const headers = new Map<string, string>();
  if (text.length < 4) return null;
  const count = text.readUInt32BE(0);
  at = 4;
  for (let index = 0; index < count; index++) {
    const name = word();
    const value = name === null ? null : word();
    if (name === null || value === null) return null;
    headers.set(name, value);
  }
  return headers;
}

function control(type: number, flags: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt16BE(0x8000 | VERSION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(body.length, 4);
  head[4] = flags;
  return Buffer.concat([head, body]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/**
 * Accepts a stream. There are no headers in it: a stored block of the four bytes of their number,
 * behind the head of zlib's format in the `isFirst` one of a connection. The empty block behind it
 * is what a sync flush leaves: Go's reader hands out what it has only there, and fails without.
 */
export function replyFrame(id: number, isFirst: boolean): Buffer {
  const stored = Buffer.from([0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
  const parts = isFirst ? [Buffer.from([0x78, 0x01]), stored] : [stored];
  return control(SYN_REPLY, 0, Buffer.concat([number(id), ...parts]));
}

export function dataFrame(id: number, bytes: Buffer, isLast: boolean): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(bytes.length, 4);
  head[4] = isLast ? FLAG_FIN : 0;
  return bytes.length === 0 ? head : Buffer.concat([head, bytes]);
}

/** Ends a stream at once (status CANCEL). */
export function resetFrame(id: number): Buffer {
  return control(RST_STREAM, 0, Buffer.concat([number(id), number(5)]));
}

/** No stream behind `lastId` will be looked at. */
export function goawayFrame(lastId: number): Buffer {
  return control(GOAWAY, 0, Buffer.concat([number(lastId), number(0)]));
}

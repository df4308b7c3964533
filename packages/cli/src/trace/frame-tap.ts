/**
 * Reads along one direction of an HTTP/2 connection (RFC 9113) without changing it. Payloads of
 * DATA are told as they come; blocks of fields are gathered, since HPACK needs them whole.
 */
import {
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FLAG_PADDED,
  FLAG_PRIORITY,
  FRAME_HEAD_BYTES,
  FRAMES,
  PREFACE,
} from '@megaplane/wire/frames';
import { HpackDecoder } from '@megaplane/wire/hpack-decoder';

/** Fields of one block that are gathered; a connection that sends more is not read any further. */
const BLOCK_BYTES_MAX: number = 1024 * 1024;
const TABLE_BYTES_MAX: number = 1024 * 1024;
const TABLE_BYTES_FIRST = 4096;
const PRIORITY_BYTES = 5;
const LENGTH_AT = { high: 0, middle: 1, low: 2, type: 3, flags: 4, stream: 5 } as const;

export interface TapListener {
  /** `fields`: names and values in turns. */
  onHeaders(stream: number, fields: readonly string[], isLast: boolean): void;
  onData(stream: number, bytes: Buffer, isLast: boolean): void;
  onReset(stream: number): void;
}

export class FrameTap {
  /** What was sent is no HTTP/2 that this can read: bytes pass, and nothing is told. */
  isBlind = false;
  readonly #listener: TapListener;
  readonly #hpack: HpackDecoder;
  readonly #head: Buffer = Buffer.alloc(FRAME_HEAD_BYTES);
  #headBytes = 0;
  #prefaceLeft: number;
  #type = 0;
  #flags = 0;
  #stream = 0;
  #left = 0;
  #padding = 0;
  #isFirst = true;
  /** Payload that is needed whole, of this frame and those that it continues. */
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #blockFlags = 0;

  /** `isClient`: this end begins with the preface. */
  constructor(listener: TapListener, isClient: boolean) {
    this.#listener = listener;
    this.#prefaceLeft = isClient ? PREFACE.length : 0;
    this.#hpack = new HpackDecoder(TABLE_BYTES_FIRST, BLOCK_BYTES_MAX);
    this.#hpack.acknowledgeTableSize(TABLE_BYTES_MAX);
  }

  push(chunk: Buffer): void {
    let at = Math.min(this.#prefaceLeft, chunk.length);
    this.#prefaceLeft -= at;
    while (at < chunk.length && !this.isBlind) {
      at =
        this.#headBytes < FRAME_HEAD_BYTES
          ? this.#readHead(chunk, at)
          : this.#readPayload(chunk, at);
    }
  }

  #readHead(chunk: Buffer, start: number): number {
    const end = Math.min(chunk.length, start + FRAME_HEAD_BYTES - this.#headBytes);
    chunk.copy(this.#head, this.#headBytes, start, end);
    this.#headBytes += end - start;
    if (this.#headBytes < FRAME_HEAD_BYTES) return end;
    this.#left = this.#head.readUIntBE(LENGTH_AT.high, 3);
    this.#type = this.#head.readUInt8(LENGTH_AT.type);
    this.#flags = this.#head.readUInt8(LENGTH_AT.flags);
    this.#stream = this.#head.readUInt32BE(LENGTH_AT.stream) & 0x7fff_ffff;
    this.#padding = 0;
    this.#isFirst = true;
    if (this.#type === FRAMES.headers) {
      this.#gathered = [];
      this.#gatheredBytes = 0;
      this.#blockFlags = this.#flags;
    }
    if (this.#left === 0) this.#endFrame();
    return end;
  }

  #readPayload(chunk: Buffer, start: number): number {
    const end = Math.min(chunk.length, start + this.#left);
    this.#left -= end - start;
    let piece = chunk.subarray(start, end);
    if (this.#type === FRAMES.data) {
      if (this.#isFirst && (this.#flags & FLAG_PADDED) !== 0) {
        this.#padding = piece.readUInt8(0);
        piece = piece.subarray(1);
      }
      const content = Math.max(0, piece.length - Math.max(0, this.#padding - this.#left));
      if (content > 0) this.#listener.onData(this.#stream, piece.subarray(0, content), false);
    } else if (this.#type === FRAMES.headers || this.#type === FRAMES.continuation) {
      this.#gatheredBytes += piece.length;
      // the chunk is somebody else's memory by the next one
      if (this.#gatheredBytes > BLOCK_BYTES_MAX) this.isBlind = true;
      else this.#gathered.push(Buffer.from(piece));
    }
    this.#isFirst = false;
    if (this.#left === 0) this.#endFrame();
    return end;
  }

  #endFrame(): void {
    this.#headBytes = 0;
    const isLast = (this.#flags & FLAG_END_STREAM) !== 0;
    if (this.#type === FRAMES.data) {
      if (isLast) this.#listener.onData(this.#stream, Buffer.alloc(0), true);
    } else if (this.#type === FRAMES.headers || this.#type === FRAMES.continuation) {
      if ((this.#flags & FLAG_END_HEADERS) !== 0) this.#endBlock();
    } else if (this.#type === FRAMES.rstStream) this.#listener.onReset(this.#stream);
  }

  #endBlock(): void {
    const whole = Buffer.concat(this.#gathered);
    this.#gathered = [];
    const isPadded = (this.#blockFlags & FLAG_PADDED) !== 0;
    const padding = isPadded && whole.length > 0 ? whole.readUInt8(0) : 0;
    const hasPriority = (this.#blockFlags & FLAG_PRIORITY) !== 0;
    const start = (isPadded ? 1 : 0) + (hasPriority ? PRIORITY_BYTES : 0);
    const end = whole.length - padding;
    if (start > end || !this.#hpack.decode(whole, start, end)) {
      this.isBlind = true;
      return;
    }
    const isLast = (this.#blockFlags & FLAG_END_STREAM) !== 0;
    this.#listener.onHeaders(this.#stream, this.#hpack.fields, isLast);
  }
}

/** Messages of gRPC in the data of one stream: a flag, four bytes of length, the message. */
export class MessageTap {
  /** Of long messages the beginning is kept, which says what they are. */
  static readonly KEPT_BYTES_MAX = 65_536;
  readonly #onMessage: (kept: Buffer, length: number) => void;
  readonly #head: Buffer = Buffer.alloc(5);
  #headBytes = 0;
  #left = 0;
  #length = 0;
  #kept: Buffer[] = [];
  #keptBytes = 0;

  constructor(onMessage: (kept: Buffer, length: number) => void) {
    this.#onMessage = onMessage;
  }

  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#headBytes < 5) {
        const end = Math.min(bytes.length, at + 5 - this.#headBytes);
        bytes.copy(this.#head, this.#headBytes, at, end);
        this.#headBytes += end - at;
        at = end;
        if (this.#headBytes < 5) return;
        this.#length = this.#left = this.#head.readUInt32BE(1);
        if (this.#left === 0) this.#end();
        continue;
      }
      const end = Math.min(bytes.length, at + this.#left);
      const room = Math.min(end - at, MessageTap.KEPT_BYTES_MAX - this.#keptBytes);
      if (room > 0) this.#kept.push(Buffer.from(bytes.subarray(at, at + room)));
      this.#keptBytes += room;
      this.#left -= end - at;
      at = end;
      if (this.#left === 0) this.#end();
    }
  }

  #end(): void {
    const kept = this.#kept.length === 1 ? this.#kept[0] : Buffer.concat(this.#kept);
    this.#kept = [];
    this.#keptBytes = 0;
    this.#headBytes = 0;
    this.#onMessage(kept ?? Buffer.alloc(0), this.#length);
  }
}

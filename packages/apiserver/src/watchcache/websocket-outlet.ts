/**
 * A watch over WebSocket (RFC 6455), as browsers ask for it: each event is one message, JSON as
 * text, protobuf as binary. What the client sends is ignored, but for pings and the close.
 */
import { createHash } from 'node:crypto';
import type { Exchange, UpgradedStream } from '@megaplane/wire/exchange';
import type { Call } from '../request/call.ts';
import { closeFrame, FrameReader } from '@megaplane/machinery/streams/websocket-frames';
import type { WatchOutlet } from './watcher.ts';

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
const TEXT = 1;
const BINARY = 2;
const LINE_FEED = 10;
/** Frames of protobuf watches start with their length. */
const LENGTH_BYTES = 4;

/** True where the request asks for its answer over WebSocket. */
export function isWebSocket({ exchange }: Call): boolean {
  return exchange.upgradeProtocol === 'websocket';
}

/** Takes the connection over, or answers why not; null then. */
export function openWebSocket(call: Call, isText: boolean): WatchOutlet | null {
  const { exchange } = call;
  const key = exchange.header('sec-websocket-key') ?? '';
  if (exchange.header('sec-websocket-version') !== VERSION || key === '') {
    call.code = 400;
    exchange.respond(400, 'text/plain', null, ['sec-websocket-version', VERSION]);
    return null;
  }
  // programs that are no browsers must name an origin too: so does upstream's library
  if ((exchange.header('origin') ?? '') === '') {
    call.sendText(403, 'null origin');
    return null;
  }
  call.code = 101;
  const accept = createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64');
  return new WebSocketOutlet(exchange.upgrade(['sec-websocket-accept', accept]), isText);
}

class WebSocketOutlet implements WatchOutlet {
  onWritable: (() => void) | null = null;
  onClose: Exchange['onClose'] = null;
  onHalfClose: Exchange['onHalfClose'] = null;
  closed = false;
  readonly #stream: UpgradedStream;
  readonly #isText: boolean;

  constructor(stream: UpgradedStream, isText: boolean) {
    this.#stream = stream;
    this.#isText = isText;
    const reader = new FrameReader({
      onData: () => undefined,
      onReply: (bytes) => stream.write(bytes),
      onClose: () => this.#close(),
    });
    stream.onData = (bytes, start, end) => reader.read(bytes.subarray(start, end));
    stream.onEnd = () => this.#close();
    stream.onWritable = () => this.onWritable?.();
  }

  writable(): number {
    return this.closed ? 0 : this.#stream.writable();
  }

  /** Whole events, one or several. */
  write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    let at = start;
    while (at < end && !this.closed) {
      const to = this.#isText ? this.#lineEnd(bytes, at, end) : this.#frameEnd(bytes, at, end);
      const from = this.#isText ? at : at + LENGTH_BYTES;
      this.#stream.write(head(this.#isText ? TEXT : BINARY, to - from));
      this.#stream.write(bytes, from, to);
      at = to;
    }
  }

  #lineEnd(bytes: Uint8Array, at: number, end: number): number {
    const found = bytes.indexOf(LINE_FEED, at);
    return found < 0 || found >= end ? end : found + 1;
  }

  #frameEnd(bytes: Uint8Array, at: number, end: number): number {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, LENGTH_BYTES);
    return Math.min(end, at + LENGTH_BYTES + view.getUint32(0));
  }

  end(): void {
    if (this.closed) return;
    this.#stream.write(closeFrame());
    this.closed = true;
    this.#stream.end();
  }

  #close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#stream.end();
    this.onClose?.('cancelled');
  }
}

/** The head of an unmasked frame that is a message of its own (section 5.2). */
function head(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.from([0x80 | opcode, length]);
  if (length < 65_536) return Buffer.from([0x80 | opcode, 126, length >> 8, length & 255]);
  const long = Buffer.from([0x80 | opcode, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  long.writeUInt32BE(length, 6);
  return long;
}

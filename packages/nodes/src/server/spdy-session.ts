/** The streams of one SPDY connection, at its server end. */
import { guarded, nextTurn } from '@megaplane/base/deferred';
import type { Duplex } from 'node:stream';
import { dataFrame, goawayFrame, replyFrame, resetFrame, SpdyReader } from './spdy-frames.ts';

/** Streams open at once; exec has five, port-forward two for each connection. */
export const STREAMS_MAX = 1000;
/** Of replies and data that a client does not read: what it asks to be told again ends it. */
export const UNREAD_BYTES_MAX: number = 4 * 1024 * 1024;

/** Answers a frame of the client's; ends the connection of who asks and does not listen. */
export function reply(socket: Duplex, bytes: Buffer): void {
  if (socket.destroyed || socket.writableEnded) return;
  socket.write(bytes);
  if (socket.writableLength > UNREAD_BYTES_MAX) socket.destroy();
}

export class SpdyStream {
  readonly id: number;
  readonly headers: ReadonlyMap<string, string>;
  onData: (bytes: Buffer) => void = () => {};
  /** The client has said all. */
  onEnd: () => void = () => {};
  /** The client wants no more of the stream, or is gone. */
  onReset: () => void = () => {};
  readonly #session: SpdySession;
  #isEnded = false;

  constructor(id: number, headers: ReadonlyMap<string, string>, session: SpdySession) {
    this.id = id;
    this.headers = headers;
    this.#session = session;
  }

  /** False: wait for the session's `onDrain` before more is written. */
  write(bytes: Buffer): boolean {
    if (this.#isEnded || bytes.length === 0) return true;
    return this.#session.send(dataFrame(this.id, bytes, false));
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#session.send(dataFrame(this.id, Buffer.alloc(0), true));
  }

  reset(): void {
    this.#isEnded = true;
    this.#session.forget(this.id);
    this.#session.reply(resetFrame(this.id));
  }
}

export class SpdySession {
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  readonly #socket: Duplex;
  readonly #reader: SpdyReader;
  readonly #streams: Map<number, SpdyStream> = new Map();
  readonly #waiting: (() => void)[] = [];
  #lastId = 0;
  #isClosed = false;
  /** A reader of a stream holds the client back. */
  #isHeld = false;
  /** The rest of what came is read in the next turn. */
  #isYielding = false;

  /** `head` is what came behind the request already. */
  constructor(socket: Duplex, head: Buffer, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#reader = new SpdyReader({
      onStream: (id, headers, isLast) => this.#open(id, headers, isLast, onStream),
      onData: (id, bytes, isLast) => {
        const stream = this.#streams.get(id);
        if (bytes.length > 0) stream?.onData(bytes);
        if (isLast) stream?.onEnd();
      },
      onReset: (id) => {
        const stream = this.#streams.get(id);
        this.#streams.delete(id);
        stream?.onReset();
      },
      onReply: (bytes) => this.reply(bytes),
      onGoaway: () => {},
      onBroken: () => socket.destroy(),
    });
    socket.on(
      'data',
      guarded((bytes: Buffer) => this.#read(bytes)),
    );
    socket.on(
      'drain',
      guarded(() => this.#drained()),
    );
    socket.on(
      'error',
      guarded(() => socket.destroy()),
    );
    socket.on(
      'end',
      guarded(() => socket.end()),
    );
    socket.on(
      'close',
      guarded(() => this.#over()),
    );
    if (head.length > 0) this.#read(head);
  }

  #open(
    id: number,
    headers: ReadonlyMap<string, string>,
    isLast: boolean,
    onStream: (stream: SpdyStream) => void,
  ): void {
    // numbers rise (section 2.3.2): an open stream would be lost under a second one of its number
    if (id <= this.#lastId) return void this.#socket.destroy();
    const stream = new SpdyStream(id, headers, this);
    const isFirst = this.#lastId === 0;
    this.#lastId = id;
    if (this.#streams.size >= STREAMS_MAX) {
      stream.reset();
      return;
    }
    this.reply(replyFrame(id, isFirst));
    this.#streams.set(id, stream);
    onStream(stream);
    if (isLast) stream.onEnd();
  }

  send(bytes: Buffer): boolean {
    return this.#isClosed || this.#socket.destroyed ? true : this.#socket.write(bytes);
  }

  /** See `reply`. */
  reply(bytes: Buffer): void {
    if (!this.#isClosed) reply(this.#socket, bytes);
  }

  /** Calls back once the socket takes more, or is closed. */
  whenDrained(then: () => void): void {
    this.#waiting.push(then);
  }

  #drained(): void {
    this.onDrain();
    for (const then of this.#waiting.splice(0)) then();
  }

  forget(id: number): void {
    this.#streams.delete(id);
  }

  #read(bytes: Buffer): void {
    const read = this.#reader.read(bytes);
    if (read === bytes.length || this.#socket.destroyed) return;
    this.#isYielding = true;
    this.#socket.pause();
    this.#socket.unshift(bytes.subarray(read));
    nextTurn(() => {
      this.#isYielding = false;
      if (!this.#isHeld) this.#socket.resume();
    });
  }

  pause(): void {
    this.#isHeld = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isHeld = false;
    if (!this.#isYielding) this.#socket.resume();
  }

  /** Ends the connection once all that was written is sent. */
  close(): void {
    if (this.#isClosed) return;
    this.send(goawayFrame(this.#lastId));
    this.#isClosed = true;
    this.#socket.end();
  }

  #over(): void {
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.onReset();
    this.#streams.clear();
    for (const then of this.#waiting.splice(0)) then();
    this.onClose();
  }
}

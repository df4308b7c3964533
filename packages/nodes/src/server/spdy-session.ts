/** The streams of one SPDY connection, at its server end. */
import { guarded } from '@megaplane/base/deferred';
import type { Duplex } from 'node:stream';
import { dataFrame, goawayFrame, replyFrame, resetFrame, SpdyReader } from './spdy-frames.ts';

/** Streams open at once; exec has five, port-forward two for each connection. */
export const STREAMS_MAX = 1000;

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
    this.#session.send(resetFrame(this.id));
  }
}

export class SpdySession {
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  readonly #socket: Duplex;
  readonly #streams: Map<number, SpdyStream> = new Map();
  #lastId = 0;
  #isClosed = false;

  /** `head` is what came behind the request already. */
  constructor(socket: Duplex, head: Buffer, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    const reader = new SpdyReader({
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
      onReply: (bytes) => this.send(bytes),
      onGoaway: () => {},
      onBroken: () => socket.destroy(),
    });
    socket.on(
      'data',
      guarded((bytes: Buffer) => reader.read(bytes)),
    );
    socket.on(
      'drain',
      guarded(() => this.onDrain()),
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
    if (head.length > 0) reader.read(head);
  }

  #open(
    id: number,
    headers: ReadonlyMap<string, string>,
    isLast: boolean,
    onStream: (stream: SpdyStream) => void,
  ): void {
    const stream = new SpdyStream(id, headers, this);
    if (this.#streams.size >= STREAMS_MAX) {
      stream.reset();
      return;
    }
    this.send(replyFrame(id, this.#lastId === 0));
    this.#lastId = Math.max(id, this.#lastId);
    this.#streams.set(id, stream);
    onStream(stream);
    if (isLast) stream.onEnd();
  }

  send(bytes: Buffer): boolean {
    return this.#isClosed || this.#socket.destroyed ? true : this.#socket.write(bytes);
  }

  forget(id: number): void {
    this.#streams.delete(id);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
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
    this.onClose();
  }
}

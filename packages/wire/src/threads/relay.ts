// shell
/**
 * A connection on the thread that owns its socket: what comes goes into the ring to the thread that
 * serves, what comes from there goes to the socket. It knows no HTTP.
 *
 * It is a `Protocol` of a `SocketTransport` as HTTP is, so that sockets and TLS are the same code
 * on every thread.
 */
import type { RingPost } from '@megaplane/base/ring-post';
import { giveBlock, takeBlock } from '../http2/output.ts';
import type { Protocol, Transport } from '../transport/transport.ts';
import {
  AHEAD_BYTES_MAX,
  CLOSED,
  DRAINED,
  OPENED,
  PEER_ENDED,
  PIECE_BYTES,
  RECEIVED,
  WRITTEN_BYTES,
} from './messages.ts';

const NOTHING: Buffer = Buffer.alloc(0);

/** What the connections of a thread share. */
export interface RelayHost {
  readonly post: RingPost;
  /** By slot: octets that the kernel has taken, modulo 2^32. */
  readonly written: Int32Array;
  /** The post has no room: nobody is read any more until it has. */
  pauseAll(): void;
}

export class Relay implements Protocol {
  readonly #transport: Transport;
  readonly #host: RelayHost;
  readonly #slot: number;
  /** Octets on their way to the thread that serves. */
  #ahead = 0;
  #waitsForRoom = false;
  #given = 0;
  #written = 0;
  #told = 0;
  #isClosed = false;

  /** `opening` is the first message, what `writeOpening` made. */
  constructor(transport: Transport, slot: number, opening: Buffer, host: RelayHost) {
    this.#transport = transport;
    this.#slot = slot;
    this.#host = host;
    Atomics.store(host.written, slot, 0);
    host.post.send(OPENED, slot, opening, 0, opening.length);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  receive(bytes: Buffer, start: number, end: number): void {
    const { post } = this.#host;
    for (let at = start; at < end; at += PIECE_BYTES) {
      post.send(RECEIVED, this.#slot, bytes, at, Math.min(end, at + PIECE_BYTES));
    }
    this.#ahead += end - start;
    if (post.isBehind) this.#host.pauseAll();
    else if (this.#ahead >= AHEAD_BYTES_MAX) this.#transport.pause();
  }

  /** Until `hasRoom`. */
  waitForRoom(): void {
    this.#waitsForRoom = true;
    this.#transport.pause();
  }

  /** The thread that serves is done with so many octets. */
  taken(count: number): void {
    this.#ahead -= count;
    this.#readOn();
  }

  /** The ring has room again. */
  hasRoom(): void {
    this.#waitsForRoom = false;
    this.#readOn();
  }

  #readOn(): void {
    if (this.#isClosed || this.#waitsForRoom || this.#ahead >= AHEAD_BYTES_MAX) return;
    this.#transport.resume();
  }

  /**
   * Gives the socket octets that are lent for the call. TLS encrypts the first piece before it
   * returns; whatever might be kept is copied.
   */
  send(bytes: Buffer, start: number, end: number): void {
    if (this.#isClosed) return;
    const transport = this.#transport;
    this.#given = (this.#given + end - start) >>> 0;
    const isTakenAtOnce = transport.secure && !transport.writing() && transport.pending() === 0;
    if (isTakenAtOnce) transport.write(bytes, start, end, nothing);
    else {
      const block = takeBlock(end - start);
      bytes.copy(block, 0, start, end);
      const isTaken = transport.write(block, 0, end - start, () => giveBlock(block));
      if (isTaken) giveBlock(block);
    }
    this.#countWritten();
  }

  /** A plain socket that takes all at once says nothing of it later. */
  #countWritten(): void {
    const pending = this.#transport.pending();
    const written = (this.#given - pending) >>> 0;
    if (written === this.#written) return;
    this.#written = written;
    Atomics.store(this.#host.written, this.#slot, written | 0);
    if (pending > 0 || (written - this.#told) >>> 0 < WRITTEN_BYTES) return;
    this.#told = written;
    this.#tell(DRAINED);
  }

  end(): void {
    if (!this.#isClosed) this.#transport.end();
  }

  destroy(): void {
    if (!this.#isClosed) this.#transport.destroy();
  }

  flush(): void {
    // Nothing is kept here.
  }

  drained(): void {
    this.#countWritten();
  }

  ended(): void {
    this.#tell(PEER_ENDED);
  }

  closed(): void {
    this.#isClosed = true;
    this.#tell(CLOSED);
  }

  #tell(kind: number): void {
    this.#host.post.send(kind, this.#slot, NOTHING, 0, 0);
  }

  tick(): void {
    this.#countWritten();
  }

  drain(): void {
    // The thread that serves ends connections when their answers are out.
  }
}

function nothing(): void {
  // the memory is not used again
}

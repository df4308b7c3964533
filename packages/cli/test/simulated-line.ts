/** One streamed answer on a network that a test drives: nothing moves until it is pumped. */
import { ExchangeModel } from '@megaplane/apiserver/exchange-model.sim';
import type { StreamHandle, StreamSink } from '@megaplane/client/client';

export class SimulatedLine extends ExchangeModel implements StreamHandle {
  readonly #sink: StreamSink;
  readonly #windowBytes: number;
  readonly #queue: Buffer[] = [];
  #queued = 0;
  #isHeadSent = false;
  isOver = false;
  /** Rounds for which nothing gets through. */
  stalledRounds = 0;

  /** The server may be `windowBytes` ahead of the client. */
  constructor(
    path: string,
    sink: StreamSink,
    headers: Readonly<Record<string, string>> = {},
    windowBytes: number = Infinity,
  ) {
    super('GET', path, undefined, headers);
    this.#sink = sink;
    this.#windowBytes = windowBytes;
  }

  override respond(
    status: number,
    type: string | null,
    bytes: Uint8Array | string | null,
    headers: readonly string[] = [],
  ): void {
    this.open(status, type, headers);
    if (bytes !== null) this.write(Buffer.from(bytes as Uint8Array));
    this.end();
  }

  override write(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.#queue.push(Buffer.from(bytes.subarray(start, end)));
    this.#queued += end - start;
  }

  override writable(): number {
    return Math.max(0, this.#windowBytes - this.#queued);
  }

  /** Lets up to `bytesMax` through; true if something moved. */
  pump(bytesMax: number = Infinity): boolean {
    if (this.isOver || this.status === 0) return false;
    let isMoved = !this.#isHeadSent;
    if (!this.#isHeadSent) this.#sink.onHead(this.status, 0);
    this.#isHeadSent = true;
    const wasFull = this.writable() === 0;
    let left = bytesMax;
    for (let piece = this.#queue[0]; piece !== undefined && left > 0; piece = this.#queue[0]) {
      const taken = piece.subarray(0, left);
      left -= taken.length;
      this.#queued -= taken.length;
      isMoved = true;
      if (taken.length === piece.length) this.#queue.shift();
      else this.#queue[0] = piece.subarray(taken.length);
      this.#sink.onData(taken, 0, taken.length);
      if (this.isOver) return true;
    }
    if (wasFull && this.writable() > 0) this.onWritable?.();
    if (this.#queue.length > 0 || !this.isEnded) return isMoved;
    this.isOver = true;
    this.#sink.onEnd(null);
    return true;
  }

  /** The connection breaks: what was under way is lost. */
  cut(): void {
    if (this.isOver) return;
    this.cancel();
    this.#sink.onEnd('connection reset');
  }

  override cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    super.cancel();
  }

  pause(): void {}
  resume(): void {}
}

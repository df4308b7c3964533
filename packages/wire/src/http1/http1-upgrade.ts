/** A connection after `101 Switching Protocols`: bytes both ways. */
import type { Connection, UpgradedStream } from '../http/exchange.ts';
import type { Http1Output } from './http1-output.ts';

/** What the stream asks of the connection that it lives on. */
export interface UpgradeHost extends Connection {
  readonly output: Http1Output;
  budget(): number;
  changed(): void;
  pauseReading(): void;
  resumeReading(): void;
}

export class Http1Upgrade implements UpgradedStream {
  readonly connection: Connection;
  onData: ((bytes: Buffer, start: number, end: number) => void) | null = null;
  onEnd: (() => void) | null = null;
  onWritable: (() => void) | null = null;
  /** The user has ended its side; the connection follows when the output is out. */
  isEnded = false;
  readonly #host: UpgradeHost;
  /** Bytes that came behind the request; delivered in the next turn, when `onData` is set. */
  #early: Buffer;
  #isPaused = false;
  #isOver = false;
  #wantsWritable = false;

  constructor(host: UpgradeHost, early: Buffer) {
    this.#host = host;
    this.connection = host;
    this.#early = early;
  }

  receive(bytes: Buffer, start: number, end: number): void {
    if (this.#isPaused || this.#early.length > 0) {
      // What the socket had already read when it was paused.
      this.#early = Buffer.concat([this.#early, bytes.subarray(start, end)]);
      this.#host.changed();
    } else if (!this.isEnded) this.onData?.(bytes, start, end);
  }

  /** It has something to do in the next turn. */
  get wantsTurn(): boolean {
    return this.#wantsWritable || (this.#early.length > 0 && !this.#isPaused);
  }

  /** Called in the turn that was asked for. */
  turn(): void {
    if (this.#early.length > 0 && !this.#isPaused) {
      const early = this.#early;
      this.#early = early.subarray(0, 0);
      if (!this.isEnded) this.onData?.(early, 0, early.length);
    }
    if (!this.#wantsWritable || this.isEnded || this.#host.budget() <= 0) return;
    this.#wantsWritable = false;
    this.onWritable?.();
  }

  /** The peer ended, or the connection is gone. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#early.length > 0) this.onData?.(this.#early, 0, this.#early.length);
    this.onEnd?.();
  }

  write(bytes: Uint8Array, start: number = 0, end: number = bytes.length): void {
    if (this.isEnded) return;
    this.#host.output.put(bytes, start, end);
    this.#host.changed();
  }

  writable(): number {
    if (this.isEnded) return 0;
    const bytes = Math.max(0, this.#host.budget());
    if (bytes === 0) this.#wantsWritable = true;
    return bytes;
  }

  pause(): void {
    this.#isPaused = true;
    this.#host.pauseReading();
  }

  resume(): void {
    this.#isPaused = false;
    this.#host.resumeReading();
    this.#host.changed();
  }

  end(): void {
    this.isEnded = true;
    this.#host.changed();
  }
}

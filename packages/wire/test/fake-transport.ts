import assert from 'node:assert/strict';
import type { Protocol, Transport } from '../src/transport/transport.ts';

/** A socket made of arrays: what the protocol wrote, and what it asked for. */
export class FakeTransport implements Transport {
  readonly id = 1;
  readonly secure = false;
  readonly unix = false;
  readonly remoteAddress = '127.0.0.1';
  readonly writes: Buffer[] = [];
  protocol: Protocol | null = null;
  isPaused = false;
  isEnded = false;
  isDestroyed = false;
  wantsFlush = false;
  wantsTurn = false;
  timeMs = 0;
  /** When set, writes are taken only by `drain`. */
  isSlow = false;
  pendingBytes = 0;
  #done: (() => void) | null = null;

  peerCertificate(): null {
    return null;
  }
  write(bytes: Buffer, start: number, end: number, done: () => void): boolean {
    assert.equal(this.isEnded || this.isDestroyed, false, 'writes after the end');
    assert.equal(this.#done, null, 'one write at a time');
    this.writes.push(Buffer.from(bytes.subarray(start, end)));
    if (!this.isSlow) return true;
    this.pendingBytes += end - start;
    this.#done = done;
    return false;
  }
  drain(): void {
    const done = this.#done;
    this.#done = null;
    this.pendingBytes = 0;
    done?.();
    this.protocol?.drained();
    this.settle();
  }
  pending(): number {
    return this.pendingBytes;
  }

  writing(): boolean {
    return false;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  requestFlush(): void {
    this.wantsFlush = true;
  }
  requestTurn(): void {
    this.wantsTurn = true;
  }
  end(): void {
    assert.equal(this.isEnded, false);
    this.isEnded = true;
  }
  destroy(): void {
    if (this.isDestroyed) return;
    this.isDestroyed = true;
    this.protocol?.closed();
  }
  nowMs(): number {
    return this.timeMs;
  }
  preciseMs(): number {
    return this.timeMs;
  }

  /** Ends the turn, and the turns that it leads to. */
  settle(): void {
    while ((this.wantsFlush || this.wantsTurn) && !this.isDestroyed) {
      if (!this.wantsFlush) {
        this.wantsTurn = false;
        this.protocol?.drained();
      }
      this.wantsFlush = false;
      this.protocol?.flush();
    }
  }
  receive(text: string | Buffer): void {
    if (this.isEnded || this.isDestroyed) return;
    const bytes = Buffer.from(typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
    this.protocol?.receive(bytes, 0, bytes.length);
    this.wantsFlush = true;
    this.settle();
    // Chunks are valid during the call only.
    bytes.fill(0xee);
  }
  get text(): string {
    return Buffer.concat(this.writes).toString('latin1');
  }
}

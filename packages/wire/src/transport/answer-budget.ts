/**
 * Octets of answers that all connections of a listener hold for peers whose windows have no room.
 * Each connection has a bound of its own, but a peer may have many. Above the bound those go that
 * have taken nothing for the longest time: who reads, however slowly, is not cut off for others,
 * up to HARD_FACTOR times the bound, where no answer waits any more.
 */
import { assert } from '@megaplane/base/assert';

/** Who took something within this time reads. */
const STILL_MS_MIN = 1000;
const HARD_FACTOR = 2;

/** A connection of which answers wait. */
export interface WaitingPeer {
  readonly queuedBytes: number;
  /** When it took something last, or began to wait. */
  readonly tookMs: number;
  /** Resets the streams of which something waits. */
  dropQueues(): void;
}

export class AnswerBudget {
  readonly #bytesMax: number;
  readonly #peers = new Set<WaitingPeer>();
  #used = 0;
  /** Nobody stands still before. */
  #nextLookMs = -Infinity;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get used(): number {
    return this.#used;
  }

  get isOver(): boolean {
    return this.#used > this.#bytesMax;
  }

  /** After the peer's `queuedBytes` have changed. */
  count(peer: WaitingPeer, change: number): void {
    this.#used += change;
    assert(this.#used >= 0, 'more is taken than waited');
    if (peer.queuedBytes === 0) this.#peers.delete(peer);
    else if (peer.queuedBytes === change) this.#peers.add(peer);
  }

  /** Before `peer` has more waiting: sees to it that there is room. False: there is none. */
  makeRoom(nowMs: number, peer: WaitingPeer): boolean {
    if (this.isOver && nowMs >= this.#nextLookMs) this.#dropStill(nowMs, peer);
    return this.#used <= this.#bytesMax * HARD_FACTOR;
  }

  #dropStill(nowMs: number, asking: WaitingPeer): void {
    const peers = [...this.#peers].sort((a, b) => a.tookMs - b.tookMs);
    for (const peer of peers) {
      if (!this.isOver) return;
      if (peer.tookMs > nowMs - STILL_MS_MIN) {
        this.#nextLookMs = peer.tookMs + STILL_MS_MIN;
        return;
      }
      // One that asks for more is in the middle of a call: it is told by that call.
      if (peer !== asking) peer.dropQueues();
    }
  }
}

/**
 * How disturbed each zone is, and how fast nodes of it may be tainted NoExecute.
 *
 * A zone is partly down when more than two of its nodes, and at least the given share, are not
 * ready; it is fully down when none is ready. When every zone is fully down nothing is evicted:
 * then the network, the API server or this program is more likely at fault than all nodes.
 */
import { assert } from '@megaplane/base/assert';

export type ZoneState = 'initial' | 'normal' | 'partial' | 'full';

export interface ZoneRules {
  readonly evictionRate: number;
  readonly secondaryEvictionRate: number;
  readonly unhealthyThreshold: number;
  readonly largeClusterSize: number;
}

/** Up to this many nodes not ready a zone counts as normal, whatever their share. */
const NOT_READY_TOLERATED = 2;

export function zoneStateOf(ready: number, notReady: number, rules: ZoneRules): ZoneState {
  if (ready === 0 && notReady > 0) return 'full';
  const isPartial =
    notReady > NOT_READY_TOLERATED && notReady / (notReady + ready) >= rules.unhealthyThreshold;
  return isPartial ? 'partial' : 'normal';
}

/** Nodes per second in a zone of that state and size. */
export function evictionRateOf(state: ZoneState, size: number, rules: ZoneRules): number {
  if (state !== 'partial') return rules.evictionRate;
  return size > rules.largeClusterSize ? rules.secondaryEvictionRate : 0;
}

/** A zone: its counts of the pass under way, its state, and the nodes that wait for the taint. */
export class Zone {
  readonly name: string;
  state: ZoneState = 'initial';
  ready = 0;
  notReady = 0;
  /** Nodes tainted NoExecute since the start. */
  evictions = 0;
  /** Node ids in the order in which they turned bad; those that recovered are skipped when met. */
  readonly queue: number[] = [];
  #queueStart = 0;
  #released = 0;
  #rate = 0;
  #tokens = 1;
  #filledMs = 0;

  constructor(name: string, rate: number) {
    this.name = name;
    this.#rate = rate;
  }

  get rate(): number {
    return this.#rate;
  }

  setRate(rate: number, nowMs: number): void {
    if (rate === this.#rate) return;
    this.#fill(nowMs);
    this.#rate = rate;
  }

  /** Takes the right to taint one node now. One may be saved up, as upstream does. */
  takeToken(nowMs: number): boolean {
    this.#fill(nowMs);
    if (this.#tokens < 1 || this.#rate === 0) return false;
    this.#tokens--;
    return true;
  }

  #fill(nowMs: number): void {
    const passed = Math.max(0, nowMs - this.#filledMs);
    this.#tokens = Math.min(1, this.#tokens + (passed / 1000) * this.#rate);
    assert(this.#tokens >= 0 && this.#tokens <= 1, 'one right is saved up at most');
    this.#filledMs = nowMs;
  }

  /**
   * Lets the nodes that wait now be taken. Those that come later wait for the next pass: only that
   * one tells whether they are a few or all of them.
   */
  release(): void {
    this.#released = this.queue.length;
  }

  /** The node that waits longest, or -1. */
  head(): number {
    return this.#queueStart < this.#released ? (this.queue[this.#queueStart] ?? -1) : -1;
  }

  /** Whether a node waits that the rate will let through some time. */
  get waits(): boolean {
    return this.#rate > 0 && this.head() >= 0;
  }

  dropHead(): void {
    assert(this.#queueStart < this.#released, 'only a node that was let through leaves');
    this.#queueStart++;
    if (this.#queueStart < 1024 || this.#queueStart * 2 < this.queue.length) return;
    this.queue.splice(0, this.#queueStart);
    this.#released -= this.#queueStart;
    this.#queueStart = 0;
  }
}

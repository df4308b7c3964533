/**
 * Events about nodes that come and go. A million nodes that register at once would be a million
 * Events beside them: as with kube-controller-manager, whose recorder keeps a thousand waiting and
 * writes at most twenty a second (`--kube-api-qps`), the rest is not told.
 */
import type { Announce } from '../framework/event-recorder.ts';

const BURST_MAX = 1000;
const PER_SECOND = 20;

export class NodeEvents {
  readonly #announce: Announce;
  readonly #monotonicMs: () => number;
  #tokens = BURST_MAX;
  #filledMs = 0;

  constructor(announce: Announce, monotonicMs: () => number) {
    this.#announce = announce;
    this.#monotonicMs = monotonicMs;
  }

  /** Whether there is room for one more; takes it. */
  take(): boolean {
    const nowMs = this.#monotonicMs();
    const refilled = this.#tokens + (Math.max(0, nowMs - this.#filledMs) / 1000) * PER_SECOND;
    this.#tokens = Math.min(BURST_MAX, refilled);
    this.#filledMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  registered(name: string, uid: string): void {
    this.#tell(name, uid, 'RegisteredNode', `Registered Node ${name} in Controller`);
  }

  removed(name: string, uid: string): void {
    this.#tell(name, uid, 'RemovingNode', `Removing Node ${name} from Controller`);
  }

  #tell(name: string, uid: string, reason: string, message: string): void {
    this.#announce('Node', '', name, 'Normal', reason, `Node ${name} event: ${message}`, uid);
  }
}

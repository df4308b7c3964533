// data plane
/**
 * The pod garbage collector as a machine. A pass finds four sorts of pods that nobody else ends:
 *
 *   orphaned      bound to a node that has been missing for QUARANTINE_MS (confirmed by a read)
 *   unscheduled   being deleted, but never bound: there is no kubelet to finish it
 *   outOfService  being deleted on a node that is not ready and declared out of service
 *   terminated    ended ones above the threshold: the evicted first, then the oldest
 */
import { conditionIn, OUT_OF_SERVICE, TRUE } from '../columns/node-flags.ts';
import type { NodeTable } from '../columns/node-table.ts';
import {
  POD_DELETING,
  POD_ENDED,
  POD_EVICTED,
  POD_EXISTS,
  type PodTable,
} from '../columns/pod-table.ts';

export const QUARANTINE_MS = 40_000;
/** Ended pods that one pass deletes at most; the next pass goes on. */
const TERMINATED_PER_PASS_MAX = 100_000;

export interface PodGcEffects {
  /** Read the node; if it is really gone call `nodeGone`. */
  confirmGone(node: number): void;
  orphaned(pod: number): void;
  unscheduled(pod: number): void;
  outOfService(pod: number): void;
  terminated(pod: number): void;
}

export class PodGc {
  readonly #nodes: NodeTable;
  readonly #pods: PodTable;
  readonly #threshold: number;
  readonly #effects: PodGcEffects;
  /** Node that is missing -> when that was noticed. */
  readonly #missing: Map<number, number> = new Map();

  constructor(nodes: NodeTable, pods: PodTable, threshold: number, effects: PodGcEffects) {
    this.#nodes = nodes;
    this.#pods = pods;
    this.#threshold = threshold;
    this.#effects = effects;
  }

  /** Looks at all rows below `rowEnd`. */
  pass(nowMs: number, rowEnd: number): void {
    const pods = this.#pods;
    for (let row = 0; row < rowEnd; row++) {
      const flags = pods.flags.get(row);
      if ((flags & POD_EXISTS) === 0) continue;
      const node = pods.nodeOf(row);
      if (node >= 0 && !this.#nodes.exists(node) && !this.#missing.has(node)) {
        this.#missing.set(node, nowMs);
      }
      if ((flags & POD_DELETING) !== 0) this.#deleting(row, node);
    }
    this.#quarantine(nowMs);
    if (this.#threshold > 0) this.#terminated(rowEnd);
  }

  #deleting(row: number, node: number): void {
    if (node < 0) {
      this.#effects.unscheduled(row);
      return;
    }
    const bits = this.#nodes.bits.get(node);
    if ((bits & OUT_OF_SERVICE) !== 0 && conditionIn(bits, 0) !== TRUE) {
      this.#effects.outOfService(row);
    }
  }

  #quarantine(nowMs: number): void {
    for (const [node, sinceMs] of this.#missing) {
      if (this.#nodes.exists(node) || this.#pods.first(node) < 0) this.#missing.delete(node);
      else if (nowMs - sinceMs >= QUARANTINE_MS) this.#effects.confirmGone(node);
    }
  }

  /** The row is forgotten: another node that gets its number begins its own quarantine. */
  forget(node: number): void {
    this.#missing.delete(node);
  }

  /** The server, too, knows no such node: its pods go. */
  nodeGone(node: number): void {
    if (!this.#missing.has(node) || this.#nodes.exists(node)) return;
    this.#missing.delete(node);
    for (let pod = this.#pods.first(node); pod >= 0; pod = this.#pods.after(pod)) {
      this.#effects.orphaned(pod);
    }
  }

  /** The node exists after all; look again when it has been missing for another quarantine. */
  nodeFound(node: number, nowMs: number): void {
    if (this.#missing.has(node)) this.#missing.set(node, nowMs);
  }

  #terminated(rowEnd: number): void {
    const pods = this.#pods;
    const surplus = Math.min(pods.endedCount - this.#threshold, TERMINATED_PER_PASS_MAX);
    if (surplus <= 0) return;
    const ended: number[] = [];
    for (let row = 0; row < rowEnd; row++) {
      const flags = pods.flags.get(row);
      if ((flags & POD_ENDED) !== 0 && (flags & POD_DELETING) === 0) ended.push(row);
    }
    ended.sort(
      (a, b) =>
        (pods.flags.get(b) & POD_EVICTED) - (pods.flags.get(a) & POD_EVICTED) ||
        pods.createdS.get(a) - pods.createdS.get(b),
    );
    for (let i = 0; i < surplus && i < ended.length; i++) this.#effects.terminated(ended[i]!);
  }
}

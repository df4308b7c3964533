/**
 * The taint eviction controller as a machine: pods leave a node with NoExecute taints when their
 * tolerations have run out. A pod keeps the time at which its stay was first limited, so that a
 * second taint cannot make it longer; a taint that goes away in time calls the eviction off.
 */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { POD_DELETING, type PodTable } from './pod-table.ts';
import { staySeconds, taintOf, type Taint } from './tolerations.ts';

export interface EvictionEffects {
  /** Mark the pod and delete it. */
  evict(pod: number): void;
  /** An eviction that was planned will not be. */
  cancel(pod: number): void;
}

interface Stay {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export class TaintEviction {
  readonly #pods: PodTable;
  readonly #effects: EvictionEffects;
  /** Only nodes that have NoExecute taints now. */
  readonly #taints: Map<number, readonly Taint[]> = new Map();
  /** Only pods whose stay is limited. */
  readonly #stays: Map<number, Stay> = new Map();
  readonly #evicted: Set<number> = new Set();
  readonly #tolerations: Map<number, readonly JsonValue[]> = new Map();
  #nextMs = Infinity;

  constructor(pods: PodTable, effects: EvictionEffects) {
    this.#pods = pods;
    this.#effects = effects;
  }

  /** Pods whose stay is limited now. */
  get pending(): number {
    return this.#stays.size;
  }

  /** `spec.taints` of a node that has, or had, NoExecute taints. */
  taintsChanged(node: number, list: readonly JsonValue[], nowMs: number): void {
    const taints = list.map(taintOf).filter((taint) => taint.effect === 'NoExecute');
    if (taints.length === 0 && !this.#taints.has(node)) return;
    if (taints.length === 0) this.#taints.delete(node);
    else this.#taints.set(node, taints);
    for (let pod = this.#pods.first(node); pod >= 0; pod = this.#pods.after(pod)) {
      this.#judge(pod, taints, nowMs);
    }
  }

  nodeRemoved(node: number): void {
    this.#taints.delete(node);
  }

  /** A pod is new, was bound, or has other tolerations. */
  podChanged(pod: number, nowMs: number): void {
    const taints = this.#taints.get(this.#pods.nodeOf(pod));
    if (taints !== undefined || this.#stays.has(pod)) this.#judge(pod, taints ?? [], nowMs);
  }

  podRemoved(pod: number): void {
    this.#stays.delete(pod);
    this.#evicted.delete(pod);
  }

  #judge(pod: number, taints: readonly Taint[], nowMs: number): void {
    if ((this.#pods.flags.get(pod) & POD_DELETING) !== 0 || this.#evicted.has(pod)) return;
    const seconds = staySeconds(this.#tolerationsOf(pod), taints);
    const before = this.#stays.get(pod);
    if (seconds === Infinity) {
      if (before === undefined) return;
      this.#stays.delete(pod);
      this.#effects.cancel(pod);
      return;
    }
    if (seconds === 0) return this.#evict(pod);
    const sinceMs = before?.sinceMs ?? nowMs;
    const untilMs = sinceMs + seconds * 1000;
    if (before !== undefined && before.untilMs <= untilMs) return;
    this.#stays.set(pod, { sinceMs, untilMs });
    this.#nextMs = Math.min(this.#nextMs, untilMs);
  }

  #evict(pod: number): void {
    this.#stays.delete(pod);
    this.#evicted.add(pod);
    this.#effects.evict(pod);
  }

  /** An eviction failed for good; the pod may be judged again. */
  evictionFailed(pod: number, nowMs: number): void {
    this.#evicted.delete(pod);
    this.podChanged(pod, nowMs);
  }

  /** Evicts the pods whose stay is over. */
  tick(nowMs: number): void {
    if (nowMs < this.#nextMs) return;
    this.#nextMs = Infinity;
    for (const [pod, stay] of this.#stays) {
      if (stay.untilMs <= nowMs) this.#evict(pod);
      else this.#nextMs = Math.min(this.#nextMs, stay.untilMs);
    }
  }

  #tolerationsOf(pod: number): readonly JsonValue[] {
    const kind = this.#pods.tolerance.get(pod);
    let parsed = this.#tolerations.get(kind);
    if (parsed === undefined) {
      parsed = JSON.parse(this.#pods.tolerances.keyText(kind)) as JsonValue[];
      this.#tolerations.set(kind, parsed);
    }
    return parsed;
  }
}

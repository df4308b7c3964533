/**
 * The taint eviction controller as a machine: pods leave a node with NoExecute taints when their
 * tolerations have run out. A pod's stay is limited once: a further taint makes it neither longer
 * nor, as upstream, shorter, unless the pod does not tolerate it at all. A taint that goes away in
 * time calls the eviction off, and so does the end of the pod.
 */
import { assert } from '@megaplane/base/assert';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { POD_DELETING, type PodTable } from '../columns/pod-table.ts';
import { staySeconds, taintOf, type Taint } from '../framework/tolerations.ts';

export interface EvictionEffects {
  /** Mark the pod and delete it, so long after its stay was over. */
  evict(pod: number, lateMs: number): void;
  /** An eviction that was planned will not be. */
  cancel(pod: number): void;
  /** `tick` has something to do then, and not sooner. */
  due(atMs: number): void;
}

export class TaintEviction {
  readonly #pods: PodTable;
  readonly #effects: EvictionEffects;
  /** Only nodes that have NoExecute taints now. */
  readonly #taints: Map<number, readonly Taint[]> = new Map();
  /** Only pods whose stay is limited. */
  readonly #untilMs: Map<number, number> = new Map();
  readonly #evicted: Set<number> = new Set();
  readonly #tolerations: Map<number, readonly JsonValue[]> = new Map();
  #nextMs = Infinity;

  constructor(pods: PodTable, effects: EvictionEffects) {
    this.#pods = pods;
    this.#effects = effects;
  }

  /** Pods whose stay is limited now. */
  get pending(): number {
    return this.#untilMs.size;
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
    if (taints !== undefined || this.#untilMs.has(pod)) this.#judge(pod, taints ?? [], nowMs);
  }

  /** Called while the pod is still in the table. */
  podRemoved(pod: number): void {
    this.#cancel(pod);
    this.#evicted.delete(pod);
  }

  #judge(pod: number, taints: readonly Taint[], nowMs: number): void {
    if ((this.#pods.flags.get(pod) & POD_DELETING) !== 0 || this.#evicted.has(pod)) return;
    const seconds = staySeconds(this.#tolerationsOf(pod), taints);
    const isTolerated = seconds > 0;
    if (seconds === Infinity || !isTolerated) this.#cancel(pod);
    if (!isTolerated) return this.#evict(pod);
    if (seconds === Infinity || this.#untilMs.has(pod)) return;
    const untilMs = nowMs + seconds * 1000;
    assert(!this.#evicted.has(pod), 'a pod that is evicted has no stay');
    this.#untilMs.set(pod, untilMs);
    if (untilMs >= this.#nextMs) return;
    this.#nextMs = untilMs;
    this.#effects.due(untilMs);
  }

  #cancel(pod: number): void {
    if (this.#untilMs.delete(pod)) this.#effects.cancel(pod);
  }

  #evict(pod: number, lateMs = 0): void {
    assert(!this.#evicted.has(pod), 'a pod is evicted once');
    this.#untilMs.delete(pod);
    this.#evicted.add(pod);
    this.#effects.evict(pod, lateMs);
  }

  /** An eviction failed for good; the pod may be judged again. */
  evictionFailed(pod: number, nowMs: number): void {
    this.#evicted.delete(pod);
    this.podChanged(pod, nowMs);
  }

  /** Evicts the pods whose stay is over. */
  tick(nowMs: number): void {
    if (nowMs >= this.#nextMs) {
      this.#nextMs = Infinity;
      for (const [pod, untilMs] of this.#untilMs) {
        if (untilMs <= nowMs) this.#evict(pod, nowMs - untilMs);
        else this.#nextMs = Math.min(this.#nextMs, untilMs);
      }
    }
    const isWatched = this.#untilMs.size === 0 || this.#nextMs < Infinity;
    assert(isWatched, 'the end of each stay is waited for');
    if (this.#nextMs < Infinity) this.#effects.due(this.#nextMs);
  }

  #tolerationsOf(pod: number): readonly JsonValue[] {
    const kind = this.#pods.tolerance.get(pod);
    let parsed = this.#tolerations.get(kind);
    if (parsed === undefined) {
      parsed = parseJson(this.#pods.tolerances.keyText(kind)) as JsonValue[];
      this.#tolerations.set(kind, parsed);
    }
    return parsed;
  }
}

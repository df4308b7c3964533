/** Pods that wait for a node of their own to be freed for them. */
import type { ClusterView } from './cluster-view.ts';
import type { Nominations } from './cycle.ts';
import type { Identities } from './identities.ts';
import type { PodInfo } from './pod-info.ts';
import type { PodTable } from './pod-table.ts';

export class Nominator implements Nominations {
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #nodeOf = new Map<number, string>();
  readonly #podsOn = new Map<string, Set<number>>();
  /** Makes pods of rows; set once the view exists. */
  view: ClusterView | null = null;

  constructor(pods: PodTable, identities: Identities) {
    this.#pods = pods;
    this.#identities = identities;
  }

  get size(): number {
    return this.#nodeOf.size;
  }

  /** The node that a pod waits for, or empty. */
  nodeOf(id: number): string {
    return this.#nodeOf.get(id) ?? '';
  }

  set(id: number, node: string): void {
    if (this.nodeOf(id) === node) return;
    this.delete(id);
    if (node === '') return;
    this.#nodeOf.set(id, node);
    const pods = this.#podsOn.get(node) ?? new Set();
    pods.add(id);
    this.#podsOn.set(node, pods);
  }

  delete(id: number): void {
    const node = this.#nodeOf.get(id);
    if (node === undefined) return;
    this.#nodeOf.delete(id);
    const pods = this.#podsOn.get(node);
    pods?.delete(id);
    if (pods?.size === 0) this.#podsOn.delete(node);
  }

  on(node: string): readonly PodInfo[] {
    const { view } = this;
    const pods = this.#podsOn.get(node);
    if (pods === undefined || view === null) return [];
    return [...pods].map((id) => view.podAt(id));
  }

  /** Whether the pod itself waits for a node, or another one that it must not push aside. */
  hasRivals(id: number, priority: number): boolean {
    for (const other of this.#nodeOf.keys()) {
      if (other === id || this.#priorityOf(other) >= priority) return true;
    }
    return false;
  }

  /** Pods of lower priority that wait for the same node. */
  below(node: string, priority: number): number[] {
    const pods = [...(this.#podsOn.get(node) ?? [])];
    return pods.filter((id) => this.#priorityOf(id) < priority);
  }

  #priorityOf(id: number): number {
    return this.#identities.classes.get(this.#pods.podClass.get(id)).priority;
  }
}

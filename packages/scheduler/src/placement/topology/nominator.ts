/** Pods that wait for a node of their own to be freed for them. */
import { assert } from '@megaplane/base/assert';
import type { ClusterView } from '../../view/cluster-view.ts';
import type { Nominations } from '../../framework/runtime/cycle.ts';
import type { Identities } from '../../cache/identities.ts';
import type { PodInfo } from '../../framework/pod-info.ts';
import type { PodTable } from '../../cache/pod-table.ts';

/** Changes that are remembered at least. */
const CHANGES_KEPT = 4096;

export class Nominator implements Nominations {
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #claims = new Map<number, { readonly node: string; readonly priority: number }>();
  readonly #podsOn = new Map<string, Set<number>>();
  /** Pods whose objects say what they wait for. */
  readonly #told = new Set<number>();
  /** Pods that wait for a node, by priority. */
  readonly #priorities = new Map<number, number>();
  /** Nodes whose pods changed, in order; those before `#dropped` are forgotten. */
  #changes: string[] = [];
  #dropped = 0;
  /** Makes pods of rows; set once the view exists. */
  view: ClusterView | null = null;

  constructor(pods: PodTable, identities: Identities) {
    this.#pods = pods;
    this.#identities = identities;
  }

  get size(): number {
    return this.#claims.size;
  }

  /** The node that a pod waits for, or empty. */
  nodeOf(id: number): string {
    return this.#claims.get(id)?.node ?? '';
  }

  /**
   * The node that a pod waits for by what its object says. Nothing there: it waits on for what was
   * decided here, unless its object had said so already; somebody took that back then.
   */
  expected(id: number, node: string): string {
    return node === '' && !this.#told.has(id) ? this.nodeOf(id) : node;
  }

  /** A pod's object names a node. */
  tell(id: number, node: string): void {
    this.set(id, node);
    this.#told.add(id);
  }

  set(id: number, node: string = ''): void {
    if (this.nodeOf(id) === node) return;
    this.delete(id);
    if (node === '') return;
    const priority = this.#priorityOf(id);
    this.#claims.set(id, { node, priority });
    const pods = this.#podsOn.get(node) ?? new Set();
    pods.add(id);
    this.#podsOn.set(node, pods);
    this.#changed(node, priority, 1);
  }

  delete(id: number): void {
    const claim = this.#claims.get(id);
    if (claim === undefined) return;
    const { node, priority } = claim;
    this.#claims.delete(id);
    this.#told.delete(id);
    const pods = this.#podsOn.get(node);
    assert(pods?.delete(id) === true, 'a node knows the pods that wait for it');
    if (pods.size === 0) this.#podsOn.delete(node);
    this.#changed(node, priority, -1);
  }

  /** Nodes that somebody waits for. */
  get nodes(): Iterable<string> {
    return this.#podsOn.keys();
  }

  /** Position after the last change; positions count up for ever. */
  get end(): number {
    return this.#dropped + this.#changes.length;
  }

  /** Whether all changes since `position` are still known. */
  holds(position: number): boolean {
    return position >= this.#dropped;
  }

  /** The node whose pods changed at a position that is still held. */
  changedAt(position: number): string {
    assert(this.holds(position) && position < this.end, 'a change that is asked for is kept');
    return this.#changes[position - this.#dropped] ?? '';
  }

  /** Rows of the pods that wait for a node. */
  waitingFor(node: string): readonly number[] {
    return [...(this.#podsOn.get(node) ?? [])];
  }

  on(node: string): readonly PodInfo[] {
    const { view } = this;
    const pods = this.#podsOn.get(node);
    if (pods === undefined || view === null) return [];
    return [...pods].map((id) => view.podAt(id));
  }

  /** Whether another pod waits for a node that this one must not push aside. */
  hasRivals(id: number, priority: number): boolean {
    const own = this.#claims.get(id)?.priority;
    for (const [other, pods] of this.#priorities) {
      if (other >= priority && pods > (other === own ? 1 : 0)) return true;
    }
    return false;
  }

  /** Pods of lower priority that wait for the same node. */
  below(node: string, priority: number): number[] {
    const pods = [...(this.#podsOn.get(node) ?? [])];
    return pods.filter((id) => this.#priorityOf(id) < priority);
  }

  #changed(node: string, priority: number, delta: 1 | -1): void {
    const pods = (this.#priorities.get(priority) ?? 0) + delta;
    assert(pods >= 0, 'no more pods stop waiting than wait');
    if (pods === 0) this.#priorities.delete(priority);
    else this.#priorities.set(priority, pods);
    this.#changes.push(node);
    if (this.#changes.length < 2 * CHANGES_KEPT) return;
    this.#changes = this.#changes.slice(CHANGES_KEPT);
    this.#dropped += CHANGES_KEPT;
  }

  #priorityOf(id: number): number {
    return this.#identities.classes.get(this.#pods.podClass.get(id)).priority;
  }
}

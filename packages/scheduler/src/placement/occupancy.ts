/** Pods on nodes: who takes room where, and whoever counts them hears of it. */
import { assert } from '@megaplane/base/assert';
import type { Identities } from '../cache/identities.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Placement } from './placement.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import { PLACE, type PodTable } from '../cache/pod-table.ts';
import type { TermWatch } from './topology/term-watch.ts';

export interface OccupancyOptions {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly placement: Placement;
  readonly terms: TermWatch;
}

export class Occupancy {
  /** Pods with a node that the API server has not confirmed. */
  assumed = 0;
  readonly #options: OccupancyOptions;

  constructor(options: OccupancyOptions) {
    this.#options = options;
  }

  isPlaced(id: number): boolean {
    return this.#options.pods.node.get(id) >= 0;
  }

  enter(id: number, node: number, usage: number, place: number): void {
    const { pods, placement } = this.#options;
    assert(!this.isPlaced(id), 'a pod has one node at a time');
    pods.attach(id, node, usage);
    pods.place.set(id, place);
    if (place === PLACE.assumed) this.assumed++;
    placement.count(id, 1);
    this.#countSibling(id);
  }

  /** The API server says where the pod is, and that is where we thought. */
  confirm(id: number): void {
    const { pods } = this.#options;
    assert(this.isPlaced(id), 'a pod that is confirmed has a node');
    if (pods.place.get(id) === PLACE.assumed) this.assumed--;
    assert(this.assumed >= 0, 'no more pods are confirmed than were assumed');
    pods.place.set(id, PLACE.bound);
  }

  /** Takes a pod off its node, which is returned. */
  leave(id: number): number {
    const { pods, nodes, placement } = this.#options;
    const node = pods.node.get(id);
    assert(node >= 0, 'a pod that leaves has a node');
    const usage = pods.usage.get(id);
    placement.count(id, -1);
    this.#uncountSibling(id);
    pods.detach(id);
    nodes.usages.release(usage);
    if (pods.place.get(id) === PLACE.assumed) this.assumed--;
    assert(this.assumed >= 0, 'no more pods leave than were assumed');
    pods.place.set(id, PLACE.none);
    return node;
  }

  /** A placed pod gets other labels: those who count pods by labels must hear of it. */
  rename(id: number, facts: PodFacts, setIdentity: () => void): void {
    const { pods, nodes, placement, terms } = this.#options;
    const isOfClass = pods.podClass.get(id) === facts.podClass;
    if (isOfClass && pods.namespace.get(id) === facts.namespace) {
      terms.counters.relabel(id, setIdentity);
    } else {
      placement.count(id, -1);
      this.#uncountSibling(id);
      setIdentity();
      placement.count(id, 1);
      this.#countSibling(id);
    }
    nodes.log.append(pods.node.get(id));
    pods.news?.add(id);
  }

  /** Whoever ranks pods by how long they have run must hear of it. */
  setStart(id: number, startMs: number): void {
    const { pods, nodes, placement } = this.#options;
    if (pods.startMs.get(id) === startMs) return;
    pods.startMs.set(id, startMs);
    if (this.isPlaced(id)) pods.news?.add(id);
    if (placement.ranksVictims && this.isPlaced(id)) nodes.log.append(pods.node.get(id));
  }

  /** Pods that leave are not counted among their siblings any more. */
  setTerminating(id: number, isTerminating: number): void {
    const { pods, nodes } = this.#options;
    if (pods.isTerminating.get(id) === isTerminating) return;
    pods.isTerminating.set(id, isTerminating);
    if (!this.isPlaced(id)) return;
    this.#uncountSibling(id);
    this.#countSibling(id);
    nodes.log.append(pods.node.get(id));
    pods.news?.add(id);
  }

  #countSibling(id: number): void {
    const { pods, terms } = this.#options;
    if (pods.isTerminating.get(id) !== 0) return;
    assert(pods.counted.get(id) === 0, 'a pod is counted among its siblings once');
    pods.counted.set(id, 1);
    terms.counters.staying(id, 1);
  }

  #uncountSibling(id: number): void {
    const { pods, terms } = this.#options;
    if (pods.counted.get(id) === 0) return;
    terms.counters.staying(id, -1);
    pods.counted.set(id, 0);
  }
}

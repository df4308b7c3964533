// data plane: a million pods in columns
import { assert } from '@megaplane/base/assert';
import {
  Float64Column,
  Int32Column,
  Uint16Column,
  Uint32Column,
  Uint8Column,
} from '@megaplane/base/column';
import type { NodeTable } from './node-table.ts';

/** Where a pod is in its life with the scheduler. */
export const PLACE = {
  /** Not known, or of no concern (another scheduler's, and without a node). */
  none: 0,
  active: 1,
  backoff: 2,
  errorBackoff: 3,
  unschedulable: 4,
  gated: 5,
  /** Has a node by our decision; the API server has not confirmed it. */
  assumed: 6,
  /** Has a node. */
  bound: 7,
  /** Is being decided about, and extenders have been asked. */
  asked: 8,
} as const;

/** In `isTerminating`: the pod leaves because the scheduler wanted its room. */
export const EVICTED = 2;

/** Steps of a pod's generation fit into this many bits of a tag. */
const GENERATIONS = 2 ** 16;
const ROWS: number = 2 ** 32;

/**
 * Pods by the row that the informer gave them.
 *
 *   place        Uint8    one of PLACE
 *   generation   Uint16   changes when the row goes to another pod
 *   podClass     Uint32   interned spec            labels, namespace, owner   Uint32, interned
 *   usage        Uint32   what it takes from its node, interned; only while it has one
 *   node         Int32    -1: none                 next, previous   Int32   pods of the same node
 *   uid          4 x Uint32
 *   sinceMs      Float64  when it was last put into a queue     firstMs   when first
 *   startMs      Float64  status.startTime
 *   rejections   Uint8    tries that found no node (backoff)    errors    Uint8   tries that failed
 *   stamp        Uint32   changes with each change of place
 *   specGeneration   Uint32   metadata.generation of the version seen last
 *   version      Float64  its metadata.resourceVersion
 *   isTerminating   Uint8   0 no, 1 yes, EVICTED
 */
export class PodTable {
  readonly place: Uint8Column = new Uint8Column();
  readonly generation: Uint16Column = new Uint16Column();
  readonly podClass: Uint32Column = new Uint32Column();
  readonly labels: Uint32Column = new Uint32Column();
  readonly namespace: Uint32Column = new Uint32Column();
  readonly owner: Uint32Column = new Uint32Column();
  readonly usage: Uint32Column = new Uint32Column();
  readonly node: Int32Column = new Int32Column();
  /** 1: the row has an identity that must be released. */
  readonly known: Uint8Column = new Uint8Column();
  readonly next: Int32Column = new Int32Column();
  readonly previous: Int32Column = new Int32Column();
  readonly uid0: Uint32Column = new Uint32Column();
  readonly uid1: Uint32Column = new Uint32Column();
  readonly uid2: Uint32Column = new Uint32Column();
  readonly uid3: Uint32Column = new Uint32Column();
  readonly sinceMs: Float64Column = new Float64Column();
  readonly firstMs: Float64Column = new Float64Column();
  readonly startMs: Float64Column = new Float64Column();
  readonly stamp: Uint32Column = new Uint32Column();
  readonly specGeneration: Uint32Column = new Uint32Column();
  readonly version: Float64Column = new Float64Column();
  /** 1: the pod runs, does not leave, and is counted among its siblings. */
  readonly counted: Uint8Column = new Uint8Column();
  readonly rejections: Uint8Column = new Uint8Column();
  readonly errors: Uint8Column = new Uint8Column();
  readonly isTerminating: Uint8Column = new Uint8Column();
  readonly #nodes: NodeTable;
  /** All rows are below this. */
  rowEnd = 0;
  /** Rows of pods that took a node, left it or changed there, for one that takes them out; null:
   *  nobody does. */
  news: Set<number> | null = null;
  #placed = 0;

  constructor(nodes: NodeTable) {
    this.#nodes = nodes;
  }

  setUid(id: number, words: Uint32Array): void {
    this.uid0.set(id, words[0]!);
    this.uid1.set(id, words[1]!);
    this.uid2.set(id, words[2]!);
    this.uid3.set(id, words[3]!);
  }

  /** Whether the row is known to be another pod's; uids of no usual form tell nothing. */
  isOther(id: number, words: Uint32Array): boolean {
    const [one, two] = [this.uid0.get(id), this.uid1.get(id)];
    const [three, four] = [this.uid2.get(id), this.uid3.get(id)];
    if ((one | two | three | four) === 0 || words.every((word) => word === 0)) return false;
    return one !== words[0] || two !== words[1] || three !== words[2] || four !== words[3];
  }

  /** Pods that have a node. */
  get placed(): number {
    return this.#placed;
  }

  /** Makes a row fresh for a new pod. */
  begin(id: number, nowMs: number): void {
    this.place.set(id, PLACE.none);
    this.generation.add(id, 1);
    this.rowEnd = Math.max(this.rowEnd, id + 1);
    this.node.set(id, -1);
    this.next.set(id, -1);
    this.previous.set(id, -1);
    this.sinceMs.set(id, nowMs);
    this.firstMs.set(id, 0);
    this.startMs.set(id, 0);
    this.rejections.set(id, 0);
    this.errors.set(id, 0);
    this.isTerminating.set(id, 0);
    this.uid0.set(id, 0);
    this.uid1.set(id, 0);
    this.uid2.set(id, 0);
    this.uid3.set(id, 0);
  }

  /** A pod takes its room on a node; `usage` is retained by the caller. */
  attach(id: number, node: number, usage: number): void {
    const nodes = this.#nodes;
    const first = nodes.firstPod.get(node);
    assert(this.node.get(id) < 0, 'a pod has one node at a time');
    assert(first < 0 || this.node.get(first) === node, 'pods of a list are on its node');
    this.node.set(id, node);
    this.usage.set(id, usage);
    this.previous.set(id, -1);
    this.next.set(id, first);
    if (first >= 0) this.previous.set(first, id);
    nodes.firstPod.set(node, id);
    nodes.addUsage(node, nodes.usages.get(usage));
    this.#placed++;
    this.news?.add(id);
  }

  /** A pod gives its room back; the caller releases the usage. */
  detach(id: number): void {
    const nodes = this.#nodes;
    const node = this.node.get(id);
    const next = this.next.get(id);
    const previous = this.previous.get(id);
    const before = previous < 0 ? nodes.firstPod.get(node) : this.next.get(previous);
    assert(node >= 0 && before === id, 'a pod is in the list of its node');
    if (previous >= 0) this.next.set(previous, next);
    else nodes.firstPod.set(node, next);
    if (next >= 0) this.previous.set(next, previous);
    this.node.set(id, -1);
    this.next.set(id, -1);
    this.previous.set(id, -1);
    nodes.removeUsage(node, nodes.usages.get(this.usage.get(id)));
    this.#placed--;
    assert(this.#placed >= 0, 'no more pods leave than have a node');
    this.news?.add(id);
  }

  /** A number that names this pod even when its row goes to another one. */
  tagOf(id: number): number {
    return (this.generation.get(id) % GENERATIONS) * ROWS + id;
  }

  /** The row of a tag, or -1 if that pod is gone. */
  rowOf(tag: number): number {
    const id = tag % ROWS;
    const generation = Math.floor(tag / ROWS);
    return this.generation.get(id) % GENERATIONS === generation ? id : -1;
  }

  get memoryBytes(): number {
    let bytes = this.place.memoryBytes + this.generation.memoryBytes;
    bytes += this.rejections.memoryBytes + this.errors.memoryBytes;
    bytes += this.isTerminating.memoryBytes + this.podClass.memoryBytes + this.labels.memoryBytes;
    bytes += this.namespace.memoryBytes + this.owner.memoryBytes + this.usage.memoryBytes;
    bytes += this.node.memoryBytes + this.next.memoryBytes + this.previous.memoryBytes;
    bytes +=
      this.stamp.memoryBytes +
      this.specGeneration.memoryBytes +
      this.uid0.memoryBytes * 4 +
      this.sinceMs.memoryBytes * 4;
    return bytes;
  }
}

/**
 * The ranked indexes of classes, as many as there is memory for. An index of a million nodes costs
 * as much as thousands of searches, so a class gets one when it has come often enough.
 */
import { ClassIndex } from './class-index.ts';
import { ClassRules } from './class-rules.ts';
import type { FastProfile } from './fast-profile.ts';
import type { NodeTable } from './node-table.ts';
import type { PodClass } from './pod-class.ts';

export const INDEX_BYTES_MAX: number = 512 * 1024 * 1024;
/** Up to here an index is built at once; above, only for a class that comes again and again. */
export const SEARCHED_NODES_MIN = 256;
/** A search costs about as much as ranking this many nodes. */
const NODES_PER_SEARCH = 128;
/** Classes of which it is remembered how often they came. */
const CLASSES_MAX = 100_000;

export interface ShelfLimits {
  /** Memory that indexes may take together; the one not used longest goes first. */
  readonly bytesMax: number;
  /** From so many nodes on a class that comes for the first time gets no index yet. */
  readonly searchedNodesMin: number;
}

export class IndexShelf {
  readonly #nodes: NodeTable;
  readonly #limits: ShelfLimits;
  readonly #indexes = new Map<number, ClassIndex>();
  /** What was spent on a class without index, in nodes. */
  readonly #spent = new Map<number, number>();
  built = 0;

  constructor(nodes: NodeTable, limits: ShelfLimits) {
    this.#nodes = nodes;
    this.#limits = limits;
  }

  /** The index of a class, up to date; null while it is cheaper to search. */
  take(classId: number, podClass: PodClass, fast: FastProfile): ClassIndex | null {
    return this.peek(classId, podClass) === null && !this.#isWorthIt(classId)
      ? null
      : this.build(classId, podClass, fast);
  }

  /** The index of a class, up to date, built if there is none. */
  build(classId: number, podClass: PodClass, fast: FastProfile): ClassIndex {
    let index = this.peek(classId, podClass);
    if (index === null) {
      this.#makeRoom();
      this.built++;
      this.#spent.delete(classId);
      index = new ClassIndex(new ClassRules(podClass, this.#nodes, fast), this.#nodes);
    } else if (this.#indexes.size > 1) {
      this.#indexes.delete(classId);
    }
    this.#indexes.set(classId, index);
    index.catchUp();
    return index;
  }

  /** The index of a class as it is, or null. */
  peek(classId: number, podClass: PodClass): ClassIndex | null {
    const index = this.#indexes.get(classId);
    if (index === undefined) return null;
    // Numbers of classes are reused: an index is only as good as the class that it was made for.
    if (index.rules.podClass === podClass) return index;
    this.#indexes.delete(classId);
    return null;
  }

  /** A class was decided about at the cost of looking at so many nodes. */
  spend(classId: number, nodes: number): void {
    if (this.#spent.size >= CLASSES_MAX) this.#spent.clear();
    this.#spent.set(classId, (this.#spent.get(classId) ?? 0) + nodes);
  }

  get memoryBytes(): number {
    return this.#indexes.values().reduce((bytes, index) => bytes + index.memoryBytes, 0);
  }

  #isWorthIt(classId: number): boolean {
    const { count } = this.#nodes;
    if (count < this.#limits.searchedNodesMin) return true;
    const spent = this.#spent.get(classId) ?? 0;
    this.spend(classId, NODES_PER_SEARCH);
    return spent >= count;
  }

  #makeRoom(): void {
    for (const classId of this.#indexes.keys()) {
      if (this.memoryBytes < this.#limits.bytesMax) return;
      this.#indexes.delete(classId);
    }
  }
}

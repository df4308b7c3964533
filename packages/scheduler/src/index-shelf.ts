/**
 * The ranked indexes of classes, as many as there is memory for. An index of a million nodes costs
 * as much as thousands of searches, so a class gets one when it has come often enough.
 */
import type { ClassIndex } from './class-index.ts';
import type { NodeTable } from './node-table.ts';
import type { PodClass } from './pod-class.ts';

export const INDEX_BYTES_MAX: number = 512 * 1024 * 1024;
/** Up to here an index is built at once; above, only for a class that comes again and again. */
export const SEARCHED_NODES_MIN = 256;
/** Keys of which it is remembered what was spent. */
const SPENT_MAX = 100_000;

export interface ShelfLimits {
  /** Memory that indexes may take together; the one not used longest goes first. */
  readonly bytesMax: number;
  /** From so many nodes on a class that comes for the first time gets no index yet. */
  readonly searchedNodesMin: number;
}

/** A class's number, or that and what else its index was made for. */
export type IndexKey = number | string;

export class IndexShelf {
  readonly #nodes: NodeTable;
  readonly #limits: ShelfLimits;
  readonly #indexes = new Map<IndexKey, ClassIndex>();
  /** What decisions without an index have cost, in nodes looked at. */
  readonly #spent = new Map<IndexKey, number>();
  built = 0;

  constructor(nodes: NodeTable, limits: ShelfLimits) {
    this.#nodes = nodes;
    this.#limits = limits;
  }

  /** An index, up to date; made if there is none. */
  take(key: IndexKey, podClass: PodClass, make: () => ClassIndex): ClassIndex {
    let index = this.peek(key, podClass);
    if (index === null) {
      this.#makeRoom();
      this.built++;
      this.#spent.delete(key);
      index = make();
    } else if (this.#indexes.size > 1) {
      this.#indexes.delete(key);
    }
    this.#indexes.set(key, index);
    index.catchUp();
    return index;
  }

  /** An index as it is, or null. */
  peek(key: IndexKey, podClass: PodClass): ClassIndex | null {
    const index = this.#indexes.get(key);
    if (index === undefined) return null;
    // Numbers of classes are reused: an index is only as good as the class that it was made for.
    if (index.rules.podClass === podClass && index.isLive) return index;
    this.#indexes.delete(key);
    return null;
  }

  /**
   * Whether decisions without this index have cost so much by now that it should be built: rent
   * until the rent has cost as much as the house. `nodes`: what the next decision costs without.
   */
  isWorthIt(key: IndexKey, nodes: number): boolean {
    const { count } = this.#nodes;
    if (count < this.#limits.searchedNodesMin) return true;
    const spent = this.#spent.get(key) ?? 0;
    this.spend(key, nodes);
    return spent >= count;
  }

  /** A decision without an index cost as much as looking at so many nodes. */
  spend(key: IndexKey, nodes: number): void {
    if (this.#spent.size >= SPENT_MAX) this.#spent.clear();
    this.#spent.set(key, (this.#spent.get(key) ?? 0) + nodes);
  }

  get memoryBytes(): number {
    return this.#indexes.values().reduce((bytes, index) => bytes + index.memoryBytes, 0);
  }

  #makeRoom(): void {
    for (const key of this.#indexes.keys()) {
      if (this.memoryBytes < this.#limits.bytesMax) return;
      this.#indexes.delete(key);
    }
  }
}

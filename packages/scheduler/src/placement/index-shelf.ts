/**
 * The ranked indexes of classes, as many as there is memory for. An index of a million nodes costs
 * as much as thousands of searches, so a class gets one when it has come often enough.
 */
import { assert } from '@megaplane/base/assert';
import type { ClassIndex } from './class-index.ts';
import { Crowd } from './crowd.ts';
import type { PodCounter } from './topology/pod-counters.ts';
import type { NodeTable } from '../cache/node-table.ts';

export const INDEX_BYTES_MAX: number = 512 * 1024 * 1024;
/** Up to here an index is built at once; above, only for a class that comes again and again. */
export const SEARCHED_NODES_MIN = 256;
/** Where room is made, this part of the memory (a power of two) is freed. */
const KEPT_FREE_BITS = 4;
/** Keys of which it is remembered what was spent. */
const SPENT_MAX = 100_000;

export interface ShelfLimits {
  /** Memory that indexes may take together, and crowds; the one not used longest goes first. */
  readonly bytesMax: number;
  /** From so many nodes on a class that comes for the first time gets no index yet. */
  readonly searchedNodesMin: number;
}

/** Number of a node class, or a text that begins with it, and what else the index was made for. */
export type IndexKey = number | string;

export class IndexShelf {
  readonly #nodes: NodeTable;
  readonly #limits: ShelfLimits;
  readonly #indexes = new Map<IndexKey, ClassIndex>();
  /** What decisions without an index have cost, in nodes looked at. */
  readonly #spent = new Map<IndexKey, number>();
  readonly #crowds = new Map<string, Crowd>();
  /** By node class: the keys of its indexes, and of their crowds. */
  readonly #keysOf = new Map<number, Set<IndexKey>>();
  #crowdBytes = 0;
  #indexBytes = 0;
  #uses = 0;
  built = 0;

  constructor(nodes: NodeTable, limits: ShelfLimits) {
    this.#nodes = nodes;
    this.#limits = limits;
  }

  /** An index, up to date; made if there is none. */
  take(key: IndexKey, make: () => ClassIndex): ClassIndex {
    let index = this.peek(key);
    if (index === null) {
      this.#makeRoom();
      this.built++;
      this.#spent.delete(key);
      index = make();
      this.#indexes.set(key, index);
      this.#note(key);
    }
    index.usedAt = ++this.#uses;
    index.catchUp();
    const { memoryBytes } = index;
    this.#indexBytes += memoryBytes - index.countedBytes;
    index.countedBytes = memoryBytes;
    return index;
  }

  /** An index as it is, or null. */
  peek(key: IndexKey): ClassIndex | null {
    const index = this.#indexes.get(key);
    if (index === undefined) return null;
    if (index.isLive) return index;
    this.#dropIndex(key);
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

  /**
   * The crowd of an index for what is counted by host name, up to date; made if there is none.
   * `key` names the index and what is counted.
   */
  crowd(key: string, index: ClassIndex, hosts: readonly PodCounter[]): Crowd {
    let crowd = this.#crowds.get(key);
    if (crowd === undefined || crowd.index !== index || !crowd.isLive) {
      this.#dropCrowd(key);
      crowd = new Crowd(index, this.#nodes, hosts);
      this.#note(key);
    } else if (this.#crowds.size > 1) {
      this.#crowds.delete(key);
    }
    this.#crowds.set(key, crowd);
    crowd.catchUp();
    this.#crowdBytes += crowd.memoryBytes - crowd.countedBytes;
    crowd.countedBytes = crowd.memoryBytes;
    for (const oldest of this.#crowds.keys()) {
      if (this.#crowdBytes < this.#limits.bytesMax || oldest === key) break;
      this.#dropCrowd(oldest);
    }
    return crowd;
  }

  /** No class of pods has this node class any more: neither have those to come. */
  forget(nodeClass: number): void {
    this.#spent.delete(nodeClass);
    for (const key of this.#keysOf.get(nodeClass) ?? []) {
      this.#dropIndex(key);
      if (typeof key === 'string') this.#dropCrowd(key);
    }
    this.#keysOf.delete(nodeClass);
  }

  /** Indexes that are kept. */
  get size(): number {
    return this.#indexes.size;
  }

  #note(key: IndexKey): void {
    const nodeClass = Number.parseInt(String(key), 10);
    const keys = this.#keysOf.get(nodeClass);
    if (keys === undefined) this.#keysOf.set(nodeClass, new Set([key]));
    else keys.add(key);
  }

  #unnote(key: IndexKey): void {
    const nodeClass = Number.parseInt(String(key), 10);
    const keys = this.#keysOf.get(nodeClass);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(nodeClass);
  }

  #dropCrowd(key: string): void {
    this.#unnote(key);
    this.#crowdBytes -= this.#crowds.get(key)?.countedBytes ?? 0;
    assert(this.#crowdBytes >= 0, 'no more bytes are freed than were counted');
    this.#crowds.delete(key);
  }

  /** A decision without an index cost as much as looking at so many nodes. */
  spend(key: IndexKey, nodes: number): void {
    if (this.#spent.size >= SPENT_MAX) this.#spent.clear();
    this.#spent.set(key, (this.#spent.get(key) ?? 0) + nodes);
  }

  get memoryBytes(): number {
    return this.#crowdBytes + this.#indexBytes;
  }

  #makeRoom(): void {
    if (this.memoryBytes < this.#limits.bytesMax) return;
    const byUse = [...this.#indexes].toSorted(([, one], [, other]) => one.usedAt - other.usedAt);
    // Some more than needed, so that not each new index sorts them all.
    const bytesKept = this.#limits.bytesMax - (this.#limits.bytesMax >>> KEPT_FREE_BITS);
    for (const [key] of byUse) {
      if (this.memoryBytes < bytesKept) return;
      this.#dropIndex(key);
    }
  }

  #dropIndex(key: IndexKey): void {
    this.#unnote(key);
    this.#indexBytes -= this.#indexes.get(key)?.countedBytes ?? 0;
    assert(this.#indexBytes >= 0, 'no more bytes are freed than were counted');
    this.#indexes.delete(key);
  }
}

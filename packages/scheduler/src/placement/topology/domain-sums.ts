// data plane: what one counter counts, summed up by topology domain
import { HOSTNAME_KEY, type NodeKind } from '../../cache/node-facts.ts';
import type { NodeTable } from '../../cache/node-table.ts';
import type { NodeCounts } from './node-counts.ts';

/** Whether the pods of nodes of a kind are counted. */
export type KindTest = (kind: NodeKind) => boolean;

/** The value of a topology key on nodes of a kind; host names stand for themselves. */
export function topologyValue(kind: NodeKind, key: string): string | undefined {
  if (key === HOSTNAME_KEY && kind.hasOwnHostname) return '';
  return kind.labels[key];
}

/**
 * Sums by value of one topology key. A node counts if its kind passes the test and has the key;
 * a domain is there if such a node is, whether or not it has pods.
 *
 * Host names are not summed up, for each is a domain of its own: of them a histogram is kept, how
 * many nodes have how many. That holds as long as no two nodes share a host name.
 */
export class DomainSums {
  readonly key: string;
  readonly #nodes: NodeTable;
  readonly #byNode: NodeCounts;
  readonly #test: KindTest;
  readonly #isHost: boolean;
  /** By value: what was counted there, or 0 for a domain without pods. */
  readonly #sums = new Map<string, number>();
  /** By count: nodes with so many; only of host names, and not for 0. */
  #nodesWith: number[] = [];
  #total = 0;
  /** By kind: 0 not known, 1 does not count, 2 counts. */
  #memo: Uint8Array = new Uint8Array(64);
  #memoEpoch = -1;
  #stamp = -1;
  #population = -1;
  #domains = 0;
  #least = -1;
  /** Domains with the least sum; 0 where that has to be found out. */
  #leastDomains = 0;

  constructor(nodes: NodeTable, byNode: NodeCounts, key: string, test: KindTest) {
    this.#nodes = nodes;
    this.#byNode = byNode;
    this.key = key;
    this.#test = test;
    this.#isHost = key === HOSTNAME_KEY;
  }

  /** Pods that are counted, over all domains. */
  get total(): number {
    return this.#total;
  }

  /** Domains, with pods or without. */
  get domains(): number {
    return this.#domains;
  }

  /** Pods in a domain that is not a host. */
  at(value: string): number {
    return this.#sums.get(value) ?? 0;
  }

  /** The count of a node went from `before` to `after`. */
  change(node: number, before: number, after: number): void {
    if (this.#stamp !== this.#nodes.topologyVersion || !this.#nodes.isPresent(node)) return;
    this.#apply(node, before, after);
  }

  /** Must be called before a series of questions: nodes may have changed. */
  prepare(): void {
    const nodes = this.#nodes;
    if (this.#stamp !== nodes.topologyVersion) this.#recount();
    const population = this.#isHost ? nodes.population : nodes.kindSet;
    if (this.#population !== population) this.#findDomains(population);
  }

  /** The smallest count of any domain; Infinity if there is none. */
  least(): number {
    if (this.#domains === 0) return Infinity;
    if (this.#isHost) {
      let crowded = 0;
      let least = 0;
      for (let count = this.#nodesWith.length - 1; count > 0; count--) {
        const nodes = this.#nodesWith[count] ?? 0;
        crowded += nodes;
        if (nodes > 0) least = count;
      }
      return crowded < this.#domains ? 0 : least;
    }
    if (this.#leastDomains === 0) this.#findLeast();
    return this.#least;
  }

  /** Whether nodes of this kind are counted. */
  counts(kindId: number): boolean {
    const { kinds } = this.#nodes;
    if (this.#memoEpoch !== kinds.epoch) {
      this.#memoEpoch = kinds.epoch;
      this.#memo.fill(0);
    }
    if (kindId >= this.#memo.length) {
      const grown = new Uint8Array(Math.max(this.#memo.length * 2, kindId + 1));
      grown.set(this.#memo);
      this.#memo = grown;
    }
    let known = this.#memo[kindId]!;
    if (known === 0) {
      const kind = kinds.get(kindId);
      const isCounted = topologyValue(kind, this.key) !== undefined && this.#test(kind);
      known = this.#memo[kindId] = isCounted ? 2 : 1;
    }
    return known === 2;
  }

  #apply(node: number, before: number, after: number): void {
    const kindId = this.#nodes.kind.get(node);
    if (!this.counts(kindId)) return;
    this.#total += after - before;
    if (this.#isHost) {
      if (before > 0) this.#nodesWith[before]!--;
      if (after > 0) this.#nodesWith[after] = (this.#nodesWith[after] ?? 0) + 1;
      return;
    }
    const value = topologyValue(this.#nodes.kinds.get(kindId), this.key) ?? '';
    const sum = this.#sums.get(value) ?? 0;
    const now = sum + after - before;
    this.#sums.set(value, now);
    if (sum === this.#least && now > sum) this.#leastDomains--;
    else if (now < this.#least) {
      this.#least = now;
      this.#leastDomains = 1;
    } else if (now === this.#least) this.#leastDomains++;
  }

  /** Labels of nodes with pods have changed. */
  #recount(): void {
    this.#stamp = this.#nodes.topologyVersion;
    this.#population = -1;
    this.#sums.clear();
    this.#nodesWith = [];
    this.#total = 0;
    const counts = this.#byNode;
    for (let slot = counts.slotAfter(-1); slot >= 0; slot = counts.slotAfter(slot)) {
      const node = counts.nodeAt(slot);
      if (this.#nodes.isPresent(node)) this.#apply(node, 0, counts.countAt(slot));
    }
  }

  /** Nodes came, went or changed their kind: so may have domains. */
  #findDomains(population: number): void {
    const { kinds, kindNodes } = this.#nodes;
    this.#population = population;
    this.#domains = 0;
    const values = new Set<string>();
    for (let kindId = 0; kindId < kinds.idEnd; kindId++) {
      const count = kindNodes.get(kindId);
      if (count === 0 || !this.counts(kindId)) continue;
      if (this.#isHost) this.#domains += count;
      else values.add(topologyValue(kinds.get(kindId), this.key) ?? '');
    }
    if (this.#isHost) return;
    this.#domains = values.size;
    for (const value of this.#sums.keys()) if (!values.has(value)) this.#sums.delete(value);
    for (const value of values) if (!this.#sums.has(value)) this.#sums.set(value, 0);
    // Not known: no sum is that small.
    this.#least = -1;
    this.#leastDomains = 0;
  }

  #findLeast(): void {
    this.#least = Infinity;
    for (const sum of this.#sums.values()) {
      if (sum < this.#least) {
        this.#least = sum;
        this.#leastDomains = 0;
      }
      if (sum === this.#least) this.#leastDomains++;
    }
  }
}

// data plane: the best node for a pod that is spread over hosts and zones by default
import type { Random } from '@megaplane/base/random';
import type { ClassIndex } from './class-index.ts';
import type { NodeTable } from './node-table.ts';
import type { SiblingCounter } from './sibling-counts.ts';

const HOST_SKEW_MAX = 3;
const ZONE_SKEW_MAX = 5;

/** Tries to meet a node without siblings by chance before its list is searched. */
const DRAWS_MAX = 8;

/**
 * The score of spreading depends on a node's zone and on how many siblings run on it. Nearly all
 * nodes have none: of those the best of each partition of the index is enough. Nodes with
 * siblings, at most as many as there are siblings, are looked at one by one. All of it is exact:
 * within a partition, and without siblings, nothing but the node's own score differs.
 */
export class SpreadPick {
  readonly #index: ClassIndex;
  readonly #table: NodeTable;
  readonly #siblings: SiblingCounter;
  readonly #weight: number;
  readonly #random: Random;
  readonly #zoneCounts = new Map<string, number>();
  /** By partition: nodes with siblings, and those by score. */
  readonly #crowded: number[] = [];
  readonly #crowdedAt: (Map<number, number> | undefined)[] = [];
  readonly #nodes: number[] = [];
  readonly #raws: number[] = [];
  #zoneWeight = 0;
  #hostWeight = 0;
  #rawMin = Infinity;
  #rawMax = -Infinity;
  #softMax = 0;
  #affinityMax = 0;
  #best = -1;
  #ties = 0;
  #picked = -1;

  constructor(
    index: ClassIndex,
    table: NodeTable,
    siblings: SiblingCounter,
    weight: number,
    random: Random,
  ) {
    this.#index = index;
    this.#table = table;
    this.#siblings = siblings;
    this.#weight = weight;
    this.#random = random;
  }

  /** One of the best nodes, each equally likely; -1 if none is feasible. */
  pick(): number {
    if (this.#index.feasible === 0) return -1;
    this.#weigh();
    this.#countZones();
    this.#measureCrowded();
    this.#measureEmpty();
    for (let i = 0; i < this.#nodes.length; i++) {
      const node = this.#nodes[i]!;
      const pair = this.#index.pairAt(node);
      const total = this.#total(this.#index.judgedAt(node), pair, this.#raws[i]!);
      if (this.#offer(total, 1)) this.#picked = node;
    }
    this.#offerEmpty();
    return this.#picked;
  }

  #weigh(): void {
    const { partitions, rules, feasible } = this.#index;
    const zones = new Set<string>();
    for (let p = 0; p < partitions.length; p++) {
      if (partitions[p]!.size === 0) continue;
      const pair = rules.pairs[p]!;
      zones.add(pair.zone ?? '');
      this.#softMax = Math.max(this.#softMax, pair.softTaints);
      this.#affinityMax = Math.max(this.#affinityMax, pair.affinity);
    }
    this.#zoneWeight = Math.log(zones.size + 2);
    this.#hostWeight = Math.log(feasible + 2);
  }

  #countZones(): void {
    const table = this.#table;
    for (const [node, count] of this.#siblings) {
      if (!table.isPresent(node)) continue;
      const zone = table.kinds.get(table.kind.get(node)).labels['topology.kubernetes.io/zone'];
      this.#zoneCounts.set(zone ?? '', (this.#zoneCounts.get(zone ?? '') ?? 0) + count);
    }
  }

  /** In the very order of upstream's float operations: host, then zone. */
  #raw(pair: number, siblings: number): number {
    const { zone, hasHostname } = this.#index.rules.pairs[pair]!;
    let sum = 0;
    if (hasHostname) sum += siblings * this.#hostWeight + (HOST_SKEW_MAX - 1);
    if (zone !== null) {
      sum += (this.#zoneCounts.get(zone) ?? 0) * this.#zoneWeight + (ZONE_SKEW_MAX - 1);
    }
    return Math.round(sum);
  }

  #measure(raw: number): void {
    if (raw < this.#rawMin) this.#rawMin = raw;
    if (raw > this.#rawMax) this.#rawMax = raw;
  }

  #measureCrowded(): void {
    for (const [node, count] of this.#siblings) {
      const score = this.#index.judgedAt(node);
      if (score < 0) continue;
      const pair = this.#index.pairAt(node);
      const raw = this.#raw(pair, count);
      this.#measure(raw);
      this.#nodes.push(node);
      this.#raws.push(raw);
      this.#crowded[pair] = (this.#crowded[pair] ?? 0) + 1;
      const at = (this.#crowdedAt[pair] ??= new Map());
      at.set(score, (at.get(score) ?? 0) + 1);
    }
  }

  #measureEmpty(): void {
    const { partitions } = this.#index;
    for (let p = 0; p < partitions.length; p++) {
      if (partitions[p]!.size > (this.#crowded[p] ?? 0)) this.#measure(this.#raw(p, 0));
    }
  }

  #total(score: number, pair: number, raw: number): number {
    const max = this.#rawMax;
    const spread = max === 0 ? 100 : Math.trunc((100 * (max + this.#rawMin - raw)) / max);
    const rest = this.#index.rules.pairScore(pair, this.#softMax, this.#affinityMax);
    return score + rest + this.#weight * spread;
  }

  /** `count` nodes of a total; true if one of them is to be taken for now. */
  #offer(total: number, count: number): boolean {
    if (total < this.#best) return false;
    if (total > this.#best) this.#ties = 0;
    this.#best = total;
    this.#ties += count;
    return this.#random.below(this.#ties) < count;
  }

  #offerEmpty(): void {
    const { partitions } = this.#index;
    for (let p = 0; p < partitions.length; p++) {
      const partition = partitions[p]!;
      if (partition.size <= (this.#crowded[p] ?? 0)) continue;
      let score = partition.top();
      let count = partition.count(score) - (this.#crowdedAt[p]?.get(score) ?? 0);
      while (count === 0) {
        score = partition.topBelow(score);
        count = partition.count(score) - (this.#crowdedAt[p]?.get(score) ?? 0);
      }
      if (this.#offer(this.#total(score, p, this.#raw(p, 0)), count)) {
        this.#picked = this.#drawEmpty(p, score);
      }
    }
  }

  /** Any node of a score without siblings; there is one. */
  #drawEmpty(pair: number, score: number): number {
    const partition = this.#index.partitions[pair]!;
    const length = partition.count(score);
    for (let draw = 0; draw < DRAWS_MAX; draw++) {
      const node = partition.at(score, this.#random.below(length));
      if (!this.#siblings.has(node)) return node;
    }
    const empty: number[] = [];
    for (let place = 0; place < length; place++) {
      const node = partition.at(score, place);
      if (!this.#siblings.has(node)) empty.push(node);
    }
    return empty[this.#random.below(empty.length)]!;
  }
}

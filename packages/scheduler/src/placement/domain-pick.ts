// data plane: the best node where other pods have a say
import type { Random } from '@megaplane/base/random';
import type { ClassIndex } from './class-index.ts';
import type { ClassRules, RawPair } from './topology/class-rules.ts';
import type { Constraints, DomainCount } from './topology/constraints.ts';
import type { Crowd } from './crowd.ts';
import type { FastProfile } from './topology/fast-profile.ts';
import { GATE } from './topology/failure.ts';
import type { TieWalk } from '../collections/tie-walk.ts';

/**
 * What other pods have to say about a node depends on its domains and on how many pods of some
 * sorts run on it. Nodes that are equal in both are one group, of which only the best need be
 * looked at: within a group nothing but the node's own score differs. So a decision costs as much
 * as there are groups, zones times a few counts, however many nodes there are.
 *
 * Nodes on which anything is counted by host name are set aside: a crowd has them in groups, or
 * where there is none each is a group of its own, which is good while they are few. The rest of a
 * partition of the index is a group without pods.
 *
 *   group   pair, partition, size, top, ties, counts: hosts each
 *           node: the only one, or -1       crowdGroup: which one of the crowd, or -1
 */
export class DomainPick {
  /** How many nodes each gate kept out, by number of the gate. */
  readonly kept: Map<number, number> = new Map();
  feasible = 0;
  readonly #walk: TieWalk;
  readonly #random: Random;
  readonly #pair: number[] = [];
  readonly #partition: number[] = [];
  readonly #size: number[] = [];
  readonly #top: number[] = [];
  readonly #ties: number[] = [];
  readonly #node: number[] = [];
  readonly #crowdGroup: number[] = [];
  #crowd: Crowd | null = null;
  readonly #counts: number[] = [];
  readonly #spreadRaw: number[] = [];
  readonly #isIgnored: boolean[] = [];
  readonly #affinityRaw: number[] = [];
  readonly #aside = new Set<number>();
  /** By partition: nodes set aside, and those by score. */
  readonly #asideIn: number[] = [];
  readonly #asideAt: (Map<number, number> | undefined)[] = [];
  readonly #leasts: number[] = [];
  readonly #weights: number[] = [];
  #groups = 0;
  #softMax = 0;
  #affinityMax = 0;

  /** `walk` draws from nodes, `random` between groups of them. */
  constructor(walk: TieWalk, random: Random) {
    this.#walk = walk;
    this.#random = random;
  }

  /**
   * One of the best nodes, each equally likely; -1 if none is feasible. `crowd`: of the index and
   * the hosts of the constraints, up to date, or null. Nodes in `excluded` are left out; there
   * must be no crowd then.
   */
  find(
    index: ClassIndex,
    constraints: Constraints,
    crowd: Crowd | null,
    fast: FastProfile,
    excluded: ReadonlySet<number>,
  ): number {
    this.#reset(index);
    this.#crowd = crowd;
    if (crowd === null) this.#setAside(index, constraints, excluded);
    else this.#takeCrowd(index, crowd, constraints.hosts.length);
    this.#gather(index, constraints.hosts.length);
    this.#passGates(index.rules, constraints);
    if (this.#groups === 0) return -1;
    this.#normalise(index.rules);
    const hasSpread = constraints.soft.length > 0 && fast.spreadWeight > 0;
    const hasAffinity = constraints.preferred.length > 0 && fast.interPodWeight > 0;
    if (hasSpread) this.#weighSpread(index.rules, constraints);
    if (hasAffinity) this.#weighAffinity(index.rules, constraints);
    return this.#choose(
      index,
      hasSpread ? fast.spreadWeight : 0,
      hasAffinity ? fast.interPodWeight : 0,
    );
  }

  #reset(index: ClassIndex): void {
    this.kept.clear();
    this.feasible = 0;
    this.#groups = 0;
    this.#softMax = 0;
    this.#affinityMax = 0;
    if (this.#aside.size > 0) this.#aside.clear();
    for (let p = 0; p < index.partitions.length; p++) {
      this.#asideIn[p] = 0;
      this.#asideAt[p] = undefined;
    }
  }

  #setAside(index: ClassIndex, { hosts }: Constraints, excluded: ReadonlySet<number>): void {
    for (const node of excluded) this.#putAside(index, node);
    for (let h = 0; h < hosts.length; h++) {
      const { byNode } = hosts[h]!;
      for (let slot = byNode.slotAfter(-1); slot >= 0; slot = byNode.slotAfter(slot)) {
        const node = byNode.nodeAt(slot);
        if (!this.#putAside(index, node)) continue;
        const partition = index.partitionAt(node);
        const group = this.#add(index.pairOf[partition]!, partition, 1, node);
        this.#top[group] = index.judgedAt(node);
        this.#ties[group] = 1;
        for (let i = 0; i < hosts.length; i++) {
          this.#counts[group * hosts.length + i] = hosts[i]!.byNode.get(node);
        }
      }
    }
  }

  /** False if the node is not feasible, or is set aside already. */
  #putAside(index: ClassIndex, node: number): boolean {
    const score = index.judgedAt(node);
    if (score < 0 || this.#aside.has(node)) return false;
    this.#aside.add(node);
    const partition = index.partitionAt(node);
    this.#asideIn[partition]!++;
    const at = (this.#asideAt[partition] ??= new Map());
    at.set(score, (at.get(score) ?? 0) + 1);
    return true;
  }

  #add(pair: number, partition: number, size: number, node: number): number {
    const group = this.#groups++;
    this.#pair[group] = pair;
    this.#partition[group] = partition;
    this.#size[group] = size;
    this.#node[group] = node;
    this.#crowdGroup[group] = -1;
    return group;
  }

  #takeCrowd(index: ClassIndex, crowd: Crowd, hosts: number): void {
    for (let g = 0; g < crowd.buckets.length; g++) {
      const { size } = crowd.buckets[g]!;
      if (size === 0) continue;
      const partition = crowd.partitionOf[g]!;
      const group = this.#add(index.pairOf[partition]!, partition, size, -1);
      const top = crowd.buckets[g]!.top();
      this.#top[group] = top;
      this.#ties[group] = crowd.buckets[g]!.count(top);
      this.#crowdGroup[group] = g;
      for (let i = 0; i < hosts; i++) this.#counts[group * hosts + i] = crowd.countOf(g, i);
    }
  }

  #gather(index: ClassIndex, hosts: number): void {
    const { partitions } = index;
    for (let p = 0; p < partitions.length; p++) {
      const aside = this.#crowd === null ? this.#asideIn[p]! : this.#crowd.inPartition(p);
      const size = partitions[p]!.size - aside;
      if (size === 0) continue;
      const group = this.#add(index.pairOf[p]!, p, size, -1);
      this.#findTop(index, group, p);
      for (let i = 0; i < hosts; i++) this.#counts[group * hosts + i] = 0;
    }
  }

  #findTop(index: ClassIndex, group: number, p: number): void {
    const partition = index.partitions[p]!;
    let score = partition.top();
    let count = partition.count(score) - this.#asideWith(p, score);
    while (count === 0) {
      score = partition.topBelow(score);
      count = partition.count(score) - this.#asideWith(p, score);
    }
    this.#top[group] = score;
    this.#ties[group] = count;
  }

  /** Nodes of a partition and score that are set aside. */
  #asideWith(p: number, score: number): number {
    if (this.#crowd !== null) return this.#crowd.atScore(p, score);
    return this.#asideAt[p]?.get(score) ?? 0;
  }

  #isAside(node: number): boolean {
    return this.#crowd === null ? this.#aside.has(node) : this.#crowd.has(node);
  }

  /** Pods that are counted in the domain of a group. */
  #count(counted: DomainCount, pair: RawPair, at: number): number {
    if (counted.host >= 0) return pair.hasHostname ? this.#counts[at + counted.host]! : 0;
    const value = pair.values[counted.key];
    return value === undefined ? 0 : counted.sums.at(value);
  }

  /** Leaves only groups that may be gone to. */
  #passGates(rules: ClassRules, constraints: Constraints): void {
    const { hard, affinity, hosts } = constraints;
    for (let r = 0; r < hard.length; r++) {
      const { sums, minDomains } = hard[r]!;
      this.#leasts[r] = sums.domains >= minDomains ? sums.least() : 0;
    }
    let isFirst = constraints.isFirstAllowed;
    for (let i = 0; i < affinity.length; i++) if (affinity[i]!.sums.total > 0) isFirst = false;
    let passed = 0;
    for (let group = 0; group < this.#groups; group++) {
      const at = group * hosts.length;
      const gate = this.#gate(constraints, rules.pairs[this.#pair[group]!]!, at, isFirst);
      const size = this.#size[group]!;
      if (gate !== GATE.open) {
        this.kept.set(gate, (this.kept.get(gate) ?? 0) + size);
        continue;
      }
      this.feasible += size;
      if (passed !== group) this.#move(group, passed, hosts.length);
      passed++;
    }
    this.#groups = passed;
  }

  #move(from: number, to: number, hosts: number): void {
    this.#pair[to] = this.#pair[from]!;
    this.#partition[to] = this.#partition[from]!;
    this.#size[to] = this.#size[from]!;
    this.#top[to] = this.#top[from]!;
    this.#ties[to] = this.#ties[from]!;
    this.#node[to] = this.#node[from]!;
    this.#crowdGroup[to] = this.#crowdGroup[from]!;
    for (let i = 0; i < hosts; i++) this.#counts[to * hosts + i] = this.#counts[from * hosts + i]!;
  }

  /** The first plugin's objection to a group, in the order of the default profile. */
  #gate(constraints: Constraints, pair: RawPair, at: number, isFirst: boolean): number {
    const { hard, affinity, anti, existingAnti } = constraints;
    let hasAllKeys = true;
    for (let r = 0; r < hard.length; r++) if (!hasKey(hard[r]!, pair)) hasAllKeys = false;
    for (let r = 0; r < hard.length; r++) {
      const rule = hard[r]!;
      if (!hasKey(rule, pair)) return GATE.unlabelled;
      // A node without one of the keys is in no domain of its own, whatever runs on it.
      const pods = hasAllKeys || rule.host < 0 ? this.#count(rule, pair, at) : 0;
      const skew = pods + rule.self - this.#leasts[r]!;
      if (skew > rule.maxSkew) return GATE.skewed;
    }
    let isMet = true;
    for (let i = 0; i < affinity.length; i++) {
      if (!hasKey(affinity[i]!, pair)) return GATE.affinity;
      if (this.#count(affinity[i]!, pair, at) <= 0) isMet = false;
    }
    if (!isMet && !isFirst) return GATE.affinity;
    for (let i = 0; i < anti.length; i++) {
      if (this.#count(anti[i]!, pair, at) > 0) return GATE.antiAffinity;
    }
    for (let i = 0; i < existingAnti.length; i++) {
      if (this.#count(existingAnti[i]!, pair, at) > 0) return GATE.existing;
    }
    return GATE.open;
  }

  #normalise(rules: ClassRules): void {
    for (let group = 0; group < this.#groups; group++) {
      const { softTaints, affinity } = rules.pairs[this.#pair[group]!]!;
      if (softTaints > this.#softMax) this.#softMax = softTaints;
      if (affinity > this.#affinityMax) this.#affinityMax = affinity;
    }
  }

  /** PodTopologySpread, in the very order of upstream's float operations. */
  #weighSpread(rules: ClassRules, constraints: Constraints): void {
    const { soft, hosts, needsAllKeys } = constraints;
    let scored = 0;
    for (let group = 0; group < this.#groups; group++) {
      const pair = rules.pairs[this.#pair[group]!]!;
      let isIgnored = false;
      if (needsAllKeys) {
        for (let r = 0; r < soft.length; r++) if (!hasKey(soft[r]!, pair)) isIgnored = true;
      }
      this.#isIgnored[group] = isIgnored;
      if (!isIgnored) scored += this.#size[group]!;
    }
    for (let r = 0; r < soft.length; r++) {
      const domains = soft[r]!.key < 0 ? scored : this.#domainsOf(rules, soft[r]!.key);
      this.#weights[r] = Math.log(domains + 2);
    }
    let min = Infinity;
    let max = -Infinity;
    for (let group = 0; group < this.#groups; group++) {
      if (this.#isIgnored[group]) continue;
      const pair = rules.pairs[this.#pair[group]!]!;
      let sum = 0;
      for (let r = 0; r < soft.length; r++) {
        const rule = soft[r]!;
        if (!hasKey(rule, pair)) continue;
        const count = this.#count(rule, pair, group * hosts.length);
        sum += count * this.#weights[r]! + (rule.maxSkew - 1);
      }
      const raw = Math.round(sum);
      this.#spreadRaw[group] = raw;
      if (raw < min) min = raw;
      if (raw > max) max = raw;
    }
    for (let group = 0; group < this.#groups; group++) {
      const raw = this.#spreadRaw[group]!;
      if (this.#isIgnored[group]) this.#spreadRaw[group] = 0;
      else if (max === 0) this.#spreadRaw[group] = 100;
      else this.#spreadRaw[group] = Math.trunc((100 * (max + min - raw)) / max);
    }
  }

  /** Different values of a key among groups that are scored; having none is one, too. */
  #domainsOf(rules: ClassRules, key: number): number {
    const values = new Set<string>();
    for (let group = 0; group < this.#groups; group++) {
      if (this.#isIgnored[group]) continue;
      values.add(rules.pairs[this.#pair[group]!]!.values[key] ?? '');
    }
    return values.size;
  }

  /** InterPodAffinity. */
  #weighAffinity(rules: ClassRules, constraints: Constraints): void {
    const { preferred, hosts } = constraints;
    let min = Infinity;
    let max = -Infinity;
    for (let group = 0; group < this.#groups; group++) {
      const pair = rules.pairs[this.#pair[group]!]!;
      let sum = 0;
      for (let i = 0; i < preferred.length; i++) {
        sum += preferred[i]!.weight * this.#count(preferred[i]!, pair, group * hosts.length);
      }
      this.#affinityRaw[group] = sum;
      if (sum < min) min = sum;
      if (sum > max) max = sum;
    }
    const range = max - min;
    for (let group = 0; group < this.#groups; group++) {
      const part = range > 0 ? (this.#affinityRaw[group]! - min) / range : 0;
      this.#affinityRaw[group] = Math.trunc(100 * part);
    }
  }

  #choose(index: ClassIndex, spreadWeight: number, affinityWeight: number): number {
    let best = -1;
    let ties = 0;
    let chosen = -1;
    for (let group = 0; group < this.#groups; group++) {
      let total = this.#top[group]!;
      total += index.rules.pairScore(this.#pair[group]!, this.#softMax, this.#affinityMax);
      if (spreadWeight > 0) total += spreadWeight * this.#spreadRaw[group]!;
      if (affinityWeight > 0) total += affinityWeight * this.#affinityRaw[group]!;
      if (total < best) continue;
      if (total > best) ties = 0;
      best = total;
      ties += this.#ties[group]!;
      const isTaken = ties === this.#ties[group]! || this.#random.below(ties) < this.#ties[group]!;
      if (isTaken) chosen = group;
    }
    return this.#node[chosen]! >= 0 ? this.#node[chosen]! : this.#draw(index, chosen);
  }

  /** Any node of the best of a group that is not set aside; there is one. */
  #draw(index: ClassIndex, group: number): number {
    const p = this.#partition[group]!;
    const partition = index.partitions[p]!;
    const score = this.#top[group]!;
    const crowdGroup = this.#crowdGroup[group]!;
    if (crowdGroup >= 0) {
      const place = this.#walk.below(this.#ties[group]!);
      return this.#crowd!.buckets[crowdGroup]!.at(score, place);
    }
    const length = partition.count(score);
    const start = this.#walk.below(length);
    if (length === this.#ties[group]) return partition.at(score, start);
    // Those set aside lie together, where the walk has been: the next one is mostly free.
    for (let step = 0; step < length; step++) {
      const isNear = step < STEPS_NEAR || step >= STEPS_NEAR + DRAWS_MAX;
      const place = isNear ? (start + step) % length : this.#random.below(length);
      const node = partition.at(score, place);
      if (this.#isAside(node)) continue;
      this.#walk.moveTo(place);
      return node;
    }
    for (let place = 0; ; place++) {
      const node = partition.at(score, place);
      if (!this.#isAside(node)) return node;
    }
  }
}

/** Nodes that are tried one after another before some are tried by chance. */
const STEPS_NEAR = 4;
/** So many are, before all of the list are tried. */
const DRAWS_MAX = 32;

function hasKey({ key }: DomainCount, pair: RawPair): boolean {
  return key < 0 ? pair.hasHostname : pair.values[key] !== undefined;
}

// data plane: all nodes ranked for one class of pods
import { Int32Column, Uint16Column, Uint32Column } from '@megaplane/base/column';
import type { Random } from '@megaplane/base/random';
import { ABSENT, type ClassRules } from './class-rules.ts';
import { HOSTS_MAX } from './constraints/constraints.ts';
import type { PodCounter } from './constraints/pod-counters.ts';
import type { NodeTable } from './node-table.ts';
import { ScoreBuckets } from './score-buckets.ts';

/** Raw pairs of a class are fewer, and so are pods on a node. */
const PAIR_END: number = 2 ** 17;
const COUNT_END: number = 2 ** 16;

/**
 * Every node with its score or its verdict, kept up to date by the log of changes. Nodes are
 * partitioned by those raw scores that are normalised over all feasible nodes, so that a change of
 * the normaliser moves no node: the best of each partition is compared when one is asked for.
 *
 *   judged     Int32    0 not seen or absent, 1 + score, or the verdict (negative)
 *   partition  Uint16   for nodes with a score
 *   place      Uint32   where in its bucket the node is
 */
export class ClassIndex {
  readonly rules: ClassRules;
  readonly #table: NodeTable;
  readonly #judged = new Int32Column();
  readonly #partition = new Uint16Column();
  readonly #place = new Uint32Column();
  readonly #partitions: ScoreBuckets[] = [];
  /** By partition: the raw pair of its nodes, and how many each of `hosts` counts on them. */
  readonly pairOf: number[] = [];
  readonly countsOf: (readonly number[])[] = [];
  readonly #hosts: readonly PodCounter[];
  /** From a pair and the counts of hosts before, with the next count, to a number. */
  readonly #steps = new Map<number, number>();
  #stepEnd = 0;
  readonly #partitionOfStep = new Map<number, number>();
  readonly #partitionOfPair: (number | undefined)[] = [];
  readonly #verdicts = new Map<number, number>();
  #cursor = -1;
  #idEnd = 0;
  #round = 0;
  #feasible = 0;

  /** `hosts`: what is counted by node; nodes with different counts lie in different partitions. */
  constructor(rules: ClassRules, table: NodeTable, hosts: readonly PodCounter[] = []) {
    this.#hosts = hosts;
    this.rules = rules;
    this.#table = table;
  }

  /** Feasible nodes, as of the last `catchUp`. */
  get feasible(): number {
    return this.#feasible;
  }

  /** How many nodes have each verdict, as of the last `catchUp`. */
  get verdicts(): ReadonlyMap<number, number> {
    return this.#verdicts;
  }

  /** Position in the log of changes; the same position means the same answers. */
  get position(): number {
    return this.#cursor;
  }

  get memoryBytes(): number {
    let bytes = this.#judged.memoryBytes + this.#partition.memoryBytes + this.#place.memoryBytes;
    for (const partition of this.#partitions) bytes += partition.memoryBytes;
    return bytes;
  }

  /** Takes in all changes of nodes. */
  catchUp(): void {
    const { log } = this.#table;
    const round = this.rules.prepare();
    const isVoid = round !== this.#round;
    this.#round = round;
    if (this.#cursor < 0 || isVoid || !log.holds(this.#cursor)) {
      const idEnd = Math.max(this.#idEnd, this.#table.idEnd);
      for (let id = 0; id < idEnd; id++) this.#refresh(id);
    } else {
      for (let position = this.#cursor; position < log.end; position++) {
        this.#refresh(log.at(position));
      }
    }
    this.#cursor = log.end;
    this.#idEnd = this.#table.idEnd;
  }

  /** One of the best nodes, each equally likely; -1 if none is feasible. */
  pick(random: Random): number {
    if (this.#feasible === 0) return -1;
    const { rules } = this;
    let softMax = 0;
    let affinityMax = 0;
    for (let p = 0; p < this.#partitions.length; p++) {
      if (this.#partitions[p]!.size === 0) continue;
      const pair = rules.pairs[this.pairOf[p]!]!;
      softMax = Math.max(softMax, pair.softTaints);
      affinityMax = Math.max(affinityMax, pair.affinity);
    }
    let best = -1;
    let ties = 0;
    for (let p = 0; p < this.#partitions.length; p++) {
      const partition = this.#partitions[p]!;
      if (partition.size === 0) continue;
      const top = partition.top();
      const total = top + rules.pairScore(this.pairOf[p]!, softMax, affinityMax);
      if (total > best) ties = 0;
      if (total < best) continue;
      best = total;
      ties += partition.count(top);
    }
    let chosen = ties === 1 ? 0 : random.below(ties);
    for (let p = 0; p < this.#partitions.length; p++) {
      const partition = this.#partitions[p]!;
      if (partition.size === 0) continue;
      const top = partition.top();
      if (top + rules.pairScore(this.pairOf[p]!, softMax, affinityMax) !== best) continue;
      const count = partition.count(top);
      if (chosen < count) return partition.at(top, chosen);
      chosen -= count;
    }
    return -1;
  }

  /** Whether the counts that nodes are told apart by are still kept up. */
  get isLive(): boolean {
    for (let i = 0; i < this.#hosts.length; i++) if (!this.#hosts[i]!.isLive) return false;
    return this.rules.ports === null || this.rules.ports.isLive;
  }

  /** Nodes of equal raw pair and counts; some may be empty. */
  get partitions(): readonly ScoreBuckets[] {
    return this.#partitions;
  }

  /** The partition of a feasible node. */
  partitionAt(id: number): number {
    return this.#partition.get(id);
  }

  /** Verdict or score of one node, as of the last `catchUp`. */
  judgedAt(id: number): number {
    const judged = this.#judged.get(id);
    return judged > 0 ? judged - 1 : judged === 0 ? ABSENT : judged;
  }

  #refresh(id: number): void {
    const score = this.rules.judge(id);
    const judged = score >= 0 ? score + 1 : score === ABSENT ? 0 : score;
    const before = this.#judged.get(id);
    const now = score >= 0 ? this.#partitionFor(id) : 0;
    if (before > 0) {
      const partition = this.#partition.get(id);
      if (judged === before && partition === now) return;
      this.#take(id, before - 1, partition);
    } else if (judged === before) {
      return;
    } else if (before < 0) {
      this.#count(before, -1);
    }
    this.#judged.set(id, judged);
    if (judged > 0) this.#put(id, score, now);
    else if (judged < 0) this.#count(judged, 1);
  }

  #put(id: number, score: number, partition: number): void {
    this.#partition.set(id, partition);
    this.#place.set(id, this.#partitions[partition]!.insert(score, id));
    this.#feasible++;
  }

  /** The partition for a node that was just judged. */
  #partitionFor(id: number): number {
    const { pair } = this.rules;
    if (this.#hosts.length === 0) return this.#partitionOfPair[pair] ?? this.#open(pair, pair, id);
    let step = pair;
    for (let i = 0; i < this.#hosts.length; i++) {
      const key = (step * HOSTS_MAX + i) * COUNT_END + this.#hosts[i]!.byNode.get(id);
      let next = this.#steps.get(key);
      if (next === undefined) {
        next = PAIR_END + this.#stepEnd++;
        this.#steps.set(key, next);
      }
      step = next;
    }
    return this.#partitionOfStep.get(step) ?? this.#open(step, pair, id);
  }

  /** A partition for nodes like this one. */
  #open(step: number, pair: number, id: number): number {
    const partition = this.#partitions.length;
    if (this.#hosts.length === 0) this.#partitionOfPair[pair] = partition;
    else this.#partitionOfStep.set(step, partition);
    this.#partitions.push(new ScoreBuckets(this.rules.scoreMax));
    this.pairOf.push(pair);
    this.countsOf.push(this.#hosts.map(({ byNode }) => byNode.get(id)));
    return partition;
  }

  #take(id: number, score: number, partition: number): void {
    const place = this.#place.get(id);
    const moved = this.#partitions[partition]!.remove(score, place);
    if (moved >= 0) this.#place.set(moved, place);
    this.#feasible--;
  }

  #count(verdict: number, delta: number): void {
    const count = (this.#verdicts.get(verdict) ?? 0) + delta;
    if (count === 0) this.#verdicts.delete(verdict);
    else this.#verdicts.set(verdict, count);
  }
}

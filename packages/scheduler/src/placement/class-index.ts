// data plane: all nodes ranked for one class of pods
import { assert } from '@megaplane/base/assert';
import { Int32Column, Uint16Column, Uint32Column } from '@megaplane/base/column';
import { ABSENT, type ClassRules } from './topology/class-rules.ts';
import type { NodeGroups } from '../cache/node-groups.ts';
import type { NodeTable } from '../cache/node-table.ts';
import { ScoreBuckets } from '../collections/score-buckets.ts';
import type { TieWalk } from '../collections/tie-walk.ts';

/** Groups that are behind by more than this share of the nodes are not brought up to date. */
const NEAR_BITS = 3;

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
  readonly #groups: NodeGroups | null;
  readonly #judged = new Int32Column();
  readonly #partition = new Uint16Column();
  readonly #place = new Uint32Column();
  readonly #partitions: ScoreBuckets[] = [];
  /** By partition: the raw pair of its nodes. */
  readonly pairOf: number[] = [];
  readonly #partitionOfPair: (number | undefined)[] = [];
  readonly #verdicts = new Map<number, number>();
  #cursor = -1;
  #idEnd = 0;
  #imageRound = 0;
  /** Changes when all nodes were judged anew. */
  round = 0;
  #feasible = 0;
  /** What of `memoryBytes` who keeps it has counted. */
  countedBytes = 0;
  /** When it was asked for last, by who keeps it. */
  usedAt = 0;

  /** `groups`: nodes in the same state, which are judged once for all. */
  constructor(rules: ClassRules, table: NodeTable, groups: NodeGroups | null = null) {
    this.rules = rules;
    this.#table = table;
    this.#groups = groups;
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
    const imageRound = this.rules.prepare();
    const isVoid = imageRound !== this.#imageRound;
    this.#imageRound = imageRound;
    if (this.#cursor < 0 || isVoid || !log.holds(this.#cursor)) {
      this.round++;
      const idEnd = Math.max(this.#idEnd, this.#table.idEnd);
      this.#judgeAll(idEnd);
    } else {
      for (let position = this.#cursor; position < log.end; position++) {
        this.#refresh(log.at(position));
      }
    }
    this.#cursor = log.end;
    this.#idEnd = this.#table.idEnd;
  }

  /** One of the best nodes, each equally likely; -1 if none is feasible. */
  pick(walk: TieWalk): number {
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
    let chosen = walk.below(ties);
    for (let p = 0; p < this.#partitions.length; p++) {
      const partition = this.#partitions[p]!;
      if (partition.size === 0) continue;
      const top = partition.top();
      if (top + rules.pairScore(this.pairOf[p]!, softMax, affinityMax) !== best) continue;
      const count = partition.count(top);
      if (chosen < count) return partition.at(top, chosen);
      chosen -= count;
    }
    assert(this.#feasible === 0, 'of feasible nodes one is chosen');
    return -1;
  }

  /** Whether the ports that nodes are judged by are still counted. */
  get isLive(): boolean {
    return this.rules.ports === null || this.rules.ports.isLive;
  }

  /** Nodes of equal raw pair; some may be empty. */
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

  #judgeAll(idEnd: number): void {
    const { rules } = this;
    const groups = this.#groups;
    if (groups === null || !rules.isAlike || !groups.isNear(idEnd >> NEAR_BITS)) {
      for (let id = 0; id < idEnd; id++) this.#refresh(id);
      return;
    }
    groups.catchUp();
    // By group: 1 + score, or the verdict; 0 not judged. The second: which raw pair it has.
    const judged = new Int32Array(groups.end + 1);
    const pairs = new Int32Array(groups.end + 1);
    for (let id = 0; id < idEnd; id++) {
      const group = groups.groupAt(id);
      if (group === 0 || judged[group] === 0) {
        const score = rules.judge(id);
        judged[group] = group === 0 ? 0 : score >= 0 ? score + 1 : score;
        pairs[group] = rules.pair;
        this.#replace(id, score);
      } else {
        const known = judged[group]!;
        rules.pair = pairs[group]!;
        this.#replace(id, known > 0 ? known - 1 : known);
      }
    }
  }

  #refresh(id: number): void {
    this.#replace(id, this.rules.judge(id));
  }

  /** What `judge` has just said of a node, with its `pair`. */
  #replace(id: number, score: number): void {
    const judged = score >= 0 ? score + 1 : score === ABSENT ? 0 : score;
    const before = this.#judged.get(id);
    const now = score >= 0 ? this.#partitionFor() : 0;
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
  #partitionFor(): number {
    const { pair } = this.rules;
    let partition = this.#partitionOfPair[pair];
    if (partition === undefined) {
      partition = this.#partitions.push(new ScoreBuckets(this.rules.scoreMax)) - 1;
      this.#partitionOfPair[pair] = partition;
      this.pairOf.push(pair);
    }
    return partition;
  }

  #take(id: number, score: number, partition: number): void {
    const place = this.#place.get(id);
    const moved = this.#partitions[partition]!.remove(score, place);
    if (moved >= 0) this.#place.set(moved, place);
    assert(this.#feasible > 0, 'no more nodes leave than are feasible');
    this.#feasible--;
  }

  #count(verdict: number, delta: number): void {
    const count = (this.#verdicts.get(verdict) ?? 0) + delta;
    assert(count >= 0, 'a node leaves the verdict that counted it');
    if (count === 0) this.#verdicts.delete(verdict);
    else this.#verdicts.set(verdict, count);
  }
}

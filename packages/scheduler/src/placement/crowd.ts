// data plane: the feasible nodes on which pods of some sorts run
import { assert } from '@megaplane/base/assert';
import type { ClassIndex } from './class-index.ts';
import type { NodeTable } from '../cache/node-table.ts';
import { ScoreBuckets } from '../collections/score-buckets.ts';
import { HOSTS_MAX } from './topology/constraints.ts';
import { NodeCounts } from './topology/node-counts.ts';
import type { PodCounter } from './topology/pod-counters.ts';

/** From this many nodes on a crowd is kept; fewer are looked at for each decision. */
export const CROWD_MIN = 8;

/** Pods of one sort on a node are fewer. */
const COUNT_END: number = 2 ** 16;
const PARTITION_END: number = 2 ** 17;
const SCORE_END: number = 2 ** 12;
/** A change of any node costs less to look up than a node of the crowd to judge anew. */
const CHANGES_PER_NODE = 4;
const CHANGES_MIN = 64;
const WORDS = 4;

/**
 * Of a ranked index, the nodes on which anything is counted that a decision depends on, as groups
 * of equal partition and equal counts, each by score. Kept for pods that belong together, beside
 * an index that all sorts of pods share, so that a thousand Deployments need one index of all
 * nodes and a thousand crowds of a few nodes each. Follows the log of changes.
 *
 *   entryOf   node -> 1 + entry
 *   entries   Int32   node, group, score, place in its bucket; node -1: free
 *   group     partition, counts: one for each of `hosts`, buckets
 */
export class Crowd {
  readonly index: ClassIndex;
  readonly partitionOf: number[] = [];
  readonly buckets: ScoreBuckets[] = [];
  /** What the shelf counted it for. */
  countedBytes = 0;
  readonly #hosts: readonly PodCounter[];
  readonly #table: NodeTable;
  readonly #entryOf = new NodeCounts();
  #entries: Int32Array = new Int32Array(16 * WORDS);
  #entryEnd = 0;
  readonly #free: number[] = [];
  readonly #counts: number[] = [];
  readonly #groupOf = new Map<number, number>();
  readonly #inPartition: number[] = [];
  readonly #atScore = new Map<number, number>();
  readonly #found: number[] = [];
  #stepEnd = 0;
  #cursor = -1;
  #round = -1;

  constructor(index: ClassIndex, table: NodeTable, hosts: readonly PodCounter[]) {
    this.index = index;
    this.#table = table;
    this.#hosts = hosts;
  }

  /** Whether all that is counted is still kept up. */
  get isLive(): boolean {
    for (let i = 0; i < this.#hosts.length; i++) if (!this.#hosts[i]!.isLive) return false;
    return true;
  }

  get size(): number {
    return this.#entryOf.size;
  }

  get memoryBytes(): number {
    const groups = this.buckets.length * BYTES_PER_GROUP;
    return this.#entries.byteLength + this.#entryOf.memoryBytes + groups + BYTES_PER_CROWD;
  }

  has(node: number): boolean {
    return this.#entryOf.get(node) !== 0;
  }

  /** Nodes of a partition that are in the crowd. */
  inPartition(partition: number): number {
    return this.#inPartition[partition] ?? 0;
  }

  /** Nodes of a partition with a score that are in the crowd. */
  atScore(partition: number, score: number): number {
    return this.#atScore.get(partition * SCORE_END + score) ?? 0;
  }

  /** What a host counts on each node of a group. */
  countOf(group: number, host: number): number {
    return this.#counts[group * this.#hosts.length + host]!;
  }

  /** Takes in all changes; the index must have done so already. */
  catchUp(): void {
    const { log } = this.#table;
    const from = this.#cursor;
    const changesMax = CHANGES_PER_NODE * this.size + CHANGES_MIN;
    const isVoid = from < 0 || this.#round !== this.index.round;
    this.#cursor = log.end;
    this.#round = this.index.round;
    if (isVoid || !log.holds(from) || log.end - from > changesMax) {
      return this.#lookAtAll(isVoid ? -1 : from);
    }
    for (let position = from; position < log.end; position++) this.#refresh(log.at(position));
  }

  /** Looks at nodes of the crowd and at those that may have come; only what changed `since`. */
  #lookAtAll(since: number): void {
    const { log } = this.#table;
    for (let entry = 0; entry < this.#entryEnd; entry++) {
      const node = this.#entries[entry * WORDS]!;
      if (node >= 0 && (since < 0 || log.mayHaveChanged(node, since))) this.#refresh(node);
    }
    for (let h = 0; h < this.#hosts.length; h++) {
      const { byNode } = this.#hosts[h]!;
      for (let slot = byNode.slotAfter(-1); slot >= 0; slot = byNode.slotAfter(slot)) {
        const node = byNode.nodeAt(slot);
        // Who is in the crowd was looked at.
        if (this.#entryOf.get(node) !== 0) continue;
        if (since < 0 || log.mayHaveChanged(node, since)) this.#refresh(node);
      }
    }
  }

  #refresh(node: number): void {
    let isCounted = false;
    for (let h = 0; h < this.#hosts.length; h++) {
      const count = this.#hosts[h]!.byNode.get(node);
      this.#found[h] = count;
      if (count > 0) isCounted = true;
    }
    const entry = this.#entryOf.get(node) - 1;
    if (!isCounted && entry < 0) return;
    const score = isCounted ? this.index.judgedAt(node) : -1;
    if (score < 0) {
      if (entry >= 0) this.#drop(node, entry);
      return;
    }
    const group = this.#groupFor(this.index.partitionAt(node));
    if (entry < 0) return this.#put(node, this.#newEntry(node), group, score);
    const at = entry * WORDS;
    if (this.#entries[at + 1] === group && this.#entries[at + 2] === score) return;
    this.#take(entry);
    this.#put(node, entry, group, score);
  }

  /** The group for a node with the counts that were just found. */
  #groupFor(partition: number): number {
    let step = partition;
    for (let h = 0; h < this.#hosts.length; h++) {
      const key = (step * HOSTS_MAX + h) * COUNT_END + this.#found[h]!;
      let next = this.#groupOf.get(key);
      if (next === undefined) {
        const isLast = h === this.#hosts.length - 1;
        next = isLast ? this.#open(partition) : PARTITION_END + this.#stepEnd++;
        this.#groupOf.set(key, next);
      }
      step = next;
    }
    return step;
  }

  #open(partition: number): number {
    for (let h = 0; h < this.#hosts.length; h++) this.#counts.push(this.#found[h]!);
    this.partitionOf.push(partition);
    const groups = this.#hosts.length * this.partitionOf.length;
    assert(this.#counts.length === groups, 'each group has a count for each host');
    return this.buckets.push(new ScoreBuckets(this.index.rules.scoreMax)) - 1;
  }

  #newEntry(node: number): number {
    assert(this.#entryOf.get(node) === 0, 'a node is in a crowd once');
    const entry = this.#free.pop() ?? this.#entryEnd++;
    if (entry * WORDS === this.#entries.length) {
      const wider = new Int32Array(this.#entries.length * 2);
      wider.set(this.#entries);
      this.#entries = wider;
    }
    this.#entries[entry * WORDS] = node;
    this.#entryOf.add(node, entry + 1);
    return entry;
  }

  #put(node: number, entry: number, group: number, score: number): void {
    const at = entry * WORDS;
    this.#entries[at + 1] = group;
    this.#entries[at + 2] = score;
    this.#entries[at + 3] = this.buckets[group]!.insert(score, node);
    this.#tally(this.partitionOf[group]!, score, 1);
  }

  #take(entry: number): void {
    const at = entry * WORDS;
    const group = this.#entries[at + 1]!;
    const score = this.#entries[at + 2]!;
    const place = this.#entries[at + 3]!;
    const moved = this.buckets[group]!.remove(score, place);
    if (moved >= 0) this.#entries[(this.#entryOf.get(moved) - 1) * WORDS + 3] = place;
    this.#tally(this.partitionOf[group]!, score, -1);
  }

  #drop(node: number, entry: number): void {
    assert(this.#entries[entry * WORDS] === node, 'an entry is that of its node');
    this.#take(entry);
    this.#entries[entry * WORDS] = -1;
    this.#entryOf.add(node, -entry - 1);
    this.#free.push(entry);
    assert(this.#free.length <= this.#entryEnd, 'an entry is free once');
  }

  #tally(partition: number, score: number, delta: 1 | -1): void {
    this.#inPartition[partition] = (this.#inPartition[partition] ?? 0) + delta;
    const key = partition * SCORE_END + score;
    const count = (this.#atScore.get(key) ?? 0) + delta;
    assert(count >= 0, 'no more nodes leave a score than have it');
    if (count === 0) this.#atScore.delete(key);
    else this.#atScore.set(key, count);
  }
}

/** About what the lists of a group take, and what a crowd does without any. */
const BYTES_PER_GROUP = 2600;
const BYTES_PER_CROWD = 1500;

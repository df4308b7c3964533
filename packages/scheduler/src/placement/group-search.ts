// data plane: the best node for a pod like no other
import type { ClassRules } from './topology/class-rules.ts';
import type { NodeGroups, NodeShape } from '../cache/node-groups.ts';
import { usedBefore, usedFrom } from '../cache/node-groups.ts';
import { SIDE } from '../collections/usage-tree.ts';

/**
 * Looks at groups of nodes in the order of the most that they could score, and stops when nothing
 * that is left could be better: exact, for cells of a tree are only left out when even their
 * emptiest corner is no better than what was found. No node is ranked beforehand, so that a class
 * costs nothing before it comes and nothing after.
 *
 *   heads   Int32   by bound: last of the cells that could score that much, -1 for none
 *   shape, cell, under   Int32   entries: where to look, and the entry below with the same bound
 */
const ENTRIES_MIN = 1024;
const NONE: ReadonlySet<number> = new Set();

export class GroupSearch {
  readonly #groups: NodeGroups;
  #rules: ClassRules | null = null;
  #heads: Int32Array = new Int32Array(0);
  #shape: Int32Array = new Int32Array(ENTRIES_MIN);
  #cell: Int32Array = new Int32Array(ENTRIES_MIN);
  #under: Int32Array = new Int32Array(ENTRIES_MIN);
  /** Shapes that are looked at. */
  #selected: Int32Array = new Int32Array(0);
  #entries = 0;
  #highest = -1;
  #softMax = 0;
  #affinityMax = 0;
  #excluded: ReadonlySet<number> = NONE;

  constructor(groups: NodeGroups) {
    this.#groups = groups;
  }

  /**
   * A best node for a class, as of the last `catchUp` of the groups; -1 if none is feasible. Nodes
   * in `excluded` are left out.
   */
  find(rules: ClassRules, excluded: ReadonlySet<number> = NONE): number {
    this.#rules = rules;
    this.#excluded = excluded;
    rules.prepare();
    const { shapes } = this.#groups;
    const count = this.#select(rules);
    if (!this.#normalise(shapes, rules, count)) return -1;
    this.#openHeads(rules.scoreMax + rules.pairScoreMax + 1);
    for (let s = 0; s < count; s++) this.#offer(shapes, this.#selected[s]!, 0);
    let best = -1;
    let node = -1;
    while (this.#highest > best) {
      const entry = this.#heads[this.#highest]!;
      if (entry < 0) {
        this.#highest--;
        continue;
      }
      this.#heads[this.#highest] = this.#under[entry]!;
      const number = this.#shape[entry]!;
      const { tree } = shapes[number]!;
      const cell = this.#cell[entry]!;
      const first = tree.first[cell]!;
      if (first >= 0) {
        for (let part = first; part < first + 4; part++) this.#offer(shapes, number, part);
        continue;
      }
      const bound = this.#highest;
      for (let group = tree.head[cell]!; group >= 0; group = tree.next(group)) {
        const candidate = this.#firstOf(group);
        if (candidate < 0) continue;
        const score = rules.judge(candidate);
        if (score < 0) continue;
        const total = score + rules.pairScore(rules.pair, this.#softMax, this.#affinityMax);
        if (total <= best) continue;
        best = total;
        node = candidate;
        if (total === bound) break;
      }
    }
    return node;
  }

  /** Chooses the shapes that have what is wanted; returns how many they are. */
  #select(rules: ClassRules): number {
    const { shapes } = this.#groups;
    if (this.#selected.length < shapes.length) {
      this.#selected = new Int32Array(Math.max(shapes.length, 2 * this.#selected.length));
    }
    const offering = this.#groups.offering(rules.wanted);
    let count = 0;
    if (offering === null) {
      for (; count < shapes.length; count++) this.#selected[count] = count;
    } else {
      for (const number of offering) this.#selected[count++] = number;
    }
    return count;
  }

  #openHeads(length: number): void {
    if (this.#heads.length < length) this.#heads = new Int32Array(length);
    this.#heads.fill(-1);
    this.#entries = 0;
    this.#highest = -1;
  }

  /** Keeps a cell for later, if any of its nodes could do. */
  #offer(shapes: readonly NodeShape[], number: number, cell: number): void {
    const shape = shapes[number]!;
    if (shape.tree.count(cell) === 0) return;
    const rules = this.#rules!;
    const fixed = rules.judgeKind(shape.kind);
    if (fixed < 0) return;
    const { softTaints, affinity } = rules.pairs[fixed - 1]!;
    // Only shapes without a feasible node have more than the most that feasible nodes have.
    if (softTaints > this.#softMax || affinity > this.#affinityMax) return;
    const bound = this.#bound(shape, cell);
    if (bound < 0) return;
    const total = bound + rules.pairScore(fixed - 1, this.#softMax, this.#affinityMax);
    const entry = this.#entries++;
    if (entry >= this.#shape.length) this.#grow();
    this.#shape[entry] = number;
    this.#cell[entry] = cell;
    this.#under[entry] = this.#heads[total]!;
    this.#heads[total] = entry;
    if (total > this.#highest) this.#highest = total;
  }

  #bound(shape: NodeShape, cell: number): number {
    const { tree, milliCpu, memory } = shape;
    const x = tree.x[cell]!;
    const y = tree.y[cell]!;
    const side = SIDE >>> tree.depth[cell]!;
    return this.#rules!.bound(
      shape,
      usedFrom(x, milliCpu),
      usedBefore(x + side, milliCpu),
      usedFrom(y, memory),
      usedBefore(y + side, memory),
    );
  }

  /** The greatest raw scores among shapes with a feasible node; false if no node is feasible. */
  #normalise(shapes: readonly NodeShape[], rules: ClassRules, count: number): boolean {
    this.#softMax = 0;
    this.#affinityMax = 0;
    let isPlain = true;
    for (let s = 0; s < count; s++) {
      const shape = shapes[this.#selected[s]!]!;
      if (shape.tree.count(0) === 0) continue;
      const fixed = rules.judgeKind(shape.kind);
      if (fixed < 0) continue;
      const { softTaints, affinity } = rules.pairs[fixed - 1]!;
      if (softTaints > 0 || affinity > 0) isPlain = false;
    }
    if (isPlain) return true;
    let isAnyFeasible = false;
    for (let s = 0; s < count; s++) {
      const shape = shapes[this.#selected[s]!]!;
      if (shape.tree.count(0) === 0) continue;
      const fixed = rules.judgeKind(shape.kind);
      if (fixed < 0) continue;
      const { softTaints, affinity } = rules.pairs[fixed - 1]!;
      const isHigher = softTaints > this.#softMax || affinity > this.#affinityMax;
      if (isAnyFeasible && !isHigher) continue;
      if (!this.#isFeasible(shape, 0)) continue;
      isAnyFeasible = true;
      this.#softMax = Math.max(this.#softMax, softTaints);
      this.#affinityMax = Math.max(this.#affinityMax, affinity);
    }
    return isAnyFeasible;
  }

  #isFeasible(shape: NodeShape, cell: number): boolean {
    const { tree } = shape;
    if (tree.count(cell) === 0 || this.#bound(shape, cell) < 0) return false;
    const first = tree.first[cell]!;
    if (first >= 0) {
      for (let part = first; part < first + 4; part++) {
        if (this.#isFeasible(shape, part)) return true;
      }
      return false;
    }
    for (let group = tree.head[cell]!; group >= 0; group = tree.next(group)) {
      const first = this.#firstOf(group);
      if (first >= 0 && this.#rules!.judge(first) >= 0) return true;
    }
    return false;
  }

  /** A node of a group that is not left out; -1 if there is none. */
  #firstOf(group: number): number {
    let node = this.#groups.head.get(group);
    while (node >= 0 && this.#excluded.has(node)) node = this.#groups.nextOf(node);
    return node;
  }

  #grow(): void {
    const wider = (old: Int32Array): Int32Array => {
      const made = new Int32Array(old.length * 2);
      made.set(old);
      return made;
    };
    this.#shape = wider(this.#shape);
    this.#cell = wider(this.#cell);
    this.#under = wider(this.#under);
  }
}

// data plane: every node, once, for one class of pods
import type { Random } from '@megaplane/base/random';
import { ABSENT, type ClassRules } from './topology/class-rules.ts';
import type { NodeTable } from '../cache/node-table.ts';

/**
 * The best node for a class by looking at all of them, for classes that come once: an index of all
 * nodes would cost more to build than it saves.
 */
export class ClassScan {
  readonly verdicts: Map<number, number> = new Map();
  /** One of the best, each equally likely; -1 if none is feasible. */
  node = -1;
  feasible = 0;
  /** By raw pair: best score, and the nodes that have it. */
  readonly #best: number[] = [];
  readonly #tied: number[][] = [];

  /** Nodes in `excluded` are left out. */
  constructor(rules: ClassRules, table: NodeTable, random: Random, excluded: ReadonlySet<number>) {
    rules.prepare();
    const { idEnd } = table;
    for (let id = 0; id < idEnd; id++) {
      const score = rules.judge(id);
      if (score === ABSENT) continue;
      if (score < 0) this.verdicts.set(score, (this.verdicts.get(score) ?? 0) + 1);
      else if (!excluded.has(id)) this.#take(rules.pair, score, id);
    }
    this.#choose(rules, random);
  }

  #take(pair: number, score: number, id: number): void {
    this.feasible++;
    const best = this.#best[pair] ?? -1;
    if (score < best) return;
    if (score > best) {
      this.#best[pair] = score;
      this.#tied[pair] = [];
    }
    this.#tied[pair]!.push(id);
  }

  #choose(rules: ClassRules, random: Random): void {
    let softMax = 0;
    let affinityMax = 0;
    for (let pair = 0; pair < this.#best.length; pair++) {
      if (this.#best[pair] === undefined) continue;
      softMax = Math.max(softMax, rules.pairs[pair]!.softTaints);
      affinityMax = Math.max(affinityMax, rules.pairs[pair]!.affinity);
    }
    let most = -1;
    let ties = 0;
    for (let pair = 0; pair < this.#best.length; pair++) {
      const best = this.#best[pair];
      if (best === undefined) continue;
      const total = best + rules.pairScore(pair, softMax, affinityMax);
      if (total < most) continue;
      if (total > most) ties = 0;
      most = total;
      const tied = this.#tied[pair]!;
      ties += tied.length;
      if (random.below(ties) < tied.length) this.node = tied[random.below(tied.length)]!;
    }
  }
}

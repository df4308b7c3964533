// data plane: the node on which evictions cost least, for one class of pods
import { assert } from '@megaplane/base/assert';
import { Float64Column, Int32Column, Uint16Column } from '@megaplane/base/column';
import { ABSENT, ClassRules } from '../placement/topology/class-rules.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { BudgetBook } from './budget-book.ts';
import { CANDIDATE, type EvictionTrial } from './eviction-trial.ts';
import type { Rivals } from './rivals.ts';

/** Evictions would change nothing about the node, or the pod fits as it is. */
const HOPELESS = 0;

/**
 * What a dry run says about each node, kept up to date by the logs of changes, and a tournament of
 * the nodes on which evictions help: preemptors of one class after another look only at nodes that
 * changed in between.
 *
 *   state   Int32   HOPELESS, CANDIDATE, NOBODY, or the verdict that stays (negative)
 *   violations, victims   Uint16      top   Int32      sum, start   Float64
 *   winners Int32   a binary tree over the nodes: winners[1] is the best of all, -1 for none
 */
export class EvictionIndex {
  readonly rules: ClassRules;
  readonly #nodes: NodeTable;
  readonly #rivals: Rivals;
  readonly #budgets: BudgetBook;
  readonly #trial: EvictionTrial;
  readonly #state = new Int32Column();
  readonly #violations = new Uint16Column();
  readonly #victims = new Uint16Column();
  readonly #top = new Int32Column();
  readonly #sum = new Float64Column();
  readonly #start = new Float64Column();
  /** By state: nodes. */
  readonly #counts = new Map<number, number>();
  #winners: Int32Array = new Int32Array(2).fill(-1);
  #cursor = -1;
  #rivalCursor = -1;
  #budgetVersion = -1;
  #idEnd = 0;

  constructor(
    rules: ClassRules,
    nodes: NodeTable,
    rivals: Rivals,
    budgets: BudgetBook,
    trial: EvictionTrial,
  ) {
    this.rules = rules;
    this.#nodes = nodes;
    this.#rivals = rivals;
    this.#budgets = budgets;
    this.#trial = trial;
  }

  /**
   * The node that costs a pod least, as `trial` then tells; -1 if there is none. `own`: the node
   * that the pod waits for already, or -1.
   */
  find(id: number, own: number): number {
    this.#catchUp();
    if (own >= 0) this.#refresh(own, id);
    const best = this.#winners[1]!;
    if (best >= 0) this.#trial.run(best, this.rules, this.rules.podClass.priority, id);
    // To the others of the class this pod is a rival on its node.
    if (own >= 0) this.#rivals.log.append(own);
    return best;
  }

  /** How many nodes are in a state; HOPELESS ones are not counted. */
  get counts(): ReadonlyMap<number, number> {
    return this.#counts;
  }

  get memoryBytes(): number {
    const bytes = this.#state.memoryBytes * 2 + this.#victims.memoryBytes * 2;
    return bytes + this.#sum.memoryBytes * 2 + this.#winners.byteLength;
  }

  #catchUp(): void {
    const { log } = this.#nodes;
    const rivalLog = this.#rivals.log;
    this.rules.prepare();
    const isWhole =
      this.#cursor < 0 ||
      !log.holds(this.#cursor) ||
      !rivalLog.holds(this.#rivalCursor) ||
      this.#budgetVersion !== this.#budgets.version;
    const [from, rivalFrom] = [this.#cursor, this.#rivalCursor];
    this.#cursor = log.end;
    this.#rivalCursor = rivalLog.end;
    this.#budgetVersion = this.#budgets.version;
    if (isWhole) return this.#build();
    this.#widen();
    for (let position = from; position < log.end; position++) this.#refresh(log.at(position), -1);
    for (let position = rivalFrom; position < rivalLog.end; position++) {
      this.#refresh(rivalLog.at(position), -1);
    }
  }

  #build(): void {
    const idEnd = Math.max(this.#idEnd, this.#nodes.idEnd);
    this.#idEnd = this.#nodes.idEnd;
    let size = 1;
    while (size < idEnd) size *= 2;
    this.#winners = new Int32Array(2 * size).fill(-1);
    for (let id = 0; id < idEnd; id++) {
      this.#evaluate(id, -1);
      this.#winners[size + id] = this.#state.get(id) === CANDIDATE ? id : -1;
    }
    for (let at = size - 1; at > 0; at--) this.#play(at);
  }

  /** Room in the tournament for nodes that came. */
  #widen(): void {
    this.#idEnd = this.#nodes.idEnd;
    const size = this.#winners.length >>> 1;
    if (this.#idEnd <= size) return;
    let wider = size;
    while (wider < this.#idEnd) wider *= 2;
    const winners = new Int32Array(2 * wider).fill(-1);
    winners.set(this.#winners.subarray(size), wider);
    this.#winners = winners;
    for (let at = wider - 1; at > 0; at--) this.#play(at);
  }

  /** `pod`: as it is for this pod, which is no rival of its own. */
  #refresh(id: number, pod: number): void {
    this.#evaluate(id, pod);
    const size = this.#winners.length >>> 1;
    this.#winners[size + id] = this.#state.get(id) === CANDIDATE ? id : -1;
    for (let at = (size + id) >>> 1; at > 0; at >>>= 1) this.#play(at);
  }

  #evaluate(id: number, pod: number): void {
    const state = this.#examine(id, pod);
    const before = this.#state.get(id);
    if (state === CANDIDATE) {
      const trial = this.#trial;
      this.#violations.set(id, trial.violations);
      this.#victims.set(id, trial.victims.length);
      this.#top.set(id, trial.topPriority);
      this.#sum.set(id, trial.prioritySum);
      this.#start.set(id, trial.startMs);
    }
    if (state === before) return;
    const others = (this.#counts.get(before) ?? 0) - 1;
    assert(before === HOPELESS || others >= 0, 'a node leaves the state that counted it');
    if (before !== HOPELESS) this.#counts.set(before, others);
    if (state !== HOPELESS) this.#counts.set(state, (this.#counts.get(state) ?? 0) + 1);
    this.#state.set(id, state);
  }

  #examine(id: number, pod: number): number {
    const { rules } = this;
    const { priority } = rules.podClass;
    let verdict = rules.judge(id);
    if (verdict === ABSENT) return HOPELESS;
    if (this.#rivals.lend(id, pod, priority)) {
      verdict = rules.judge(id);
      this.#rivals.giveBack();
    }
    if (verdict >= 0 || !ClassRules.isResolvable(verdict)) return HOPELESS;
    return this.#trial.run(id, rules, priority, pod);
  }

  #play(at: number): void {
    const left = this.#winners[2 * at]!;
    const right = this.#winners[2 * at + 1]!;
    this.#winners[at] = left < 0 || (right >= 0 && this.#isCheaper(right, left)) ? right : left;
  }

  /** DefaultPreemption's criteria, one after another. */
  #isCheaper(id: number, other: number): boolean {
    let less = this.#violations.get(id) - this.#violations.get(other);
    if (less === 0) less = this.#top.get(id) - this.#top.get(other);
    if (less === 0) less = this.#sum.get(id) - this.#sum.get(other);
    if (less === 0) less = this.#victims.get(id) - this.#victims.get(other);
    if (less !== 0) return less < 0;
    // Those that have not run long lose least.
    return this.#start.get(id) > this.#start.get(other);
  }
}

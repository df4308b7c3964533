// data plane: whom a pod would have to evict from one node
import type { ClassRules } from '../placement/topology/class-rules.ts';
import type { Identities } from '../cache/identities.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { PodTable } from '../cache/pod-table.ts';
import type { BudgetBook } from './budget-book.ts';
import type { Rivals } from './rivals.ts';

/** There is nobody less important on the node. */
export const NOBODY = 2;
/** The pod would fit without the victims. */
export const CANDIDATE = 1;

/** Priorities are made positive before they are summed, so that more victims weigh more. */
const PRIORITY_OFFSET: number = 2 ** 31;

/**
 * DefaultPreemption's dry run on columns, for pods that ask for room alone: takes all less
 * important pods off the node, and puts them back one by one, those that budgets protect first and
 * the more important ones before others, as long as the pod still fits. The table is as before
 * afterwards.
 */
export class EvictionTrial {
  /** Rows of those who must go, the most important first. */
  readonly victims: number[] = [];
  violations = 0;
  topPriority = 0;
  prioritySum = 0;
  /** When the first of the most important victims started; Infinity if it has not. */
  startMs: number = Infinity;
  readonly #nodes: NodeTable;
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #budgets: BudgetBook;
  readonly #rivals: Rivals;
  readonly #rows: number[] = [];
  readonly #priorities: number[] = [];
  readonly #starts: number[] = [];
  readonly #isProtected: boolean[] = [];
  readonly #isVictim: boolean[] = [];
  #count = 0;

  constructor(
    nodes: NodeTable,
    pods: PodTable,
    identities: Identities,
    budgets: BudgetBook,
    rivals: Rivals,
  ) {
    this.#nodes = nodes;
    this.#pods = pods;
    this.#identities = identities;
    this.#budgets = budgets;
    this.#rivals = rivals;
  }

  /** CANDIDATE, NOBODY, or the verdict that stays even without the less important pods. */
  run(node: number, rules: ClassRules, priority: number, id: number): number {
    this.#collect(node, priority);
    if (this.#count === 0) return NOBODY;
    for (let i = 0; i < this.#count; i++) this.#lend(node, i, -1);
    this.#rivals.lend(node, id, priority);
    const verdict = rules.judge(node);
    if (verdict >= 0) this.#takeBack(node, rules);
    this.#rivals.giveBack();
    for (let i = 0; i < this.#count; i++) {
      if (verdict < 0 || this.#isVictim[i]!) this.#lend(node, i, 1);
    }
    if (verdict < 0) return verdict;
    this.#sum();
    return CANDIDATE;
  }

  /** Less important pods, the most important of them first. */
  #collect(node: number, priority: number): void {
    const pods = this.#pods;
    const { classes } = this.#identities;
    let count = 0;
    for (let id = this.#nodes.firstPod.get(node); id >= 0; id = pods.next.get(id)) {
      const own = classes.get(pods.podClass.get(id)).priority;
      if (own >= priority) continue;
      const startMs = pods.startMs.get(id);
      const start = startMs === 0 ? Infinity : startMs;
      let at = count++;
      while (at > 0 && this.#isBefore(own, start, at - 1)) {
        this.#rows[at] = this.#rows[at - 1]!;
        this.#priorities[at] = this.#priorities[at - 1]!;
        this.#starts[at] = this.#starts[at - 1]!;
        at--;
      }
      this.#rows[at] = id;
      this.#priorities[at] = own;
      this.#starts[at] = start;
    }
    this.#count = count;
  }

  #isBefore(priority: number, start: number, place: number): boolean {
    const other = this.#priorities[place]!;
    return priority === other ? start < this.#starts[place]! : priority > other;
  }

  #takeBack(node: number, rules: ClassRules): void {
    const budgets = this.#budgets;
    const hasBudgets = !budgets.isEmpty;
    if (hasBudgets) budgets.open();
    for (let i = 0; i < this.#count; i++) {
      this.#isProtected[i] = hasBudgets && budgets.spend(this.#rows[i]!);
    }
    if (hasBudgets) this.#takeBackOf(node, rules, true);
    this.#takeBackOf(node, rules, false);
  }

  #takeBackOf(node: number, rules: ClassRules, isProtected: boolean): void {
    for (let i = 0; i < this.#count; i++) {
      if (this.#isProtected[i] !== isProtected) continue;
      this.#lend(node, i, 1);
      const isTooMuch = rules.judge(node) < 0;
      this.#isVictim[i] = isTooMuch;
      if (isTooMuch) this.#lend(node, i, -1);
    }
  }

  #lend(node: number, place: number, sign: 1 | -1): void {
    const usage = this.#pods.usage.get(this.#rows[place]!);
    this.#nodes.lend(node, this.#nodes.usages.get(usage), sign);
  }

  #sum(): void {
    this.victims.length = 0;
    this.violations = 0;
    this.prioritySum = 0;
    this.topPriority = -Infinity;
    this.startMs = Infinity;
    for (let i = 0; i < this.#count; i++) {
      if (!this.#isVictim[i]!) continue;
      const priority = this.#priorities[i]!;
      if (this.victims.length === 0) this.topPriority = priority;
      if (priority === this.topPriority && this.#starts[i]! < this.startMs) {
        this.startMs = this.#starts[i]!;
      }
      this.victims.push(this.#rows[i]!);
      this.prioritySum += priority + PRIORITY_OFFSET;
      if (this.#isProtected[i]!) this.violations++;
    }
  }
}

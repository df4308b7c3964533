/**
 * DefaultPreemption for pods that ask for room alone: finds the node on which evictions cost least
 * by an index per class of preemptors. Any of the best nodes is one that upstream, which looks at
 * a part of them from a random start, could have found.
 */
import { ClassRules } from '../placement/topology/class-rules.ts';
import { NO_VICTIMS, unhelpfulText, type Preemption } from '../placement/topology/failure.ts';
import type { Identities } from '../cache/identities.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { EVICTED, type PodTable } from '../cache/pod-table.ts';
import { BudgetBook } from './budget-book.ts';
import { EvictionIndex } from './eviction-index.ts';
import { CANDIDATE, EvictionTrial, NOBODY } from './eviction-trial.ts';
import type { Rivals } from './rivals.ts';

/** Classes of preemptors that have an index; the one not used longest goes first. */
const INDEXES_MAX = 8;

export interface EvictionsOptions {
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly identities: Identities;
  readonly objects: ObjectStore;
  readonly rivals: Rivals;
  /** `namespace/name` of a pod's row. */
  keyOf(id: number): string;
}

export class Evictions {
  readonly #options: EvictionsOptions;
  readonly #budgets: BudgetBook;
  readonly #trial: EvictionTrial;
  readonly #indexes = new Map<number, EvictionIndex>();

  constructor(options: EvictionsOptions) {
    const { nodes, pods, identities, objects, rivals } = options;
    this.#options = options;
    this.#budgets = new BudgetBook(objects, pods, identities, (id) => options.keyOf(id));
    this.#trial = new EvictionTrial(nodes, pods, identities, this.#budgets, rivals);
  }

  /** Somebody wants to know how long pods have run. */
  get isInUse(): boolean {
    return this.#indexes.size > 0;
  }

  get memoryBytes(): number {
    return this.#indexes.values().reduce((bytes, index) => bytes + index.memoryBytes, 0);
  }

  /**
   * Whom a pod should evict, and from where; `own`: the node that it waits for already, or -1;
   * `make`: makes the rules of its class. The rivals must be prepared.
   */
  find(id: number, own: number, make: () => ClassRules): Preemption {
    const { pods, nodes } = this.#options;
    const { podClass } = pods;
    this.#budgets.prepare();
    const index = this.#indexFor(podClass.get(id), make);
    if (own >= 0 && this.#isBeingFreed(id, own, index.rules)) {
      const text = 'not eligible due to a terminating pod on the nominated node.';
      return { kind: 'rejected', text, clearsNomination: false };
    }
    const node = index.find(id, own);
    if (node >= 0) return { kind: 'nominated', node, victims: [...this.#trial.victims] };
    const reasons = new Map<string, number>();
    let resolvable = 0;
    for (const [state, count] of index.counts) {
      if (state === CANDIDATE || count === 0) continue;
      resolvable += count;
      const texts = state === NOBODY ? [NO_VICTIMS] : index.rules.reasonsOf(state);
      for (const text of texts) reasons.set(text, (reasons.get(text) ?? 0) + count);
    }
    const text = unhelpfulText(reasons, resolvable, nodes.count);
    return { kind: 'rejected', text, clearsNomination: true };
  }

  #indexFor(classId: number, make: () => ClassRules): EvictionIndex {
    const { nodes, identities, rivals } = this.#options;
    let index = this.#indexes.get(classId);
    this.#indexes.delete(classId);
    // Numbers of classes are reused.
    if (index?.rules.podClass !== identities.classes.get(classId)) {
      for (const oldest of this.#indexes.keys()) {
        if (this.#indexes.size < INDEXES_MAX) break;
        this.#indexes.delete(oldest);
      }
      index = new EvictionIndex(make(), nodes, rivals, this.#budgets, this.#trial);
    }
    this.#indexes.set(classId, index);
    return index;
  }

  /** Victims are leaving the node that the pod waits for: it has to be patient. */
  #isBeingFreed(id: number, own: number, rules: ClassRules): boolean {
    const { nodes, pods, identities, rivals } = this.#options;
    const { priority } = rules.podClass;
    rules.prepare();
    rivals.lend(own, id, priority);
    const verdict = rules.judge(own);
    rivals.giveBack();
    if (verdict < 0 && !ClassRules.isResolvable(verdict)) return false;
    for (let other = nodes.firstPod.get(own); other >= 0; other = pods.next.get(other)) {
      const isLess = identities.classes.get(pods.podClass.get(other)).priority < priority;
      if (isLess && pods.isTerminating.get(other) === EVICTED) return true;
    }
    return false;
  }
}

/** PodDisruptionBudgets, and which pods they protect: found once for pods of equal labels. */
import { assert } from '@megaplane/base/assert';
import type { LabelSelector } from '@megaplane/machinery/selectors';
import type { Identities } from '../cache/identities.ts';
import type { BudgetObject } from '../api/objects.ts';
import { namespaceOf } from '../api/objects.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { selectorOf, selects } from '../framework/pod-info.ts';
import type { PodTable } from '../cache/pod-table.ts';

interface Budget {
  readonly object: BudgetObject;
  readonly namespace: string;
  readonly selector: LabelSelector;
  readonly allowed: number;
  readonly isDisrupting: boolean;
}

const NONE: readonly number[] = [];

export class BudgetBook {
  readonly #objects: ObjectStore;
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #keyOf: (id: number) => string;
  #budgets: readonly Budget[] = [];
  #stamp = -1;
  #epochs = -1;
  /** By labels and namespace: which of the budgets protect such pods. */
  readonly #memo = new Map<number, readonly number[]>();
  #left: number[] = [];
  /** Changes when any budget does. */
  version = 0;

  /** `keyOf`: `namespace/name` of a pod's row. */
  constructor(
    objects: ObjectStore,
    pods: PodTable,
    identities: Identities,
    keyOf: (id: number) => string,
  ) {
    this.#objects = objects;
    this.#pods = pods;
    this.#identities = identities;
    this.#keyOf = keyOf;
  }

  /** Must be called before a series of questions. */
  prepare(): void {
    const epochs = this.#identities.labels.epoch + this.#identities.namespaces.epoch;
    if (epochs !== this.#epochs) this.#memo.clear();
    this.#epochs = epochs;
    const stamp = this.#objects.versionOf('PodDisruptionBudget');
    if (this.#stamp === stamp) return;
    this.#stamp = stamp;
    const objects = [...this.#objects.objects('PodDisruptionBudget')] as BudgetObject[];
    const before = this.#budgets;
    const isSame = (object: BudgetObject, index: number): boolean =>
      before[index]?.object === object;
    if (objects.length === before.length && objects.every(isSame)) return;
    this.version++;
    this.#memo.clear();
    this.#budgets = objects.map((object) => ({
      object,
      namespace: namespaceOf(object),
      selector: selectorOf(object.spec?.selector),
      allowed: object.status?.disruptionsAllowed ?? 0,
      isDisrupting: Object.keys(object.status?.disruptedPods ?? {}).length > 0,
    }));
  }

  get isEmpty(): boolean {
    return this.#budgets.length === 0;
  }

  /** Starts to spend the budgets anew. */
  open(): void {
    this.#left = this.#budgets.map(({ allowed }) => allowed);
  }

  /** Evicts a pod on paper; true if a budget does not allow it. */
  spend(id: number): boolean {
    let isViolated = false;
    assert(this.#left.length === this.#budgets.length, 'budgets are opened before they are spent');
    for (const index of this.#protecting(id)) {
      const budget = this.#budgets[index];
      if (budget === undefined || (budget.isDisrupting && this.#isGoing(id, budget))) continue;
      const left = (this.#left[index] ?? 0) - 1;
      this.#left[index] = left;
      if (left < 0) isViolated = true;
    }
    return isViolated;
  }

  #isGoing(id: number, { object, namespace }: Budget): boolean {
    const name = this.#keyOf(id).slice(namespace.length + 1);
    return Object.hasOwn(object.status?.disruptedPods ?? {}, name);
  }

  #protecting(id: number): readonly number[] {
    const label = this.#pods.labels.get(id);
    const space = this.#pods.namespace.get(id);
    const key = label * 2 ** 21 + space;
    let known = this.#memo.get(key);
    if (known === undefined) {
      const labels = this.#identities.labels.get(label);
      const namespace = this.#identities.namespaces.get(space);
      const isBare = Object.keys(labels).length === 0;
      const found = this.#budgets.flatMap((budget, index) => {
        if (isBare || budget.namespace !== namespace) return [];
        // A selector of everything protects nothing, as upstream has it.
        if (budget.selector.requirements.length === 0) return [];
        return selects(budget.selector, labels) ? [index] : [];
      });
      known = found.length === 0 ? NONE : found;
      this.#memo.set(key, known);
    }
    return known;
  }
}

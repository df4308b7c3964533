/**
 * How many pods of one make run on each node, for those makes that are being spread: one counter
 * per namespace and selector, kept up as pods come and go.
 */
import { selectorText, type LabelSelector } from '@megaplane/machinery/selectors';
import type { Identities } from './identities.ts';
import { selects } from './pod-info.ts';
import type { PodTable } from './pod-table.ts';

/** Running siblings by node; nodes without any are not in it. */
export type SiblingCounter = ReadonlyMap<number, number>;

interface Counter {
  readonly namespace: string;
  readonly selector: LabelSelector;
  readonly byNode: Map<number, number>;
}

/** Makes that are counted at a time; the one not asked for longest goes first. */
const COUNTERS_MAX = 512;

export class SiblingCounts {
  readonly #identities: Identities;
  readonly #pods: PodTable;
  readonly #counters = new Map<string, Counter>();
  /** By namespace and labels: the counters that count such pods. */
  readonly #matching = new Map<string, readonly Counter[]>();
  #epochs = '';

  constructor(identities: Identities, pods: PodTable) {
    this.#identities = identities;
    this.#pods = pods;
  }

  /** The counter of a make; pods that run already are counted when it is new. */
  counterOf(namespace: string, selector: LabelSelector, rowEnd: number): SiblingCounter {
    const key = `${namespace} ${selectorText(selector)}`;
    const known = this.#counters.get(key);
    if (known !== undefined) {
      this.#counters.delete(key);
      this.#counters.set(key, known);
      return known.byNode;
    }
    const counter: Counter = { namespace, selector, byNode: new Map() };
    for (const oldest of this.#counters.keys()) {
      if (this.#counters.size < COUNTERS_MAX) break;
      this.#counters.delete(oldest);
    }
    this.#counters.set(key, counter);
    this.#matching.clear();
    for (let id = 0; id < rowEnd; id++) {
      if (this.#pods.counted.get(id) === 1 && this.#counts(counter, id)) this.#add(counter, id, 1);
    }
    return counter.byNode;
  }

  /** A running pod that does not leave is there (1), or is not any more (-1). */
  count(id: number, delta: 1 | -1): void {
    if (this.#counters.size === 0) return;
    const pods = this.#pods;
    const { labels, namespaces } = this.#identities;
    const epochs = `${labels.epoch} ${namespaces.epoch}`;
    if (epochs !== this.#epochs) this.#matching.clear();
    this.#epochs = epochs;
    const key = `${pods.namespace.get(id)} ${pods.labels.get(id)}`;
    let matching = this.#matching.get(key);
    if (matching === undefined) {
      matching = [...this.#counters.values()].filter((counter) => this.#counts(counter, id));
      this.#matching.set(key, matching);
    }
    for (const counter of matching) this.#add(counter, id, delta);
  }

  #counts({ namespace, selector }: Counter, id: number): boolean {
    const { labels, namespaces } = this.#identities;
    if (namespaces.get(this.#pods.namespace.get(id)) !== namespace) return false;
    return selects(selector, labels.get(this.#pods.labels.get(id)));
  }

  #add({ byNode }: Counter, id: number, delta: number): void {
    const node = this.#pods.node.get(id);
    const count = (byNode.get(node) ?? 0) + delta;
    if (count === 0) byNode.delete(node);
    else byNode.set(node, count);
  }
}

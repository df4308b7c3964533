import type { PodInfo, PodTerm } from '../pod-info.ts';
import { termMatches } from '../affinity-term.ts';

/** As many are asked one by one in less time than they are looked up. */
const UNINDEXED_MAX = 8;

/** A pod's own terms, found by a label that they ask for where there are many. */
export class TermIndex {
  readonly #others: PodTerm[] = [];
  readonly #byLabel = new Map<string, Map<string, PodTerm[]>>();

  constructor(terms: readonly PodTerm[]) {
    for (const term of terms) this.#enter(term, terms.length <= UNINDEXED_MAX);
  }

  /** Calls back with each term that selects a pod; none has a namespace selector left. */
  forEachSelecting(
    pod: Pick<PodInfo, 'namespace' | 'labels'>,
    found: (term: PodTerm) => void,
  ): void {
    for (const term of this.#others) if (termMatches(term, pod, undefined)) found(term);
    for (const [key, byValue] of this.#byLabel) {
      const value = pod.labels[key];
      if (value === undefined) continue;
      for (const term of byValue.get(value) ?? []) {
        if (termMatches(term, pod, undefined)) found(term);
      }
    }
  }

  #enter(term: PodTerm, isUnindexed: boolean): void {
    const { requirements } = term.selector;
    const asked = requirements.find(({ operator }) => ['=', '==', 'in'].includes(operator));
    if (isUnindexed || asked === undefined) return void this.#others.push(term);
    let byValue = this.#byLabel.get(asked.key);
    if (byValue === undefined) this.#byLabel.set(asked.key, (byValue = new Map()));
    for (const value of new Set(asked.values)) {
      const terms = byValue.get(value) ?? [];
      terms.push(term);
      byValue.set(value, terms);
    }
  }
}

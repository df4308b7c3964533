/**
 * The terms of inter-pod affinity that placed pods bear. Each different term is one entry, however
 * many pods bear it, and is found by a label that it asks for: most pods are touched by none.
 */
import { selectorText } from '@megaplane/machinery/selectors';
import { termMatches } from '../../framework/affinity-term.ts';
import type { Identities } from '../../cache/identities.ts';
import type { Labels } from '../../api/objects.ts';
import { PodInfo, type PodTerm } from '../../framework/pod-info.ts';
import type { CountedPod, PodCounter, PodCounters } from './pod-counters.ts';

export type TermKind = 'affinity' | 'antiAffinity' | 'preferred' | 'antiPreferred';

export interface BorneTerm {
  readonly kind: TermKind;
  readonly term: PodTerm;
  /** Pods that bear it, by node. */
  readonly counter: PodCounter;
  pods: number;
}

/** The same text for terms that select the same pods. */
export function termText({ namespaces, namespaceSelector, selector }: PodTerm): string {
  const spaces = namespaceSelector === null ? '' : `*${selectorText(namespaceSelector)}`;
  const nothing = selector.nothing === true ? '!' : '';
  return `${[...namespaces].toSorted().join()} ${spaces} ${nothing}${selectorText(selector)}`;
}

/** A label without which a term selects nothing; empty if there is none such. */
function labelOf({ selector }: PodTerm): string {
  for (const { key, operator, values } of selector.requirements) {
    const [value] = values;
    const isOne = operator === '=' || operator === '==' || operator === 'in';
    if (isOne && values.length === 1 && value !== undefined) return `${key}=${value}`;
  }
  return '';
}

export class TermBook {
  readonly #identities: Identities;
  readonly #counters: PodCounters;
  readonly #entries = new Map<string, BorneTerm>();
  readonly #byLabel = new Map<string, Set<BorneTerm>>();
  /** By class and namespace: keys of the terms of such pods, while any of them is placed. */
  readonly #bearers = new Map<number, { readonly keys: readonly string[]; pods: number }>();
  /** Changes when a term comes or goes. */
  version = 0;

  constructor(identities: Identities, counters: PodCounters) {
    this.#identities = identities;
    this.#counters = counters;
  }

  /** A pod with terms took a node (1) or is about to leave it (-1). */
  count(podClass: number, namespace: number, node: number, delta: 1 | -1): void {
    const key = podClass * 2 ** 22 + namespace;
    let bearer = this.#bearers.get(key);
    if (bearer === undefined) {
      bearer = { keys: this.#enter(podClass, namespace), pods: 0 };
      this.#bearers.set(key, bearer);
    }
    bearer.pods += delta;
    for (const termKey of bearer.keys) {
      const entry = this.#entries.get(termKey);
      if (entry === undefined) continue;
      entry.pods += delta;
      entry.counter.add(node, delta);
      if (entry.pods === 0) this.#remove(termKey, entry);
    }
    if (bearer.pods === 0) this.#bearers.delete(key);
  }

  /** Terms that select a pod; `namespaceLabels` are those of its namespace. */
  *selecting(
    pod: Pick<CountedPod, 'namespace' | 'labels'>,
    namespaceLabels: Labels | undefined,
  ): Iterable<BorneTerm> {
    const labels = ['', ...Object.entries(pod.labels).map(([name, value]) => `${name}=${value}`)];
    for (const label of labels) {
      for (const entry of this.#byLabel.get(label) ?? []) {
        if (termMatches(entry.term, pod, namespaceLabels)) yield entry;
      }
    }
  }

  #enter(podClass: number, namespace: number): readonly string[] {
    const { template } = this.#identities.classes.get(podClass);
    const name = this.#identities.namespaces.get(namespace);
    const info = new PodInfo({ ...template, metadata: { name: '', namespace: name } });
    const keys: string[] = [];
    const said = new Map<string, number>();
    const add = (kind: TermKind, terms: readonly PodTerm[]): void => {
      for (const term of terms) {
        const text = `${kind} ${term.topologyKey} ${term.weight} ${termText(term)}`;
        // A pod may say the same thing twice, and then it counts twice.
        const times = said.get(text) ?? 0;
        said.set(text, times + 1);
        const key = `${text} ${times}`;
        keys.push(key);
        if (!this.#entries.has(key)) this.#insert(key, kind, term);
      }
    };
    add('affinity', info.requiredAffinity);
    add('antiAffinity', info.requiredAntiAffinity);
    add('preferred', info.preferredAffinity);
    add('antiPreferred', info.preferredAntiAffinity);
    return keys;
  }

  #insert(key: string, kind: TermKind, term: PodTerm): void {
    const entry = { kind, term, counter: this.#counters.createPlain(), pods: 0 };
    this.#entries.set(key, entry);
    const label = labelOf(term);
    const sharing = this.#byLabel.get(label) ?? new Set();
    this.#byLabel.set(label, sharing.add(entry));
    this.version++;
  }

  #remove(key: string, entry: BorneTerm): void {
    this.#entries.delete(key);
    const label = labelOf(entry.term);
    const sharing = this.#byLabel.get(label);
    sharing?.delete(entry);
    if (sharing?.size === 0) this.#byLabel.delete(label);
    entry.counter.isLive = false;
    this.version++;
  }
}

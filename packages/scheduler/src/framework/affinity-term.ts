/** Which pods a term of inter-pod affinity selects (upstream's `AffinityTerm.Matches`). */
import type { Labels } from '../api/objects.ts';
import { selects, type PodInfo, type PodTerm } from './pod-info.ts';

/** Tells whether a term selects a pod; `namespaceLabels` are those of that pod's namespace. */
export function termMatches(
  term: PodTerm,
  pod: Pick<PodInfo, 'namespace' | 'labels'>,
  namespaceLabels: Labels | undefined,
): boolean {
  const { namespaces, namespaceSelector, selector } = term;
  if (!namespaces.has(pod.namespace)) {
    if (namespaceSelector === null || !selects(namespaceSelector, namespaceLabels)) return false;
  }
  return selects(selector, pod.labels);
}

/** Whether all of a pod's terms select a pod; no terms select none. */
export function allMatch(
  terms: readonly PodTerm[],
  pod: Pick<PodInfo, 'namespace' | 'labels'>,
): boolean {
  return terms.length > 0 && terms.every((term) => termMatches(term, pod, undefined));
}

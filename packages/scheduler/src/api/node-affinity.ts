/** What a pod's node affinity says before any node is looked at. */
import type { NodeAffinityObject, NodeSelectorTerm, PodObject } from './objects.ts';
import { parseTerm, type Term } from './node-selector.ts';

export interface WeightedTerm {
  /** Place among the pod's preferred terms. */
  readonly index: number;
  readonly weight: number;
  readonly term: Term;
}

export function preferredOf(affinity: NodeAffinityObject | undefined): WeightedTerm[] | null {
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution;
  if (preferred === undefined) return null;
  return preferred
    .map(({ weight, preference }, index) => ({ index, weight, term: parseTerm(preference) }))
    .filter(({ weight, term }) => weight !== 0 && !term.isEmpty);
}

/** Names that one term asks for by metadata.name; null if it asks for none. */
function namesOf({ matchFields }: NodeSelectorTerm): Set<string> | null {
  let names: Set<string> | null = null;
  for (const { key, operator, values } of matchFields ?? []) {
    if (key !== 'metadata.name' || operator !== 'In') continue;
    const wanted = new Set(values);
    names = names === null ? wanted : names.intersection(wanted);
  }
  return names;
}

/** The only nodes that can match, where every term names some. */
export function namedNodes({ spec }: PodObject): Set<string> | null {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms ?? [];
  const all = new Set<string>();
  for (const term of terms) {
    const names = namesOf(term);
    if (names === null) return null;
    for (const name of names) all.add(name);
  }
  return terms.length === 0 ? null : all;
}

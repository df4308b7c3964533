import { aggregate } from '@megaplane/machinery/fielderrors';
import type { NodeAffinityObject } from '../../api/objects.ts';
import type { PodInfo } from '../pod-info.ts';
import {
  matchesTerm,
  matchesTerms,
  parseNodeSelector,
  RequiredNodes,
  type Term,
} from '../../api/node-selector.ts';
import type { Plugin, PreFilterOutcome, PreScoreOutcome } from '../plugin.ts';
import { normalizeByMax, SKIP, unresolvable } from '../plugin.ts';
import { type WeightedTerm, preferredOf, namedNodes } from '../../api/node-affinity.ts';

export interface NodeAffinityArgs {
  readonly addedAffinity?: NodeAffinityObject;
}

const ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity");
const REJECTION = unresolvable("node(s) didn't match Pod's node affinity/selector");
const CONFLICT = unresolvable('pod affinity terms conflict');

export class NodeAffinity implements Plugin {
  readonly name = 'NodeAffinity';
  readonly #added: readonly Term[] | null;
  readonly #addedPreferred: readonly WeightedTerm[] | null;

  constructor({ addedAffinity }: NodeAffinityArgs) {
    const required = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    this.#added = required === undefined ? null : parseNodeSelector(required);
    this.#addedPreferred = preferredOf(addedAffinity);
  }

  preFilter({ pod }: PodInfo): PreFilterOutcome {
    const { nodeSelector, affinity } = pod.spec;
    const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const added = this.#added;
    if (required === undefined && nodeSelector === undefined && added === null) return SKIP;
    const nodeNames = namedNodes(pod);
    if (nodeNames?.size === 0) return { kind: 'rejected', rejection: CONFLICT };
    const nodes = new RequiredNodes(pod);
    return {
      kind: 'run',
      filter: {
        filter(node) {
          if (added !== null && !matchesTerms(added, node)) return ENFORCED;
          return nodes.matches(node) ? null : REJECTION;
        },
      },
      ...(nodeNames === null ? {} : { nodeNames }),
    };
  }

  preScore({ pod }: PodInfo): PreScoreOutcome {
    const own = preferredOf(pod.spec.affinity?.nodeAffinity);
    if (own === null && this.#addedPreferred === null) return SKIP;
    const wrong = (own ?? []).flatMap(({ index, term }) =>
      term.errors.map((error) => `[${index}].${error}`),
    );
    if (wrong.length > 0) {
      return { kind: 'rejected', rejection: { code: 'error', reasons: [aggregate(wrong)] } };
    }
    const terms = [...(this.#addedPreferred ?? []), ...(own ?? [])];
    return {
      kind: 'run',
      scorer: {
        score: (node) =>
          terms.reduce((sum, { weight, term }) => sum + (matchesTerm(term, node) ? weight : 0), 0),
        normalize: (raw, range) => normalizeByMax(raw, false, range),
      },
    };
  }
}

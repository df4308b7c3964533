/** What is fixed about flow schemas and priority levels: two mandatory ones of each (KEP-1040). */
import type { JsonObject } from '../json/json-value.ts';

/** Schemas are looked at from 1 to this. */
export const PRECEDENCE_MAX = 10_000;

/** A rule for whatever is asked of any resource. */
const EVERYTHING: JsonObject = {
  verbs: ['*'],
  apiGroups: ['*'],
  resources: ['*'],
  clusterScope: true,
  namespaces: ['*'],
};
/** Rules for whatever is asked. */
export const WHOLE: JsonObject = {
  resourceRules: [EVERYTHING],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};

/** Subjects that are groups. */
export function groupSubjects(...names: string[]): JsonObject[] {
  return names.map((name) => ({ kind: 'Group', group: { name } }));
}

/** Specs that nobody may change. */
export const MANDATORY_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  exempt: {
    priorityLevelConfiguration: { name: 'exempt' },
    matchingPrecedence: 1,
    rules: [{ subjects: groupSubjects('system:masters'), ...WHOLE }],
  },
  'catch-all': {
    priorityLevelConfiguration: { name: 'catch-all' },
    matchingPrecedence: PRECEDENCE_MAX,
    distinguisherMethod: { type: 'ByUser' },
    rules: [
      {
        subjects: groupSubjects('system:unauthenticated', 'system:authenticated'),
        ...WHOLE,
      },
    ],
  },
};
/** The spec of the level for what belongs nowhere; nobody may change it. */
export const CATCH_ALL_LEVEL: JsonObject = {
  type: 'Limited',
  limited: {
    nominalConcurrencyShares: 5,
    limitResponse: { type: 'Reject' },
    lendablePercent: 0,
  },
};

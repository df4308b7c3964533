/** The conditions of a namespace that is being deleted, with the texts of upstream. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';

/** What one round of deletion found. */
export interface DeletionFindings {
  /** Groups that discovery could not read. */
  readonly undiscovered: readonly string[];
  /** Errors of deletions, one text each. */
  readonly errors: readonly string[];
  /** `resource.group` -> objects that are left. */
  readonly remaining: ReadonlyMap<string, number>;
  /** Finalizer -> objects that carry it. */
  readonly finalizers: ReadonlyMap<string, number>;
}

interface ConditionRow {
  readonly type: string;
  readonly good: readonly [reason: string, message: string];
  readonly bad: string;
  readonly text: (findings: DeletionFindings) => string;
}

function counted(counts: ReadonlyMap<string, number>, what: (key: string, n: number) => string) {
  return [...counts]
    .map(([key, count]) => what(key, count))
    .sort()
    .join(', ');
}

const ROWS: readonly ConditionRow[] = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    good: ['ResourcesDiscovered', 'All resources successfully discovered'],
    bad: 'DiscoveryFailed',
    text: ({ undiscovered }) =>
      undiscovered.length === 0
        ? ''
        : `Discovery failed for some groups, ${undiscovered.length} failing: ` +
          `unable to retrieve the complete list of server APIs: ${undiscovered.join(', ')}`,
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    good: ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
    bad: 'GroupVersionParsingFailed',
    text: () => '',
  },
  {
    type: 'NamespaceDeletionContentFailure',
    good: ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    bad: 'ContentDeletionFailed',
    text: ({ errors }) =>
      errors.length === 0
        ? ''
        : `Failed to delete all resource types, ${errors.length} remaining: ${errors.join(', ')}`,
  },
  {
    type: 'NamespaceContentRemaining',
    good: ['ContentRemoved', 'All content successfully removed'],
    bad: 'SomeResourcesRemain',
    text: ({ remaining }) =>
      remaining.size === 0
        ? ''
        : 'Some resources are remaining: ' +
          counted(remaining, (resource, n) => `${resource} has ${n} resource instances`),
  },
  {
    type: 'NamespaceFinalizersRemaining',
    good: ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    bad: 'SomeFinalizersRemain',
    text: ({ finalizers }) =>
      finalizers.size === 0
        ? ''
        : 'Some content in the namespace has finalizers remaining: ' +
          counted(finalizers, (finalizer, n) => `${finalizer} in ${n} resource instances`),
  },
];

/**
 * The namespace's conditions after a round, or undefined where they are as they were. Conditions
 * appear when there is something to tell and keep their time while their status stays.
 */
export function deletionConditions(
  namespace: JsonObject,
  findings: DeletionFindings,
  now: string,
): JsonObject[] | undefined {
  const conditions = listAt(namespace, 'status', 'conditions').map((one) => objectAt(one) ?? {});
  let isChanged = false;
  for (const row of ROWS) {
    const text = row.text(findings);
    const [reason, message] = text === '' ? row.good : [row.bad, text];
    const status = text === '' ? 'False' : 'True';
    const index = conditions.findIndex((one) => stringAt(one, 'type') === row.type);
    const before = conditions[index];
    if (before !== undefined && isSame(before, status, reason, message)) continue;
    isChanged = true;
    const isTurned = stringAt(before, 'status') !== status;
    const time = isTurned ? now : stringAt(before, 'lastTransitionTime') || now;
    const after = { type: row.type, status, lastTransitionTime: time, reason, message };
    if (index < 0) conditions.push(after);
    else conditions[index] = after;
  }
  return isChanged ? conditions : undefined;
}

function isSame(before: JsonObject, status: string, reason: string, message: string): boolean {
  return (
    stringAt(before, 'status') === status &&
    stringAt(before, 'reason') === reason &&
    stringAt(before, 'message') === message
  );
}

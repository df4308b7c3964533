/** What is told of finalizers that custom resources are given: names that others may have, too. */
import { listAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { qualifiedNameErrors } from '../meta/names.ts';

/** Those of Kubernetes itself, which have no domain. */
const STANDARD: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion', 'kubernetes']);

/** The texts for finalizers that the object before (null: there was none) did not have. */
export function* finalizerWarnings(
  object: JsonObject,
  previous: JsonObject | null,
): Iterable<string> {
  const before = new Set(namesOf(previous));
  const added = new Set(namesOf(object).filter((name) => !before.has(name)));
  for (const name of [...added].sort()) {
    const head = `metadata.finalizers: ${JSON.stringify(name)}:`;
    for (const text of qualifiedNameErrors(name)) yield `${head} ${text}`;
    if (name.includes('/') || STANDARD.has(name)) continue;
    const path = name.includes('.') ? ' including a path (/)' : '';
    yield (
      `${head} prefer a domain-qualified finalizer name${path} to avoid accidental conflicts ` +
      'with other finalizer writers'
    );
  }
}

function namesOf(object: JsonObject | null): string[] {
  return listAt(object ?? undefined, 'metadata', 'finalizers').map((name) => stringAt(name));
}

/**
 * Fits a set to the schema of today: where a list or map has become one value since the set was
 * written, who owned parts of it owns the whole.
 */

import type { FieldSchema } from './field-schema.ts';
import { memberSchema } from './field-schema.ts';
import { FieldSet, type FieldPath } from './field-set.ts';

/** Sets that were found to fit, with the schema that they fit. */
const fitting = new WeakMap<FieldSet, FieldSchema>();

/** The set itself where nothing has changed, which is nearly always. */
export function reconcileFields(set: FieldSet, schema: FieldSchema): FieldSet {
  if (fitting.get(set) === schema) return set;
  const roots: FieldPath[] = [];
  visit(set, schema, false, [], roots);
  if (roots.length === 0) {
    fitting.set(set, schema);
    return set;
  }
  const whole = FieldSet.of(...roots);
  return set.recursiveDifference(whole).union(whole);
}

/** `isLeaf`: the field is owned, and nothing below it. */
function visit(
  set: FieldSet | null,
  schema: FieldSchema,
  isLeaf: boolean,
  path: string[],
  roots: FieldPath[],
): void {
  if (schema.map !== null) {
    const { map } = schema;
    const isArbitrary = map.elements !== null && map.elements.scalar === 'untyped';
    if (isArbitrary) return;
    if (map.isAtomic && !isLeaf) {
      if (set !== null && !set.isEmpty) roots.push([...path]);
      return;
    }
    descend(set, (step) => (step.startsWith('f:') ? memberSchema(map, step.slice(2)) : undefined));
  } else if (schema.list !== null) {
    const { list } = schema;
    if (list.isAtomic && !isLeaf) {
      roots.push([...path]);
      return;
    }
    descend(set, () => list.items);
  }

  function descend(
    inner: FieldSet | null,
    schemaOf: (step: string) => FieldSchema | undefined,
  ): void {
    if (inner === null) return;
    for (const [step, { isMember, below }] of inner.entries()) {
      const next = schemaOf(step);
      if (next === undefined) continue;
      path.push(step);
      visit(below, next, isMember && below === null, path, roots);
      path.pop();
    }
  }
}

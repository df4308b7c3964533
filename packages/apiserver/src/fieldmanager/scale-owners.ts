/**
 * Owners of the replicas of a workload, as its scale sees them and back: the scale is a kind of its
 * own, whose only field that anybody owns is the replicas of the other (upstream's scale handler).
 */
import { FieldSet } from '@megaplane/machinery/apply/field-set';
import {
  managerId,
  managerOf,
  emptyManaged,
  type Managed,
} from '@megaplane/machinery/apply/managed-fields';

const SCALE_VERSION = 'autoscaling/v1';
/** In the scale itself. */
const REPLICAS = ['f:spec', 'f:replicas'] as const;
const REPLICAS_SET = FieldSet.of(REPLICAS);

/** Steps to a field of a workload (`spec`, `replicas`) as sets of fields have them. */
function fieldPath(steps: readonly string[]): readonly string[] {
  return steps.map((step) => `f:${step}`);
}

/** Who owns the replicas, which the workload has at `steps`, in terms of the scale. */
export function scaleOwners(parent: Managed, steps: readonly string[]): Managed {
  const scale = emptyManaged();
  const path = fieldPath(steps);
  for (const [id, { isApplied, fields }] of parent.owners) {
    if (!fields.has(path)) continue;
    const own = isApplied ? id : managerId({ ...managerOf(id), apiVersion: SCALE_VERSION });
    scale.owners.set(own, { apiVersion: SCALE_VERSION, isApplied, fields: REPLICAS_SET });
    const seconds = parent.times.get(id);
    if (seconds !== undefined) scale.times.set(own, seconds);
  }
  return scale;
}

/** The owners of the workload after those of its scale have become `scale`. */
export function parentOwners(
  parent: Managed,
  scale: Managed,
  apiVersion: string,
  steps: readonly string[],
): Managed {
  const path = fieldPath(steps);
  const replicas = FieldSet.of(path);
  const result = emptyManaged();
  const left = new Map(scale.owners);
  for (const [id, owned] of parent.owners) {
    // who updates is another in the scale, of its version: upstream takes the replicas from the one
    // and gives them to the other, as an entry of their own
    const keepsReplicas = owned.isApplied && left.delete(id);
    const isOwner = owned.fields.has(path);
    const fields = isOwner && !keepsReplicas ? owned.fields.difference(replicas) : owned.fields;
    if (fields.isEmpty) continue;
    result.owners.set(id, { ...owned, fields });
    const seconds = parent.times.get(id);
    if (seconds !== undefined) result.times.set(id, seconds);
  }
  for (const [id, { isApplied, fields }] of left) {
    if (!fields.has(REPLICAS)) continue;
    // without a time: upstream looks for one among the workload's own entries
    result.owners.set(id, { apiVersion, isApplied, fields: replicas });
  }
  return result;
}

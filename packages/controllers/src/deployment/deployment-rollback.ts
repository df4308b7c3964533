/** Rollbacks by annotation, the way of clients from before `apps/v1`: `kubectl` has its own. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { compareRevisions, isOwnAnnotation, revisionNumber } from './deployment-revisions.ts';
import { HASH_LABEL, isSameTemplate, nameOf } from './deployment-spec.ts';
import { integerOf } from '@megaplane/machinery/selectors';

const ROLLBACK = 'deprecated.deployment.rollback.to';

export interface Rollback {
  /** The Deployment as it is to be, without the annotation. */
  readonly deployment: JsonObject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** The revision to go back to, 0 for the one before; undefined where nobody asks for it. */
export function rollbackRevision(deployment: JsonObject): bigint | undefined {
  return integerOf(stringAt(deployment, 'metadata', 'annotations', ROLLBACK));
}

/** Whatever comes of it, the annotation goes. */
export function rollBack(
  deployment: JsonObject,
  sets: readonly JsonObject[],
  wanted: bigint,
): Rollback {
  const revision = wanted === 0n ? lastRevision(sets) : wanted;
  const set = sets.find((one) => revisionNumber(one) === revision);
  if (revision === 0n || set === undefined) {
    const message =
      revision === 0n
        ? 'Unable to find last revision.'
        : 'Unable to find the revision to rollback to.';
    return refused(deployment, 'DeploymentRollbackRevisionNotFound', message);
  }
  if (isSameTemplate(deployment, set)) {
    const message =
      'The rollback revision contains the same template as current deployment ' +
      `"${nameOf(deployment)}"`;
    return refused(deployment, 'DeploymentRollbackTemplateUnchanged', message);
  }
  const message = `Rolled back deployment "${nameOf(deployment)}" to revision ${revision}`;
  const back = withTemplateOf(set, withAnnotationsOf(set, deployment));
  return { deployment: back, type: 'Normal', reason: 'DeploymentRollback', message };
}

function refused(deployment: JsonObject, reason: string, message: string): Rollback {
  const { [ROLLBACK]: _asked, ...annotations } =
    objectAt(deployment, 'metadata', 'annotations') ?? {};
  return { deployment: annotated(deployment, annotations), type: 'Warning', reason, message };
}

/** The second highest of all revisions, or 0. */
function lastRevision(sets: readonly JsonObject[]): bigint {
  const revisions = sets.map(revisionNumber).toSorted(compareRevisions);
  return revisions.at(-2) ?? 0n;
}

function annotated(deployment: JsonObject, annotations: JsonObject): JsonObject {
  return { ...deployment, metadata: { ...objectAt(deployment, 'metadata'), annotations } };
}

/** Its own annotations stay; all others are those of the set, which had them from it once. */
function withAnnotationsOf(set: JsonObject, deployment: JsonObject): JsonObject {
  const entries = (object: JsonObject): [string, JsonObject[string]][] =>
    Object.entries(objectAt(object, 'metadata', 'annotations') ?? {});
  const own = entries(deployment).filter(([name]) => isOwnAnnotation(name) && name !== ROLLBACK);
  const before = entries(set).filter(([name]) => !isOwnAnnotation(name));
  return annotated(deployment, Object.fromEntries([...own, ...before]));
}

function withTemplateOf(set: JsonObject, deployment: JsonObject): JsonObject {
  const template = objectAt(set, 'spec', 'template') ?? {};
  const { [HASH_LABEL]: _hash, ...labels } = objectAt(template, 'metadata', 'labels') ?? {};
  const metadata = { ...objectAt(template, 'metadata'), labels };
  const spec = { ...objectAt(deployment, 'spec'), template: { ...template, metadata } };
  return { ...deployment, spec };
}

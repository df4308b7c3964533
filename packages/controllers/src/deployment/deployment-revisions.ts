/** Revisions of a Deployment: which ReplicaSet is the new one, and what annotations tell of it. */
import { putMember } from '@megaplane/base/members';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import {
  byAge,
  HASH_LABEL,
  isSameTemplate,
  maxSurge,
  nameOf,
  templateHash,
} from './deployment-spec.ts';
import { controllerReference, ownerOfObject } from '../framework/pod-control.ts';
import { replicasOf } from '../replicaset/replicaset.ts';
import { integerOf } from '@megaplane/machinery/selectors';

export const REVISION = 'deployment.kubernetes.io/revision';
const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history';
const DESIRED = 'deployment.kubernetes.io/desired-replicas';
const MAXIMUM = 'deployment.kubernetes.io/max-replicas';
const HISTORY_CHARACTERS_MAX = 2_000;

/** Annotations of the Deployment that its ReplicaSets do not take over. */
const OWN: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  REVISION_HISTORY,
  DESIRED,
  MAXIMUM,
  'deprecated.deployment.rollback.to',
]);

/** Whether its ReplicaSets do not take that annotation over. */
export function isOwnAnnotation(name: string): boolean {
  return OWN.has(name);
}

/** The ReplicaSet whose template is the Deployment's (the oldest of several), and the others. */
export function splitSets(
  deployment: JsonObject,
  sets: readonly JsonObject[],
): { current: JsonObject | undefined; old: JsonObject[] } {
  const ordered = sets.toSorted(byAge);
  const current = ordered.find((set) => isSameTemplate(deployment, set));
  return { current, old: ordered.filter((set) => set !== current) };
}

/** Of 64 bits; 0 where there is none, or none that is a number. */
export function revisionNumber(object: JsonObject): bigint {
  return integerOf(annotation(object, REVISION)) ?? 0n;
}

function annotation(object: JsonObject, name: string): string {
  return stringAt(object, 'metadata', 'annotations', name);
}

export function compareRevisions(left: bigint, right: bigint): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** What comes behind the highest revision of the sets, in 64 bits. */
export function nextRevision(sets: readonly JsonObject[]): bigint {
  let highest = 0n;
  for (const set of sets) {
    const revision = revisionNumber(set);
    if (revision > highest) highest = revision;
  }
  return BigInt.asIntN(64, highest + 1n);
}

/** The annotations that a ReplicaSet's own revision calls for; only those that change. */
export function revisionAnnotations(
  deployment: JsonObject,
  set: JsonObject,
  revision: bigint,
): JsonObject {
  const changes: JsonObject = {};
  for (const [name, value] of Object.entries(
    objectAt(deployment, 'metadata', 'annotations') ?? {},
  )) {
    if (!isOwnAnnotation(name) && annotation(set, name) !== value) putMember(changes, name, value);
  }
  const before = annotation(set, REVISION);
  if (revisionNumber(set) >= revision) return changes;
  changes[REVISION] = String(revision);
  if (before === '') return changes;
  const history = annotation(set, REVISION_HISTORY);
  const list = [...(history === '' ? [] : history.split(',')), before];
  while (list.length > 1 && list.join(',').length > HISTORY_CHARACTERS_MAX) list.shift();
  changes[REVISION_HISTORY] = list.join(',');
  return changes;
}

/** The size that the Deployment had when the set was scaled last; undefined where none is told. */
export function desiredAnnotation(set: JsonObject): number | undefined {
  const desired = Number.parseInt(annotation(set, DESIRED), 10);
  return Number.isNaN(desired) ? undefined : desired;
}

/** The largest number of pods there could be at that time; 0 where none is told. */
export function maximumAnnotation(set: JsonObject): number {
  const maximum = Number.parseInt(annotation(set, MAXIMUM), 10);
  return Number.isNaN(maximum) ? 0 : maximum;
}

/** The annotations about the size; only those that change. */
export function sizeAnnotations(deployment: JsonObject, set: JsonObject): JsonObject {
  const replicas = replicasOf(deployment);
  const wanted = {
    [DESIRED]: String(replicas),
    [MAXIMUM]: String(replicas + maxSurge(deployment)),
  };
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => annotation(set, name) !== value),
  );
}

/** The ReplicaSet for the Deployment's template as it is now. */
export function newReplicaSet(deployment: JsonObject, revision: bigint): JsonObject {
  const hash = templateHash(deployment);
  const template = objectAt(deployment, 'spec', 'template') ?? {};
  const templateMetadata = objectAt(template, 'metadata') ?? {};
  const labels = { ...objectAt(templateMetadata, 'labels'), [HASH_LABEL]: hash };
  const selector = objectAt(deployment, 'spec', 'selector') ?? {};
  const matchLabels = { ...objectAt(selector, 'matchLabels'), [HASH_LABEL]: hash };
  const minReadySeconds = numberAt(deployment, 'spec', 'minReadySeconds');
  const owner = ownerOfObject('apps/v1', 'Deployment', deployment);
  const set: JsonObject = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${nameOf(deployment)}-${hash}`,
      namespace: owner.namespace,
      labels,
      annotations: {},
      ownerReferences: [controllerReference(owner)],
    },
    spec: {
      replicas: 0,
      ...(minReadySeconds > 0 ? { minReadySeconds } : {}),
      selector: { ...selector, matchLabels },
      template: { ...template, metadata: { ...templateMetadata, labels } },
    },
  };
  annotate(set, revisionAnnotations(deployment, set, revision));
  annotate(set, sizeAnnotations(deployment, set));
  return set;
}

/** Puts annotations on an object at hand. */
export function annotate(object: JsonObject, annotations: JsonObject): void {
  const metadata = objectAt(object, 'metadata') ?? {};
  const all = { ...objectAt(metadata, 'annotations'), ...annotations };
  object['metadata'] = { ...metadata, annotations: all };
}

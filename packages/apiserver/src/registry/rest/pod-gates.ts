/**
 * Fields of pods and of their templates that belong to features which are off by default: dropped,
 * unless the object had the feature before (upstream's `DropDisabledPodFields`).
 */
import { ownMember } from '@megaplane/base/members';
import { listAt, objectAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { findServed, type Served } from '../../storage/served.ts';

/** Where the spec of a pod lies, by the name of the storage. */
const SPECS: ReadonlyMap<string, readonly string[]> = new Map([
  ['pods', ['spec']],
  ['podtemplates', ['template', 'spec']],
  ['replicationcontrollers', ['spec', 'template', 'spec']],
  ['daemonsets.apps', ['spec', 'template', 'spec']],
  ['deployments.apps', ['spec', 'template', 'spec']],
  ['replicasets.apps', ['spec', 'template', 'spec']],
  ['statefulsets.apps', ['spec', 'template', 'spec']],
  ['jobs.batch', ['spec', 'template', 'spec']],
  ['cronjobs.batch', ['spec', 'jobTemplate', 'spec', 'template', 'spec']],
]);

const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/** One field: the objects that may have it, and its name. */
interface Gate {
  readonly field: string;
  readonly holders: (spec: JsonObject) => readonly JsonObject[];
  /** Whether the feature has been asked for. */
  readonly isOn?: () => boolean;
}

const GATES: readonly Gate[] = [
  { field: 'clusterTrustBundle', holders: projections },
  { field: 'podCertificate', holders: projections },
  { field: 'schedulingGroup', holders: (spec) => [spec], isOn: hasPodGroups },
  { field: 'stopSignal', holders: lifecycles },
];

/** Changes `object` in place; `previous` is null for a new one. */
export function dropGatedPodFields(
  { resource }: Served,
  object: JsonObject,
  previous: JsonObject | null,
): void {
  const path = SPECS.get(resource.storage.name);
  const spec = path === undefined ? undefined : objectAt(object, ...path);
  if (path === undefined || spec === undefined) return;
  const before = objectAt(previous ?? {}, ...path) ?? {};
  for (const { field, holders, isOn } of GATES) {
    if (isOn?.() === true) continue;
    const found = holders(spec).filter((holder) => ownMember(holder, field) !== undefined);
    if (found.length === 0 || holders(before).some((one) => ownMember(one, field) !== undefined))
      continue;
    for (const holder of found) delete holder[field];
    if (field === 'stopSignal') dropEmptyLifecycles(spec);
  }
}

/** Upstream has one gate for the field and for the groups. */
function hasPodGroups(): boolean {
  return findServed('scheduling.k8s.io', 'v1alpha2', 'podgroups') !== undefined;
}

function projections(spec: JsonObject): JsonObject[] {
  return listAt(spec, 'volumes').flatMap((volume) =>
    listAt(volume, 'projected', 'sources').filter(isObject),
  );
}

function containersOf(spec: JsonObject): JsonObject[] {
  return CONTAINERS.flatMap((field) => listAt(spec, field).filter(isObject));
}

function lifecycles(spec: JsonObject): JsonObject[] {
  return containersOf(spec)
    .map((container) => container['lifecycle'])
    .filter(isObject);
}

/** A lifecycle that said nothing but the signal goes with it. */
function dropEmptyLifecycles(spec: JsonObject): void {
  for (const container of containersOf(spec)) {
    const lifecycle = objectAt(container, 'lifecycle');
    if (lifecycle !== undefined && Object.keys(lifecycle).length === 0) {
      delete container['lifecycle'];
    }
  }
}

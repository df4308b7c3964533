/** Objects that the server makes for itself where they are missing. */
import { ownMember, putMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { applyDefaults } from '@megaplane/machinery/defaulting';
import { numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { findKind } from '@megaplane/machinery/kinds';
import { trackOwn } from '../../fieldmanager/tracking.ts';
import { orderedMetadata } from './object-meta.ts';
import { keyOf, servedOf, type Served } from '../../storage/served.ts';
import { emptyRow, EXPECT_ABSENT } from '../../storage/storage.ts';
import type { World } from '../../lister/world.ts';
import { timestamp } from '../../timestamp.ts';

/** Parts of the server that own what they make under names of theirs, by group. */
const OWNERS: Readonly<Record<string, string>> = {
  'flowcontrol.apiserver.k8s.io': 'api-priority-and-fairness-config-producer-v1',
};

/** Written without a look at fields: nobody owns any. */
const UNTRACKED: ReadonlySet<string> = new Set(['endpoints', 'endpointslices.discovery.k8s.io']);

/** Fields that are set after the owners of a new object are known. */
const ADDED: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  namespaces: [['spec', 'finalizers']],
  services: [
    ['spec', 'clusterIPs'],
    ['spec', 'ipFamilies'],
  ],
  'servicecidrs.networking.k8s.io': [['metadata', 'finalizers']],
};

const row = emptyRow();

/** Stores an object if there is none of its name; calls `done` with whether it was made. */
export function ensure(
  world: World,
  object: JsonObject,
  done: (isMade: boolean) => void = () => {},
): void {
  const resource = findKind(stringAt(object, 'apiVersion'), stringAt(object, 'kind'));
  if (resource === undefined) {
    done(false);
    return;
  }
  const served = servedOf(resource);
  const namespace = stringAt(object, 'metadata', 'namespace');
  const key = keyOf(served, namespace, stringAt(object, 'metadata', 'name'));
  if (world.storage.get(key, row)) {
    done(false);
    return;
  }
  const metadata = orderedMetadata({
    ...objectAt(object, 'metadata'),
    uid: world.edge.uuid(),
    creationTimestamp: timestamp(world.edge.nowMs()),
    generation: served.counted ? 1 : numberAt(object, 'metadata', 'generation'),
  });
  const { kind, apiVersion, metadata: _, ...rest } = object;
  const whole: JsonObject = { kind: kind ?? '', apiVersion: apiVersion ?? '', metadata, ...rest };
  applyDefaults(whole);
  own(whole, served, world.edge.nowMs());
  world.storage.put(key, encodeCanonical(whole), EXPECT_ABSENT, (outcome) => {
    done(outcome.kind === 'done');
  });
}

/** Gives the object its owners, as they would be had it come from a client. */
function own(whole: JsonObject, served: Served, nowMs: number): void {
  const { group, storage } = served.resource;
  if (UNTRACKED.has(storage.name)) return;
  const sent: JsonObject = { ...whole };
  for (const [part, field] of ownMember(ADDED, storage.name) ?? []) {
    const rest = { ...objectAt(sent, part) };
    delete rest[field];
    putMember(sent, part, rest);
  }
  trackOwn(served, sent, nowMs, ownMember(OWNERS, group));
  const managedFields = objectAt(sent, 'metadata')?.['managedFields'];
  if (managedFields === undefined) return;
  whole['metadata'] = { managedFields, ...objectAt(whole, 'metadata') };
}

/**
 * What a server keeps true of itself while it runs, every ten seconds as upstream: the Service
 * `kubernetes` leads to it, the namespaces of the system, the network of services and what others
 * read of it are there, and a lease in kube-system says that it lives.
 */
import { ownMember } from '@megaplane/base/members';
import { encodeCanonical } from '@megaplane/machinery/canonical';
import { equals, listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { findKind } from '@megaplane/machinery/kinds';
import { systemNamespaces } from './bootstrap.ts';
import { ensure } from '../registry/rest/missing-objects.ts';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, keyOf, rangeOf, servedOf } from '../storage/served.ts';
import { emptyRow } from '../storage/storage.ts';
import type { World } from '../lister/world.ts';
import type { ServerIdentity } from './server-identity.ts';
import { clusterObjects, serverObjects, type BootstrapFacts } from './server-objects.ts';
import { timestamp } from '../timestamp.ts';

export const UPKEEP_MS = 10_000;
/** A server whose lease is older is gone; its lease goes, too. */
const LEASE_SECONDS = 3600;
const NAMESPACE = 'kube-system';
const LABEL = 'apiserver.kubernetes.io/identity';
const IDENTITY = 'kube-apiserver';

const row = emptyRow();

/** Looks once. What conflicts with others is looked at again the next time. */
export function upkeepSelf(world: World, facts: BootstrapFacts, identity: ServerIdentity): void {
  for (const namespace of systemNamespaces()) ensure(world, namespace);
  for (const object of serverObjects(facts)) {
    ensure(world, object);
    if (object['kind'] !== 'Service' && !world.storage.isShared) follow(world, object);
  }
  const startedAt = timestamp(world.edge.nowMs());
  const now = facts.startedAt === undefined ? facts : { ...facts, startedAt };
  for (const object of clusterObjects(now)) ensure(world, object);
  addSecondRange(world, facts.serviceRanges ?? []);
  renew(world, identity);
  removeOld(world);
}

/** Where the server moved, what leads to it moves, too. Several servers have leases for that. */
function follow(world: World, wanted: JsonObject): void {
  const resource = findKind(stringAt(wanted, 'apiVersion'), stringAt(wanted, 'kind'));
  if (resource === undefined) return;
  const served = servedOf(resource);
  const key = keyOf(served, stringAt(wanted, 'metadata', 'namespace'), 'kubernetes');
  if (!world.storage.get(key, row)) return;
  const stored = decodeRow(served, row, row.modRevision);
  const { metadata: _, ...content } = wanted;
  const isSame = Object.entries(content).every(([name, value]) =>
    equals(ownMember(stored, name), value),
  );
  if (isSame) return;
  const next = { ...stored, ...content };
  world.storage.put(key, encodeCanonical(next), row.modRevision, () => {});
}

/** A cluster that got a second family tells of both; other changes are the administrator's. */
function addSecondRange(world: World, ranges: readonly string[]): void {
  const served = findServed('networking.k8s.io', 'v1', 'servicecidrs');
  if (served === undefined || ranges.length < 2) return;
  const key = keyOf(served, '', 'kubernetes');
  if (!world.storage.get(key, row)) return;
  const stored = decodeRow(served, row, row.modRevision);
  const cidrs = listAt(stored, 'spec', 'cidrs');
  if (cidrs.length !== 1 || cidrs[0] !== ranges[0]) return;
  const next = { ...stored, spec: { cidrs: [...ranges] } };
  world.storage.put(key, encodeCanonical(next), row.modRevision, () => {});
}

function renew(world: World, { id, holder, hostname }: ServerIdentity): void {
  const served = findServed('coordination.k8s.io', 'v1', 'leases');
  if (served === undefined) return;
  const renewTime = new Date(world.edge.nowMs()).toISOString().replace('Z', '000Z');
  const key = keyOf(served, NAMESPACE, id);
  const labels = { [LABEL]: IDENTITY, 'kubernetes.io/hostname': hostname };
  const spec = { holderIdentity: holder, leaseDurationSeconds: LEASE_SECONDS, renewTime };
  if (!world.storage.get(key, row)) {
    const metadata = { name: id, namespace: NAMESPACE, labels };
    ensure(world, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
    return;
  }
  const stored = decodeRow(served, row, row.modRevision);
  const metadata = { ...objectAt(stored, 'metadata'), labels };
  const next = encodeCanonical({ ...stored, metadata, spec });
  world.storage.put(key, next, row.modRevision, () => {});
}

function removeOld(world: World): void {
  const served = findServed('coordination.k8s.io', 'v1', 'leases');
  if (served === undefined) return;
  const { start, end } = rangeOf(served, NAMESPACE);
  const nowMs = world.edge.nowMs();
  const old: { readonly name: string; readonly revision: number }[] = [];
  world.storage.page(start, end, 0, (one) => {
    const lease = decodeRow(served, one, one.modRevision);
    if (objectAt(lease, 'metadata', 'labels')?.[LABEL] !== IDENTITY) return true;
    const endMs =
      Date.parse(stringAt(lease, 'spec', 'renewTime')) +
      numberAt(lease, 'spec', 'leaseDurationSeconds') * 1000;
    if (!(endMs > nowMs)) {
      old.push({ name: stringAt(lease, 'metadata', 'name'), revision: one.modRevision });
    }
    return true;
  });
  for (const { name, revision } of old) {
    world.storage.delete(keyOf(served, NAMESPACE, name), revision, () => {});
  }
}

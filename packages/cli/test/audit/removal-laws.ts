/** In which order things go: what belongs to a namespace, and what belongs to an owner. */
import { listAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { Audit } from './auditor.ts';
import { ownersOf, type Change, type Sight } from './cluster-record.ts';

export function removalLaws(audit: Audit, change: Change): void {
  const { sight, before, isGone, wasGoing } = change;
  if (before === undefined) return arrives(audit, sight);
  if (isGone) gone(audit, sight, before);
  if (!wasGoing && (isGone || sight.isGoing)) leaves(audit, sight);
}

/** Nothing comes into a namespace that goes, nor into one that is not there. */
function arrives(audit: Audit, sight: Sight): void {
  if (sight.namespace === '') return;
  audit.check(
    audit.record.namespace(sight.namespace)?.isGoing === false,
    () => `${sight.title} comes into a namespace that goes`,
  );
}

function gone(audit: Audit, sight: Sight, before: JsonObject): void {
  const { record } = audit;
  if (sight.kind === 'Namespace') {
    const left = [...record.inNamespace(sight.name)].map(({ title }) => title);
    audit.check(left.length === 0, () => `${sight.title} is gone before ${left.join(', ')}`);
  }
  if (!listAt(before, 'metadata', 'finalizers').includes('foregroundDeletion')) return;
  // Who does not want to wait any more asks again.
  if (audit.policyOf(sight) === 'Background') return;
  for (const dependent of record.ownedBy(sight.uid)) {
    const owners = listAt(dependent.object, 'metadata', 'ownerReferences') as JsonObject[];
    const isBlocking = owners.some(
      (one) => one['uid'] === sight.uid && one['blockOwnerDeletion'] === true,
    );
    audit.check(!isBlocking, () => `${sight.title} is gone before ${dependent.title}`);
  }
}

function leaves(audit: Audit, sight: Sight): void {
  const { record } = audit;
  const namespace = record.namespace(sight.namespace);
  const owners = ownersOf(sight);
  if (namespace?.isGoing === true) {
    if (sight.kind === 'Pod' || owners.length > 0) return;
    // A namespace's pods go first, and the rest when there are none.
    const pods = [...record.inNamespace(sight.namespace)].filter(({ kind }) => kind === 'Pod');
    audit.check(pods.length === 0, () => `${sight.title} goes before ${pods[0]?.title}`);
    return;
  }
  // Pods and replica sets have masters of their own beside the garbage collector.
  if (owners.length === 0 || sight.kind === 'Pod' || sight.kind === 'ReplicaSet') return;
  if (sight.kind === 'ControllerRevision' || sight.kind === 'EndpointSlice') return;
  const living = owners.map((uid) => record.withUid(uid)).filter((one) => one?.isGoing === false);
  audit.check(
    living.length === 0 || audit.policyOf(sight) !== undefined,
    () => `${sight.title} is collected, and ${living[0]?.title} lives`,
  );
}

/** What a row of the pod table says of who the pod is: interned, and counted by its users. */
import type { Identities } from './identities.ts';
import type { PodFacts } from './pod-facts.ts';
import type { PodTable } from './pod-table.ts';

/** Takes over what the facts hold, or nothing; what the row held is released. */
export function takeIdentity(
  pods: PodTable,
  identities: Identities,
  id: number,
  facts: PodFacts | null,
): void {
  const fresh = facts ?? identities.nobody;
  if (facts === null) identities.retain(fresh);
  if (pods.known.get(id) === 1) {
    identities.release({
      podClass: pods.podClass.get(id),
      labels: pods.labels.get(id),
      namespace: pods.namespace.get(id),
      owner: pods.owner.get(id),
    });
  }
  pods.known.set(id, 1);
  pods.podClass.set(id, fresh.podClass);
  pods.labels.set(id, fresh.labels);
  pods.namespace.set(id, fresh.namespace);
  pods.owner.set(id, fresh.owner);
}

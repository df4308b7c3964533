/** What a row of the pod table says of who the pod is: interned, and counted by its users. */
import type { Identities } from './identities.ts';
import type { PodObject } from './objects.ts';
import { createPodClass } from './pod-class.ts';
import type { PodFacts } from './pod-facts.ts';
import type { PodTable } from './pod-table.ts';

/** What a row stands for between two pods. */
const NOTHING: PodObject = { metadata: { name: '' }, spec: {} };

/** Takes over what the facts hold, or nothing; what the row held is released. */
export function takeIdentity(
  pods: PodTable,
  identities: Identities,
  id: number,
  facts: PodFacts | null,
): void {
  const fresh = facts ?? {
    podClass: identities.classes.acquire('', () => createPodClass(NOTHING, -1)),
    labels: identities.acquireLabels({}),
    namespace: identities.acquireNamespace(''),
    owner: identities.acquireOwner(undefined),
  };
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

/**
 * Which pods are touched by terms that others bring: inter-pod affinity of placed pods, and the
 * spreading that profiles apply by default. Pods that nothing touches are decided by the index.
 */
import type { LabelSelector } from '@megaplane/machinery/selectors';
import type { Identities } from './identities.ts';
import type { ObjectStore } from './object-store.ts';
import type { PodTerm } from './pod-info.ts';
import { PodInfo } from './pod-info.ts';
import { termMatches } from './plugins/inter-pod-affinity.ts';
import { PodTopologySpread } from './plugins/pod-topology-spread.ts';
import type { PodTable } from './pod-table.ts';
import type { Profile } from './profile.ts';

interface Bearer {
  readonly terms: readonly PodTerm[];
  pods: number;
}

/** What touches a pod from outside of its spec. */
export interface Touch {
  /** Something that only full evaluation knows; empty if there is nothing. */
  readonly other: string;
  /** Siblings, from which the pod is kept apart by default: over hosts and zones, softly. */
  readonly siblings: LabelSelector | null;
}

const UNTOUCHED: Touch = { other: '', siblings: null };

/** Answers remembered at most, before all are forgotten. */
const MEMO_MAX = 100_000;

export class TermWatch {
  readonly #identities: Identities;
  readonly #objects: ObjectStore;
  /** By class and namespace of placed pods with terms. */
  readonly #bearers = new Map<string, Bearer>();
  readonly #memo = new Map<number | string, Touch>();
  #version = 0;
  /** A sum of counters that only grow: it stays the same only if all of them do. */
  #memoStamp = 0;

  constructor(identities: Identities, objects: ObjectStore) {
    this.#identities = identities;
    this.#objects = objects;
  }

  /** A pod took a node (`delta` 1) or left it (-1). */
  count(podClass: number, namespace: number, delta: 1 | -1): void {
    const { hasPodTerms, template } = this.#identities.classes.get(podClass);
    if (!hasPodTerms) return;
    const key = `${podClass} ${namespace}`;
    const bearer = this.#bearers.get(key);
    if (bearer !== undefined) {
      bearer.pods += delta;
      if (bearer.pods > 0) return;
      this.#bearers.delete(key);
    } else {
      const name = this.#identities.namespaces.get(namespace);
      const info = new PodInfo({ ...template, metadata: { name: '', namespace: name } });
      const terms = [
        ...info.requiredAffinity,
        ...info.requiredAntiAffinity,
        ...info.preferredAffinity,
        ...info.preferredAntiAffinity,
      ];
      this.#bearers.set(key, { terms, pods: 1 });
    }
    this.#version++;
  }

  touches(id: number, pods: PodTable, profile: Profile): Touch {
    const { classes, labels, namespaces, owners } = this.#identities;
    this.#forgetStale();
    const podClass = pods.podClass.get(id);
    const namespace = pods.namespace.get(id);
    const label = pods.labels.get(id);
    const owner = pods.owner.get(id);
    const key = keyOf(podClass, label, namespace, owner);
    let known = this.#memo.get(key);
    if (known === undefined) {
      const reference = owners.get(owner);
      const info = new PodInfo({
        metadata: {
          name: '',
          namespace: namespaces.get(namespace),
          labels: labels.get(label),
          ...(reference === null ? {} : { ownerReferences: [reference] }),
        },
        spec: classes.get(podClass).template.spec,
      });
      known = this.#touches(info, profile);
      this.#memo.set(key, known);
    }
    return known;
  }

  /** Numbers that were reused, and changes of what others bring, make the answers void. */
  #forgetStale(): void {
    const { classes, labels, namespaces, owners } = this.#identities;
    const epochs = classes.epoch + labels.epoch + namespaces.epoch + owners.epoch;
    const stamp = epochs + this.#version + this.#objects.version;
    if (stamp !== this.#memoStamp || this.#memo.size > MEMO_MAX) this.#memo.clear();
    this.#memoStamp = stamp;
  }

  #touches(pod: PodInfo, profile: Profile): Touch {
    const isOn = (name: string): boolean =>
      profile.weights.has(name) || profile.filter.some((plugin) => plugin.name === name);
    let { siblings } = UNTOUCHED;
    const spread = profile.plugins.get('PodTopologySpread');
    if (spread instanceof PodTopologySpread && isOn('PodTopologySpread')) {
      const [soft] = spread.rulesOf(pod, this.#objects, 'ScheduleAnyway');
      const hard = spread.rulesOf(pod, this.#objects, 'DoNotSchedule');
      if (hard.length > 0) return { other: 'hard spreading by default', siblings: null };
      if (soft !== undefined && !spread.isSystemDefaulted) {
        return { other: 'spreading by a list of the profile', siblings: null };
      }
      siblings = soft?.selector ?? null;
    }
    if (!isOn('InterPodAffinity')) return { other: '', siblings };
    const labels = this.#objects.namespaceLabels(pod.namespace);
    for (const { terms } of this.#bearers.values()) {
      if (!terms.some((term) => termMatches(term, pod, labels))) continue;
      return { other: 'affinity of running pods', siblings };
    }
    return { other: '', siblings };
  }
}

/** A number where the parts are small, as they nearly always are: text costs ten times as much. */
function keyOf(podClass: number, label: number, namespace: number, owner: number): number | string {
  if (podClass < 2 ** 16 && label < 2 ** 16 && namespace < 2 ** 10 && owner < 2 ** 10) {
    return ((podClass * 2 ** 16 + label) * 2 ** 10 + namespace) * 2 ** 10 + owner;
  }
  return `${podClass} ${label} ${namespace} ${owner}`;
}

/**
 * What others have to say about pods, remembered by who the pods are: pods of one make get one
 * answer. Pods that nobody has anything to say about are decided by their class alone.
 */
import { Constraints, constraintsOf } from './constraints.ts';
import { PodCounters } from './pod-counters.ts';
import { TermBook } from './term-book.ts';
import type { Identities } from '../../cache/identities.ts';
import type { NodeTable } from '../../cache/node-table.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import { PodInfo } from '../../framework/pod-info.ts';
import type { PodTable } from '../../cache/pod-table.ts';
import type { Profile } from '../../framework/runtime/profile.ts';

const NONE = new Constraints();

/** Kinds that say which pods belong together, or which namespaces terms mean. */
const REGARDED = [
  'Service',
  'ReplicaSet',
  'StatefulSet',
  'ReplicationController',
  'Namespace',
] as const;

/** Answers remembered at most, before all are forgotten. */
const MEMO_MAX = 100_000;

export class TermWatch {
  readonly counters: PodCounters;
  readonly #identities: Identities;
  readonly #pods: PodTable;
  readonly #objects: ObjectStore;
  readonly #book: TermBook;
  readonly #memo = new Map<number | string, Constraints>();
  /** A sum of counters that only grow: it stays the same only if all of them do. */
  #memoStamp = 0;
  /** Changes of all objects, and of those that are regarded, when that was asked last. */
  #changeCount = 0;
  #regarded = 0;

  constructor(identities: Identities, pods: PodTable, nodes: NodeTable, objects: ObjectStore) {
    this.#identities = identities;
    this.#pods = pods;
    this.#objects = objects;
    this.counters = new PodCounters(identities, pods, nodes);
    this.#book = new TermBook(identities, this.counters);
  }

  /** A pod took a node (`delta` 1) or is about to leave it (-1). */
  count(id: number, delta: 1 | -1): void {
    const pods = this.#pods;
    const podClass = pods.podClass.get(id);
    this.counters.placed(id, delta);
    if (!this.#identities.classes.get(podClass).hasPodTerms) return;
    this.#book.count(podClass, pods.namespace.get(id), pods.node.get(id), delta);
  }

  /** What there is to regard for a pod; empty for most. */
  constraintsOf(id: number, profile: Profile): Constraints {
    const { classes, labels, namespaces, owners } = this.#identities;
    const pods = this.#pods;
    this.#forgetStale();
    const podClass = pods.podClass.get(id);
    const namespace = pods.namespace.get(id);
    const label = pods.labels.get(id);
    const owner = pods.owner.get(id);
    const key = keyOf(podClass, label, namespace, owner);
    let known = this.#memo.get(key);
    if (known === undefined) {
      const reference = owners.get(owner);
      const { template, isNameBound } = classes.get(podClass);
      const info = new PodInfo({
        metadata: {
          name: '',
          namespace: namespaces.get(namespace),
          labels: labels.get(label),
          ...(reference === null ? {} : { ownerReferences: [reference] }),
        },
        spec: template.spec,
      });
      known = constraintsOf(info, profile, isNameBound, {
        counters: this.counters,
        book: this.#book,
        objects: this.#objects,
      });
      if (known.isEmpty && known.slow === '') known = NONE;
      // A counter that was given up for one of these makes all answers void.
      this.#forgetStale();
      this.#memo.set(key, known);
    }
    if (!known.isEmpty) known.prepare(this.counters);
    return known;
  }

  /** Numbers that were reused, and changes of what others bring, make the answers void. */
  #forgetStale(): void {
    const { classes, labels, namespaces, owners } = this.#identities;
    const epochs = classes.epoch + labels.epoch + namespaces.epoch + owners.epoch;
    const own = epochs + this.#book.version + this.counters.version;
    const { changeCount } = this.#objects;
    if (changeCount !== this.#changeCount) {
      this.#changeCount = changeCount;
      this.#regarded = 0;
      for (const kind of REGARDED) this.#regarded += this.#objects.versionOf(kind);
    }
    const stamp = own + this.#regarded;
    if (stamp !== this.#memoStamp || this.#memo.size > MEMO_MAX) this.#memo.clear();
    this.#memoStamp = stamp;
  }
}

/** A number where the parts are small, as they nearly always are: text costs ten times as much. */
function keyOf(podClass: number, label: number, namespace: number, owner: number): number | string {
  if (podClass < 2 ** 16 && label < 2 ** 16 && namespace < 2 ** 10 && owner < 2 ** 10) {
    return ((podClass * 2 ** 16 + label) * 2 ** 10 + namespace) * 2 ** 10 + owner;
  }
  return `${podClass} ${label} ${namespace} ${owner}`;
}

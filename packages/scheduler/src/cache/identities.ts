/** What pods have in common besides their spec: labels, namespaces, controllers; interned. */
import { ownMember } from '@megaplane/base/members';
import { Interner } from '../collections/interner.ts';
import {
  labelsOf,
  type BareLabels,
  type Labels,
  type OwnerReference,
  type PodObject,
} from '../api/objects.ts';
import { NodeClasses } from './node-classes.ts';
import { createPodClass, nodeClassKey, type PodClass } from './pod-class.ts';
import type { Usages } from './usage.ts';

/** Who a pod is, as numbers. */
export interface Identity {
  readonly podClass: number;
  readonly labels: number;
  readonly namespace: number;
  readonly owner: number;
}

const NOBODY: PodObject = { metadata: { name: '' }, spec: {} };
export class Identities {
  readonly classes: Interner<PodClass>;
  readonly labels: Interner<BareLabels> = new Interner();
  readonly namespaces: Interner<string> = new Interner();
  /** Controllers that spreading by default looks at; null stands for all others and for none. */
  readonly owners: Interner<OwnerReference | null> = new Interner();

  /** Of a row between two pods; always in use: a number that goes voids what is kept by it. */
  readonly nobody: Identity;
  /** What of classes counts for one node after another. */
  readonly nodeClasses: NodeClasses = new NodeClasses();

  constructor(usages: Usages) {
    this.classes = new Interner(({ usage, nodeClass }) => {
      if (usage >= 0) usages.release(usage);
      this.nodeClasses.release(nodeClass);
    });
    this.nobody = {
      podClass: this.classes.acquire('', () => createPodClass(NOBODY, -1)),
      labels: this.acquireLabels({}),
      namespace: this.acquireNamespace(''),
      owner: this.acquireOwner(undefined),
    };
  }

  /** One more user of each of its parts. */
  retain({ podClass, labels, namespace, owner }: Identity): void {
    this.classes.retain(podClass);
    this.labels.retain(labels);
    this.namespaces.retain(namespace);
    this.owners.retain(owner);
  }

  /** `template` is a pod without node and metadata (`templateOf`). */
  acquireClass(template: PodObject): number {
    const key = JSON.stringify(template.spec);
    return this.classes.acquire(key, () =>
      createPodClass(template, this.nodeClasses.acquire(nodeClassKey(template))),
    );
  }

  acquireLabels(labels: Labels): number {
    const keys = Object.keys(labels).toSorted();
    const text = JSON.stringify(keys.map((key) => [key, ownMember(labels, key)]));
    return this.labels.acquire(text, () => labelsOf(labels));
  }

  acquireNamespace(name: string): number {
    return this.namespaces.acquire(name, () => name);
  }

  acquireOwner(references: readonly OwnerReference[] | undefined): number {
    const owner = references?.find(({ controller }) => controller === true);
    if (owner === undefined || !SPREADING_OWNERS.has(owner.kind)) {
      return this.owners.acquire('', () => null);
    }
    const { apiVersion = '', kind, name } = owner;
    const value = { apiVersion, kind, name, controller: true };
    return this.owners.acquire(`${apiVersion} ${kind} ${name}`, () => value);
  }

  acquire(pod: PodObject, template: PodObject): Identity {
    const { labels = {}, namespace = 'default', ownerReferences } = pod.metadata;
    return {
      podClass: this.acquireClass(template),
      labels: this.acquireLabels(labels),
      namespace: this.acquireNamespace(namespace),
      owner: this.acquireOwner(ownerReferences),
    };
  }

  release({ podClass, labels, namespace, owner }: Identity): void {
    this.classes.release(podClass);
    this.labels.release(labels);
    this.namespaces.release(namespace);
    this.owners.release(owner);
  }
}

const SPREADING_OWNERS = new Set(['ReplicationController', 'ReplicaSet', 'StatefulSet']);

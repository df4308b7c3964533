/**
 * The tables as the evaluator wants to see them: nodes and pods as objects, made when they are
 * asked for. For pods that the ranked index does not cover; costs a kilobyte a node while in use.
 */
import { DeviceLedger } from '../dynamicresources/device-ledger.ts';
import type { Identities } from '../cache/identities.ts';
import type { ImageState } from '../framework/node-info.ts';
import { NodeInfo } from '../framework/node-info.ts';
import { matchableOf } from '../cache/node-facts.ts';
import type { Matchable } from '../api/node-selector.ts';
import type { NodeTable } from '../cache/node-table.ts';
import { NodeTree } from '../framework/node-tree.ts';
import type { KubeObject, Labels, NodeObject, PodObject } from '../api/objects.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { EVICTED, type PodTable } from '../cache/pod-table.ts';
import { uidText } from '../api/pod-uid.ts';
import type { Snapshot } from '../framework/snapshot.ts';

const LEAVING = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };

/** What the tables do not hold of a pod. */
export interface PodNames {
  /** `namespace/name` of a row. */
  keyOf(id: number): string;
  /** status.nominatedNodeName, or empty. */
  nominatedNode(id: number): string;
  /** status.resourceClaimStatuses. */
  claimStatuses(id: number): ClaimStatuses | undefined;
}

export type ClaimStatuses = NonNullable<PodObject['status']>['resourceClaimStatuses'];

export class ClusterView implements Snapshot {
  readonly #nodes: NodeTable;
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #objects: ObjectStore;
  readonly #names: PodNames;
  /** Of the last decision. */
  nowMs = 0;
  readonly #ledger: DeviceLedger;
  readonly #tree = new NodeTree();
  readonly #infos = new Map<string, NodeInfo>();
  readonly #siblings = new Map<number, PodInfo>();
  readonly #rows = new Map<string, number>();
  #cursor = -1;
  #epoch = -1;
  #list: readonly NodeInfo[] = [];

  constructor(
    nodes: NodeTable,
    pods: PodTable,
    identities: Identities,
    objects: ObjectStore,
    names: PodNames,
  ) {
    this.#nodes = nodes;
    this.#pods = pods;
    this.#identities = identities;
    this.#objects = objects;
    this.#names = names;
    this.#ledger = new DeviceLedger(objects, nodes);
  }

  /** Takes in all changes. */
  refresh(): void {
    const { log } = this.#nodes;
    if (this.#cursor === log.end) return;
    if (this.#cursor < 0 || !log.holds(this.#cursor)) {
      for (let id = 0; id < this.#nodes.idEnd; id++) this.#take(id);
    } else {
      const changed = new Set<number>();
      for (let position = this.#cursor; position < log.end; position++)
        changed.add(log.at(position));
      for (const id of changed) this.#take(id);
    }
    this.#dropGone();
    this.#cursor = log.end;
    this.#list = this.#tree.list().flatMap((name) => this.#infos.get(name) ?? []);
  }

  /** Lets go of everything; the next `refresh` starts anew. */
  clear(): void {
    this.#infos.clear();
    this.#siblings.clear();
    this.#rows.clear();
    this.#list = [];
    this.#cursor = -1;
  }

  get nodes(): readonly NodeInfo[] {
    return this.#list;
  }

  node(name: string): NodeInfo | undefined {
    return this.#infos.get(name);
  }

  namespaceLabels(name: string): Labels | undefined {
    return this.#objects.namespaceLabels(name);
  }

  get namespaces(): Iterable<string> {
    return this.#objects.namespaces;
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#objects.object(kind, key);
  }

  objects(kind: string): Iterable<KubeObject> {
    return this.#objects.objects(kind);
  }

  /** All devices, and what is taken of them, as of now. */
  get devices(): DeviceLedger {
    this.#ledger.catchUp();
    return this.#ledger;
  }

  /** The row of a pod that a decision named. */
  rowOf(key: string): number {
    return this.#rows.get(key) ?? -1;
  }

  /** A pod of the tables as an object; its spec is its class's. */
  podAt(id: number): PodInfo {
    const pods = this.#pods;
    const classId = pods.podClass.get(id);
    const { template } = this.#identities.classes.get(classId);
    const namespace = this.#identities.namespaces.get(pods.namespace.get(id));
    const key = this.#names.keyOf(id);
    const owner = this.#identities.owners.get(pods.owner.get(id));
    const node = pods.node.get(id);
    const startMs = pods.startMs.get(id);
    const nominated = this.#names.nominatedNode(id);
    const claims = this.#names.claimStatuses(id);
    const uid = uidText(pods, id);
    const pod: PodObject = {
      metadata: {
        name: key.slice(namespace.length + 1),
        namespace,
        ...(uid === '' ? {} : { uid }),
        labels: this.#identities.labels.get(pods.labels.get(id)),
        ...(owner === null ? {} : { ownerReferences: [owner] }),
        ...(pods.isTerminating.get(id) > 0 ? { deletionTimestamp: 'set' } : {}),
      },
      spec: node < 0 ? template.spec : { ...template.spec, nodeName: this.#nodes.nameOf(node) },
      status: {
        ...(startMs === 0 ? {} : { startTime: new Date(startMs).toISOString() }),
        ...(nominated === '' ? {} : { nominatedNodeName: nominated }),
        ...(claims === undefined ? {} : { resourceClaimStatuses: claims }),
        ...(pods.isTerminating.get(id) === EVICTED ? { conditions: [LEAVING] } : {}),
      },
    };
    this.#rows.set(key, id);
    // On its node a pod counts for what it has there, which a resize may have made another amount.
    const usage = node < 0 ? -1 : pods.usage.get(id);
    if (usage >= 0 && usage !== this.#identities.classes.get(classId).usage) {
      return new PodInfo(pod, this.#nodes.usages.requestsOf(usage));
    }
    const info = new PodInfo(pod, this.#siblingOf(classId));
    this.#siblings.set(classId, info);
    return info;
  }

  /** A pod of the class, for those who look at its spec alone. */
  anyOf(classId: number): PodInfo {
    const { spec } = this.#identities.classes.get(classId).template;
    return this.#siblingOf(classId) ?? new PodInfo({ metadata: { name: '' }, spec });
  }

  /** A pod of the class that was made before; numbers of classes are reused. */
  #siblingOf(classId: number): PodInfo | undefined {
    if (this.#epoch !== this.#identities.classes.epoch) {
      this.#epoch = this.#identities.classes.epoch;
      this.#siblings.clear();
    }
    return this.#siblings.get(classId);
  }

  /** Name and labels of a node. */
  matchableAt(id: number): Matchable {
    const { kinds, kind } = this.#nodes;
    return matchableOf(kinds.get(kind.get(id)), this.#nodes.nameOf(id));
  }

  /** What the tables hold of a node, as an object. */
  nodeObjectAt(id: number): NodeObject {
    const table = this.#nodes;
    const kind = table.kinds.get(table.kind.get(id));
    const { allocatable } = table.sizes.get(table.size.get(id));
    const name = table.nameOf(id);
    const { labels } = this.matchableAt(id);
    return {
      metadata: { name, labels },
      spec: { taints: kind.taints, unschedulable: kind.isCordoned },
      status: { allocatable, declaredFeatures: kind.features },
    };
  }

  /** A node of the tables, without its pods. */
  bareNodeAt(id: number): NodeInfo {
    return new NodeInfo(this.nodeObjectAt(id), this.#imagesOf(id));
  }

  /** A node of the tables, with its pods. */
  nodeAt(id: number): NodeInfo {
    const info = this.bareNodeAt(id);
    for (let pod = this.#nodes.firstPod.get(id); pod >= 0; pod = this.#pods.next.get(pod)) {
      info.addPod(this.podAt(pod));
    }
    return info;
  }

  #take(id: number): void {
    if (!this.#nodes.isPresent(id)) return;
    const info = this.nodeAt(id);
    this.#infos.set(info.name, info);
    this.#tree.set(info.name, info.labels);
  }

  #imagesOf(id: number): ReadonlyMap<string, ImageState> {
    return this.#nodes.images.statesOf(this.#nodes.imageSet.get(id));
  }

  #dropGone(): void {
    if (this.#infos.size === this.#nodes.count) return;
    for (const name of this.#infos.keys()) {
      const id = this.#nodes.find(name);
      if (id >= 0 && this.#nodes.isPresent(id)) continue;
      this.#infos.delete(name);
      this.#tree.delete(name);
    }
  }
}

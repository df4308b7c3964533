/**
 * A shard's nodes with their pods, and all objects of other kinds, as the root of a live scheduler
 * tells of them. Nodes and pods go by the root's numbers: names come again, numbers of what is
 * there do not.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import { ObjectStore } from '../cache/object-store.ts';
import { DeviceLedger } from '../dynamicresources/device-ledger.ts';
import type { KubeObject, Labels, NodeObject, PodObject } from '../api/objects.ts';
import { NodeInfo, type ImageState } from '../framework/node-info.ts';
import { PodInfo, type PodSums } from '../framework/pod-info.ts';
import type { Snapshot } from '../framework/snapshot.ts';
import type { StateChange } from './protocol/state.ts';
import { sumsOf } from './protocol/sums.ts';

/** Specs that are known by their bytes; then all are read anew. */
export const SPECS_MAX = 16_384;

interface PlacedPod {
  readonly node: number;
  readonly key: string;
}

interface ImageRecord {
  sizeBytes: number;
  nodes: number;
}

/** Whose devices are whose, every plugin finds out by itself here. */
const NOBODY = {
  idEnd: 0,
  nameOf: () => '',
  find: () => -1,
  isPresent: () => false,
  log: { append: () => {} },
};

export class ShareTables implements Snapshot {
  nowMs = 0;
  /** Of the whole cluster, as of the try that the root is at. */
  nodeCount = 0;
  /** Of the rounds that are answered; 0: none are. */
  epoch = 0;
  #objects = new ObjectStore();
  #ledger = new DeviceLedger(this.#objects, NOBODY);
  readonly #byId = new Map<number, NodeInfo>();
  readonly #byName = new Map<string, NodeInfo>();
  readonly #pods = new Map<number, PlacedPod>();
  /** Rows of the pods on each node. */
  readonly #rows = new Map<number, Set<number>>();
  readonly #images = new Map<string, ImageRecord>();
  readonly #specs = new Map<string, PodInfo>();
  #list: readonly NodeInfo[] | null = null;

  /** In the order in which the root has told of them. */
  get nodes(): readonly NodeInfo[] {
    this.#list ??= [...this.#byId.values()];
    return this.#list;
  }

  get size(): number {
    return this.#byId.size;
  }

  get podCount(): number {
    return this.#pods.size;
  }

  node(name: string): NodeInfo | undefined {
    return this.#byName.get(name);
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

  get devices(): DeviceLedger {
    this.#ledger.catchUp();
    return this.#ledger;
  }

  /** Takes in what the root says has changed; false where a live root says no such thing. */
  take(change: StateChange): boolean {
    switch (change.kind) {
      case 'node':
        this.#setNode(change.id, objectOf(change.object) as NodeObject, change.imageNames);
        return true;
      case 'nodeGone':
        this.#dropNode(change.id);
        return true;
      case 'pod':
        this.#setPod(change);
        return true;
      case 'podGone':
        this.#dropPod(change.row);
        return true;
      case 'image':
        this.#setImage(change.name, change);
        return true;
      case 'object':
        this.#objects.set(change.objectKind, objectOf(change.object) as KubeObject);
        return true;
      case 'delete':
        this.#objects.delete(change.objectKind, change.key);
        return true;
      case 'epoch':
        this.epoch = change.number;
        if (change.number === 0) this.#clear();
        return true;
      case 'apply':
      case 'images':
      case 'order':
        return false;
    }
  }

  #clear(): void {
    this.#objects = new ObjectStore();
    this.#ledger = new DeviceLedger(this.#objects, NOBODY);
    for (const known of [this.#byId, this.#byName, this.#pods, this.#rows]) known.clear();
    this.#images.clear();
    this.#list = null;
  }

  #setNode(id: number, node: NodeObject, imageNames: readonly string[]): void {
    const images = new Map(imageNames.map((name) => [name, this.#imageOf(name)]));
    const before = this.#byId.get(id);
    const after = before?.withNode(node, images) ?? new NodeInfo(node, images);
    if (before !== undefined) this.#byName.delete(before.name);
    this.#put(id, after);
  }

  #put(id: number, node: NodeInfo): void {
    this.#byId.set(id, node);
    this.#byName.set(node.name, node);
    this.#list = null;
  }

  #dropNode(id: number): void {
    const node = this.#byId.get(id);
    if (node === undefined) return;
    this.#byId.delete(id);
    this.#byName.delete(node.name);
    this.#list = null;
    for (const row of this.#rows.get(id) ?? []) this.#pods.delete(row);
    this.#rows.delete(id);
  }

  #setPod({ row, node: id, object, spec, sums }: StateChange & { kind: 'pod' }): void {
    this.#dropPod(row);
    const node = this.#byId.get(id);
    // of a node that is not here: the root tells of the pod again when it tells of the node
    if (node === undefined) return;
    const { metadata, status } = objectOf(object) as PodObject;
    const known = this.#siblingOf(textOf(spec));
    const pod: PodObject = {
      metadata,
      spec: { ...known.pod.spec, nodeName: node.name },
      ...(status === undefined ? {} : { status }),
    };
    const sibling: PodSums = sums.length === 0 ? known : sumsOf(sums);
    const info = new PodInfo(pod, sibling);
    node.addPod(info);
    this.#pods.set(row, { node: id, key: info.key });
    const rows = this.#rows.get(id);
    if (rows === undefined) this.#rows.set(id, new Set([row]));
    else rows.add(row);
  }

  #siblingOf(text: string): PodInfo {
    const known = this.#specs.get(text);
    if (known !== undefined) return known;
    if (this.#specs.size >= SPECS_MAX) this.#specs.clear();
    const spec = parseJson(text) as PodObject['spec'];
    const made = new PodInfo({ metadata: { name: '' }, spec });
    this.#specs.set(text, made);
    return made;
  }

  #dropPod(row: number): void {
    const placed = this.#pods.get(row);
    if (placed === undefined) return;
    this.#pods.delete(row);
    this.#rows.get(placed.node)?.delete(row);
    const node = this.#byId.get(placed.node);
    const pod = node?.removePod(placed.key);
    if (node === undefined || pod === undefined || pod.ports.length === 0) return;
    // another pod may have the same port, which is taken then
    const anew = new NodeInfo(node.node, node.images, node);
    for (const other of node.pods) anew.addPod(other);
    this.#put(placed.node, anew);
  }

  #imageOf(name: string): ImageRecord {
    let record = this.#images.get(name);
    if (record === undefined) this.#images.set(name, (record = { sizeBytes: 0, nodes: 0 }));
    return record;
  }

  /** Nodes hold the records themselves, and so know at once. */
  #setImage(name: string, { sizeBytes, nodes }: ImageState): void {
    const record = this.#imageOf(name);
    record.sizeBytes = sizeBytes;
    record.nodes = nodes;
    if (nodes === 0) this.#images.delete(name);
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

function objectOf(bytes: Uint8Array): unknown {
  return parseJson(textOf(bytes));
}

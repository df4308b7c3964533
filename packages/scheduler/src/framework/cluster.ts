/**
 * A cluster for the evaluator: plain objects by kind, nodes with their pods, nominations. Small and
 * slow on purpose; `node-table.ts` is the one for a million nodes.
 */
import type { KubeObject, Labels, NodeObject, PodObject } from '../api/objects.ts';
import { keyOf } from '../api/objects.ts';
import { NodeInfo, type ImageState } from './node-info.ts';
import { NodeTree } from './node-tree.ts';
import { PodInfo } from './pod-info.ts';
import type { Snapshot } from './snapshot.ts';

interface ImageRecord {
  readonly sizeBytes: number;
  readonly nodes: Set<string>;
}

const NO_IMAGES: ReadonlyMap<string, ImageState> = new Map();

/** Pods in these phases take no room. */
const ENDED = new Set(['Succeeded', 'Failed']);

export class Cluster implements Snapshot {
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #nodes = new Map<string, NodeInfo>();
  readonly #tree = new NodeTree();
  /** Pods on nodes that are not there (yet, or any more). */
  readonly #strays = new Map<string, PodInfo[]>();
  readonly #pods = new Map<string, PodInfo>();
  readonly #images = new Map<string, ImageRecord>();
  /** Nodes whose entry changed since the last `refresh`. */
  readonly #changed = new Set<string>();
  readonly #hasFreshImages: boolean;
  /** Of each node, where somebody else counts them; null: they are counted here. */
  readonly #givenImages: Map<string, ReadonlyMap<string, ImageState>> | null;
  #list: string[] = [];
  #snapshot: NodeInfo[] = [];
  nowMs = 0;

  /**
   * `hasFreshImages`: nodes know at once on how many nodes their images are. Upstream's find out
   * only when something about themselves changes. `areImagesGiven`: this is a share of a cluster,
   * and what its nodes know of images comes by `setImages`.
   */
  constructor(hasFreshImages = false, areImagesGiven = false) {
    this.#hasFreshImages = hasFreshImages;
    this.#givenImages = areImagesGiven ? new Map() : null;
  }

  setImages(node: string, images: ReadonlyMap<string, ImageState>): void {
    this.#givenImages?.set(node, images);
    this.#changed.add(node);
  }

  get nodes(): readonly NodeInfo[] {
    return this.#snapshot;
  }

  get namespaces(): Iterable<string> {
    return this.#objects.get('Namespace')?.keys() ?? [];
  }

  node(name: string): NodeInfo | undefined {
    return this.#nodes.get(name);
  }

  namespaceLabels(name: string): Labels | undefined {
    const namespace = this.#objects.get('Namespace')?.get(name);
    return namespace === undefined ? undefined : (namespace.metadata.labels ?? {});
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#objects.get(kind)?.get(key);
  }

  objects(kind: string): Iterable<KubeObject> {
    return this.#objects.get(kind)?.values() ?? [];
  }

  /** A pod, whether it runs or waits. */
  pod(key: string): PodInfo | undefined {
    return this.#pods.get(key);
  }

  get pods(): Iterable<PodInfo> {
    return this.#pods.values();
  }

  /** Creates or replaces an object. */
  apply(object: KubeObject): void {
    const kind = object.kind ?? 'Pod';
    if (kind === 'Node') return this.#applyNode(object);
    if (kind === 'Pod') return this.#applyPod(object as PodObject);
    let byKey = this.#objects.get(kind);
    if (byKey === undefined) this.#objects.set(kind, (byKey = new Map()));
    byKey.set(keyOf(object), object);
  }

  delete(kind: string, key: string): void {
    if (kind === 'Node') this.#deleteNode(key);
    else if (kind === 'Pod') this.#removePod(key);
    else this.#objects.get(kind)?.delete(key);
  }

  /** Takes over what changed, as the start of a scheduling cycle does. */
  refresh(): void {
    const listed = new Set(this.#list);
    const isSame = listed.size === this.#nodes.size && listed.isSupersetOf(this.#nodes);
    // Upstream rebuilds the list only when nodes come or go, not when one changes its zone.
    if (!isSame) this.#list = this.#tree.list();
    for (const name of this.#hasFreshImages ? this.#list : this.#changed) {
      const info = this.#nodes.get(name);
      if (info !== undefined) this.#nodes.set(name, info.withNode(info.node, this.#imagesOf(info)));
    }
    this.#changed.clear();
    this.#snapshot = this.#list
      .map((name) => this.#nodes.get(name))
      .filter((node) => node !== undefined);
  }

  #applyNode(node: NodeObject): void {
    const { name } = node.metadata;
    const present = this.#nodes.get(name);
    if (present === undefined) {
      const info = new NodeInfo(node);
      for (const pod of this.#strays.get(name) ?? []) info.addPod(pod);
      this.#strays.delete(name);
      this.#nodes.set(name, info);
    } else {
      this.#forgetImages(present);
      this.#nodes.set(name, present.withNode(node, present.images));
    }
    this.#tree.set(name, node.metadata.labels ?? {});
    this.#recordImages(node);
    this.#changed.add(name);
  }

  #deleteNode(name: string): void {
    const present = this.#nodes.get(name);
    if (present === undefined) return;
    this.#forgetImages(present);
    if (present.pods.length > 0) this.#strays.set(name, present.pods);
    this.#nodes.delete(name);
    this.#tree.delete(name);
  }

  #applyPod(pod: PodObject): void {
    const info = new PodInfo(pod);
    this.#removePod(info.key);
    if (ENDED.has(pod.status?.phase ?? '')) return;
    this.#pods.set(info.key, info);
    if (info.nodeName === '') return;
    const node = this.#nodes.get(info.nodeName);
    this.#changed.add(info.nodeName);
    if (node !== undefined) return node.addPod(info);
    const strays = this.#strays.get(info.nodeName) ?? [];
    this.#strays.set(info.nodeName, [...strays, info]);
  }

  #removePod(key: string): void {
    const pod = this.#pods.get(key);
    if (pod === undefined) return;
    this.#pods.delete(key);
    if (pod.nodeName === '') return;
    this.#nodes.get(pod.nodeName)?.removePod(key);
    this.#changed.add(pod.nodeName);
    const strays = this.#strays.get(pod.nodeName);
    if (strays === undefined) return;
    this.#strays.set(
      pod.nodeName,
      strays.filter((stray) => stray !== pod),
    );
  }

  #recordImages(node: NodeObject): void {
    for (const [name, sizeBytes] of imagesOn(node)) {
      // The size that the first node reported stays as long as any node has the image.
      const record = this.#images.get(name) ?? { sizeBytes, nodes: new Set() };
      record.nodes.add(node.metadata.name);
      this.#images.set(name, record);
    }
  }

  #forgetImages({ node, name: nodeName }: NodeInfo): void {
    for (const [name] of imagesOn(node)) {
      const record = this.#images.get(name);
      record?.nodes.delete(nodeName);
      if (record?.nodes.size === 0) this.#images.delete(name);
    }
  }

  #imagesOf({ name, node }: NodeInfo): ReadonlyMap<string, ImageState> {
    if (this.#givenImages !== null) return this.#givenImages.get(name) ?? NO_IMAGES;
    const states = new Map<string, ImageState>();
    for (const [name] of imagesOn(node)) {
      const record = this.#images.get(name);
      if (record === undefined) continue;
      states.set(name, { sizeBytes: record.sizeBytes, nodes: record.nodes.size });
    }
    return states;
  }
}

function imagesOn(node: NodeObject): [string, number][] {
  return (node.status?.images ?? []).flatMap(({ names = [], sizeBytes = 0 }) =>
    names.map((name): [string, number] => [name, sizeBytes]),
  );
}

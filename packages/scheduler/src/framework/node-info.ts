/** A node with the pods on it, as the evaluator sees it. */
import { labelsOf, type BareLabels, type NodeObject } from '../api/objects.ts';
import type { HostPort, PodInfo } from './pod-info.ts';
import { accumulate, allocatableOf, emptyResources, type Resources } from '../api/resources.ts';

/** What a node knows of an image that it holds. */
export interface ImageState {
  readonly sizeBytes: number;
  /** Nodes that held the image when this node's entry was last written. */
  readonly nodes: number;
}

const portKey = ({ ip, protocol, port }: HostPort): string => `${ip} ${protocol} ${port}`;

export class NodeInfo {
  readonly node: NodeObject;
  readonly name: string;
  readonly labels: BareLabels;
  readonly allocatable: Resources;
  readonly allocatablePods: number;
  readonly images: ReadonlyMap<string, ImageState>;
  pods: PodInfo[] = [];
  readonly requested: Resources = emptyResources();
  readonly requestedNonZero: Resources = emptyResources();
  readonly #ports = new Map<string, HostPort>();

  /** `known`: what the same object was before; it need not be read again. */
  constructor(
    node: NodeObject,
    images: ReadonlyMap<string, ImageState> = new Map(),
    known?: NodeInfo,
  ) {
    this.node = node;
    this.name = node.metadata.name;
    this.labels = labelsOf(node.metadata.labels);
    const { resources, pods } =
      known?.node === node
        ? { resources: known.allocatable, pods: known.allocatablePods }
        : allocatableOf(node.status?.allocatable);
    this.allocatable = resources;
    this.allocatablePods = pods;
    this.images = images;
  }

  addPod(pod: PodInfo): void {
    this.pods.push(pod);
    accumulate(this.requested, pod.requests, 1);
    accumulate(this.requestedNonZero, pod.requestsNonZero, 1);
    for (const port of pod.ports) this.#ports.set(portKey(port), port);
  }

  /**
   * Ports are a set, not counted: of two pods with the same port, the removal of one frees it. That
   * is upstream's behaviour, and shows in preemption.
   */
  removePod(key: string): PodInfo | undefined {
    const index = this.pods.findIndex((pod) => pod.key === key);
    const pod = this.pods[index];
    if (pod === undefined) return undefined;
    // Upstream fills the hole with the last pod.
    const last = this.pods.pop();
    if (last !== undefined && last !== pod) this.pods[index] = last;
    accumulate(this.requested, pod.requests, -1);
    accumulate(this.requestedNonZero, pod.requestsNonZero, -1);
    for (const port of pod.ports) this.#ports.delete(portKey(port));
    return pod;
  }

  /** The same pods under a changed Node object; ports that were freed stay free. */
  withNode(node: NodeObject, images: ReadonlyMap<string, ImageState>): NodeInfo {
    const changed = new NodeInfo(node, images, this);
    for (const pod of this.pods) changed.addPod(pod);
    changed.#ports.clear();
    for (const [key, port] of this.#ports) changed.#ports.set(key, port);
    return changed;
  }

  clone(): NodeInfo {
    return this.withNode(this.node, this.images);
  }

  /** Whether a host port is taken; 0.0.0.0 meets every address, `::` only itself. */
  isPortTaken(wanted: HostPort): boolean {
    for (const { ip, protocol, port } of this.#ports.values()) {
      if (protocol !== wanted.protocol || port !== wanted.port) continue;
      if (ip === wanted.ip || ip === '0.0.0.0' || wanted.ip === '0.0.0.0') return true;
    }
    return false;
  }
}

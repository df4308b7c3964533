/**
 * The cluster for a decision of which others look at the nodes: a node is made when it is asked
 * for. Who asks for all of them pays for all of them.
 */
import type { DeviceLedger } from '../dynamicresources/device-ledger.ts';
import type { KubeObject, Labels } from '../api/objects.ts';
import type { NodeInfo } from '../framework/node-info.ts';
import type { NodeTable } from '../cache/node-table.ts';
import type { Snapshot } from '../framework/snapshot.ts';
import type { ClusterView } from './cluster-view.ts';

export class SpotView implements Snapshot {
  readonly nowMs: number;
  readonly #view: ClusterView;
  readonly #nodes: NodeTable;

  constructor(view: ClusterView, nodes: NodeTable) {
    this.#view = view;
    this.#nodes = nodes;
    this.nowMs = view.nowMs;
  }

  get nodes(): readonly NodeInfo[] {
    this.#view.refresh();
    return this.#view.nodes;
  }

  get nodeCount(): number {
    return this.#nodes.count;
  }

  /** As it is now. */
  node(name: string): NodeInfo | undefined {
    const id = this.#nodes.find(name);
    return id >= 0 && this.#nodes.isPresent(id) ? this.#view.nodeAt(id) : undefined;
  }

  namespaceLabels(name: string): Labels | undefined {
    return this.#view.namespaceLabels(name);
  }

  get namespaces(): Iterable<string> {
    return this.#view.namespaces;
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#view.object(kind, key);
  }

  objects(kind: string): Iterable<KubeObject> {
    return this.#view.objects(kind);
  }

  get devices(): DeviceLedger {
    return this.#view.devices;
  }
}

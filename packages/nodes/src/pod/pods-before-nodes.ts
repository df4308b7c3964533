/**
 * Pods that are bound to nodes this simulator has not heard of yet.
 *
 * Nodes and pods come by two watches, so a pod can be seen before its node. Its state is kept until
 * the node comes, up to a limit: nodes that are never ours (other selectors) would fill it.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';

/** Beyond so many the oldest node's pods are forgotten: they are most likely not ours. */
export const EARLY_NODES_MAX = 10_000;
export const EARLY_PODS_PER_NODE_MAX = 256;
/** Of all nodes together: a shard sees the pods of the others, too. */
export const EARLY_PODS_MAX = 20_000;

export class PodsBeforeNodes {
  readonly #byNode: Map<string, JsonObject[]> = new Map();
  #count = 0;

  add(node: string, pod: JsonObject): void {
    const pods = this.#byNode.get(node);
    const isFull = this.#byNode.size >= EARLY_NODES_MAX || this.#count >= EARLY_PODS_MAX;
    const [oldest] = this.#byNode.keys();
    if (isFull && oldest !== undefined && oldest !== node) this.take(oldest);
    if (pods === undefined) this.#byNode.set(node, [pod]);
    else if (pods.length < EARLY_PODS_PER_NODE_MAX) pods.push(pod);
    else return;
    this.#count++;
  }

  /** The pods that waited for a node, in the order they came, each perhaps several times. */
  take(node: string): readonly JsonObject[] {
    const pods = this.#byNode.get(node) ?? [];
    this.#byNode.delete(node);
    this.#count -= pods.length;
    return pods;
  }
}

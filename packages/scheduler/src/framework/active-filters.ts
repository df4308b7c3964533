/** The filters of a cycle with pods put in and taken away, for what-ifs. */
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import type { ActiveFilter } from './plugin.ts';

/** Copies for what-ifs. Filters that cannot count pods are shared. */
export function cloneFilters(filters: readonly ActiveFilter[]): ActiveFilter[] {
  return filters.map(({ plugin, filter }) => ({ plugin, filter: filter.clone?.() ?? filter }));
}

/** Puts a pod on a copied node and tells the copied filters. */
export function addPod(filters: readonly ActiveFilter[], pod: PodInfo, node: NodeInfo): void {
  node.addPod(pod);
  for (const { filter } of filters) filter.addPod?.(pod, node);
}

export function removePod(filters: readonly ActiveFilter[], pod: PodInfo, node: NodeInfo): void {
  node.removePod(pod.key);
  for (const { filter } of filters) filter.removePod?.(pod, node);
}

/** The order in which nodes are examined: one of each zone in turn, zones as first seen. */
import type { Labels } from '../api/objects.ts';

/** The deprecated label wins where both are set. */
function zoneOf(labels: Labels): string {
  const region =
    labels['failure-domain.beta.kubernetes.io/region'] ?? labels['topology.kubernetes.io/region'];
  const zone =
    labels['failure-domain.beta.kubernetes.io/zone'] ?? labels['topology.kubernetes.io/zone'];
  return `${region ?? ''}:\0:${zone ?? ''}`;
}

export class NodeTree {
  readonly #zones = new Map<string, Set<string>>();
  readonly #zoneOf = new Map<string, string>();

  get size(): number {
    return this.#zoneOf.size;
  }

  /** Adds a node, or moves it to the end of another zone when its labels say so. */
  set(name: string, labels: Labels): void {
    const zone = zoneOf(labels);
    if (this.#zoneOf.get(name) === zone) return;
    this.delete(name);
    this.#zoneOf.set(name, zone);
    const nodes = this.#zones.get(zone) ?? new Set();
    nodes.add(name);
    this.#zones.set(zone, nodes);
  }

  delete(name: string): void {
    const zone = this.#zoneOf.get(name);
    if (zone === undefined) return;
    this.#zoneOf.delete(name);
    const nodes = this.#zones.get(zone);
    nodes?.delete(name);
    if (nodes?.size === 0) this.#zones.delete(zone);
  }

  list(): string[] {
    const zones = [...this.#zones.values()].map((nodes) => [...nodes]);
    const names: string[] = [];
    const longest = zones.reduce((most, nodes) => Math.max(most, nodes.length), 0);
    for (let turn = 0; turn < longest; turn++) {
      for (const nodes of zones) {
        const name = nodes[turn];
        if (name !== undefined) names.push(name);
      }
    }
    return names;
  }
}

/** What was so, and cannot be seen any more from what there is. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { Change, Sight } from './cluster-record.ts';

export class Past {
  readonly #readyMs: Map<string, number> = new Map();
  readonly #nodeMs: Map<string, number> = new Map();
  readonly #taintedMs: Map<string, number> = new Map();
  readonly #counted: Set<string> = new Set();

  note({ sight, isGone }: Change, nowMs: number): void {
    switch (sight.kind) {
      case 'Pod':
        if (isGone) this.#readyMs.set(`${sight.controller}/${sight.name}`, sight.readyMs);
        if (isGone) this.#counted.delete(sight.uid);
        break;
      case 'Node':
        if (isGone) this.#nodeMs.set(sight.name, nowMs);
        if (!isEvicting(sight.object)) this.#taintedMs.delete(sight.name);
        else if (!this.#taintedMs.has(sight.name)) this.#taintedMs.set(sight.name, nowMs);
        break;
      case 'Job':
        for (const how of ['succeeded', 'failed']) {
          const uids = listAt(sight.object, 'status', 'uncountedTerminatedPods', how);
          for (const uid of uids) if (typeof uid === 'string') this.#counted.add(uid);
        }
        break;
      default:
    }
  }

  /** When a pod of that name, which is gone, was ready the last time. */
  readyMs(owner: Sight, name: string): number {
    return this.#readyMs.get(`${owner.uid}/${name}`) ?? -Infinity;
  }

  /** When a node that is gone went. */
  nodeMs(name: string): number {
    return this.#nodeMs.get(name) ?? -Infinity;
  }

  /** Since when a node has a taint that evicts. */
  taintedMs(name: string): number {
    return this.#taintedMs.get(name) ?? Infinity;
  }

  /** Whether a Job has written down that this pod ended. */
  wasCounted(uid: string): boolean {
    return this.#counted.has(uid);
  }
}

export function isEvicting(node: JsonObject): boolean {
  return listAt(node, 'spec', 'taints').some((one) => stringAt(one, 'effect') === 'NoExecute');
}

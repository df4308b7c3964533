/** Pods by the PodGroup (`scheduling.k8s.io/v1alpha2`) that they belong to, placed ones too. */
import { assert } from '@megaplane/base/assert';
import type { KubeObject } from '../api/objects.ts';
import type { ObjectStore } from '../cache/object-store.ts';

export interface PodGroupObject extends KubeObject {
  readonly spec?: {
    readonly schedulingPolicy?: {
      readonly basic?: object;
      /** All of at least so many, or none. */
      readonly gang?: { readonly minCount?: number };
    };
  };
}

const NOBODY: ReadonlySet<number> = new Set();

export class PodGroups {
  readonly #objects: ObjectStore;
  readonly #members = new Map<string, Set<number>>();
  readonly #groupOf = new Map<number, string>();

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** `namespace/name` of a pod's group, or empty. */
  groupOf(id: number): string {
    return this.#groupOf.get(id) ?? '';
  }

  membersOf(key: string): ReadonlySet<number> {
    return this.#members.get(key) ?? NOBODY;
  }

  /** `key`: empty for no group. Returns whether the group has one more. */
  set(id: number, key: string): boolean {
    const before = this.groupOf(id);
    if (before === key) return false;
    if (before !== '') {
      const members = this.#members.get(before);
      assert(members?.delete(id) === true, 'a pod is a member of its group');
      if (members.size === 0) this.#members.delete(before);
      this.#groupOf.delete(id);
    }
    if (key === '') return false;
    const members = this.#members.get(key) ?? new Set();
    members.add(id);
    this.#members.set(key, members);
    this.#groupOf.set(id, key);
    return true;
  }

  /** How many of a group must be placed at once; 0: each may go alone. Null: no such group. */
  minCountOf(key: string): number | null {
    const group: PodGroupObject | undefined = this.#objects.object('PodGroup', key);
    if (group === undefined) return null;
    return group.spec?.schedulingPolicy?.gang?.minCount ?? 0;
  }

  /** How many pods of its gang must find a node together with a pod; 0 if it may go alone. */
  missingOf(id: number, isPlaced: (id: number) => boolean): number {
    const group = this.groupOf(id);
    const minCount = group === '' ? 0 : (this.minCountOf(group) ?? 0);
    if (minCount === 0) return 0;
    let placed = 0;
    for (const other of this.membersOf(group)) if (isPlaced(other)) placed++;
    return Math.max(0, minCount - placed);
  }

  /** Why pods of a group are not to be tried; empty if they may be. */
  problemOf(key: string): string {
    const minCount = this.minCountOf(key);
    if (minCount === null) {
      const name = JSON.stringify(key.slice(key.indexOf('/') + 1));
      return `waiting for pods's pod group ${name} to appear in scheduling queue`;
    }
    if (this.membersOf(key).size >= minCount) return '';
    return 'waiting for minCount pods from a gang to appear in scheduling queue';
  }
}

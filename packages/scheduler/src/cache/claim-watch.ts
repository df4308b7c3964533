/** Pods without a node by the claims for devices that they name: who is touched by a change. */

export class ClaimWatch {
  readonly #pods = new Map<string, Set<number>>();
  readonly #keys = new Map<number, readonly string[]>();

  /** `keys`: `namespace/name` of the claims of a pod; none: it is of no concern any more. */
  set(id: number, keys: readonly string[]): void {
    for (const key of this.#keys.get(id) ?? []) {
      const pods = this.#pods.get(key);
      pods?.delete(id);
      if (pods?.size === 0) this.#pods.delete(key);
    }
    if (keys.length === 0) return void this.#keys.delete(id);
    this.#keys.set(id, keys);
    for (const key of keys) {
      const pods = this.#pods.get(key) ?? new Set();
      pods.add(id);
      this.#pods.set(key, pods);
    }
  }

  /** Pods that name a claim. */
  on(key: string): readonly number[] {
    return [...(this.#pods.get(key) ?? [])];
  }
}

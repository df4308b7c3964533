/** Objects of small kinds that placement asks for: services, namespaces, budgets, claims. */
import type { KubeObject, Labels } from './objects.ts';
import { keyOf } from './objects.ts';

export class ObjectStore {
  readonly #kinds = new Map<string, Map<string, KubeObject>>();
  #version = 0;

  /** Counts changes. */
  get version(): number {
    return this.#version;
  }

  set(kind: string, object: KubeObject): void {
    this.#version++;
    let byKey = this.#kinds.get(kind);
    if (byKey === undefined) this.#kinds.set(kind, (byKey = new Map()));
    byKey.set(keyOf(object), object);
  }

  delete(kind: string, key: string): void {
    if (this.#kinds.get(kind)?.delete(key) === true) this.#version++;
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#kinds.get(kind)?.get(key);
  }

  objects(kind: string): Iterable<KubeObject> {
    return this.#kinds.get(kind)?.values() ?? [];
  }

  get namespaces(): Iterable<string> {
    return this.#kinds.get('Namespace')?.keys() ?? [];
  }

  namespaceLabels(name: string): Labels | undefined {
    const namespace = this.#kinds.get('Namespace')?.get(name);
    return namespace === undefined ? undefined : (namespace.metadata.labels ?? {});
  }
}

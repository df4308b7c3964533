/**
 * Objects of small kinds that placement asks for: services, namespaces, budgets, claims. An object
 * may be assumed to be as the scheduler has just made it: then that is what is seen, until the API
 * server shows a newer version.
 */
import type { KubeObject, Labels } from '../api/objects.ts';
import { keyOf, namespaceOf } from '../api/objects.ts';

type ByKey = Map<string, KubeObject>;

/** Objects of a kind by namespace, as of a version of the kind. */
interface Spaces {
  readonly version: number;
  readonly byName: ReadonlyMap<string, readonly KubeObject[]>;
}

const NONE: ReadonlyMap<string, KubeObject> = new Map();

/** Changes of a kind that are kept for those who follow it. */
const CHANGES_MAX = 8192;

/** Resource versions of one server grow. */
function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion ?? 0);
}

function inner(kinds: Map<string, ByKey>, kind: string): ByKey {
  let byKey = kinds.get(kind);
  if (byKey === undefined) kinds.set(kind, (byKey = new Map()));
  return byKey;
}

export class ObjectStore {
  readonly #kinds = new Map<string, ByKey>();
  readonly #assumed = new Map<string, ByKey>();
  /** What the server made of our writes, until its watch shows as much. */
  readonly #answers = new Map<string, ByKey>();
  readonly #versions = new Map<string, number>();
  readonly #spaces = new Map<string, Spaces>();
  /** Keys of the last changes, of kinds that somebody follows. */
  readonly #changes = new Map<string, string[]>();

  /** Counts changes of all kinds. */
  changeCount = 0;

  /** Kinds of which anything has been there. */
  get kinds(): Iterable<string> {
    return this.#versions.keys();
  }

  /** Counts changes of a kind. */
  versionOf(kind: string): number {
    return this.#versions.get(kind) ?? 0;
  }

  /** Keys of what has changed since a version of the kind; null: too much has, or nobody knows. */
  changesSince(kind: string, version: number): readonly string[] | null {
    let changes = this.#changes.get(kind);
    if (changes === undefined) this.#changes.set(kind, (changes = []));
    const count = this.versionOf(kind) - version;
    if (version < 0 || count > changes.length) return null;
    return count === 0 ? [] : changes.slice(-count);
  }

  #changed(kind: string, key: string): void {
    this.changeCount++;
    this.#versions.set(kind, this.versionOf(kind) + 1);
    const changes = this.#changes.get(kind);
    if (changes === undefined) return;
    if (changes.length >= CHANGES_MAX) changes.splice(0, CHANGES_MAX / 2);
    changes.push(key);
  }

  set(kind: string, object: KubeObject): void {
    const key = keyOf(object);
    this.#changed(kind, key);
    inner(this.#kinds, kind).set(key, object);
    const answer = this.#answers.get(kind)?.get(key);
    if (answer !== undefined && versionOf(answer) <= versionOf(object)) {
      this.#answers.get(kind)?.delete(key);
    }
    const assumed = this.#assumed.get(kind)?.get(key);
    if (assumed === undefined || versionOf(assumed) >= versionOf(object)) return;
    this.#assumed.get(kind)?.delete(key);
  }

  delete(kind: string, key: string): void {
    const wasKnown = this.#kinds.get(kind)?.delete(key) === true;
    const wasAssumed = this.#assumed.get(kind)?.delete(key) === true;
    this.#answers.get(kind)?.delete(key);
    if (wasKnown || wasAssumed) this.#changed(kind, key);
  }

  /** Shows an object so until the server shows a newer version than this. */
  assume(kind: string, object: KubeObject): void {
    const key = keyOf(object);
    const known = this.#kinds.get(kind)?.get(key);
    if (known !== undefined && versionOf(known) > versionOf(object)) return;
    this.#changed(kind, key);
    inner(this.#assumed, kind).set(key, object);
  }

  /** The server's answer to a write of ours: shown until its watch shows a newer version. */
  written(kind: string, object: KubeObject): void {
    this.assume(kind, object);
    inner(this.#answers, kind).set(keyOf(object), object);
  }

  /** An object as the server has it, whatever is promised of it: what a write starts from. */
  told(kind: string, key: string): KubeObject | undefined {
    return this.#answers.get(kind)?.get(key) ?? this.#kinds.get(kind)?.get(key);
  }

  /** An object as the watch showed it last, whatever was written since. */
  watched(kind: string, key: string): KubeObject | undefined {
    return this.#kinds.get(kind)?.get(key);
  }

  /** Shows again what the server said last. */
  restore(kind: string, key: string): void {
    if (this.#assumed.get(kind)?.delete(key) === true) this.#changed(kind, key);
  }

  object(kind: string, key: string): KubeObject | undefined {
    return this.#assumed.get(kind)?.get(key) ?? this.#kinds.get(kind)?.get(key);
  }

  *objects(kind: string): Iterable<KubeObject> {
    const assumed = this.#assumed.get(kind) ?? NONE;
    for (const [key, object] of this.#kinds.get(kind) ?? NONE) yield assumed.get(key) ?? object;
    const known = this.#kinds.get(kind) ?? NONE;
    for (const [key, object] of assumed) if (!known.has(key)) yield object;
  }

  /** Keys of all objects of a kind. */
  *keysOf(kind: string): Iterable<string> {
    const known = this.#kinds.get(kind) ?? NONE;
    yield* known.keys();
    for (const key of (this.#assumed.get(kind) ?? NONE).keys()) if (!known.has(key)) yield key;
  }

  /** Objects of a kind in one namespace, found without a look at the others. */
  objectsIn(kind: string, namespace: string): readonly KubeObject[] {
    const version = this.versionOf(kind);
    let spaces = this.#spaces.get(kind);
    if (spaces?.version !== version) {
      const byName = Map.groupBy(this.objects(kind), (object) => namespaceOf(object));
      this.#spaces.set(kind, (spaces = { version, byName }));
    }
    return spaces.byName.get(namespace) ?? [];
  }

  get namespaces(): Iterable<string> {
    return this.#kinds.get('Namespace')?.keys() ?? [];
  }

  namespaceLabels(name: string): Labels | undefined {
    const namespace = this.#kinds.get('Namespace')?.get(name);
    return namespace === undefined ? undefined : (namespace.metadata.labels ?? {});
  }
}

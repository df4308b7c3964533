/** Volumes that a claim without one might get, kept up to date by what has changed. */
import type { ObjectStore } from './object-store.ts';
import { isFor } from '../framework/volume-matching.ts';
import { classNameOf, type ClaimObject, type VolumeObject } from '../framework/volumes.ts';

const VOLUME = 'PersistentVolume';
const NONE: ReadonlySet<string> = new Set();

export class OpenVolumes {
  readonly #objects: ObjectStore;
  /** By volume: where it is kept. */
  readonly #places = new Map<string, string>();
  /** Names of volumes without a claim, by class of storage, and of the others, by claim. */
  readonly #kept = new Map<string, Set<string>>();
  #seen = -1;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** Whether there is a volume that a claim might get, as far as class and reference tell. */
  hasAny(claim: ClaimObject): boolean {
    this.#catchUp();
    if (this.#kept.has(classPlace(classNameOf(claim)))) return true;
    const { namespace = 'default', name } = claim.metadata;
    for (const key of this.#kept.get(claimPlace(namespace, name)) ?? NONE) {
      const volume: VolumeObject | undefined = this.#objects.object(VOLUME, key);
      if (volume !== undefined && isFor(volume, claim)) return true;
    }
    return false;
  }

  #catchUp(): void {
    const version = this.#objects.versionOf(VOLUME);
    if (version === this.#seen) return;
    const news = this.#objects.changesSince(VOLUME, this.#seen);
    this.#seen = version;
    for (const key of news ?? this.#allKeys()) this.#look(key);
  }

  #allKeys(): ReadonlySet<string> {
    const keys = new Set(this.#places.keys());
    for (const { metadata } of this.#objects.objects(VOLUME)) keys.add(metadata.name);
    return keys;
  }

  #look(key: string): void {
    const volume: VolumeObject | undefined = this.#objects.object(VOLUME, key);
    const before = this.#places.get(key);
    const after = volume === undefined ? undefined : placeOf(volume);
    if (before === after) return;
    if (before !== undefined) {
      const names = this.#kept.get(before);
      names?.delete(key);
      if (names?.size === 0) this.#kept.delete(before);
    }
    if (after === undefined) return void this.#places.delete(key);
    this.#places.set(key, after);
    this.#kept.set(after, (this.#kept.get(after) ?? new Set()).add(key));
  }
}

function placeOf({ spec }: VolumeObject): string {
  const reference = spec?.claimRef;
  if (reference === undefined) return classPlace(spec?.storageClassName ?? '');
  return claimPlace(reference.namespace ?? 'default', reference.name ?? '');
}

function classPlace(className: string): string {
  return `class ${className}`;
}

function claimPlace(namespace: string, name: string): string {
  return `claim ${namespace}/${name}`;
}

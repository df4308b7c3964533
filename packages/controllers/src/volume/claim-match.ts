/**
 * Which volume suits which claim, by upstream's rules: access modes first (the list with the
 * fewest modes wins), then the smallest that is big enough; class, labels and mode must be equal.
 * A volume that names the claim is taken whatever its class.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseQuantity, type Quantity } from '@megaplane/machinery/quantity';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

/** The class of a claim or a volume; the annotation is older than the field and wins. */
export function classOf(object: JsonObject): string {
  const annotated = stringAt(object, 'metadata', 'annotations', CLASS_ANNOTATION);
  return annotated !== '' ? annotated : stringAt(object, 'spec', 'storageClassName');
}

/** Whether a claim says anything of its class: `""` is a word, too. */
export function hasClass(claim: JsonObject): boolean {
  const annotations = objectAt(claim, 'metadata', 'annotations') ?? {};
  return (
    CLASS_ANNOTATION in annotations ||
    typeof objectAt(claim, 'spec')?.['storageClassName'] === 'string'
  );
}

export function modesOf(object: JsonObject): string[] {
  return listAt(object, 'spec', 'accessModes').filter((one) => typeof one === 'string');
}

export function volumeModeOf(object: JsonObject): string {
  return stringAt(object, 'spec', 'volumeMode') || 'Filesystem';
}

const NOTHING = parseQuantity('0') as Quantity;

export function capacityOf(volume: JsonObject): Quantity {
  return quantityAt(volume, 'spec', 'capacity', 'storage');
}

export function requestOf(claim: JsonObject): Quantity {
  return quantityAt(claim, 'spec', 'resources', 'requests', 'storage');
}

export function quantityAt(object: JsonObject, ...path: string[]): Quantity {
  const quantity = parseQuantity(stringAt(object, ...path) || '0');
  return typeof quantity === 'string' ? NOTHING : quantity;
}

/** `namespace/name` of the claim that a volume names; '' for none. */
export function claimKeyOf(volume: JsonObject): string {
  const reference = objectAt(volume, 'spec', 'claimRef');
  if (reference === undefined) return '';
  return `${stringAt(reference, 'namespace')}/${stringAt(reference, 'name')}`;
}

export function keyOfClaim(claim: JsonObject): string {
  return `${stringAt(claim, 'metadata', 'namespace')}/${stringAt(claim, 'metadata', 'name')}`;
}

/** The volume names this claim, and no other one of the same name. */
export function isFor(volume: JsonObject, claim: JsonObject): boolean {
  if (claimKeyOf(volume) !== keyOfClaim(claim)) return false;
  const uid = stringAt(volume, 'spec', 'claimRef', 'uid');
  return uid === '' || uid === stringAt(claim, 'metadata', 'uid');
}

/** Why a volume that a claim asks for by name cannot be its own; undefined where it can. */
export function mismatchOf(volume: JsonObject, claim: JsonObject): string | undefined {
  if (stringAt(volume, 'metadata', 'deletionTimestamp') !== '') {
    return `the volume is marked for deletion "${stringAt(volume, 'metadata', 'name')}"`;
  }
  if (capacityOf(volume).compare(requestOf(claim)) < 0) return 'requested PV is too small';
  if (classOf(volume) !== classOf(claim)) return 'storageClassName does not match';
  if (attributesOf(volume) !== attributesOf(claim)) {
    return 'volumeAttributesClassName does not match';
  }
  if (volumeModeOf(volume) !== volumeModeOf(claim)) return 'incompatible volumeMode';
  const modes = modesOf(volume);
  if (!modesOf(claim).every((mode) => modes.includes(mode))) return 'incompatible accessMode';
  return undefined;
}

function attributesOf(object: JsonObject): string {
  return stringAt(object, 'spec', 'volumeAttributesClassName');
}

/** What matching needs to know of a volume that nobody has. */
interface Candidate {
  readonly name: string;
  readonly capacity: Quantity;
  readonly volumeMode: string;
  readonly attributes: string;
  readonly labels: JsonObject | undefined;
}

interface Place {
  readonly group: Candidate[];
  readonly candidate: Candidate;
}

/** Volumes to be had, by class and access modes, smallest first; and those kept for a claim. */
export class VolumeIndex {
  /** By class, then by the text of the list of modes. */
  readonly #free: Map<string, Map<string, Candidate[]>> = new Map();
  readonly #places: Map<string, Place> = new Map();
  readonly #reserved: Map<string, Set<string>> = new Map();
  readonly #reservations: Map<string, string> = new Map();

  /** Takes in what a volume has become; true where it can be had by any claim of its class now. */
  set(name: string, volume: JsonObject | undefined): boolean {
    this.take(name);
    const before = this.#reservations.get(name);
    if (before !== undefined) {
      this.#reservations.delete(name);
      const names = this.#reserved.get(before);
      if (names?.delete(name) === true && names.size === 0) this.#reserved.delete(before);
    }
    if (volume === undefined) return false;
    const claim = claimKeyOf(volume);
    if (claim !== '') {
      this.#reservations.set(name, claim);
      const names = this.#reserved.get(claim);
      if (names === undefined) this.#reserved.set(claim, new Set([name]));
      else names.add(name);
      return false;
    }
    if (stringAt(volume, 'status', 'phase') !== 'Available') return false;
    if (stringAt(volume, 'metadata', 'deletionTimestamp') !== '') return false;
    this.#add(name, volume);
    return true;
  }

  /** Names of volumes whose claimRef is this claim, whatever its uid. */
  reservedFor(claimKey: string): Iterable<string> {
    return this.#reserved.get(claimKey) ?? [];
  }

  /** A volume is spoken for: it is not offered again until it is set anew. */
  take(name: string): void {
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#places.delete(name);
    const at = place.group.indexOf(place.candidate);
    if (at >= 0) place.group.splice(at, 1);
  }

  #add(name: string, volume: JsonObject): void {
    const className = classOf(volume);
    let groups = this.#free.get(className);
    if (groups === undefined) this.#free.set(className, (groups = new Map()));
    const modes = JSON.stringify(modesOf(volume));
    let group = groups.get(modes);
    if (group === undefined) groups.set(modes, (group = []));
    const candidate = {
      name,
      capacity: capacityOf(volume),
      volumeMode: volumeModeOf(volume),
      attributes: attributesOf(volume),
      labels: objectAt(volume, 'metadata', 'labels'),
    };
    group.splice(firstNotBefore(group, candidate), 0, candidate);
    this.#places.set(name, { group, candidate });
  }

  /**
   * The volume for a claim, or undefined. `volumeOf` reads one; `isDelayed`: the scheduler chooses
   * among free volumes, so that only one that names the claim will do.
   */
  match(
    claim: JsonObject,
    isDelayed: boolean,
    volumeOf: (name: string) => JsonObject | undefined,
  ): string | undefined {
    const reserved = [...this.reservedFor(keyOfClaim(claim))]
      .map(volumeOf)
      .filter((volume) => volume !== undefined)
      .filter((volume) => isFor(volume, claim) && couldHold(volume, claim));
    const free = isDelayed ? [] : this.#groups(claim);
    const lists = [
      ...reserved.map((volume) => ({ modes: modesOf(volume).length, order: 0, volume })),
      ...free.map(([modes, group]) => ({ modes, order: 1, group })),
    ].toSorted((left, right) => left.modes - right.modes || left.order - right.order);
    for (const list of lists) {
      if ('volume' in list) return stringAt(list.volume, 'metadata', 'name');
      const found = firstFit(list.group, claim);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #groups(claim: JsonObject): [number, Candidate[]][] {
    const found: [number, Candidate[]][] = [];
    const wanted = modesOf(claim);
    for (const [text, group] of this.#free.get(classOf(claim)) ?? []) {
      const modes = parseJson(text) as string[];
      if (group.length > 0 && wanted.every((mode) => modes.includes(mode))) {
        found.push([modes.length, group]);
      }
    }
    return found;
  }
}

/** A volume that names the claim can be its own: the class does not count. */
function couldHold(volume: JsonObject, claim: JsonObject): boolean {
  const modes = modesOf(volume);
  return (
    stringAt(volume, 'metadata', 'deletionTimestamp') === '' &&
    capacityOf(volume).compare(requestOf(claim)) >= 0 &&
    volumeModeOf(volume) === volumeModeOf(claim) &&
    modesOf(claim).every((mode) => modes.includes(mode))
  );
}

function firstFit(group: readonly Candidate[], claim: JsonObject): string | undefined {
  const request = requestOf(claim);
  const mode = volumeModeOf(claim);
  const attributes = attributesOf(claim);
  const written = objectAt(claim, 'spec', 'selector');
  const selector = written === undefined ? undefined : labelSelectorOf(written);
  if (selector !== undefined && 'error' in selector) return undefined;
  for (let at = firstOfSize(group, request); at < group.length; at++) {
    const candidate = group[at];
    if (candidate === undefined || candidate.volumeMode !== mode) continue;
    if (candidate.attributes !== attributes) continue;
    if (selector === undefined || matchesLabels(selector.value, candidate.labels)) {
      return candidate.name;
    }
  }
  return undefined;
}

function firstOfSize(group: readonly Candidate[], size: Quantity): number {
  return lowerBound(group, (candidate) => candidate.capacity.compare(size) < 0);
}

function firstNotBefore(group: readonly Candidate[], one: Candidate): number {
  return lowerBound(group, (other) => {
    const order = other.capacity.compare(one.capacity);
    return order < 0 || (order === 0 && other.name < one.name);
  });
}

function lowerBound<T>(sorted: readonly T[], isBefore: (item: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = sorted[middle];
    if (item !== undefined && isBefore(item)) low = middle + 1;
    else high = middle;
  }
  return low;
}

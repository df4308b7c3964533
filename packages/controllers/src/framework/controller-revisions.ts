/** Revisions of templates as ControllerRevision objects: found, made, renumbered, forgotten. */
import { ownMember } from '@megaplane/base/members';
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { escapedJson } from '@megaplane/machinery/quoting';
import { labelSelectorOf, matchesLabels } from '@megaplane/machinery/selectors';
import type { ObjectCache } from './object-cache.ts';
import { controllerReference, type PodOwner } from './pod-control.ts';
import { safeDigits, stableText } from './stable-text.ts';

export const REVISIONS_PATH = '/apis/apps/v1/controllerrevisions';

/**
 * What a revision keeps: the template, as a patch that puts it back whole, byte for byte as v1.36
 * writes it. A time of creation that nobody set is left out (v1.33 and older wrote null).
 */
export function revisionData(template: JsonObject): JsonObject {
  const { creationTimestamp = null, ...rest } = objectAt(template, 'metadata') ?? {};
  const metadata = creationTimestamp === null ? rest : { creationTimestamp, ...rest };
  const data = { spec: { template: { ...template, metadata, $patch: 'replace' } } };
  return parseJson(ordered(data)) as JsonObject;
}

/**
 * Part of a name for the data, as upstream makes it of its JSON; another one after each collision.
 * So a revision that kube-controller-manager has made is found again: names are of the data as
 * v1.33 and older write them, which is what clusters hold that were made before.
 */
export function revisionHash(data: JsonObject, collisions: number): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${ordered(olderData(data))}${collisions}`)) {
    hash = Math.imul(hash, 0x01000193) ^ byte;
  }
  return safeDigits(hash >>> 0);
}

/** With the null of a time of creation that nobody set. */
function olderData(data: JsonObject): JsonObject {
  const template = objectAt(data, 'spec', 'template') ?? {};
  const metadata = { creationTimestamp: null, ...objectAt(template, 'metadata') };
  return { ...data, spec: { ...objectAt(data, 'spec'), template: { ...template, metadata } } };
}

/** JSON as Go writes it: members in order of their names, null where it is given. */
function ordered(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(ordered).join(',')}]`;
  if (typeof value !== 'object' || value === null) return escapedJson(value);
  const names = Object.keys(value).toSorted();
  const members = names.map(
    (name) => `${escapedJson(name)}:${ordered(ownMember(value, name) ?? null)}`,
  );
  return `{${members.join(',')}}`;
}

export interface CurrentRevision {
  readonly revision: JsonObject;
  readonly old: readonly JsonObject[];
  /** Collisions so far; one more than before where a name was taken by other data. */
  readonly collisions: number;
}

export class ControllerRevisions {
  readonly #client: Client;
  readonly #cache: ObjectCache;

  readonly #label: string;

  /** `label` is the one that holds a revision's hash. */
  constructor(client: Client, cache: ObjectCache, label: string) {
    this.#client = client;
    this.#cache = cache;
    this.#label = label;
  }

  /** The owner's revisions, the oldest first. */
  of(owner: PodOwner): JsonObject[] {
    const keys = [...this.#cache.controlledBy(owner.uid, owner.namespace)];
    return keys
      .map((key) => this.#cache.get(key))
      .filter((one) => one !== undefined)
      .toSorted((a, b) => numberAt(a, 'revision') - numberAt(b, 'revision'));
  }

  /** The owner's revisions, with those taken that match its selector and belong to nobody. */
  async #adopted(owner: PodOwner, object: JsonObject): Promise<JsonObject[] | undefined> {
    const all = this.of(owner);
    const selector = labelSelectorOf(objectAt(object, 'spec', 'selector'));
    if ('error' in selector || stringAt(object, 'metadata', 'deletionTimestamp') !== '') return all;
    for (const key of this.#cache.controlledBy('', owner.namespace)) {
      const one = this.#cache.get(key);
      if (one === undefined || stringAt(one, 'metadata', 'deletionTimestamp') !== '') continue;
      if (!matchesLabels(selector.value, objectAt(one, 'metadata', 'labels'))) continue;
      const ownerReferences = [controllerReference(owner)];
      const resourceVersion = stringAt(one, 'metadata', 'resourceVersion');
      const answer = await this.#client.request({
        ...{ method: 'PATCH', path: this.#path(owner, stringAt(one, 'metadata', 'name')) },
        contentType: CONTENT.strategicPatch,
        body: { metadata: { resourceVersion, ownerReferences } },
      });
      if (answer.ok) all.push(answer.object);
      else if (answer.code !== 404) return undefined;
    }
    return all.toSorted((a, b) => numberAt(a, 'revision') - numberAt(b, 'revision'));
  }

  /** The revision of a template, made or renumbered where needed; undefined where that failed. */
  async current(
    owner: PodOwner,
    object: JsonObject,
    collisions: number,
  ): Promise<CurrentRevision | undefined> {
    const template = objectAt(object, 'spec', 'template') ?? {};
    const data = revisionData(template);
    const all = await this.#adopted(owner, object);
    if (all === undefined) return undefined;
    const same = all.findLast((one) => isSameData(valueAt(one, 'data'), data));
    const old = all.filter((one) => one !== same);
    const number = old.reduce((most, one) => Math.max(most, numberAt(one, 'revision')), 0) + 1;
    if (same === undefined) return this.#create(owner, object, data, number, old, collisions);
    if (numberAt(same, 'revision') >= number) return { revision: same, old, collisions };
    const path = this.#path(owner, stringAt(same, 'metadata', 'name'));
    const body = { ...same, apiVersion: 'apps/v1', kind: 'ControllerRevision', revision: number };
    const answer = await this.#client.request({ method: 'PUT', path, body });
    return answer.ok ? { revision: answer.object, old, collisions } : undefined;
  }

  async #create(
    owner: PodOwner,
    object: JsonObject,
    data: JsonObject,
    revision: number,
    old: readonly JsonObject[],
    collisions: number,
  ): Promise<CurrentRevision | undefined> {
    const hash = revisionHash(data, collisions);
    const name = `${owner.name}-${hash}`;
    const labels = objectAt(object, 'spec', 'template', 'metadata', 'labels') ?? {};
    const annotations = objectAt(object, 'metadata', 'annotations');
    const metadata: JsonObject = {
      name,
      namespace: owner.namespace,
      labels: { ...labels, [this.#label]: hash },
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [controllerReference(owner)],
    };
    const body = { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata, data, revision };
    const path = `/apis/apps/v1/namespaces/${owner.namespace}/controllerrevisions`;
    const answer = await this.#client.request({ method: 'POST', path, body });
    if (answer.ok) return { revision: answer.object, old, collisions };
    if (answer.code !== 409) return undefined;
    const there = await this.#client.request({ method: 'GET', path: this.#path(owner, name) });
    if (!there.ok) return undefined;
    if (isSameData(valueAt(there.object, 'data'), data)) {
      return { revision: there.object, old, collisions };
    }
    return this.#create(owner, object, data, revision, old, collisions + 1);
  }

  /** Deletes the oldest revisions beyond a limit that no pod is of. */
  async forget(
    owner: PodOwner,
    old: readonly JsonObject[],
    limit: number,
    isUsed: (revision: JsonObject) => boolean,
  ): Promise<boolean> {
    const surplus = old.length - limit;
    const unused = old.filter((one) => !isUsed(one));
    for (const one of unused.slice(0, Math.max(0, surplus))) {
      const path = this.#path(owner, stringAt(one, 'metadata', 'name'));
      const answer = await this.#client.request({ method: 'DELETE', path });
      if (!answer.ok && answer.code !== 404) return false;
    }
    return true;
  }

  #path({ namespace }: PodOwner, name: string): string {
    return `/apis/apps/v1/namespaces/${namespace}/controllerrevisions/${name}`;
  }
}

/** Data that an older controller made is the same: nothing is rolled out for its null. */
function isSameData(one: JsonValue | undefined, other: JsonObject): boolean {
  const template = objectAt(one, 'spec', 'template');
  const known = template === undefined ? one : revisionData(template);
  return known !== undefined && stableText(known) === stableText(other);
}

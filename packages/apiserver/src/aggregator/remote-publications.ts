/**
 * What an API server behind this one tells of itself beside its resources: its part of aggregated
 * discovery and its OpenAPI documents. Read after each look at it; of version 2, the part that is
 * about the group and version is kept compressed.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { isGroupServed } from '../storage/served.ts';
import type { Fetched } from '../webhook/target.ts';

/** Aggregated discovery in the forms that are read, as upstream asks for it. */
export const DISCOVERY_TYPES: string = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(',');
const NAMELESS: JsonObject = { group: '', version: '', kind: '' };

/** Its part of a document of OpenAPI version 2. */
export interface Version2Part {
  readonly paths: JsonObject;
  readonly definitions: JsonObject;
}

/** What was read last. */
export class RemotePublications {
  /** Hashes of documents of version 3 by their names (`apis/group/version`). */
  version3: ReadonlyMap<string, string> = new Map();
  /** Tag of the document of version 2; '' where there is none. */
  version2Tag = '';
  #version2: Buffer | null = null;

  /** Takes an index of version 3; tells whether anything is new. */
  takeIndex(answer: Fetched, { group, version }: RemoteSpec): boolean {
    const paths = objectAt(jsonIn(answer) ?? {}, 'paths') ?? {};
    const found = new Map<string, string>();
    const names = [`apis/${group}/${version}`];
    // of a group that this server has a part in, it tells by itself
    if (!isGroupServed(group)) names.push(`apis/${group}`);
    for (const name of names) {
      const url = stringAt(paths, name, 'serverRelativeURL');
      const hash = /[?&]hash=([^&]+)/.exec(url)?.[1];
      if (hash !== undefined) found.set(name, hash);
    }
    const isSame = JSON.stringify([...found]) === JSON.stringify([...this.version3]);
    this.version3 = found;
    return !isSame;
  }

  /** Takes a document of version 2; tells whether it is new. */
  takeVersion2(answer: Fetched, spec: RemoteSpec): boolean {
    if ('why' in answer || answer.status !== 200 || answer.etag === this.version2Tag) return false;
    const document = jsonIn(answer);
    if (document === null) return false;
    const part = partOf(document, `/apis/${spec.group}/${spec.version}/`);
    this.version2Tag = answer.etag || '""';
    this.#version2 = gzipSync(JSON.stringify(part), { level: 1 });
    return true;
  }

  get version2(): Version2Part | null {
    if (this.#version2 === null) return null;
    return parseJson(gunzipSync(this.#version2).toString('utf8')) as unknown as Version2Part;
  }
}

/** The object of a good answer, if there is one. */
export function jsonIn(answer: Fetched): JsonObject | null {
  if ('why' in answer || answer.body === null) return null;
  if (answer.status < 200 || answer.status > 299) return null;
  try {
    const value = parseJson(answer.body.toString('utf8'));
    return isObject(value) ? value : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return null;
  }
}

/** The resources of a group and version, where the answer is such a list. */
export function listIn(answer: Fetched): JsonObject | null {
  if ('why' in answer || answer.status !== 200) return null;
  const list = jsonIn(answer);
  return (list?.['kind'] ?? 'APIResourceList') === 'APIResourceList' ? list : null;
}

/** Resources of a group and version in aggregated discovery; null where it is another document. */
export function discoveredIn(
  answer: Fetched,
  { group, version }: RemoteSpec,
): readonly JsonObject[] | null {
  if ('why' in answer || answer.status !== 200) return null;
  if (!answer.type.includes('as=APIGroupDiscoveryList')) return null;
  const groups = listAt(jsonIn(answer) ?? {}, 'items');
  const own = groups.find((one) => stringAt(one, 'metadata', 'name') === group);
  const versions = listAt(own, 'versions');
  const found = versions.find((one) => stringAt(one, 'version') === version);
  return listAt(found, 'resources').filter(isObject).map(withKinds);
}

/** Clients of client-go 0.26 cannot do without kinds of answers. */
function withKinds(resource: JsonObject): JsonObject {
  const responseKind = resource['responseKind'] ?? NAMELESS;
  const subresources = listAt(resource, 'subresources').filter(isObject);
  if (subresources.length === 0) return { ...resource, responseKind };
  return { ...resource, responseKind, subresources: subresources.map(withKinds) };
}

/** The paths that begin so, and the definitions that they mention. */
function partOf(document: JsonObject, prefix: string): Version2Part {
  const all = Object.entries(objectAt(document, 'paths') ?? {});
  const paths = Object.fromEntries(all.filter(([path]) => path.startsWith(prefix)));
  const from = objectAt(document, 'definitions') ?? {};
  const definitions = new Map<string, JsonValue>();
  const waiting: JsonValue[] = [paths];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const name of mentionedIn(next)) {
      const definition = Object.hasOwn(from, name) ? from[name] : undefined;
      if (definition === undefined || definitions.has(name)) continue;
      definitions.set(name, definition);
      waiting.push(definition);
    }
  }
  return { paths, definitions: Object.fromEntries(definitions) };
}

const MENTION = /"\$ref":"#\/definitions\/([^"]+)"/g;

function mentionedIn(value: JsonValue): Set<string> {
  return new Set(Array.from(JSON.stringify(value).matchAll(MENTION), ([, name = '']) => name));
}

/** What the spec says. */
export interface RemoteSpec {
  readonly name: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
  /** PEM; '' takes the system's authorities. */
  readonly caBundle: string;
  readonly isInsecure: boolean;
  readonly groupPriority: number;
  readonly versionPriority: number;
}

/** Which resources the server has, from aggregated discovery or the older lists. */
import type { Client, ClientResponse } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';

export interface ApiResource {
  readonly group: string;
  readonly version: string;
  /** All versions that it is served in. */
  readonly served: readonly string[];
  /** The plural of URLs. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

export function groupVersionOf({ group, version }: ApiResource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** `deployments.apps`, `pods`: as quotas and people name resources. */
export function groupResourceOf({ group, resource }: ApiResource): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** Path of the collection, in one namespace or in all. */
export function collectionPath(resource: ApiResource, namespace = ''): string {
  const { group, version } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `${root}${scope}/${resource.resource}`;
}

export function objectPath(resource: ApiResource, namespace: string, name: string): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

/** What one root has said last, to be asked for again by its tag. */
interface Kept {
  readonly etag: string;
  readonly found: readonly ApiResource[];
}

/** What `discover` finds. */
export interface Discovered {
  readonly resources: readonly ApiResource[];
  /** Groups that could not be read, or are of a server that does not answer now, and why. */
  readonly failed: readonly string[];
}

/** Asks one server for its resources, again and again. */
export class ResourceDiscovery {
  readonly client: Client;
  readonly #kept: Map<string, Kept> = new Map();

  constructor(client: Client) {
    this.client = client;
  }

  /**
   * All resources in the version that the server prefers, without subresources. What `failed`
   * groups hold is unknown, which is not the same as nothing. Where nothing has changed since the
   * last call the server answers without a body (ETag, 304), however many kinds it has.
   */
  async discover(): Promise<Discovered> {
    const resources: ApiResource[] = [];
    const failed: string[] = [];
    for (const path of ['/api', '/apis']) resources.push(...(await this.#ask(path, failed)));
    return { resources, failed };
  }

  async #ask(path: string, failed: string[]): Promise<readonly ApiResource[]> {
    const kept = this.#kept.get(path);
    const tag = kept === undefined ? {} : { ifNoneMatch: kept.etag };
    const answer = await this.client.request({ method: 'GET', path, accept: AGGREGATED, ...tag });
    if (!answer.ok) {
      failed.push(path);
      return [];
    }
    if (answer.code === 304 && kept !== undefined) return kept.found;
    this.#kept.delete(path);
    const found: ApiResource[] = [];
    const failures: string[] = [];
    if (stringAt(answer.object, 'kind') === 'APIGroupDiscoveryList') {
      for (const group of listAt(answer.object, 'items')) readGroup(group, found, failures);
      const { etag = '' } = answer;
      // what is stale must be asked for until it is told
      if (etag !== '' && failures.length === 0) this.#kept.set(path, { etag, found });
    } else {
      await readLegacy(this.client, path, answer, found, failures);
    }
    failed.push(...failures);
    return found;
  }
}

function readGroup(group: JsonValue, found: ApiResource[], failed: string[]): void {
  const name = stringAt(group, 'metadata', 'name');
  const known = new Map<string, string[]>();
  for (const version of listAt(group, 'versions')) {
    if (stringAt(version, 'freshness') === 'Stale') {
      const of = `${name}/${stringAt(version, 'version')}`;
      failed.push(`${of}: stale GroupVersion discovery: ${of}`);
      continue;
    }
    for (const item of listAt(version, 'resources')) {
      const resource = stringAt(item, 'resource');
      const served = known.get(resource) ?? [];
      served.push(stringAt(version, 'version'));
      if (served.length > 1) continue;
      known.set(resource, served);
      found.push({
        group: name,
        version: stringAt(version, 'version'),
        served,
        resource,
        kind: stringAt(item, 'responseKind', 'kind'),
        namespaced: stringAt(item, 'scope') === 'Namespaced',
        verbs: listAt(item, 'verbs').filter((verb) => typeof verb === 'string'),
      });
    }
  }
}

async function readLegacy(
  client: Client,
  path: string,
  answer: Extract<ClientResponse, { readonly ok: true }>,
  found: ApiResource[],
  failed: string[],
): Promise<void> {
  for (const [group, versions] of legacyVersions(path, answer.object)) {
    const known = new Map<string, string[]>();
    for (const version of versions) {
      const groupVersion = group === '' ? version : `${group}/${version}`;
      const root = group === '' ? `/api/${version}` : `/apis/${groupVersion}`;
      const list = await client.request({ method: 'GET', path: root });
      if (!list.ok) {
        const why = list.status.message ?? 'no answer';
        failed.push(`${groupVersion}: ${why}`);
        continue;
      }
      for (const item of listAt(list.object, 'resources')) {
        const resource = stringAt(item, 'name');
        if (resource.includes('/')) continue;
        const served = known.get(resource) ?? [];
        served.push(version);
        if (served.length > 1) continue;
        known.set(resource, served);
        found.push({
          group,
          version,
          served,
          resource,
          kind: stringAt(item, 'kind'),
          namespaced: valueAt(item, 'namespaced') === true,
          verbs: listAt(item, 'verbs').filter((verb) => typeof verb === 'string'),
        });
      }
    }
  }
}

function legacyVersions(path: string, object: JsonObject): [string, string[]][] {
  if (path === '/api') {
    return [['', listAt(object, 'versions').filter((version) => typeof version === 'string')]];
  }
  return listAt(object, 'groups').map((group) => {
    const preferred = stringAt(group, 'preferredVersion', 'version');
    const all = listAt(group, 'versions').map((version) => stringAt(version, 'version'));
    return [stringAt(group, 'name'), [...new Set([preferred, ...all])]];
  });
}

/**
 * What kinds a server has, by aggregated discovery: two requests for everything, and where nothing
 * has changed since then two answers without a body (ETag, 304). Servers that do not know it are
 * asked group by group, for the groups that somebody wants to know.
 */
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import type { Client } from '../rest/client.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const ACCEPT = `${AGGREGATED},application/json`;
const ROOTS = ['/api', '/apis'] as const;

/** A kind that has objects of its own: no subresource. */
export interface DiscoveredKind {
  /** `v1` or `group/version`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The plural of URLs. */
  readonly resource: string;
  readonly namespaced: boolean;
}

/** What one root said, and under which tag; `kinds` null: it speaks the older form alone. */
interface Kept {
  readonly etag: string;
  readonly kinds: readonly DiscoveredKind[] | null;
}

/** See the head of the file. */
export class Discovery {
  readonly #client: Client;
  readonly #kept: Map<string, Kept> = new Map();

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * The kinds of a group and version as they are now. Rejects when the server does not say, with
   * the code of its answer as the cause.
   */
  async kindsOf(apiVersion: string): Promise<readonly DiscoveredKind[]> {
    const root = apiVersion.includes('/') ? '/apis' : '/api';
    const all = await this.#ask(root);
    const known = all?.filter((kind) => kind.apiVersion === apiVersion) ?? [];
    // a group whose server does not answer is left out of the aggregated form, and so is none
    return known.length > 0 ? known : this.#askVersion(root, apiVersion);
  }

  /** All kinds of the server, or null where it does not tell them at once. */
  async all(): Promise<readonly DiscoveredKind[] | null> {
    const found: DiscoveredKind[] = [];
    for (const root of ROOTS) {
      const kinds = await this.#ask(root);
      if (kinds === null) return null;
      found.push(...kinds);
    }
    return found;
  }

  async #ask(root: string): Promise<readonly DiscoveredKind[] | null> {
    const kept = this.#kept.get(root);
    const answer = await this.#client.request({
      ...{ method: 'GET', path: root, accept: ACCEPT },
      ...(kept === undefined || kept.etag === '' ? {} : { ifNoneMatch: kept.etag }),
    });
    if (!answer.ok) {
      const why = answer.status.message ?? `${root} says nothing`;
      throw new Error(why, { cause: answer.code });
    }
    if (answer.code === 304 && kept !== undefined) return kept.kinds;
    const isAggregated = stringAt(answer.object, 'kind') === 'APIGroupDiscoveryList';
    const kinds = isAggregated ? kindsIn(answer.object) : null;
    this.#kept.set(root, { etag: isAggregated ? (answer.etag ?? '') : '', kinds });
    return kinds;
  }

  /** The older form of one group and version. */
  async #askVersion(root: string, apiVersion: string): Promise<readonly DiscoveredKind[]> {
    const answer = await this.#client.request({ method: 'GET', path: `${root}/${apiVersion}` });
    if (!answer.ok) {
      throw new Error(answer.status.message ?? `no ${apiVersion}`, { cause: answer.code });
    }
    return listAt(answer.object, 'resources').flatMap((item) => {
      const resource = stringAt(item, 'name');
      if (resource.includes('/')) return [];
      const namespaced = valueAt(item, 'namespaced') === true;
      return [{ apiVersion, kind: stringAt(item, 'kind'), resource, namespaced }];
    });
  }
}

function kindsIn(list: JsonObject): readonly DiscoveredKind[] {
  return listAt(list, 'items').flatMap((group) => {
    const name = stringAt(group, 'metadata', 'name');
    return listAt(group, 'versions').flatMap((version) => {
      const own = stringAt(version, 'version');
      const apiVersion = name === '' ? own : `${name}/${own}`;
      return listAt(version, 'resources').map((resource) => kindOf(apiVersion, resource));
    });
  });
}

function kindOf(apiVersion: string, resource: JsonValue): DiscoveredKind {
  return {
    apiVersion,
    kind: stringAt(resource, 'responseKind', 'kind'),
    resource: stringAt(resource, 'resource'),
    namespaced: stringAt(resource, 'scope') === 'Namespaced',
  };
}

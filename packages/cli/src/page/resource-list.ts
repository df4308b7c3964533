/** Which kinds of objects a server has, from its discovery documents. */
import type { Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { ResourceKind } from '@megaplane/dashboard/protocol';

const AGGREGATED =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,' +
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';
/** More kinds are no list for eyes. */
export const KINDS_MAX = 20_000;

/** All kinds that can be listed, each in the version that the server prefers. */
export async function resourceList(client: Client): Promise<readonly ResourceKind[]> {
  const kinds: ResourceKind[] = [];
  for (const path of ['/api', '/apis']) {
    const answer = await client.request({ method: 'GET', path, accept: AGGREGATED });
    if (!answer.ok) throw new Error(answer.status.message ?? `${path} answers ${answer.code}`);
    for (const group of objects(answer.object['items'])) {
      const name = textAt(isObject(group['metadata']) ? group['metadata'] : {}, 'name');
      const [version] = objects(group['versions']);
      if (version !== undefined) kinds.push(...kindsOf(name, version));
    }
  }
  return kinds.slice(0, KINDS_MAX);
}

function kindsOf(group: string, version: JsonObject): ResourceKind[] {
  return objects(version['resources']).flatMap((resource) => {
    const verbs = Array.isArray(resource['verbs']) ? resource['verbs'].map(String) : [];
    if (!verbs.includes('list')) return [];
    const responseKind = isObject(resource['responseKind']) ? resource['responseKind'] : {};
    return [
      {
        group,
        version: textAt(version, 'version'),
        resource: textAt(resource, 'resource'),
        kind: textAt(responseKind, 'kind'),
        isNamespaced: textAt(resource, 'scope') === 'Namespaced',
        verbs,
      },
    ];
  });
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return (Array.isArray(value) ? value : []).filter(isObject);
}

function textAt(object: JsonObject, name: string): string {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** What the kubelets' port has to read from the API server: a node, its pods, and all of them. */
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { listAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';

export class KubeletData {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** The node; null where there is none. Rejects when the server cannot tell. */
  async node(name: string): Promise<JsonObject | null> {
    const path = `/api/v1/nodes/${encodeURIComponent(name)}?resourceVersion=0`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (answer.ok) return { ...answer.object, kind: 'Node' };
    if (answer.code === 404) return null;
    throw new Error(answer.status.message ?? `cannot read node ${name}`);
  }

  async nodes(labelSelector: string): Promise<JsonObject[]> {
    const path = `/api/v1/nodes${queryOf({ labelSelector })}`;
    const found: JsonObject[] = [];
    await this.#each(path, (node) => found.push({ ...node, kind: 'Node' }));
    return found;
  }

  /** The pods of a node; the server has an index for this. */
  async podsOn(node: string): Promise<JsonObject[]> {
    const found: JsonObject[] = [];
    await this.eachPod('', { fieldSelector: `spec.nodeName=${node}` }, (pod) => found.push(pod));
    return found;
  }

  /** Every pod of a namespace ('' for all) that the selectors leave. */
  async eachPod(
    namespace: string,
    selectors: Readonly<Record<string, string>>,
    visit: (pod: JsonObject) => void,
  ): Promise<void> {
    const within = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    await this.#each(`/api/v1/${within}pods${queryOf(selectors)}`, (pod) =>
      visit({ ...pod, kind: 'Pod' }),
    );
  }

  async #each(path: string, visit: (object: JsonObject) => void): Promise<void> {
    const result = await readPages({
      client: this.#client,
      path,
      onItem: (bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        visit(parseJson(text.toString('utf8')) as JsonObject);
      },
    });
    if (!result.ok) throw new Error(result.status.message ?? `cannot read ${path}`);
  }
}

function queryOf(parameters: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== '') query.set(name, value);
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** True once one of the containers has run: only those of such pods use anything. */
export function isRunning(pod: JsonObject): boolean {
  return listAt(pod, 'status', 'containerStatuses').some(
    (one) => isObject(one) && isObject(one['state']) && isObject(one['state']['running']),
  );
}

/** What the autoscaler reads: the size of its target, the pods, and their use of resources. */
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { findKind } from '@megaplane/machinery/kinds';
import { isObject } from '@megaplane/machinery/json-value';

/** Plurals of kinds that come from definitions are asked for again after so long. */
const PLURAL_MS = 600_000;
const PLURALS_MAX = 1_000;

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; text: string };

const failed = (text: string): { readonly ok: false; text: string } => ({ ok: false, text });

export class MetricsSource {
  readonly #client: Client;
  readonly #plurals: Map<string, { readonly plural: string; readonly atMs: number }> = new Map();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Path of the scale of the object that an autoscaler names. */
  async scalePath(namespace: string, target: JsonObject): Promise<Read<string>> {
    const apiVersion = stringAt(target, 'apiVersion') || 'v1';
    const kind = stringAt(target, 'kind');
    const name = stringAt(target, 'name');
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const plural = findKind(apiVersion, kind)?.resource ?? (await this.#pluralOf(root, kind));
    if (plural === '') {
      const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0]}` : '';
      return failed(`no matches for kind "${kind}" in group "${group.slice(1)}"`);
    }
    return { ok: true, value: `${root}/namespaces/${namespace}/${plural}/${name}/scale` };
  }

  async #pluralOf(root: string, kind: string): Promise<string> {
    const nowMs = this.#client.timers.nowMs();
    const key = `${root} ${kind}`;
    const known = this.#plurals.get(key);
    if (known !== undefined && nowMs - known.atMs < PLURAL_MS) return known.plural;
    const answer = await this.#client.request({ method: 'GET', path: root });
    if (!answer.ok) return '';
    const found = listAt(answer.object, 'resources').find(
      (one) => stringAt(one, 'kind') === kind && !stringAt(one, 'name').includes('/'),
    );
    const plural = stringAt(found, 'name');
    if (this.#plurals.size >= PLURALS_MAX) this.#plurals.clear();
    if (plural !== '') this.#plurals.set(key, { plural, atMs: nowMs });
    return plural;
  }

  async read(path: string): Promise<Read<JsonObject>> {
    const answer = await this.#client.request({ method: 'GET', path });
    if (answer.ok) return { ok: true, value: answer.object };
    return failed(answer.status.message ?? `the server did not answer (${answer.code})`);
  }

  async pods(namespace: string, labelSelector: string): Promise<Read<JsonObject[]>> {
    const pods: JsonObject[] = [];
    const result = await readPages({
      client: this.#client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      labelSelector,
      onItem: (bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        pods.push(JSON.parse(text.toString('utf8')) as JsonObject);
      },
    });
    if (result.ok) return { ok: true, value: pods };
    const why = result.status.message ?? 'the server did not answer';
    return failed(`unable to get pods while calculating replica count: ${why}`);
  }

  /** Whether the server knows an API group. */
  async isServed(group: string): Promise<boolean> {
    return (await this.read(`/apis/${group}`)).ok;
  }

  /** PodMetrics of the pods that a selector chooses. */
  async metrics(
    namespace: string,
    resource: string,
    labelSelector: string,
  ): Promise<Read<JsonObject[]>> {
    const prefix = `unable to get metrics for resource ${resource}`;
    const query = `labelSelector=${encodeURIComponent(labelSelector)}`;
    const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods?${query}`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) {
      // Where nobody serves the group, clients of upstream say it in these words.
      const why =
        answer.code === 404
          ? 'the server could not find the requested resource (get pods.metrics.k8s.io)'
          : (answer.status.message ?? `the server did not answer (${answer.code})`);
      return failed(`${prefix}: unable to fetch metrics from resource metrics API: ${why}`);
    }
    const items = listAt(answer.object, 'items').filter(isObject);
    if (items.length > 0) return { ok: true, value: items };
    return failed(`${prefix}: no metrics returned from resource metrics API`);
  }
}

/** What the autoscaler reads: the size of its target, the pods, and their use of resources. */
import { failureText } from '@megaplane/client/answer';
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { findKind } from '@megaplane/machinery/kinds';
import { isObject } from '@megaplane/machinery/json-value';
import { scaleSelectorOf } from './scale-selector.ts';

/** Plurals of kinds that come from definitions are asked for again after so long. */
const PLURAL_MS = 600_000;
const PLURALS_MAX = 1_000;
/** As the period of the autoscaler. */
const VERSION_MS = 15_000;

export const CUSTOM_GROUP = 'custom.metrics.k8s.io';
const CUSTOM_VERSIONS: readonly string[] = [`${CUSTOM_GROUP}/v1beta2`, `${CUSTOM_GROUP}/v1beta1`];

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; text: string };

export interface FoundResource {
  readonly group: string;
  /** Path of its group and version. */
  readonly root: string;
  readonly plural: string;
}

const rootOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;

const failed = (text: string): { readonly ok: false; text: string } => ({ ok: false, text });

export class MetricsSource {
  readonly #client: Client;
  readonly #plurals: Map<string, { readonly plural: string; readonly atMs: number }> = new Map();

  #custom: { readonly ok: true; readonly value: string; readonly atMs: number } | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Path of the scale of the object that an autoscaler names. */
  async scalePath(namespace: string, target: JsonObject): Promise<Read<string>> {
    const found = await this.resourceOf(target);
    if (!found.ok) return found;
    const { root, plural } = found.value;
    const path = `${root}/namespaces/${namespace}/${plural}/${stringAt(target, 'name')}/scale`;
    return { ok: true, value: path };
  }

  /** The resource of the kind that a reference names; only its group counts where need be. */
  async resourceOf(target: JsonObject): Promise<Read<FoundResource>> {
    const apiVersion = stringAt(target, 'apiVersion') || 'v1';
    const kind = stringAt(target, 'kind');
    const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
    const root = rootOf(apiVersion);
    const plural = findKind(apiVersion, kind)?.resource ?? (await this.#pluralOf(root, kind));
    if (plural !== '') return { ok: true, value: { group, root, plural } };
    for (const version of await this.#versionsOf(group)) {
      const other = rootOf(version);
      const found = findKind(version, kind)?.resource ?? (await this.#pluralOf(other, kind));
      if (found !== '') return { ok: true, value: { group, root: other, plural: found } };
    }
    return failed(`no matches for kind "${kind}" in group "${group}"`);
  }

  async #versionsOf(group: string): Promise<string[]> {
    if (group === '') return ['v1'];
    const answer = await this.#client.request({ method: 'GET', path: `/apis/${group}` });
    if (!answer.ok) return [];
    return listAt(answer.object, 'versions').map((one) => stringAt(one, 'groupVersion'));
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

  /** A scale, with its selector in the form in which pods are asked for. */
  async scale(path: string): Promise<Read<JsonObject>> {
    const read = await this.read(path);
    if (!read.ok) return read;
    const selector = scaleSelectorOf(stringAt(read.value, 'status', 'selector'));
    if ('error' in selector) return failed(selector.error);
    const status = { ...objectAt(read.value, 'status'), selector: selector.value };
    return { ok: true, value: { ...read.value, status } };
  }

  async pods(namespace: string, labelSelector: string): Promise<Read<JsonObject[]>> {
    const pods: JsonObject[] = [];
    const result = await readPages({
      client: this.#client,
      path: `/api/v1/namespaces/${namespace}/pods`,
      labelSelector,
      onItem: (bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        pods.push(parseJson(text.toString('utf8')) as JsonObject);
      },
    });
    if (result.ok) return { ok: true, value: pods };
    const why = result.status.message ?? 'the server did not answer';
    return failed(`unable to get pods while calculating replica count: ${why}`);
  }

  /** PodMetrics of the pods that a selector chooses. */
  async metrics(
    namespace: string,
    resource: string,
    labelSelector: string,
  ): Promise<Read<JsonObject[]>> {
    const query = `labelSelector=${encodeURIComponent(labelSelector)}`;
    const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods?${query}`;
    const found = await this.readItems('resource', path, 'pods.metrics.k8s.io');
    if (found.ok) return found;
    return failed(`unable to get metrics for resource ${resource}: ${found.text}`);
  }

  /** Items of a list of one of the metrics APIs; `what` names it as upstream's client does. */
  async readItems(
    api: 'resource' | 'custom' | 'external',
    path: string,
    what: string,
  ): Promise<Read<JsonObject[]>> {
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) {
      const why = failureText(answer.code, answer.status, 'get', what);
      return failed(`unable to fetch metrics from ${api} metrics API: ${why}`);
    }
    const items = listAt(answer.object, 'items').filter(isObject);
    if (items.length > 0) return { ok: true, value: items };
    return failed(`no metrics returned from ${api} metrics API`);
  }

  /** Version of the custom metrics API, looked up once a period as upstream does. */
  async customVersion(): Promise<Read<string>> {
    const nowMs = this.#client.timers.nowMs();
    const known = this.#custom;
    if (known !== undefined && nowMs - known.atMs < VERSION_MS) return known;
    const answer = await this.#client.request({ method: 'GET', path: `/apis/${CUSTOM_GROUP}` });
    if (!answer.ok) return failed(`no custom metrics API (${CUSTOM_GROUP}) registered`);
    const preferred = stringAt(answer.object, 'preferredVersion', 'groupVersion');
    const versions = listAt(answer.object, 'versions').map((one) => stringAt(one, 'groupVersion'));
    const value = [preferred, ...versions].find((one) => CUSTOM_VERSIONS.includes(one));
    if (value === undefined) return failed('no known available metric versions found');
    this.#custom = { ok: true, value, atMs: nowMs };
    return this.#custom;
  }
}

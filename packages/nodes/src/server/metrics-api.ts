/**
 * `metrics.k8s.io/v1beta1` as `kubectl top` and autoscalers ask it: what nodes and pods use now. It
 * is served beside the kubelets; an APIService makes it part of an API server.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import type { KubeletData } from './kubelet-data.ts';
import { isRunning } from './kubelet-data.ts';
import type { Usage } from './usage.ts';

const GROUP_VERSION = 'metrics.k8s.io/v1beta1';
const ROOT = `/apis/${GROUP_VERSION}`;
/** Over which usage is said to be measured; the same as metrics-server's resolution. */
const WINDOW = '15s';
const RESOURCES = ['cpu', 'memory'] as const;

/** Where a request leads: null for paths of others. */
export interface MetricsRequest {
  /** '' for discovery. */
  readonly resource: '' | 'nodes' | 'pods';
  readonly namespace: string;
  readonly name: string;
}

/** Takes a path apart; null where it is none of this API. */
export function metricsRequest(path: string): MetricsRequest | null {
  if (path === '/apis/metrics.k8s.io' || path === ROOT) {
    return { resource: '', namespace: '', name: '' };
  }
  const match = /^(?:\/namespaces\/([^/]+))?\/(nodes|pods)(?:\/([^/]+))?$/.exec(
    path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length) : '',
  );
  if (match === null) return null;
  const [, namespace = '', resource = '', name = ''] = match;
  if (resource === 'nodes' && namespace !== '') return null;
  if (resource === 'pods' && namespace === '' && name !== '') return null;
  return { resource: resource as 'nodes' | 'pods', namespace, name };
}

export class MetricsApi {
  readonly #data: KubeletData;
  readonly #usage: Usage;
  readonly #nowMs: () => number;

  constructor(data: KubeletData, usage: Usage, nowMs: () => number) {
    this.#data = data;
    this.#usage = usage;
    this.#nowMs = nowMs;
  }

  /** The answer's object; its `code` where it is a Status. */
  async answer(path: string, query: URLSearchParams): Promise<JsonObject> {
    const request = metricsRequest(path);
    if (request === null) return notFound('');
    const labelSelector = query.get('labelSelector') ?? '';
    const fieldSelector = query.get('fieldSelector') ?? '';
    switch (request.resource) {
      case '':
        return path === ROOT ? RESOURCE_LIST : GROUP;
      case 'nodes':
        return request.name === '' ? this.#nodes(labelSelector) : this.#node(request.name);
      case 'pods':
        return this.#pods(request, { labelSelector, fieldSelector });
    }
  }

  async #node(name: string): Promise<JsonObject> {
    const node = await this.#data.node(name);
    if (node === null) return notFound(`nodes.metrics.k8s.io "${name}" not found`);
    const pods = await this.#data.podsOn(name);
    const used = new Map<string, number>();
    for (const pod of pods.filter(isRunning)) this.#add(used, node, pod);
    return { ...this.#metrics(node, 'NodeMetrics'), usage: usageOf(used) };
  }

  async #nodes(labelSelector: string): Promise<JsonObject> {
    const nodes = await this.#data.nodes(labelSelector);
    const byName = new Map(nodes.map((node) => [stringAt(node, 'metadata', 'name'), node]));
    const used = new Map<string, Map<string, number>>();
    await this.#data.eachPod('', { fieldSelector: 'spec.nodeName!=' }, (pod) => {
      const name = stringAt(pod, 'spec', 'nodeName');
      const node = byName.get(name);
      if (node === undefined || !isRunning(pod)) return;
      const own = used.get(name) ?? new Map<string, number>();
      used.set(name, own);
      this.#add(own, node, pod);
    });
    const items = nodes.map((node) => {
      const own = used.get(stringAt(node, 'metadata', 'name')) ?? new Map<string, number>();
      return { ...this.#metrics(node, ''), usage: usageOf(own) };
    });
    return listOf('NodeMetricsList', items);
  }

  #add(used: Map<string, number>, node: JsonObject, pod: JsonObject): void {
    for (const resource of RESOURCES) {
      const own = this.#usage.ofPod(node, pod, resource, '', false);
      used.set(resource, (used.get(resource) ?? 0) + own);
    }
  }

  async #pods(
    { namespace, name }: MetricsRequest,
    selectors: Readonly<Record<string, string>>,
  ): Promise<JsonObject> {
    const items: JsonObject[] = [];
    const given = name === '' ? selectors : { fieldSelector: `metadata.name=${name}` };
    await this.#data.eachPod(namespace, given, (pod) => {
      if (isRunning(pod)) items.push(this.#podMetrics(pod));
    });
    if (name === '') return listOf('PodMetricsList', items);
    const [only] = items;
    if (only === undefined) {
      return notFound(`pods.metrics.k8s.io "${namespace}/${name}" not found`);
    }
    return { kind: 'PodMetrics', apiVersion: GROUP_VERSION, ...only };
  }

  #podMetrics(pod: JsonObject): JsonObject {
    // the node itself matters to few expressions, and to none of ours
    const node = { metadata: { name: stringAt(pod, 'spec', 'nodeName') } };
    const containers = listAt(pod, 'spec', 'containers')
      .filter((one) => isObject(one))
      .map((container) => {
        const name = stringAt(container, 'name');
        const used = new Map<string, number>();
        for (const resource of RESOURCES) {
          used.set(resource, this.#usage.ofPod(node, pod, resource, name, false));
        }
        return { name, usage: usageOf(used) };
      });
    return { ...this.#metrics(pod, ''), containers };
  }

  #metrics(of: JsonObject, kind: string): JsonObject {
    const timestamp = `${new Date(this.#nowMs()).toISOString().slice(0, -5)}Z`;
    const namespace = stringAt(of, 'metadata', 'namespace');
    const labels = objectAt(of, 'metadata', 'labels') ?? {};
    return {
      ...(kind === '' ? {} : { kind, apiVersion: GROUP_VERSION }),
      metadata: {
        name: stringAt(of, 'metadata', 'name'),
        ...(namespace === '' ? {} : { namespace }),
        creationTimestamp: timestamp,
        ...(Object.keys(labels).length === 0 ? {} : { labels }),
      },
      timestamp,
      window: WINDOW,
    };
  }
}

/** As metrics-server writes them: nanoseconds of a core, and KiB where they are whole. */
function usageOf(used: ReadonlyMap<string, number>): JsonObject {
  const cpu = Math.round((used.get('cpu') ?? 0) * 1e9);
  const memory = Math.round(used.get('memory') ?? 0);
  const isWhole = memory > 0 && memory % 1024 === 0;
  return {
    cpu: cpu === 0 ? '0' : `${cpu}n`,
    memory: isWhole ? `${memory / 1024}Ki` : String(memory),
  };
}

function listOf(kind: string, items: readonly JsonObject[]): JsonObject {
  return { kind, apiVersion: GROUP_VERSION, metadata: {}, items: [...items] };
}

function notFound(message: string): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: message === '' ? 'the server could not find the requested resource' : message,
    reason: 'NotFound',
    code: 404,
  };
}

const VERSION: JsonObject = { groupVersion: GROUP_VERSION, version: 'v1beta1' };
const GROUP: JsonObject = {
  kind: 'APIGroup',
  apiVersion: 'v1',
  name: 'metrics.k8s.io',
  versions: [VERSION],
  preferredVersion: VERSION,
};
const RESOURCE_LIST: JsonObject = {
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: GROUP_VERSION,
  resources: [
    {
      name: 'nodes',
      singularName: '',
      namespaced: false,
      kind: 'NodeMetrics',
      verbs: ['get', 'list'],
    },
    {
      name: 'pods',
      singularName: '',
      namespaced: true,
      kind: 'PodMetrics',
      verbs: ['get', 'list'],
    },
  ],
};

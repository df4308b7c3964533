/**
 * ResourceQuotas: what is used is counted anew when a quota changes, when something that it counts
 * goes, and now and then. Admission charges what comes; this gives back what went.
 */
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import { resources, type Resource } from '@megaplane/machinery/kinds';
import { parseQuantity } from '@megaplane/machinery/quantity';
import { addAmounts, type Amounts } from '@megaplane/machinery/quota/pod-resources';
import { countName, isInScope, usageOf } from '@megaplane/machinery/quota/quota-usage';
import { ObjectCache } from './object-cache.ts';
import type { PodRows } from './pod-rows.ts';
import { PHASE_SUCCEEDED } from './replica-pods.ts';
import type { SharedInformers } from './shared-informers.ts';
import { Workers, type WorkResult } from './workers.ts';

const WORKERS = 5;
/** What goes together is given back together. */
const GATHER_MS = 100;
/** Each quota is counted anew so often, whatever was heard. */
const RESYNC_MS = 300_000;
const QUOTAS = '/api/v1/resourcequotas';
/** Kinds beside pods whose going is heard of at once; the others wait for the next count. */
const HEARD = ['services', 'persistentvolumeclaims', 'configmaps', 'secrets'] as const;

export interface QuotaPartOptions {
  readonly client: Client;
  readonly informers: SharedInformers;
  readonly pods: PodRows;
  readonly onError: (error: unknown) => void;
}

export class QuotaPart {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #quotas: ObjectCache;

  constructor({ client, informers, pods, onError }: QuotaPartOptions) {
    this.#client = client;
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError);
    this.#quotas = new ObjectCache(informers, QUOTAS, (key, after, before) => {
      const isOther = !equals(objectAt(after, 'spec') ?? {}, objectAt(before, 'spec') ?? {});
      const isBehind = !equals(
        objectAt(after, 'status', 'hard') ?? {},
        objectAt(after, 'spec', 'hard') ?? {},
      );
      if (after !== undefined && (isOther || isBehind)) this.#workers.add(key);
    });
    for (const resource of HEARD) {
      const informer = informers.subscribe(
        { path: `/api/v1/${resource}` },
        { onUpsert: () => {}, onDelete: (row) => this.#gone(informer.keyOf(row)) },
      );
    }
    pods.listen({
      changed: (row, _bytes, scan) => {
        const { pods: table, informer } = pods;
        const isOver = table.phaseOf(row) >= PHASE_SUCCEEDED;
        const hasEnded = isOver && table.phaseBefore < PHASE_SUCCEEDED;
        if (scan === null || hasEnded) this.#gone(informer.keyOf(row));
      },
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** Something in the namespace of `key` is gone, or counts no more. */
  #gone(key: string): void {
    for (const quota of this.#quotas.inNamespace(key.slice(0, key.indexOf('/')))) {
      this.#workers.addAfter(quota, GATHER_MS);
    }
  }

  async #work(key: string): Promise<WorkResult> {
    const [namespace = '', name = ''] = key.split('/');
    const path = `/api/v1/namespaces/${namespace}/resourcequotas/${name}`;
    // Admission writes the status too: count against what the server has now.
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return answer.code === 404 ? 'done' : 'retry';
    const quota = answer.object;
    const hard = objectAt(quota, 'spec', 'hard') ?? {};
    const used = await this.#count(namespace, quota, Object.keys(hard));
    if (used === undefined) return 'retry';
    const status = { hard, used };
    if (equals(objectAt(quota, 'status') ?? {}, status)) return { againMs: RESYNC_MS };
    const body = { ...quota, apiVersion: 'v1', kind: 'ResourceQuota', status };
    const written = await this.#client.request({ method: 'PUT', path: `${path}/status`, body });
    return written.ok || written.code === 404 ? { againMs: RESYNC_MS } : 'retry';
  }

  /** What the namespace uses of each name; undefined where it cannot be counted now. */
  async #count(
    namespace: string,
    quota: JsonObject,
    names: readonly string[],
  ): Promise<JsonObject | undefined> {
    const total: Amounts = new Map();
    for (const resource of countedResources(names)) {
      const result = await readPages({
        client: this.#client,
        path: collectionPath(resource, namespace),
        mustBeConsistent: true,
        onItem: (bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
          const object = JSON.parse(text.toString('utf8')) as JsonObject;
          if (isInScope(resource, object, quota)) addAmounts(total, usageOf(resource, object));
        },
      });
      // A kind that the server does not have is used by nobody.
      if (!result.ok && result.status.code !== 404) return undefined;
    }
    const used: JsonObject = {};
    for (const name of names) used[name] = total.get(name)?.toString() ?? zeroOf(quota, name);
    return used;
  }
}

/** Nothing, in the form of the limit: `0`. */
function zeroOf(quota: JsonObject, name: string): string {
  const limit = parseQuantity(stringAt(quota, 'spec', 'hard', name));
  return typeof limit === 'string' ? '0' : limit.subtract(limit).toString();
}

/** The kinds that must be listed for these names. */
function countedResources(names: readonly string[]): Resource[] {
  const wanted = new Set<string>();
  const isCompute = (name: string): boolean =>
    /^(pods|cpu|memory|ephemeral-storage|hugepages-.*)$/.test(name) ||
    (/^(requests|limits)\./.test(name) && name !== 'requests.storage');
  for (const name of names) {
    if (name.startsWith('count/')) wanted.add(name);
    else if (isCompute(name)) wanted.add('count/pods');
    else if (name.startsWith('services')) wanted.add('count/services');
    else if (/storage/.test(name) || name === 'persistentvolumeclaims') {
      wanted.add('count/persistentvolumeclaims');
    } else wanted.add(`count/${name}`);
  }
  const seen = new Set<string>();
  return resources().filter((resource) => {
    const name = countName(resource);
    const isNeeded = resource.served && resource.namespaced && wanted.has(name) && !seen.has(name);
    if (isNeeded) seen.add(name);
    return isNeeded;
  });
}

function collectionPath({ group, apiVersion, resource }: Resource, namespace: string): string {
  const root = group === '' ? '/api' : '/apis';
  return `${root}/${apiVersion}/namespaces/${namespace}/${resource}`;
}

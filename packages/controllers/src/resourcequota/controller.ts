/**
 * ResourceQuotas: what is used is counted anew when a quota changes, when something that it counts
 * goes, and now and then. Admission charges what comes; this gives back what went.
 */
import { putMember } from '@megaplane/base/members';
import { Uint32Column } from '@megaplane/base/column';
import type { Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { resources, type Resource } from '@megaplane/machinery/kinds';
import { parseQuantity } from '@megaplane/machinery/quantity';
import { addAmounts, type Amounts } from '@megaplane/machinery/quota/pod-resources';
import {
  countName,
  countsDevices,
  isInScope,
  usageOf,
} from '@megaplane/machinery/quota/quota-usage';
import { findPath, pathOf, type ScanPath, skipValue } from '@megaplane/machinery/scan';
import type { ControllerContext } from '../framework/controller-context.ts';
import {
  collectionPath as listPath,
  groupResourceOf,
  type ApiResource,
} from '../framework/api-resources.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { PodCharges } from './pod-charges.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { PHASE_SUCCEEDED } from '../columns/replica-pods.ts';
import type { SharedInformers } from '../framework/shared-informers.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
/** What goes together is given back together. */
const GATHER_MS = 100;
/** Each quota is counted anew so often, whatever was heard. */
const RESYNC_MS = 300_000;
const QUOTAS = '/api/v1/resourcequotas';
/** Kinds beside pods whose going is always heard of; others where a quota names them. */
const HEARD = ['services', 'persistentvolumeclaims', 'configmaps', 'secrets'] as const;
/** What quotas charge by in a kind, where that can change: as upstream's update filter has it. */
const CHARGED: ReadonlyMap<string, readonly ScanPath[]> = new Map([
  ['services', [pathOf('spec', 'type'), pathOf('spec', 'ports')]],
  [
    'persistentvolumeclaims',
    [
      pathOf('spec', 'resources'),
      pathOf('spec', 'volumeAttributesClassName'),
      pathOf('status', 'allocatedResources'),
    ],
  ],
]);
const COUNT = 'count/';
const PODS = 'count/pods';
const DEVICE_CLAIMS = 'count/resourceclaims.resource.k8s.io';
const EXTENDED_NAME = 'extendedResourceName';
const DEVICE_CLASSES = '/apis/resource.k8s.io/v1/deviceclasses';

export interface QuotaControllerOptions extends ControllerContext {
  readonly pods: PodRows;
  /** How often each is counted without a reason; default 5 min. */
  readonly resyncMs?: number | undefined;
}

export class QuotaController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #resyncMs: number;
  readonly #quotas: ObjectCache;
  readonly #informers: SharedInformers;
  /** What the server has beyond the kinds of Kubernetes, by the name that quotas count it under. */
  #custom: ReadonlyMap<string, ApiResource> = new Map();
  readonly #heard: Set<string> = new Set();
  readonly #charges: PodCharges = new PodCharges();

  constructor({ client, informers, pods, onError, workers, resyncMs }: QuotaControllerOptions) {
    this.#resyncMs = resyncMs ?? RESYNC_MS;
    this.#client = client;
    this.#informers = informers;
    this.#workers = new Workers(
      client.timers,
      workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('resourcequota_primary'),
    );
    this.#quotas = new ObjectCache(informers, QUOTAS, (key, after, before) => {
      // What is told in the status is this program's own, or put right in the next round.
      if (after === undefined) return;
      if (before !== undefined && equals(hardOf(after), hardOf(before))) return;
      this.#workers.add(key);
      this.#hear(after);
    });
    for (const resource of HEARD) this.#hearAll(`/api/v1/${resource}`, CHARGED.get(resource));
    pods.listen({
      changed: (row, bytes, scan) => {
        const { pods: table, informer } = pods;
        const isOver = table.phaseOf(row) >= PHASE_SUCCEEDED;
        const hasEnded = isOver && table.phaseBefore < PHASE_SUCCEEDED;
        if (scan === null || hasEnded) this.#gone(informer.keyOf(row));
        if (scan === null) this.#charges.drop(row);
        else if (this.#charges.take(row, bytes, scan)) this.#gone(informer.keyOf(row));
      },
    });
  }

  /** Hears of what goes, and of what changes in `fields`, by which it is charged. */
  #hearAll(path: string, fields: readonly ScanPath[] | undefined): void {
    if (fields === undefined) {
      this.#informers.hearDeletions({ path }, (key) => this.#gone(key));
      return;
    }
    const charged = new Uint32Column();
    const informer = this.#informers.subscribe(
      { path },
      {
        onUpsert: (row, isNew, bytes, start, end) => {
          const before = charged.get(row);
          charged.set(row, hashAt(bytes, start, end, fields));
          if (!isNew && charged.get(row) !== before) this.#gone(informer.keyOf(row));
        },
        onDelete: (row) => this.#gone(informer.keyOf(row)),
      },
    );
  }

  /** What discovery tells; with `isWhole` false something of it may be missing. */
  setResources(found: readonly ApiResource[], isWhole: boolean): void {
    const custom = new Map(isWhole ? [] : this.#custom);
    for (const one of found) {
      const name = COUNT + groupResourceOf(one);
      const isCounted = one.namespaced && one.verbs.includes('list');
      if (isCounted && !BUILT_IN.has(name)) custom.set(name, one);
    }
    for (const [name, before] of this.#custom) {
      const after = custom.get(name);
      if (after !== undefined && listPath(after) === listPath(before)) continue;
      if (this.#heard.delete(name)) this.#informers.drop({ path: listPath(before) });
    }
    this.#custom = custom;
    for (const key of this.#quotas.keys()) {
      const quota = this.#quotas.get(key);
      if (quota !== undefined && this.#hear(quota)) this.#workers.add(key);
    }
  }

  /** Listens for what goes of the kinds that a quota counts; true where one of them is new. */
  #hear(quota: JsonObject): boolean {
    let isNew = false;
    for (const name of Object.keys(hardOf(quota)).map(countedName)) {
      const path = this.#pathOf(name);
      if (path === undefined || this.#heard.has(name)) continue;
      this.#heard.add(name);
      if (name === PODS || HEARD.some((one) => name === COUNT + one)) continue;
      this.#informers.hearDeletions({ path }, (key) => this.#gone(key));
      this.#informers.start();
      isNew = true;
    }
    return isNew;
  }

  /** Where the objects are that a `count/` name counts, of all namespaces. */
  #pathOf(name: string): string | undefined {
    const builtIn = BUILT_IN.get(countsDevices(name) ? DEVICE_CLAIMS : name);
    if (builtIn !== undefined) return collectionPath(builtIn, '');
    const custom = this.#custom.get(name);
    return custom === undefined ? undefined : listPath(custom);
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
    const hard = hardOf(quota);
    const used = await this.#count(namespace, quota, Object.keys(hard));
    if (used === undefined) return 'retry';
    const status = { hard, used };
    if (equals(objectAt(quota, 'status') ?? {}, status)) return { againMs: this.#resyncMs };
    const body = { ...quota, apiVersion: 'v1', kind: 'ResourceQuota', status };
    const written = await this.#client.request({ method: 'PUT', path: `${path}/status`, body });
    if (!written.ok && written.code !== 404) return 'retry';
    // What came meanwhile was not charged, as admission goes by the limits in the status.
    const wasCharged = equals(objectAt(quota, 'status', 'hard') ?? {}, hard);
    return { againMs: wasCharged ? this.#resyncMs : GATHER_MS };
  }

  /** What the namespace uses of each name; undefined where it cannot be counted now. */
  async #count(
    namespace: string,
    quota: JsonObject,
    names: readonly string[],
  ): Promise<JsonObject | undefined> {
    const total: Amounts = new Map();
    const counted = countedResources(names);
    const extended = new Map<string, string>();
    if (counted.some((resource) => countName(resource) === DEVICE_CLAIMS)) {
      const isRead = await this.#read(DEVICE_CLASSES, (one) => {
        extended.set(stringAt(one, 'metadata', 'name'), stringAt(one, 'spec', EXTENDED_NAME));
      });
      if (!isRead) return undefined;
    }
    const extendedNameOf = (className: string): string => extended.get(className) ?? '';
    for (const resource of counted) {
      const isRead = await this.#read(collectionPath(resource, namespace), (object) => {
        if (!isInScope(resource, object, quota)) return;
        addAmounts(total, usageOf(resource, object, extendedNameOf));
      });
      if (!isRead) return undefined;
    }
    const isScoped =
      listAt(quota, 'spec', 'scopes').length > 0 ||
      objectAt(quota, 'spec', 'scopeSelector') !== undefined;
    const used: JsonObject = {};
    for (const name of names) {
      const custom = this.#custom.get(name);
      if (custom !== undefined) {
        let count = 0;
        // Scopes are of pods and claims: other kinds are in none.
        const path = listPath(custom, namespace);
        if (!isScoped && !(await this.#read(path, () => void count++))) return undefined;
        putMember(used, name, String(count));
      } else if (!name.startsWith(COUNT) || BUILT_IN.has(name)) {
        putMember(used, name, total.get(name)?.toString() ?? zeroOf(quota, name));
      } else {
        // Nobody serves it now: what was counted stands, as upstream has it.
        const before = valueAt(quota, 'status', 'used', name);
        if (before !== undefined) putMember(used, name, before);
      }
    }
    return used;
  }

  /** Calls `each` for all objects of a collection; false where they cannot be read now. */
  async #read(path: string, each: (object: JsonObject) => void): Promise<boolean> {
    const result = await readPages({
      client: this.#client,
      path,
      mustBeConsistent: true,
      onItem: (bytes, start, end) => {
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
        each(parseJson(text.toString('utf8')) as JsonObject);
      },
    });
    // A kind that the server does not have is used by nobody.
    return result.ok || result.status.code === 404;
  }
}

/** Of the text of these fields: FNV-1a. */
function hashAt(
  bytes: Uint8Array,
  start: number,
  end: number,
  fields: readonly ScanPath[],
): number {
  let hash = 0x811c9dc5;
  for (const field of fields) {
    const from = findPath(bytes, start, end, field);
    const to = from < 0 ? from : skipValue(bytes, from, end);
    for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    hash = Math.imul(hash ^ 0xff, 0x01000193);
  }
  return hash >>> 0;
}

/** Kinds of Kubernetes that quotas can count, by the name that they count them under. */
const BUILT_IN: ReadonlyMap<string, Resource> = new Map(
  resources()
    .filter((resource) => resource.served && resource.namespaced)
    .toReversed()
    .map((resource) => [countName(resource), resource]),
);

function hardOf(quota: JsonObject): JsonObject {
  return objectAt(quota, 'spec', 'hard') ?? {};
}

/** Nothing, in the form of the limit: `0`. */
function zeroOf(quota: JsonObject, name: string): string {
  const limit = parseQuantity(stringAt(quota, 'spec', 'hard', name));
  return typeof limit === 'string' ? '0' : limit.subtract(limit).toString();
}

/** The kinds of Kubernetes that must be listed for these names. */
function countedResources(names: readonly string[]): Resource[] {
  const wanted = new Set(names.map(countedName));
  return [...wanted].map((name) => BUILT_IN.get(name)).filter((one) => one !== undefined);
}

/** The kind that a name of a quota is about, by the name that its objects are counted under. */
function countedName(name: string): string {
  if (countsDevices(name)) return DEVICE_CLAIMS;
  if (name.startsWith(COUNT)) return name;
  const isCompute =
    /^(pods|cpu|memory|ephemeral-storage|hugepages-.*)$/.test(name) ||
    (/^(requests|limits)\./.test(name) && name !== 'requests.storage');
  if (isCompute) return PODS;
  if (name.startsWith('services')) return 'count/services';
  const isClaim = /storage/.test(name) || name === 'persistentvolumeclaims';
  return isClaim ? 'count/persistentvolumeclaims' : COUNT + name;
}

function collectionPath({ group, apiVersion, resource }: Resource, namespace: string): string {
  const root = group === '' ? '/api' : '/apis';
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
  return `${root}/${apiVersion}${scope}/${resource}`;
}

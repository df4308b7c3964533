/** EndpointSlices and Endpoints of services with selectors. */
import { Uint32Column } from '@megaplane/base/column';
import { KeyTable } from '@megaplane/base/keytable';
import type { Random } from '@megaplane/base/random';
import type { ClientResponse, Method } from '@megaplane/client/client';
import type { Informer } from '@megaplane/client/informer';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { findPath, pathOf, skipValue } from '@megaplane/machinery/scan';
import { mapSelector } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import { formatTime } from '@megaplane/machinery/times';
import type { Announce } from '../framework/event-recorder.ts';
import type { SliceRules } from '../framework/options.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { isByTopology } from './endpoint-hints.ts';
import { ENDPOINTS_PER_SLICE_MAX, MANAGED_BY, MANAGER } from './endpoint-slices.ts';
import { planSlices, SERVICE_NAME } from './endpoint-slices.ts';
import { ServiceSliceMetrics } from './endpoint-metrics.ts';
import { planEndpoints } from './endpoints-object.ts';
import { Expectations } from '../framework/expectations.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { revisionOf } from '../framework/pod-control.ts';
import { PodEndpoints } from './pod-endpoints.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { PHASE_SUCCEEDED, REPLICA_DELETING, REPLICA_READY } from '../columns/replica-pods.ts';
import { hasSelector, publishesNotReady, TriggerTimes } from './service-endpoints.ts';
import type { Backend } from './service-endpoints.ts';
import { TopologyHints } from './topology-hints.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { ZoneProcessors } from './zone-processors.ts';

const WORKERS = 5;
/** defaultSyncBackOff and maxSyncBackOff of upstream's endpointslice_controller.go. */
const RETRY = { minMs: 1_000, maxMs: 1_000_000 };
/** Large services gather changes: ten endpoints wait a millisecond, to a second at most. */
const ENDPOINTS_PER_MS = 10;
const GATHER_MS_MAX = 1_000;
const EXPECTATION_LOOK_MS = 300_000;
/** How long a service waits for nodes that its hints need, and those that are off for a look. */
const NODES_LOOK_MS = 100;
const ZONE = pathOf('topology.kubernetes.io/zone');
const never = (): boolean => true;

/** Pods on unknown nodes that one event tells of. */
const LOST_TOLD_MAX = 8;

export interface EndpointsControllerOptions extends ControllerContext {
  readonly announce: Announce;
  readonly pods: PodRows;
  readonly random: Random;
  readonly isSlices: boolean;
  readonly isEndpoints: boolean;
  readonly rules?: SliceRules | undefined;
}

interface Selecting {
  program: LabelProgram;
  readonly sliceTimes: TriggerTimes;
  readonly endpointsTimes: TriggerTimes;
  readonly hints: TopologyHints;
  size: number;
}

export class EndpointsController {
  readonly #options: EndpointsControllerOptions;
  readonly #workers: Workers<string>;
  readonly #services: ObjectCache;
  readonly #slices: ObjectCache;
  readonly #endpoints: ObjectCache;
  readonly #nodes: Informer;
  readonly #zones: KeyTable;
  /** By row of the nodes' informer: id of the zone + 1. */
  readonly #zoneOf = new Uint32Column();
  readonly #records = new PodEndpoints();
  readonly #selecting: Map<string, Selecting> = new Map();
  readonly #sliceWrites = new Expectations();
  readonly #endpointsWrites = new Expectations();
  readonly #processors: ZoneProcessors;
  readonly #metrics: ServiceSliceMetrics | undefined;
  #cancelLook: (() => void) | null = null;

  constructor(options: EndpointsControllerOptions) {
    this.#options = options;
    const { client, informers, pods } = options;
    this.#zones = new KeyTable({ random: options.random });
    const endpointsMax = options.rules?.endpointsMax ?? ENDPOINTS_PER_SLICE_MAX;
    if (options.isSlices) {
      this.#metrics = new ServiceSliceMetrics(informers.metrics, endpointsMax);
    }
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      options.onError,
      informers.queues.queue('endpoint_slice'),
      RETRY,
    );
    this.#processors = new ZoneProcessors(informers, () => this.#lookAtHints());
    const synced = (): void => this.#addWaiting();
    this.#services = new ObjectCache(informers, '/api/v1/services', (key, after, before) =>
      this.#serviceChanged(key, after, before),
    );
    const slices = '/apis/discovery.k8s.io/v1/endpointslices';
    const ofOwner = (_key: string, after?: JsonObject, before?: JsonObject): void =>
      this.#sliceChanged(after ?? before);
    this.#slices = new ObjectCache(informers, slices, ofOwner, synced);
    // As upstream: who edits Endpoints has them so until something happens to the service or a pod.
    const ofName = (key: string, after?: JsonObject): void => {
      if (after === undefined) this.#touch(key);
    };
    this.#endpoints = new ObjectCache(informers, '/api/v1/endpoints', ofName, synced);
    this.#nodes = informers.subscribe(
      { path: '/api/v1/nodes' },
      {
        onUpsert: (row, _isNew, bytes, _start, _end, scan) => this.#setZone(row, bytes, scan),
        onDelete: () => {},
      },
    );
    pods.listen({
      changed: (row, bytes, scan) => this.#podChanged(row, bytes, scan),
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
    this.#cancelLook?.();
  }

  /** Nodes have changed: services of which a zone has too little now are looked at. */
  #lookAtHints(): void {
    this.#cancelLook ??= this.#options.client.timers.after(NODES_LOOK_MS, () => {
      this.#cancelLook = null;
      const { shares } = this.#processors;
      for (const [key, { hints }] of this.#selecting) {
        if (hints.isOverloaded(shares)) this.#workers.add(key);
      }
    });
  }

  #addWaiting(): void {
    for (const key of this.#sliceWrites.keys()) this.#workers.add(key);
    for (const key of this.#endpointsWrites.keys()) this.#workers.add(key);
  }

  #setZone(row: number, bytes: Uint8Array, { labelsStart, labelsEnd }: ObjectScan): void {
    const at = labelsStart < 0 ? -1 : findPath(bytes, labelsStart, labelsEnd, ZONE);
    if (at < 0) return this.#zoneOf.set(row, 0);
    const id = this.#zones.insert(bytes, at + 1, skipValue(bytes, at, labelsEnd) - 1);
    return this.#zoneOf.set(row, id + 1);
  }

  #serviceChanged(
    key: string,
    after: JsonObject | undefined,
    before: JsonObject | undefined,
  ): void {
    const selector = objectAt(after, 'spec', 'selector');
    const isOther = stringAt(after, 'metadata', 'uid') !== stringAt(before, 'metadata', 'uid');
    const known = this.#selecting.get(key);
    if (after === undefined || !hasSelector(after)) {
      this.#selecting.delete(key);
    } else if (isOther || known === undefined) {
      const program = new LabelProgram(mapSelector(selector));
      const sliceTimes = new TriggerTimes();
      const endpointsTimes = new TriggerTimes();
      const hints = new TopologyHints();
      this.#selecting.set(key, { program, sliceTimes, endpointsTimes, hints, size: 0 });
    } else if (!equals(selector, objectAt(before, 'spec', 'selector'))) {
      // When it began to be is no news where it selects other pods.
      known.program = new LabelProgram(mapSelector(selector));
    }
    if (after !== undefined && isByTopology(after)) this.#processors.start();
    this.#workers.add(key);
  }

  #sliceChanged(slice: JsonObject | undefined): void {
    if (slice === undefined || stringAt(slice, 'metadata', 'labels', MANAGED_BY) !== MANAGER)
      return;
    const namespace = stringAt(slice, 'metadata', 'namespace');
    const service = stringAt(slice, 'metadata', 'labels', SERVICE_NAME);
    this.#touch(`${namespace}/${service}`);
  }

  #touch(key: string): void {
    if (this.#services.get(key) !== undefined) this.#workers.add(key);
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    const { pods } = this.#options.pods;
    const isNew = pods.flagsBefore === 0;
    const isMoved =
      scan === null ? this.#records.remove(row) : this.#records.upsert(row, isNew, bytes, scan);
    const labels = pods.labelsOf(row);
    const isRelabelled = labels !== pods.labelsBefore;
    if (!isMoved && !isRelabelled && pods.flags.get(row) === pods.flagsBefore) return;
    this.#addSelecting(labels);
    if (isRelabelled) this.#addSelecting(pods.labelsBefore);
  }

  #addSelecting(labels: number): void {
    if (labels < 0) return;
    const { pods } = this.#options.pods;
    for (const key of this.#services.inNamespace(pods.namespaceOfSet(labels))) {
      const selecting = this.#selecting.get(key);
      if (selecting === undefined || !pods.matches(labels, selecting.program)) continue;
      const gatherMs = Math.min(GATHER_MS_MAX, Math.floor(selecting.size / ENDPOINTS_PER_MS));
      const delayMs = Math.max(gatherMs, this.#options.rules?.batchMs ?? 0);
      if (delayMs === 0) this.#workers.add(key);
      else this.#workers.addAfter(key, delayMs);
    }
  }

  async #work(key: string): Promise<WorkResult> {
    // Events of one chunk are all delivered before the first of them is worked on.
    await Promise.resolve();
    const service = this.#services.get(key);
    const { isSlices, isEndpoints } = this.#options;
    if (service === undefined) return this.#serviceGone(key);
    const selecting = this.#selecting.get(key);
    const isDeleting = stringAt(service, 'metadata', 'deletionTimestamp') !== '';
    if (selecting === undefined || isDeleting) return 'done';
    const { backends, lost } = this.#backendsOf(service, selecting.program);
    selecting.size = backends.length;
    const results: WorkResult[] = [];
    const all = lost.length === 0 ? backends : [...backends, ...lost];
    if (isSlices) {
      results.push(await this.#syncSlices(key, service, selecting, backends, all));
      this.#metrics?.ended(results[0] !== 'retry' && lost.length === 0);
    }
    if (isEndpoints) results.push(await this.#syncEndpoints(key, service, selecting, all));
    // A pod names a node that is not in view: the slice is written without it, and again later.
    if (lost.length > 0 && isSlices) this.#tellLost(service, lost);
    if (results.includes('retry') || (lost.length > 0 && isSlices)) return 'retry';
    return results.find((one) => one !== 'done') ?? 'done';
  }

  async #serviceGone(key: string): Promise<WorkResult> {
    this.#sliceWrites.forget(key);
    this.#metrics?.forget(key);
    this.#endpointsWrites.forget(key);
    if (!this.#options.isEndpoints || this.#endpoints.get(key) === undefined) return 'done';
    const [namespace = '', name = ''] = key.split('/');
    const path = `/api/v1/namespaces/${namespace}/endpoints/${name}`;
    const answer = await this.#options.client.request({ method: 'DELETE', path });
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }

  #tellLost(service: JsonObject, lost: readonly Backend[]): void {
    const { namespace, name, uid } = metadataOf(service);
    const at = `${namespace}/${name}`;
    const texts = lost
      .slice(0, LOST_TOLD_MAX)
      .map((pod) => `skipping Pod ${pod.name} for Service ${at}: Node ${pod.node} Not Found`);
    const [first = ''] = texts;
    const why = texts.length === 1 ? first : `[${texts.join(', ')}]`;
    const text = `Error updating Endpoint Slices for Service ${at}: ${why}`;
    const reason = 'FailedToUpdateEndpointSlices';
    this.#options.announce('Service', namespace, name, 'Warning', reason, text, uid);
  }

  /** What the service selects and can be reached; `lost` are on nodes that are not known. */
  #backendsOf(
    service: JsonObject,
    program: LabelProgram,
  ): { backends: Backend[]; lost: Backend[] } {
    const { informer, pods } = this.#options.pods;
    const namespace = stringAt(service, 'metadata', 'namespace');
    const backends: Backend[] = [];
    const lost: Backend[] = [];
    for (let set = pods.firstSet(namespace); set >= 0; set = pods.nextSet(set)) {
      if (!pods.matches(set, program)) continue;
      for (let row = pods.firstOfSet(set); row >= 0; row = pods.nextOfSet(row)) {
        const record = this.#records.get(row);
        if (record === undefined || pods.phaseOf(row) >= PHASE_SUCCEEDED) continue;
        const node = record.node === '' ? -1 : this.#nodes.find('', record.node);
        const isLost = record.node !== '' && node < 0 && !publishesNotReady(service);
        const flags = pods.flags.get(row);
        const zone = node < 0 ? 0 : this.#zoneOf.get(node);
        (isLost ? lost : backends).push({
          ...record,
          namespace,
          name: informer.keyOf(row).slice(namespace.length + 1),
          isReady: (flags & REPLICA_READY) !== 0,
          isTerminating: (flags & REPLICA_DELETING) !== 0,
          readyS: pods.readyS.get(row),
          zone: zone === 0 ? '' : this.#zones.keyText(zone - 1),
        });
      }
    }
    return { backends, lost };
  }

  async #syncSlices(
    key: string,
    service: JsonObject,
    { sliceTimes, hints }: Selecting,
    backends: readonly Backend[],
    all: readonly Backend[],
  ): Promise<WorkResult> {
    if (isByTopology(service) && !this.#processors.isReady) return { againMs: NODES_LOOK_MS };
    const nowMs = this.#options.client.timers.nowMs();
    const seen = this.#slices.informer.revision;
    if (!this.#sliceWrites.isMet(key, seen, never, nowMs)) {
      return { againMs: EXPECTATION_LOOK_MS };
    }
    const { uid, namespace, name } = metadataOf(service);
    const owners = [uid, ''];
    const existing = owners
      .flatMap((owner) => [...this.#slices.controlledBy(owner, namespace)])
      .map((slice) => this.#slices.get(slice))
      .filter((slice) => slice !== undefined && isOurs(slice, name)) as JsonObject[];
    const triggerTime = sliceTimes.note(service, all, formatTime);
    const topology = { hints, shares: this.#processors.shares };
    const plan = planSlices(
      service,
      backends,
      existing,
      triggerTime,
      topology,
      this.#options.rules?.endpointsMax,
    );
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const at = (slice: JsonObject): string => `${path}/${metadataOf(slice).name}`;
    const answers = await Promise.all([
      ...plan.create.map((slice) => this.#send('POST', path, slice)),
      ...plan.update.map((slice) => this.#send('PUT', at(slice), slice)),
      ...plan.delete.map((slice) => this.#send('DELETE', at(slice))),
    ]);
    const changes = { create: plan.create, update: plan.update, gone: plan.delete };
    this.#metrics?.served(key, service, existing, changes, isByTopology(service));
    for (const { type, reason, message } of plan.events) {
      this.#options.announce('Service', namespace, name, type, reason, message, uid);
    }
    return this.#settle(key, this.#sliceWrites, answers, nowMs);
  }

  async #syncEndpoints(
    key: string,
    service: JsonObject,
    { endpointsTimes }: Selecting,
    backends: readonly Backend[],
  ): Promise<WorkResult> {
    const nowMs = this.#options.client.timers.nowMs();
    const seen = this.#endpoints.informer.revision;
    if (!this.#endpointsWrites.isMet(key, seen, never, nowMs)) {
      return { againMs: EXPECTATION_LOOK_MS };
    }
    const triggerTime = endpointsTimes.note(service, backends, formatTime);
    const existing = this.#endpoints.get(key);
    const object = planEndpoints(service, backends, existing, triggerTime);
    if (object === undefined) return 'done';
    const { namespace, name } = metadataOf(service);
    const path = `/api/v1/namespaces/${namespace}/endpoints`;
    const answer =
      existing === undefined
        ? await this.#send('POST', path, object)
        : await this.#send('PUT', `${path}/${name}`, object);
    return this.#settle(key, this.#endpointsWrites, [answer], nowMs);
  }

  #send(method: Method, path: string, body?: JsonObject): Promise<ClientResponse> {
    return this.#options.client.request({ method, path, ...(body === undefined ? {} : { body }) });
  }

  /** Remembers what was written; a refusal because the namespace goes is no failure. */
  #settle(
    key: string,
    writes: Expectations,
    answers: readonly ClientResponse[],
    nowMs: number,
  ): WorkResult {
    let result: WorkResult = 'done';
    for (const answer of answers) {
      if (!answer.ok) {
        const isHarmless = answer.code === 404 || answer.code === 403;
        if (!isHarmless) result = 'retry';
      } else if (stringAt(answer.object, 'metadata', 'resourceVersion') !== '') {
        writes.expectRevision(key, revisionOf(answer.object), nowMs);
      }
    }
    return result;
  }
}

/** Slices on their way out count no more: what was in them is to be elsewhere. */
function isOurs(slice: JsonObject, service: string): boolean {
  const labels = objectAt(slice, 'metadata', 'labels');
  const isDeleting = stringAt(slice, 'metadata', 'deletionTimestamp') !== '';
  return (
    stringAt(labels, SERVICE_NAME) === service &&
    !isDeleting &&
    stringAt(labels, MANAGED_BY) === MANAGER
  );
}

function metadataOf(object: JsonObject): { namespace: string; name: string; uid: string } {
  const metadata = objectAt(object, 'metadata');
  return {
    namespace: stringAt(metadata, 'namespace'),
    name: stringAt(metadata, 'name'),
    uid: stringAt(metadata, 'uid'),
  };
}

/** Endpoints that users keep for services without a selector are copied to EndpointSlices. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { Expectations } from '../framework/expectations.ts';
import { MirrorMetrics } from '../endpointslice/endpoint-metrics.ts';
import { ENDPOINTS_PER_SLICE_MAX } from '../endpointslice/endpoint-slices.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { revisionOf } from '../framework/pod-control.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import {
  isMirrored,
  MIRRORED_BY,
  planMirror,
  SUBSET_ADDRESSES_MAX,
  type MirrorPlan,
} from './mirrored-slices.ts';

const WORKERS = 5;
/** defaultSyncBackOff, maxSyncBackOff of upstream's endpointslicemirroring_controller.go. */
const RETRY = { minMs: 1_000, maxMs: 100_000 };
/** What was written must be seen before it is planned again; looked at so often. */
const SEEN_LOOK_MS = 500;
const SLICES = '/apis/discovery.k8s.io/v1/endpointslices';
const SERVICE_NAME = 'kubernetes.io/service-name';
const MARK = Buffer.from(MIRRORED_BY);
const never = (): boolean => false;

export interface MirroringOptions extends ControllerContext {
  readonly announce: Announce;
  readonly addressesMax?: number | undefined;
}

export class MirroringController {
  readonly #options: MirroringOptions;
  readonly #workers: Workers<string>;
  readonly #endpoints: ObjectCache;
  readonly #services: ObjectCache;
  readonly #slices: ObjectCache;
  readonly #ofService: Map<string, Set<string>> = new Map();
  readonly #writes = new Expectations();
  readonly #addressesMax: number;
  readonly #metrics: MirrorMetrics;

  constructor(options: MirroringOptions) {
    this.#options = options;
    this.#addressesMax = options.addressesMax ?? SUBSET_ADDRESSES_MAX;
    const { client, informers, onError } = options;
    this.#metrics = new MirrorMetrics(informers.metrics, ENDPOINTS_PER_SLICE_MAX);
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('endpoint_slice_mirroring'),
      RETRY,
    );
    const touch = (key: string): void => this.#workers.add(key);
    this.#endpoints = new ObjectCache(informers, '/api/v1/endpoints', touch);
    this.#services = new ObjectCache(informers, '/api/v1/services', touch);
    this.#slices = new ObjectCache(
      informers,
      SLICES,
      (key, after, before) => this.#sliceChanged(key, after, before),
      () => {},
      (object) => object.includes(MARK),
    );
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #sliceChanged(key: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    for (const slice of [before, after]) {
      const service = slice === undefined ? '' : serviceOf(slice);
      if (service === '') continue;
      const keys = this.#ofService.get(service) ?? new Set();
      if (slice === after) this.#ofService.set(service, keys.add(key));
      else if (keys.delete(key) && keys.size === 0) this.#ofService.delete(service);
      this.#workers.add(service);
    }
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const nowMs = this.#options.client.timers.nowMs();
    if (!this.#writes.isMet(key, this.#slices.informer.revision, never, nowMs)) {
      return { againMs: SEEN_LOOK_MS };
    }
    const slices = [...(this.#ofService.get(key) ?? [])]
      .map((one) => this.#slices.get(one))
      .filter((one) => one !== undefined);
    const endpoints = this.#endpoints.get(key);
    const service = this.#services.get(key);
    const isWanted =
      endpoints !== undefined &&
      service !== undefined &&
      isMirrored(endpoints) &&
      objectAt(service, 'spec', 'selector') === undefined;
    const plan = isWanted
      ? planMirror(endpoints, slices, this.#addressesMax)
      : { create: [], update: [], remove: slices, invalid: 0, skipped: 0 };
    const isDone = await this.#carryOut(key, plan);
    this.#count(key, isWanted, slices, plan, nowMs);
    if (isWanted) this.#tell(endpoints, plan);
    return isDone ? 'done' : 'retry';
  }

  #count(
    key: string,
    isWanted: boolean,
    slices: readonly JsonObject[],
    plan: MirrorPlan,
    startMs: number,
  ): void {
    const metrics = this.#metrics;
    metrics.took((this.#options.client.timers.nowMs() - startMs) / 1000);
    if (!isWanted && slices.length === 0) return metrics.forget(key);
    metrics.synced(key, slices, { create: plan.create, update: plan.update, gone: plan.remove });
    if (!isWanted) return metrics.forget(key);
    return metrics.skipped(plan.skipped);
  }

  async #carryOut(key: string, plan: MirrorPlan): Promise<boolean> {
    const [namespace = ''] = key.split('/');
    const collection = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const { client } = this.#options;
    let isDone = true;
    const at = (slice: JsonObject): string =>
      `${collection}/${stringAt(slice, 'metadata', 'name')}`;
    const requests = [
      ...plan.create.map((body) => ({ method: 'POST' as const, path: collection, body })),
      ...plan.update.map((body) => ({ method: 'PUT' as const, path: at(body), body })),
    ];
    for (const request of requests) {
      const answer = await client.request(request);
      if (answer.ok) {
        const revision = revisionOf(answer.object);
        this.#writes.expectRevision(key, revision, client.timers.nowMs());
      } else if (answer.code !== 404) isDone = false;
    }
    for (const slice of plan.remove) {
      const answer = await client.request({ method: 'DELETE', path: at(slice) });
      if (!answer.ok && answer.code !== 404) isDone = false;
    }
    return isDone;
  }

  #tell(endpoints: JsonObject, { invalid, skipped }: MirrorPlan): void {
    const metadata = objectAt(endpoints, 'metadata');
    const [namespace, name, uid] = ['namespace', 'name', 'uid'].map((one) =>
      stringAt(metadata, one),
    );
    const tell = (reason: string, message: string): void =>
      this.#options.announce(
        ...(['Endpoints', namespace ?? '', name ?? '', 'Warning', reason, message, uid] as const),
      );
    if (invalid > 0) {
      tell(
        'InvalidIPAddress',
        `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`,
      );
    }
    // Upstream counts the invalid ones among those that were skipped.
    if (skipped > invalid) {
      tell(
        'TooManyAddressesToMirror',
        `A max of ${this.#addressesMax} addresses can be mirrored to EndpointSlices per ` +
          `Endpoints subset. ${skipped} addresses were skipped`,
      );
    }
  }
}

function serviceOf(slice: JsonObject): string {
  const metadata = objectAt(slice, 'metadata');
  const name = stringAt(metadata, 'labels', SERVICE_NAME);
  return name === '' ? '' : `${stringAt(metadata, 'namespace')}/${name}`;
}

/**
 * Pods whose claims hold devices with NoExecute taints leave when their tolerations have run out
 * (upstream's device-taint-eviction). Taints are those of ResourceSlices; DeviceTaintRules, off by
 * default upstream, are not looked at.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { Announce } from '../framework/event-recorder.ts';
import { groupVersionOf, type ApiResource } from '../framework/api-resources.ts';
import { conditionsPatch } from '../framework/conditions.ts';
import { livePod, podPath } from '../framework/uncached-pod.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { Counter, Histogram } from '../framework/metrics-registry.ts';
import { EVICTION_SECONDS } from '../nodelifecycle/metrics.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { DeviceTaints, devicesOf, poolOfDevice, poolOfSlice } from './device-taints.ts';

const WORKERS = 10;
const VERSION = 'resource.k8s.io/v1';
const ROOT = `/apis/${VERSION}`;
const ALLOCATION = Buffer.from('"allocation"');
const REASON = 'DeviceTaintManagerEviction';

export interface DeviceEvictionOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
  readonly now: () => string;
}

/** `bound` where it has a node: one that waits for a node is looked at again when it gets one. */
interface Plan {
  readonly uid: string;
  readonly isBound: boolean;
  readonly isPlanned: boolean;
}

/** Works on `namespace/name` of pods. */
export class DeviceEvictionController {
  readonly #options: DeviceEvictionOptions;
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #taints = new DeviceTaints();
  /** Only allocated ones. */
  #claims: ObjectCache | undefined;
  /** Keys of allocated claims by the pools that their devices are of. */
  readonly #claimsOfPool: Map<string, Set<string>> = new Map();
  /** Pods that use a device with such taints, as they were last seen. */
  readonly #plans: Map<string, Plan> = new Map();

  readonly #deletions: Counter;
  readonly #seconds: Histogram;

  constructor(options: DeviceEvictionOptions) {
    this.#options = options;
    const { client, informers, onError, pods } = options;
    this.#client = client;
    const name = 'device_taint_eviction_controller_pod_deletion';
    const { metrics } = informers;
    const help = 'Total number of Pods deleted by DeviceTaintEvictionController since its start.';
    this.#deletions = metrics.counter(`${name}s_total`, help);
    const late = 'Latency, in seconds, between the taint of a device and the deletion of a Pod';
    this.#seconds = metrics.histogram(`${name}_duration_seconds`, late, EVICTION_SECONDS);
    const queue = informers.queues.queue('device-taint-eviction-controller');
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      queue,
    );
    pods.listen({ changed: (row, _bytes, scan) => this.#podChanged(row, scan) });
  }

  /** Begins once the server has the kinds; one without them has no such pods either. */
  setResources(found: readonly ApiResource[]): void {
    const has = (name: string): boolean =>
      found.some((one) => groupVersionOf(one) === VERSION && one.resource === name);
    if (this.#claims !== undefined || !has('resourceclaims') || !has('resourceslices')) return;
    const { informers } = this.#options;
    this.#claims = new ObjectCache(
      informers,
      `${ROOT}/resourceclaims`,
      (key, after, before) => this.#claimChanged(key, after, before),
      () => {},
      (bytes) => bytes.includes(ALLOCATION),
    );
    new ObjectCache(informers, `${ROOT}/resourceslices`, (name, after, before) => {
      const isMoved =
        before !== undefined && after !== undefined && poolOfSlice(before) !== poolOfSlice(after);
      if (isMoved) this.#sliceChanged(name, undefined, before);
      this.#sliceChanged(name, after, before);
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #sliceChanged(name: string, after: JsonObject | undefined, before?: JsonObject): void {
    if (!this.#taints.setSlice(name, after, before)) return;
    for (const key of this.#claimsOfPool.get(poolOfSlice(after ?? before ?? {})) ?? []) {
      this.#judgeUsers(this.#claims?.get(key));
    }
  }

  #claimChanged(key: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    for (const device of before === undefined ? [] : devicesOf(before)) {
      const claims = this.#claimsOfPool.get(poolOfDevice(device));
      if (claims?.delete(key) === true && claims.size === 0) {
        this.#claimsOfPool.delete(poolOfDevice(device));
      }
    }
    for (const device of after === undefined ? [] : devicesOf(after)) {
      const claims = this.#claimsOfPool.get(poolOfDevice(device));
      if (claims === undefined) this.#claimsOfPool.set(poolOfDevice(device), new Set([key]));
      else claims.add(key);
    }
    this.#judgeUsers(before);
    this.#judgeUsers(after);
  }

  /** Those that must go some day, and those of whom that was thought. */
  #judgeUsers(claim: JsonObject | undefined): void {
    if (claim === undefined) return;
    const mustGo = this.#taints.evictionMs(claim) < Infinity;
    const namespace = stringAt(claim, 'metadata', 'namespace');
    for (const user of listAt(claim, 'status', 'reservedFor')) {
      if (stringAt(user, 'resource') !== 'pods' || stringAt(user, 'apiGroup') !== '') continue;
      const key = `${namespace}/${stringAt(user, 'name')}`;
      if (mustGo || this.#plans.has(key)) this.#workers.add(key);
    }
  }

  #podChanged(row: number, scan: ObjectScan | null): void {
    if (this.#plans.size === 0) return;
    const key = this.#options.pods.informer.keyOf(row);
    const plan = this.#plans.get(key);
    if (plan === undefined) return;
    if (scan === null) this.#plans.delete(key);
    else if (!plan.isBound && scan.nodeNameEnd > scan.nodeNameStart) this.#workers.add(key);
  }

  async #work(key: string): Promise<WorkResult> {
    const pod = await livePod(this.#client, key);
    if (typeof pod === 'string') {
      if (pod === 'done') this.#plans.delete(key);
      return pod;
    }
    const uid = stringAt(pod, 'metadata', 'uid');
    const isBound = stringAt(pod, 'spec', 'nodeName') !== '';
    const untilMs = this.#evictionMs(pod, uid);
    const known = this.#plans.get(key);
    if (untilMs === Infinity) {
      this.#plans.delete(key);
      if (known?.isPlanned === true && known.uid === uid)
        this.#tell(key, uid, 'Cancelling deletion');
      return 'done';
    }
    this.#plans.set(key, { uid, isBound, isPlanned: isBound });
    if (!isBound) return 'done';
    const waitMs = untilMs - this.#client.timers.wallMs();
    if (waitMs > 0) return { againMs: waitMs };
    const result = await this.#evict(key, uid, listAt(pod, 'status', 'conditions'));
    if (result === 'done') {
      this.#deletions.add();
      this.#seconds.record((this.#client.timers.wallMs() - untilMs) / 1000);
    }
    return result;
  }

  /** The soonest of all claims that the pod uses, and that are reserved for it. */
  #evictionMs(pod: JsonObject, uid: string): number {
    const namespace = stringAt(pod, 'metadata', 'namespace');
    const told = listAt(pod, 'status', 'resourceClaimStatuses');
    let soonestMs = Infinity;
    for (const wanted of listAt(pod, 'spec', 'resourceClaims')) {
      const at = stringAt(wanted, 'name');
      const made = told.find((one) => stringAt(one, 'name') === at);
      const given = stringAt(wanted, 'resourceClaimName');
      const name = given === '' ? stringAt(made, 'resourceClaimName') : given;
      const claim = name === '' ? undefined : this.#claims?.get(`${namespace}/${name}`);
      if (claim === undefined || !isReserved(claim, uid)) continue;
      if (given === '' && !isMadeFor(claim, uid)) continue;
      soonestMs = Math.min(soonestMs, this.#taints.evictionMs(claim));
    }
    return soonestMs;
  }

  async #evict(key: string, uid: string, before: readonly JsonValue[]): Promise<WorkResult> {
    this.#tell(key, uid, 'Marking for deletion');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByDeviceTaintManager',
      message: 'Device Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: this.#options.now(),
    };
    const marked = await this.#client.request({
      method: 'PATCH',
      path: `${podPath(key)}/status`,
      contentType: CONTENT.strategicPatch,
      body: { metadata: { uid }, status: conditionsPatch(before, [condition]) },
    });
    if (!marked.ok && marked.code !== 404) return 'retry';
    const body = { preconditions: { uid } };
    const gone = await this.#client.request({ method: 'DELETE', path: podPath(key), body });
    return gone.ok || gone.code === 404 ? 'done' : 'retry';
  }

  #tell(key: string, uid: string, message: string): void {
    const [namespace = '', name = ''] = key.split('/');
    this.#options.announce('Pod', namespace, name, 'Normal', REASON, message, uid);
  }
}

function isReserved(claim: JsonObject, uid: string): boolean {
  return listAt(claim, 'status', 'reservedFor').some((one) => stringAt(one, 'uid') === uid);
}

function isMadeFor(claim: JsonObject, uid: string): boolean {
  return listAt(claim, 'metadata', 'ownerReferences').some(
    (one) => valueAt(one, 'controller') === true && stringAt(one, 'uid') === uid,
  );
}

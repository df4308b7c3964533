/**
 * The pods of simulated nodes: each bound pod is played through its stages.
 *
 * A row is a row of the informer over bound pods. What is remembered hangs on the row: the address
 * the pod was given, and how often a request about it failed. Requests under way, and those that
 * wait for room, are kept as they were built; a newer state of the pod replaces one that waits.
 */
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { matches } from '@megaplane/machinery/scan';
import { PodsBeforeNodes } from './pods-before-nodes.ts';
import type { Disregard } from '../client/node-filter.ts';
import { secondTime } from '../lease/lease-object.ts';
import type { PodAddresses, PodNetwork } from './pod-addresses.ts';
import { PodColumns, RUNNING, STARTED } from './pod-columns.ts';
import { PodIps } from './pod-ips.ts';
import type { Call } from '../fidelity/calls.ts';
import {
  completePatch,
  creatingPatch,
  podStage,
  readyPatch,
  sandboxPatch,
  withGeneration,
  withoutReasons,
  type PodStage,
} from './pod-stages.ts';
import { BackPressure } from '../client/back-pressure.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

export const RETRY_MS_MIN = 1000;
export const RETRY_MS_MAX = 64_000;

const NO_CALLS: ReadonlySet<Call> = new Set();
const RUNNING_PHASE = new TextEncoder().encode('Running');

export interface PodCounts {
  /** Row of a node, or -1. */
  findNode(node: string): number;
  /** A pod has come to the node at a row, or gone from it. */
  onPod(node: number, change: 1 | -1): void;
}

export interface PodsOptions {
  readonly client: Client;
  readonly metrics: SimulatorMetrics;
  readonly addresses: PodAddresses;
  /** Calls that real kubelets make beside those that change a pod. */
  readonly calls?: ReadonlySet<Call>;
  /** Pods that are left alone. */
  readonly disregard?: Disregard;
  /** Row of a pod of the informer, or -1. */
  find(namespace: string, name: string): number;
  /** Addresses of a node, or null when this simulator does not (yet) hold the node. */
  nodeAddresses(node: string): readonly string[] | null;
  /** Networks of the pods of a node. */
  networksOf?(node: string): readonly PodNetwork[];
  /** The node is down: nothing is done for its pods until `replay`. */
  isDown?(node: string): boolean;
  /** Who counts the pods of each node. */
  readonly onNodes?: PodCounts;
  /** So many containers of a node begin to run. */
  onStart?(node: string, containers: number): void;
}

/** One request that a pod's stage needs. */
interface Action {
  readonly method: 'GET' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly contentType: string;
  readonly body: string | null;
  readonly stage: PodStage;
  /** What follows when this has been answered well. */
  readonly next: Action | null;
  /** Containers that run then, and where; null: it starts none. */
  readonly starts: Starts | null;
}

interface Starts {
  readonly node: string;
  readonly containers: number;
}

/** See the head of the file. Give `handler` to the informer over pods with a node. */
export class Pods {
  readonly handler: InformerHandler;
  readonly #options: PodsOptions;
  readonly #client: Client;
  readonly #early: PodsBeforeNodes = new PodsBeforeNodes();
  readonly #scan: ObjectScan = new ObjectScan();
  readonly #columns: PodColumns = new PodColumns();
  readonly #ips: PodIps;
  /** Bounded by what the client takes at once. */
  readonly #inFlight: Map<number, Action> = new Map();
  /** Requests that wait for room, or for the one before them; bounded by the number of pods. */
  readonly #waiting: Map<number, Action> = new Map();
  readonly #room: BackPressure;
  #isStopped = false;

  constructor(options: PodsOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#ips = new PodIps(options.addresses);
    this.#room = new BackPressure(options.client, () => this.#drain());
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => {
        if (!isNew && this.#isAtRest(id, bytes, start, end)) return;
        this.#onPod(id, isNew, parseJson(utf8(bytes, start, end)) as JsonObject);
      },
      onDelete: (id) => this.#onGone(id),
    };
  }

  /**
   * True for a pod with which nothing is left to do: it runs, nobody deletes it, and no owner that
   * could be a Job has it end. Most events are of this kind, so they are told from the bytes.
   */
  #isAtRest(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end)) return false;
    const isRunning = matches(bytes, scan.phaseStart, scan.phaseEnd, RUNNING_PHASE);
    if (!isRunning || scan.deletionTimestampStart >= 0) return false;
    if (scan.ownerReferencesStart >= 0 && !this.#columns.has(id, RUNNING)) return false;
    this.#countRunning(id, true);
    this.#waiting.delete(id);
    return true;
  }

  #onPod(id: number, isNew: boolean, pod: JsonObject): void {
    const columns = this.#columns;
    const uid = text(object(pod['metadata'])['uid']);
    const isOther = columns.isOther(id, uid);
    // a watch that was cut off long may leave out the end of the pod of this name before
    if (!isNew && isOther) this.#onGone(id);
    if (isNew || isOther) {
      columns.reset(id, uid);
      this.#ips.reset(id);
      this.#options.metrics.podsBound++;
    }
    const status = object(pod['status']);
    this.#countRunning(id, status['phase'] === 'Running');
    const node = text(object(pod['spec'])['nodeName']);
    this.#countOn(id, node);
    const hostIps = this.#options.nodeAddresses(node);
    if (hostIps === null) {
      this.#early.add(node, pod);
      // of a node that has become another's
      this.#waiting.delete(id);
      return;
    }
    this.#ips.keep(id, podIpsOf(status));
    if (this.#options.disregard?.covers(pod) === true) return void this.#waiting.delete(id);
    if (this.#options.isDown?.(node) === true) return void this.#waiting.delete(id);
    const action = this.#actionFor(id, pod, hostIps);
    if (action === undefined) this.#waiting.delete(id);
    else if (this.#inFlight.get(id)?.stage === action.stage && action.next !== null) return;
    else if (this.#inFlight.has(id)) this.#waiting.set(id, action);
    else this.#send(id, action);
  }

  /** A node is known now: plays the pods that came before it. */
  onNode(node: string): void {
    for (const pod of this.#early.take(node)) this.replay(pod);
  }

  /** The pod's node is up again. */
  replay(pod: JsonObject): void {
    const metadata = object(pod['metadata']);
    const id = this.#options.find(text(metadata['namespace']), text(metadata['name']));
    if (id >= 0) this.#onPod(id, false, pod);
  }

  /** Sends nothing any more. */
  stop(): void {
    this.#isStopped = true;
    this.#room.stop();
    this.#waiting.clear();
    this.#inFlight.clear();
  }

  /** A pod stays on its node: it is counted there once. */
  #countOn(id: number, node: string): void {
    if (this.#columns.node.get(id) > 0) return;
    const row = this.#options.onNodes?.findNode(node) ?? -1;
    if (row < 0) return;
    this.#columns.node.set(id, row + 1);
    this.#options.onNodes?.onPod(row, 1);
  }

  #onGone(id: number): void {
    const columns = this.#columns;
    const counted = columns.node.get(id);
    if (counted > 0) this.#options.onNodes?.onPod(counted - 1, -1);
    columns.node.set(id, 0);
    this.#countRunning(id, false);
    this.#ips.free(id);
    columns.retire(id);
    this.#inFlight.delete(id);
    this.#waiting.delete(id);
    this.#options.metrics.podsBound--;
  }

  #countRunning(id: number, isRunning: boolean): void {
    if (isRunning === this.#columns.has(id, RUNNING)) return;
    this.#columns.mark(id, RUNNING, isRunning);
    this.#options.metrics.podsRunning += isRunning ? 1 : -1;
  }

  #actionFor(id: number, pod: JsonObject, hostIps: readonly string[]): Action | undefined {
    const stage = podStage(pod);
    // an event of one of our own steps that came after the last one was answered
    if (stage === 'none' || (stage === 'ready' && this.#columns.has(id, STARTED))) return undefined;
    const metadata = object(pod['metadata']);
    const path = `/api/v1/namespaces/${text(metadata['namespace'])}/pods/${text(metadata['name'])}`;
    const now = secondTime(this.#client.timers.wallMs());
    const calls = this.#options.calls ?? NO_CALLS;
    const { uid } = metadata;
    const isKubelet = calls.size > 0;
    const change = (patch: JsonObject, next: Action | null, starts?: Starts): Action => {
      const told = isKubelet ? withGeneration(patch, pod) : patch;
      const body = JSON.stringify({ metadata: { uid }, ...told });
      const to = { path: `${path}/status`, contentType: CONTENT.strategicPatch };
      const patching: Action = {
        method: 'PATCH',
        ...to,
        body,
        stage,
        next,
        starts: starts ?? null,
      };
      return calls.has('pod-get') ? { ...readOf(path, stage), next: patching } : patching;
    };
    if (stage === 'delete') {
      const body = JSON.stringify({ gracePeriodSeconds: 0, preconditions: { uid } });
      const to = { path, contentType: CONTENT.json };
      const remove: Action = { method: 'DELETE', ...to, body, stage, next: null, starts: null };
      if (!calls.has('pod-final')) return remove;
      // the deletion is seen, then the end of the containers, then the pod is let go
      const last: Action = calls.has('pod-get') ? { ...readOf(path, stage), next: remove } : remove;
      return change({ status: {} }, change(completePatch(pod, now), last));
    }
    if (stage === 'complete') return change(completePatch(pod, now), null);
    const ready = this.#ready(id, pod, hostIps, now);
    const starts = startsOf(pod);
    if (!calls.has('pod-creating')) return change(ready, null, starts);
    const running = change(withoutReasons(ready), null, starts);
    return change(creatingPatch(pod, hostIps, now), change(sandboxPatch(now), running));
  }

  #ready(id: number, pod: JsonObject, hostIps: readonly string[], now: string): JsonObject {
    const { nodeName, hostNetwork } = object(pod['spec']);
    if (hostNetwork === true) return readyPatch(pod, hostIps, [], now);
    const ips = this.#ips.of(id, this.#options.networksOf?.(text(nodeName)) ?? []);
    // With no address left the pod runs without one of its own, as on the host's network.
    return readyPatch(pod, hostIps, ips.length > 0 ? ips : hostIps, now);
  }

  #send(id: number, action: Action): void {
    if (this.#isStopped) return;
    const tag = this.#columns.tagOf(id);
    const { method, path, contentType, body } = action;
    if (this.#client.send(method, path, contentType, body, this.#onAnswer, tag)) {
      this.#inFlight.set(id, action);
      this.#waiting.delete(id);
    } else {
      this.#waiting.set(id, action);
    }
  }

  /** Success shows as an event of the watch; a conflict or 404 means that one is on its way. */
  readonly #onAnswer = (
    status: number,
    _bytes: Uint8Array,
    _start: number,
    _end: number,
    tag: number,
  ): void => {
    const id = this.#columns.idOf(tag);
    if (id < 0) return;
    const action = this.#inFlight.get(id);
    this.#inFlight.delete(id);
    if (action === undefined) return;
    // what webhooks or rules of access refuse now they may allow later, and kubelets try on
    const isFinal = (status >= 200 && status < 300) || status === 404 || status === 409;
    if (isFinal) {
      this.#columns.failures.set(id, 0);
      const { starts } = action;
      if (starts !== null && status < 300) this.#options.onStart?.(starts.node, starts.containers);
      const isLast = action.next === null && action.stage === 'ready' && status < 300;
      const isKubelet = (this.#options.calls ?? NO_CALLS).size > 0;
      if (isLast && isKubelet) this.#columns.mark(id, STARTED, true);
      const next = status < 300 && action.next !== null ? action.next : this.#waiting.get(id);
      if (next !== undefined) this.#send(id, next);
    } else {
      this.#options.metrics.errors++;
      this.#retry(id, tag, action);
    }
  };

  /** One second, doubled each time, a fifth of jitter, as kwok does for a server in trouble. */
  #retry(id: number, tag: number, failed: Action): void {
    const failures = this.#columns.failures.get(id);
    this.#columns.failures.set(id, Math.min(failures + 1, 250));
    const pauseMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(failures, 6));
    this.#client.timers.after(pauseMs * (1 + 0.2 * this.#client.random()), () => {
      if (this.#columns.idOf(tag) !== id || this.#inFlight.has(id)) return;
      this.#send(id, this.#waiting.get(id) ?? failed);
    });
  }

  #drain(): void {
    for (const [id, action] of this.#waiting) {
      if (this.#client.room() === 0) return;
      if (!this.#inFlight.has(id)) this.#send(id, action);
    }
  }
}

/** A kubelet reads a pod before it writes. */
function readOf(path: string, stage: PodStage): Omit<Action, 'next'> {
  return { method: 'GET', path, contentType: '', body: null, stage, starts: null };
}

function startsOf(pod: JsonObject): Starts {
  const { containers, nodeName } = object(pod['spec']);
  const count = Array.isArray(containers) ? containers.length : 0;
  return { node: text(nodeName), containers: count };
}

function utf8(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
}

function object(value: JsonObject[string]): JsonObject {
  return isObject(value) ? value : {};
}

function podIpsOf(status: JsonObject): readonly string[] {
  const all = status['podIPs'];
  const texts = Array.isArray(all) ? all.map((item) => text(object(item)['ip'])) : [];
  return texts.length > 0 ? texts : [text(status['podIP'])];
}

function text(value: JsonObject[string]): string {
  return typeof value === 'string' ? value : '';
}

/** What the node lifecycle machine wants, done on the API server. */
import { CONTENT, type Client, type ClientResponse } from '@megaplane/client/client';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Announce } from '../framework/event-recorder.ts';
import { conditionsPatch } from '../framework/conditions.ts';
import { leaseHash } from '../columns/lease-scan.ts';
import {
  CONDITION_TYPES,
  NO_SCHEDULE_SHIFT,
  NO_SCHEDULE_TAINTS,
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  wantedNoSchedule,
} from '../columns/node-flags.ts';
import { NodeQueue } from './node-queue.ts';
import type { LifecycleEffects, NodeLifecycle } from './node-lifecycle.ts';
import { NodeEvents } from './node-events.ts';
import { NodeScan, TTL_ANNOTATION } from '../columns/node-scan.ts';
import type { NodeTable } from '../columns/node-table.ts';
import { taintOf } from '../framework/tolerations.ts';

/**
 * Nodes that are worked on at a time: with fewer, nodes register faster than their taints go, and
 * those of half a cluster are still being taken away when all have long been ready.
 */
export const NODES_AT_ONCE = 512;
/** Pods of a node that are told at a time. */
const PODS_AT_ONCE = 16;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** An answer to a confirming read that has not come by then counts as none. */
const CONFIRM_TIMEOUT_MS = 5_000;
/** Conditions that turn Unknown with Ready: those that the kubelet posts. */
const KUBELET_CONDITIONS = CONDITION_TYPES.slice(0, 4);

const SILENT = ['NodeStatusUnknown', 'Kubelet stopped posting node status.'] as const;
const NEVER = ['NodeStatusNeverUpdated', 'Kubelet never posted node status.'] as const;

export interface NodeWriterOptions {
  readonly client: Client;
  readonly nodes: NodeTable;
  readonly announce: Announce;
  /** Milliseconds that never jump. */
  readonly monotonicMs: () => number;
  /** The wall clock as `metav1.Time`. */
  readonly now: () => string;
  readonly onError: (error: unknown) => void;
  /** Names of the pods on a node, as `namespace/name`. */
  readonly podsOn: (node: number) => readonly string[];
  /** Seconds that the node's annotation should tell and does not (see node-ttl.ts), or -1. */
  readonly missingTtl: (node: number) => number;
  readonly onDisruption: (isTotal: boolean) => void;
}

/** What new taints are worked out from. */
interface Tainted {
  readonly resourceVersion: string;
  readonly bits: number;
  readonly taints: readonly JsonValue[];
}

/** What is wanted for a node, as bits; see node-queue.ts. */
const CONFIRM = 1 << 0;
const NO_SCHEDULE = 1 << 1;
const NO_EXECUTE = 1 << 2;
/** Which taint NoExecute; neither: take both away. */
const IS_NOT_READY = 1 << 3;
const IS_UNREACHABLE = 1 << 4;
const LABELS = 1 << 5;
const ANNOTATION = 1 << 6;
const PODS = 1 << 7;
const TELL = 1 << 8;

/** The server said what there is. */
function isTold(answer: ClientResponse): boolean {
  return answer.ok || answer.code === 404;
}

function ttlOf(seconds: number): JsonObject {
  return seconds < 0 ? {} : { annotations: { [TTL_ANNOTATION]: `${seconds}` } };
}

export class NodeWriter implements LifecycleEffects {
  readonly #options: NodeWriterOptions;
  readonly #queue: NodeQueue;
  readonly #events: NodeEvents;
  readonly #scan = new NodeScan();
  #machine: NodeLifecycle | undefined;
  /** When the server last answered a confirming read. */
  #heardMs = -Infinity;

  constructor(options: NodeWriterOptions) {
    this.#options = options;
    this.#events = new NodeEvents(options.announce, options.monotonicMs);
    const work = (id: number, wanted: number): Promise<void> => this.#work(id, wanted);
    this.#queue = new NodeQueue(options.nodes, NODES_AT_ONCE, work, options.onError);
  }

  /** The machine that is told of each outcome. */
  attach(machine: NodeLifecycle): void {
    this.#machine = machine;
  }

  disruption(isTotal: boolean): void {
    this.#options.onDisruption(isTotal);
  }

  registered(id: number): void {
    if (this.#events.take()) this.#queue.add(id, TELL);
  }

  confirm(id: number): void {
    this.#queue.add(id, CONFIRM);
  }

  /** Writes the annotation of a node; taints that are to be written take it with them. */
  annotate(id: number): void {
    this.#queue.add(id, ANNOTATION);
  }

  syncNoSchedule(id: number): void {
    this.#queue.add(id, NO_SCHEDULE);
  }

  syncNoExecute(id: number, taint: 'not-ready' | 'unreachable' | 'none'): void {
    const which = { 'not-ready': IS_NOT_READY, unreachable: IS_UNREACHABLE, none: 0 };
    this.#queue.add(id, NO_EXECUTE | which[taint]);
  }

  syncLabels(id: number): void {
    this.#queue.add(id, LABELS);
  }

  async #work(id: number, wanted: number): Promise<void> {
    const { nodes } = this.#options;
    if (!nodes.exists(id)) return;
    const name = nodes.nameOf(id);
    if ((wanted & (NO_SCHEDULE | NO_EXECUTE)) !== 0) await this.#taint(id, name, wanted);
    if ((wanted & ANNOTATION) !== 0) await this.#annotate(id, name);
    if ((wanted & LABELS) !== 0) await this.#label(id, name);
    if ((wanted & CONFIRM) !== 0) await this.#confirm(id, name);
    if ((wanted & PODS) !== 0) await this.#podsNotReady(id);
    if ((wanted & TELL) !== 0) await this.#tell(name);
  }

  async #tell(name: string): Promise<void> {
    const path = `/api/v1/nodes/${name}`;
    const node = await this.#options.client.request({ method: 'GET', path });
    if (!node.ok) return;
    const metadata = objectAt(node.object, 'metadata');
    this.#events.registered(stringAt(metadata, 'name'), stringAt(metadata, 'uid'));
  }

  /** A node is gone; `bytes` is what it was last, or empty. */
  removed(name: string, bytes: Buffer): void {
    if (!this.#events.take()) return;
    const node = bytes.length === 0 ? {} : (parseJson(bytes.toString('utf8')) as JsonObject);
    this.#events.removed(name, stringAt(node, 'metadata', 'uid'));
  }

  async #confirm(id: number, name: string): Promise<void> {
    const machine = this.#machine;
    const reads = await Promise.all([
      this.#ask(`/api/v1/nodes/${name}`),
      this.#ask(`${LEASES}/${name}`),
    ]);
    if (machine === undefined || !this.#options.nodes.exists(id)) return;
    const silentMs = Math.max(...reads.map((read) => read.silentMs));
    const [{ answer: node }, { answer: lease }] = reads;
    if (!isTold(node) || !isTold(lease)) return machine.confirmFailed(id, silentMs);
    // A node that is gone counts as heard from: its removal is on the way.
    if (!node.ok) return void machine.confirmed(id, 0, -1, silentMs);
    this.#scan.scan(node.bytes, 0, node.bytes.length);
    const renewed = lease.ok ? leaseHash(lease.bytes, 0, lease.bytes.length) : 0;
    if (machine.confirmed(id, this.#scan.heartbeat, renewed, silentMs)) {
      await this.#markUnknown(id, name, node.object);
    }
  }

  /**
   * What a confirming read gave, and for how long the server had answered none of them before. One
   * that waits behind others, as when a zone falls silent, says nothing against the server.
   */
  async #ask(path: string): Promise<{ answer: ClientResponse; silentMs: number }> {
    const { client, monotonicMs } = this.#options;
    const startMs = monotonicMs();
    const answer = await client.request({ method: 'GET', path, timeoutMs: CONFIRM_TIMEOUT_MS });
    const nowMs = monotonicMs();
    const silentMs = nowMs - Math.max(startMs, this.#heardMs);
    if (isTold(answer)) this.#heardMs = nowMs;
    return { answer, silentMs };
  }

  async #markUnknown(id: number, name: string, node: JsonObject): Promise<void> {
    const { client, now, announce } = this.#options;
    const before = new Map(
      listAt(node, 'status', 'conditions').map((one) => [stringAt(one, 'type'), one]),
    );
    const conditions: JsonObject[] = [];
    for (const type of KUBELET_CONDITIONS) {
      const known = before.get(type);
      if (known !== undefined && stringAt(known, 'status') === 'Unknown') continue;
      const [reason, message] = known === undefined ? NEVER : SILENT;
      const created = stringAt(node, 'metadata', 'creationTimestamp');
      conditions.push({
        type,
        status: 'Unknown',
        reason,
        message,
        lastTransitionTime: now(),
        ...(known === undefined ? { lastHeartbeatTime: created } : {}),
      });
    }
    if (conditions.length === 0) return;
    const resourceVersion = stringAt(node, 'metadata', 'resourceVersion');
    const written = await client.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}/status`,
      contentType: CONTENT.strategicPatch,
      body: {
        metadata: { resourceVersion },
        status: conditionsPatch([...before.values()], conditions),
      },
    });
    if (!written.ok || stringAt(before.get('Ready'), 'status') !== 'True') return;
    const text = `Node ${name} status is now: NodeNotReady`;
    const uid = stringAt(node, 'metadata', 'uid');
    announce('Node', '', name, 'Normal', 'NodeNotReady', text, uid);
    this.#queue.add(id, PODS);
  }

  async #podsNotReady(id: number): Promise<void> {
    const pods = this.#options.podsOn(id);
    for (let i = 0; i < pods.length; i += PODS_AT_ONCE) {
      await Promise.all(pods.slice(i, i + PODS_AT_ONCE).map((pod) => this.#podNotReady(pod)));
    }
  }

  async #podNotReady(key: string): Promise<void> {
    const { client, now, announce } = this.#options;
    const [namespace = '', name = ''] = key.split('/');
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const answer = await client.request({ method: 'GET', path });
    if (!answer.ok) return;
    const ready = listAt(answer.object, 'status', 'conditions').find(
      (one) => stringAt(one, 'type') === 'Ready',
    );
    if (stringAt(ready, 'status') !== 'True') return;
    const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: now() }];
    const written = await client.request({
      method: 'PATCH',
      path: `${path}/status`,
      contentType: CONTENT.strategicPatch,
      body: {
        metadata: { uid: stringAt(answer.object, 'metadata', 'uid') },
        status: { conditions },
      },
    });
    if (!written.ok) return;
    const uid = stringAt(answer.object, 'metadata', 'uid');
    announce('Pod', namespace, name, 'Warning', 'NodeNotReady', 'Node is not ready', uid);
  }

  async #annotate(id: number, name: string): Promise<void> {
    const { client, missingTtl } = this.#options;
    const seconds = missingTtl(id);
    if (seconds < 0) return;
    const { ok } = await client.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      contentType: CONTENT.mergePatch,
      body: { metadata: ttlOf(seconds) },
    });
    if (ok) this.#wroteTtl(id, seconds);
  }

  /**
   * The node's event may be a long way behind, and the annotation would be asked for once more. An
   * event from before it only makes it be written again.
   */
  #wroteTtl(id: number, seconds: number): void {
    const { nodes } = this.#options;
    if (seconds >= 0 && nodes.exists(id)) nodes.ttl.set(id, seconds + 1);
  }

  /**
   * Taints are written as the node's last event asks for, with no reading before, on the condition
   * that the node is still of that revision.
   */
  async #taint(id: number, name: string, wanted: number): Promise<void> {
    const known = this.#known(id);
    if (known === undefined || !(await this.#writeTaints(id, name, known, wanted))) {
      const node = await this.#read(name);
      if (node !== undefined) await this.#writeTaints(id, name, node, wanted);
    }
    if (this.#options.nodes.exists(id)) this.#machine?.tainted(id);
  }

  #known(id: number): Tainted | undefined {
    const { nodes } = this.#options;
    const text = nodes.taintsOf(id);
    if (text === undefined) return undefined;
    const taints = text === '' ? [] : (parseJson(text) as JsonValue[]);
    return { resourceVersion: `${nodes.revision.get(id)}`, bits: nodes.bits.get(id), taints };
  }

  async #read(name: string): Promise<Tainted | undefined> {
    const path = `/api/v1/nodes/${name}`;
    const node = await this.#options.client.request({ method: 'GET', path });
    if (!node.ok) return undefined;
    this.#scan.scan(node.bytes, 0, node.bytes.length);
    return {
      resourceVersion: stringAt(node.object, 'metadata', 'resourceVersion'),
      bits: this.#scan.bits,
      taints: listAt(node.object, 'spec', 'taints'),
    };
  }

  /** False where the node has become another since. */
  async #writeTaints(id: number, name: string, node: Tainted, wanted: number): Promise<boolean> {
    const { client, missingTtl } = this.#options;
    const taints = this.#taintsWanted(node, wanted);
    if (taints === undefined) return true;
    const seconds = missingTtl(id);
    const answer = await client.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      contentType: CONTENT.mergePatch,
      body: {
        metadata: { resourceVersion: node.resourceVersion, ...ttlOf(seconds) },
        spec: { taints: taints.length === 0 ? null : taints },
      },
    });
    if (answer.ok) this.#wroteTtl(id, seconds);
    return answer.code !== 409;
  }

  /** The node's taints as they should be; undefined if they are. */
  #taintsWanted(node: Tainted, wanted: number): JsonValue[] | undefined {
    const scheduling =
      (wanted & NO_SCHEDULE) === 0 ? undefined : this.#withNoSchedule(node.bits, node.taints);
    if ((wanted & NO_EXECUTE) === 0) return scheduling;
    const key =
      (wanted & IS_NOT_READY) !== 0
        ? TAINT_NOT_READY
        : (wanted & IS_UNREACHABLE) !== 0
          ? TAINT_UNREACHABLE
          : '';
    return this.#withNoExecute(scheduling ?? node.taints, key) ?? scheduling;
  }

  /** The node's taints with those of its conditions as they should be; undefined if they are. */
  #withNoSchedule(bits: number, taints: readonly JsonValue[]): JsonValue[] | undefined {
    const wanted = wantedNoSchedule(bits) >>> NO_SCHEDULE_SHIFT;
    const keys: readonly string[] = NO_SCHEDULE_TAINTS;
    const kept = taints.filter((one) => {
      const { key, effect } = taintOf(one);
      const index = effect === 'NoSchedule' ? keys.indexOf(key) : -1;
      return index < 0 || ((wanted >>> index) & 1) === 1;
    });
    const present = new Set(
      kept.map(taintOf).map((one) => (one.effect === 'NoSchedule' ? one.key : '')),
    );
    const missing = keys.filter(
      (key, index) => ((wanted >>> index) & 1) === 1 && !present.has(key),
    );
    if (missing.length === 0 && kept.length === taints.length) return undefined;
    const timeAdded = this.#options.now();
    return [...kept, ...missing.map((key) => ({ key, effect: 'NoSchedule', timeAdded }))];
  }

  #withNoExecute(taints: readonly JsonValue[], wanted: string): JsonValue[] | undefined {
    const isOurs = (one: JsonValue): boolean => {
      const { key, effect } = taintOf(one);
      return effect === 'NoExecute' && (key === TAINT_NOT_READY || key === TAINT_UNREACHABLE);
    };
    const ours = taints.filter(isOurs);
    if (ours.length === (wanted === '' ? 0 : 1) && ours.every((t) => taintOf(t).key === wanted)) {
      return undefined;
    }
    const kept = taints.filter((one) => !isOurs(one));
    if (wanted === '') return kept;
    return [...kept, { key: wanted, effect: 'NoExecute', timeAdded: this.#options.now() }];
  }

  async #label(id: number, name: string): Promise<void> {
    const { client, nodes } = this.#options;
    const path = `/api/v1/nodes/${name}`;
    const node = await client.request({ method: 'GET', path });
    const from = node.ok ? objectAt(node.object, 'metadata', 'labels') : undefined;
    const labels: JsonObject = {};
    for (const part of ['os', 'arch']) {
      const value = stringAt(from, `kubernetes.io/${part}`);
      if (value !== '') labels[`beta.kubernetes.io/${part}`] = value;
    }
    if (node.ok && Object.keys(labels).length > 0) {
      const body = { metadata: { labels } };
      const contentType = CONTENT.mergePatch;
      await client.request({ method: 'PATCH', path, contentType, body });
    }
    if (nodes.exists(id)) this.#machine?.labelled(id);
  }
}

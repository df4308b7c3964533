/** What the node lifecycle machine wants, done on the API server. */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { Announce } from './announce.ts';
import { Lanes } from './lanes.ts';
import { leaseHash } from './lease-scan.ts';
import {
  CONDITION_TYPES,
  NO_SCHEDULE_SHIFT,
  NO_SCHEDULE_TAINTS,
  TAINT_NOT_READY,
  TAINT_UNREACHABLE,
  wantedNoSchedule,
} from './node-bits.ts';
import type { LifecycleEffects, NodeLifecycle } from './node-lifecycle.ts';
import { NodeEvents } from './node-events.ts';
import { NodeScan } from './node-scan.ts';
import { TTL_ANNOTATION } from './node-ttl.ts';
import type { NodeTable } from './node-table.ts';
import { taintOf } from './tolerations.ts';

const LANES = 64;
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
  readonly onDisruption: (isTotal: boolean) => void;
}

/** A node as an event shows it. */
export interface SeenNode {
  /** Its row. */
  readonly id: number;
  readonly resourceVersion: number;
  /** See node-bits.ts, bits 0 to 22. */
  readonly bits: number;
  /** `spec.taints` as JSON, or empty. */
  readonly taints: string;
  /** Seconds that its annotation should tell and does not (see node-ttl.ts), or -1. */
  readonly ttl: number;
}

/** What new taints are worked out from. */
interface Tainted {
  readonly resourceVersion: string;
  readonly bits: number;
  readonly taints: readonly JsonValue[];
  readonly ttl: number;
}

function taintedOf({ resourceVersion, bits, taints, ttl }: SeenNode): Tainted {
  const list = taints === '' ? [] : (JSON.parse(taints) as JsonValue[]);
  return { resourceVersion: `${resourceVersion}`, bits, taints: list, ttl };
}

function ttlOf(seconds: number): JsonObject {
  return seconds < 0 ? {} : { annotations: { [TTL_ANNOTATION]: `${seconds}` } };
}

export class NodeWriter implements LifecycleEffects {
  readonly #options: NodeWriterOptions;
  readonly #lanes: Lanes;
  readonly #events: NodeEvents;
  readonly #scan = new NodeScan();
  #machine: NodeLifecycle | undefined;
  #seen: SeenNode | undefined;
  #isUsed = false;

  constructor(options: NodeWriterOptions) {
    this.#options = options;
    this.#events = new NodeEvents(options.announce, options.monotonicMs);
    this.#lanes = new Lanes(LANES, options.onError);
  }

  /** The machine that is told of each outcome. */
  attach(machine: NodeLifecycle): void {
    this.#machine = machine;
  }

  disruption(isTotal: boolean): void {
    this.#options.onDisruption(isTotal);
  }

  registered(id: number): void {
    if (!this.#events.take()) return;
    const path = `/api/v1/nodes/${this.#options.nodes.nameOf(id)}`;
    this.#lanes.run(async () => {
      const node = await this.#options.client.request({ method: 'GET', path });
      if (!node.ok) return;
      const metadata = objectAt(node.object, 'metadata');
      this.#events.registered(stringAt(metadata, 'name'), stringAt(metadata, 'uid'));
    });
  }

  /** A node is gone; `bytes` is what it was last, or empty. */
  removed(name: string, bytes: Buffer): void {
    if (!this.#events.take()) return;
    const node = bytes.length === 0 ? {} : (JSON.parse(bytes.toString('utf8')) as JsonObject);
    this.#events.removed(name, stringAt(node, 'metadata', 'uid'));
  }

  confirm(id: number): void {
    const name = this.#options.nodes.nameOf(id);
    this.#lanes.run(() => this.#confirm(id, name));
  }

  async #confirm(id: number, name: string): Promise<void> {
    const { client, monotonicMs } = this.#options;
    const machine = this.#machine;
    const startMs = monotonicMs();
    const timeoutMs = CONFIRM_TIMEOUT_MS;
    const [node, lease] = await Promise.all([
      client.request({ method: 'GET', path: `/api/v1/nodes/${name}`, timeoutMs }),
      client.request({ method: 'GET', path: `${LEASES}/${name}`, timeoutMs }),
    ]);
    if (machine === undefined || !this.#isRow(id, name)) return;
    if ((!node.ok && node.code !== 404) || (!lease.ok && lease.code !== 404)) {
      return machine.confirmFailed(id);
    }
    // A node that is gone counts as heard from: its removal is on the way.
    if (!node.ok) return void machine.confirmed(id, 0, -1, 0);
    this.#scan.scan(node.bytes, 0, node.bytes.length);
    const renewed = lease.ok ? leaseHash(lease.bytes, 0, lease.bytes.length) : 0;
    const tookMs = monotonicMs() - startMs;
    if (machine.confirmed(id, this.#scan.heartbeat, renewed, tookMs)) {
      await this.#markUnknown(id, name, node.object);
    }
  }

  /** Rows are reused; an answer must not go to another node. */
  #isRow(id: number, name: string): boolean {
    return this.#options.nodes.exists(id) && this.#options.nodes.nameOf(id) === name;
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
      body: { metadata: { resourceVersion }, status: { conditions } },
    });
    if (!written.ok || stringAt(before.get('Ready'), 'status') !== 'True') return;
    const text = `Node ${name} status is now: NodeNotReady`;
    const uid = stringAt(node, 'metadata', 'uid');
    announce('Node', '', name, 'Normal', 'NodeNotReady', text, uid);
    for (const pod of this.#options.podsOn(id)) this.#lanes.run(() => this.#podNotReady(pod));
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

  /**
   * Says that what `act` asks for is because of this state of a node. Its taints are then written
   * with no reading before, on the condition that the node is still of that revision, and the
   * annotation with them. Answers whether anything is written.
   */
  during(seen: SeenNode, act: () => void): boolean {
    this.#seen = seen;
    this.#isUsed = false;
    act();
    this.#seen = undefined;
    return this.#isUsed;
  }

  /** Writes the annotation of a node alone. */
  annotate(id: number, seconds: number): void {
    const path = `/api/v1/nodes/${this.#options.nodes.nameOf(id)}`;
    const body = { metadata: ttlOf(seconds) };
    const contentType = CONTENT.mergePatch;
    this.#lanes.run(async () => {
      await this.#options.client.request({ method: 'PATCH', path, contentType, body });
    });
  }

  syncNoSchedule(id: number): void {
    this.#taint(id, (node) => this.#withNoSchedule(node));
  }

  syncNoExecute(id: number, taint: 'not-ready' | 'unreachable' | 'none'): void {
    const wanted = { 'not-ready': TAINT_NOT_READY, unreachable: TAINT_UNREACHABLE, none: '' };
    this.#taint(id, (node) => this.#withNoExecute(node.taints, wanted[taint]));
  }

  #taint(id: number, change: (node: Tainted) => JsonValue[] | undefined): void {
    const name = this.#options.nodes.nameOf(id);
    const seen = this.#seen?.id === id ? this.#seen : undefined;
    this.#isUsed ||= seen !== undefined;
    this.#lanes.run(async () => {
      const isDone = seen !== undefined && (await this.#writeTaints(name, taintedOf(seen), change));
      if (!isDone) {
        const node = await this.#read(name);
        if (node !== undefined) await this.#writeTaints(name, node, change);
      }
      if (this.#isRow(id, name)) this.#machine?.tainted(id);
    });
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
      ttl: -1,
    };
  }

  /** False where the node has become another since. */
  async #writeTaints(
    name: string,
    node: Tainted,
    change: (node: Tainted) => JsonValue[] | undefined,
  ): Promise<boolean> {
    const taints = change(node);
    if (taints === undefined) return true;
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      contentType: CONTENT.mergePatch,
      body: {
        metadata: { resourceVersion: node.resourceVersion, ...ttlOf(node.ttl) },
        spec: { taints: taints.length === 0 ? null : taints },
      },
    });
    return answer.code !== 409;
  }

  /** The node's taints with those of its conditions as they should be; undefined if they are. */
  #withNoSchedule({ bits, taints }: Tainted): JsonValue[] | undefined {
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

  syncLabels(id: number): void {
    const name = this.#options.nodes.nameOf(id);
    this.#lanes.run(async () => {
      const path = `/api/v1/nodes/${name}`;
      const node = await this.#options.client.request({ method: 'GET', path });
      const from = node.ok ? objectAt(node.object, 'metadata', 'labels') : undefined;
      const labels: JsonObject = {};
      for (const part of ['os', 'arch']) {
        const value = stringAt(from, `kubernetes.io/${part}`);
        if (value !== '') labels[`beta.kubernetes.io/${part}`] = value;
      }
      if (node.ok && Object.keys(labels).length > 0) {
        const body = { metadata: { labels } };
        const contentType = CONTENT.mergePatch;
        await this.#options.client.request({ method: 'PATCH', path, contentType, body });
      }
      if (this.#isRow(id, name)) this.#machine?.labelled(id);
    });
  }
}

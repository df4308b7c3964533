/**
 * Nodes and a scheduler for simulations of a cluster: pods are bound to living nodes, brought up,
 * ended where they are of a Job, and let go where they are deleted. Nodes freeze and come back.
 */
import assert from 'node:assert/strict';
import type { Random } from '@megaplane/base/random';
import { CONTENT } from '@megaplane/client/client';
import { createInformer, type Informer } from '@megaplane/client/informer';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { formatTime } from '@megaplane/machinery/times';
import type { ClusterSimulation } from './cluster-simulation.ts';
import { SimulatedClock } from './simulated-timers.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const WORK_MS = 1_000;
/** Leases renewed at a time. */
const RENEWALS = 50;
/** One in so many pods of a Job fails. */
const FAILING = 8;

interface SimulatedNode {
  isFrozen: boolean;
}

export class SimulatedFleet {
  readonly nodes: Map<string, SimulatedNode> = new Map();
  readonly clock: SimulatedClock;
  readonly #cluster: ClusterSimulation;
  readonly #random: Random;
  readonly #renewMs: number;
  /** When nodes were removed. */
  readonly removedMs: Map<string, number> = new Map();
  readonly #pods: Informer;
  readonly #watched: Informer;
  /** Nodes that are not Ready by what the server says. */
  readonly #unready: Set<string> = new Set();
  /** Pods with something to do for us, as they last were. */
  readonly #todo: Map<string, JsonObject> = new Map();
  /** The lease of each node as it was answered last. */
  readonly #leases: Map<string, string> = new Map();
  #isWorking = false;
  #addresses = 0;

  constructor(cluster: ClusterSimulation, random: Random, renewMs: number) {
    this.#cluster = cluster;
    this.clock = new SimulatedClock(cluster.timers);
    this.#random = random;
    this.#renewMs = renewMs;
    this.#pods = createInformer({
      client: cluster,
      path: '/api/v1/pods',
      handler: {
        onUpsert: (row, _isNew, bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
          this.#todo.set(this.#pods.keyOf(row), JSON.parse(text) as JsonObject);
          this.#workLater();
        },
        onDelete: (row) => void this.#todo.delete(this.#pods.keyOf(row)),
      },
    });
    this.#watched = createInformer({
      client: cluster,
      path: '/api/v1/nodes',
      handler: {
        onUpsert: (_row, _isNew, bytes, start, end) => {
          const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
          const node = JSON.parse(text) as JsonObject;
          const name = stringAt(node, 'metadata', 'name');
          if (isReady(node)) this.#unready.delete(name);
          else this.#unready.add(name);
        },
        onDelete: (row) => void this.#unready.delete(this.#watched.keyOf(row)),
      },
    });
    this.#pods.start();
    this.#watched.start();
    this.#every(renewMs, () => this.#renew());
  }

  #every(periodMs: number, action: () => Promise<void>): void {
    this.#cluster.timers.after(periodMs, () => {
      void action().finally(() => this.#every(periodMs, action));
    });
  }

  /** Looks at the pods once a second while there is something to do. */
  #workLater(): void {
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#cluster.timers.after(WORK_MS, () => {
      void this.#work().finally(() => {
        this.#isWorking = false;
        if (this.#todo.size > 0) this.#workLater();
      });
    });
  }

  async addNode(name: string, zone: string): Promise<void> {
    const labels = { 'topology.kubernetes.io/zone': zone, 'kubernetes.io/hostname': name };
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } };
    await this.#cluster.ask('POST', '/api/v1/nodes', body);
    this.nodes.set(name, { isFrozen: false });
    await this.#report(name);
    await this.#renewOne(name);
  }

  async removeNode(name: string): Promise<void> {
    this.nodes.delete(name);
    this.#leases.delete(name);
    this.removedMs.set(name, this.#cluster.timers.nowMs());
    await this.#cluster.ask('DELETE', `/api/v1/nodes/${name}`);
    await this.#cluster.ask('DELETE', `${LEASES}/${name}`);
  }

  freeze(name: string, isFrozen: boolean): void {
    const node = this.nodes.get(name);
    if (node !== undefined) node.isFrozen = isFrozen;
  }

  /** The status that a kubelet posts when it comes back. */
  async #report(name: string): Promise<void> {
    const now = this.#now();
    const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
      type,
      status: type === 'Ready' ? 'True' : 'False',
      reason: 'Kubelet',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    }));
    const body = { status: { conditions } };
    const path = `/api/v1/nodes/${name}/status`;
    await this.#cluster.ask('PATCH', path, body, CONTENT.strategicPatch);
  }

  #now(): string {
    return formatTime(Math.floor(this.clock.wallMs() / 1000));
  }

  async #renew(): Promise<void> {
    const living = [...this.nodes].filter(([, { isFrozen }]) => !isFrozen).map(([name]) => name);
    for (let at = 0; at < living.length; at += RENEWALS) {
      await Promise.all(living.slice(at, at + RENEWALS).map((name) => this.#renewOne(name)));
    }
    for (const name of living) if (this.#unready.has(name)) await this.#report(name);
  }

  /** As a kubelet: one PUT over what was answered last, or a new lease where that does not fit. */
  async #renewOne(name: string): Promise<void> {
    const renewTime = new Date(this.clock.wallMs()).toISOString().replace('Z', '000Z');
    const path = `${LEASES}/${name}`;
    const known = this.#leases.get(name);
    if (known !== undefined) {
      const body = known.replace(/"renewTime":"[^"]*"/, `"renewTime":"${renewTime}"`);
      const answer = await this.#cluster.ask('PUT', path, body);
      if (answer.ok) return void this.#leases.set(name, answer.bytes.toString());
    }
    const leaseDurationSeconds = Math.ceil((4 * this.#renewMs) / 1000);
    const spec = { holderIdentity: name, leaseDurationSeconds, renewTime };
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec };
    await this.#cluster.ask('DELETE', path);
    const answer = await this.#cluster.ask('POST', LEASES, body);
    if (answer.ok) this.#leases.set(name, answer.bytes.toString());
  }

  async #work(): Promise<void> {
    for (const key of [...this.#todo.keys()]) {
      const pod = this.#todo.get(key);
      if (pod === undefined) continue;
      this.#todo.delete(key);
      if (!(await this.#tend(key, pod)) && this.#pods.find(...partsOf(key)) >= 0) {
        if (!this.#todo.has(key)) this.#todo.set(key, pod);
      }
    }
  }

  /** Does what is next for a pod; false where it cannot be done now. */
  async #tend(key: string, pod: JsonObject): Promise<boolean> {
    const [namespace, name] = partsOf(key);
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const nodeName = stringAt(pod, 'spec', 'nodeName');
    if (nodeName === '') return this.#bind(path, namespace, name, pod);
    const node = this.nodes.get(nodeName);
    if (node === undefined || node.isFrozen) return false;
    if (stringAt(pod, 'metadata', 'deletionTimestamp') !== '') {
      const uid = stringAt(pod, 'metadata', 'uid');
      const body = { gracePeriodSeconds: 0, preconditions: { uid } };
      await this.#cluster.ask('DELETE', path, body);
      return true;
    }
    const phase = stringAt(pod, 'status', 'phase');
    const isJob = stringAt(pod, 'metadata', 'labels', 'batch.kubernetes.io/job-name') !== '';
    if (phase === 'Succeeded' || phase === 'Failed') return true;
    // The node lifecycle says that pods of silent nodes are not ready: the kubelet knows better.
    if (phase === 'Running' && !isJob && isReady(pod)) return true;
    const isDone = phase === 'Running' && isJob;
    return this.#setStatus(path, isDone ? this.#ended(pod) : this.#running(pod));
  }

  #running(pod: JsonObject): JsonObject {
    const now = this.#now();
    const address = stringAt(pod, 'status', 'podIP') || this.#newAddress();
    const ready = (type: string): JsonObject => ({
      type,
      status: 'True',
      lastTransitionTime: now,
    });
    return {
      phase: 'Running',
      podIP: address,
      podIPs: [{ ip: address }],
      startTime: now,
      conditions: ['Ready', 'ContainersReady', 'Initialized'].map(ready),
    };
  }

  #newAddress(): string {
    const number = ++this.#addresses;
    return `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
  }

  #ended(pod: JsonObject): JsonObject {
    const isFailure = Buffer.from(stringAt(pod, 'metadata', 'uid')).readUInt8(3) % FAILING === 0;
    const now = this.#now();
    const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: now }];
    return { phase: isFailure ? 'Failed' : 'Succeeded', conditions };
  }

  /** False where it has to be tried again. */
  async #setStatus(path: string, status: JsonObject): Promise<boolean> {
    const body = { status };
    const answer = await this.#cluster.ask('PATCH', `${path}/status`, body, CONTENT.strategicPatch);
    if (!answer.ok) assert.notEqual(answer.code, 422, answer.status.message ?? '');
    return answer.ok || answer.code === 404;
  }

  async #bind(path: string, namespace: string, name: string, pod: JsonObject): Promise<boolean> {
    const living = [...this.nodes].filter(([, { isFrozen }]) => !isFrozen).map(([one]) => one);
    const wanted = wantedNode(pod);
    const chosen = wanted === '' ? living[this.#random.below(Math.max(1, living.length))] : wanted;
    if (chosen === undefined || (wanted !== '' && !this.nodes.has(wanted))) return false;
    const target = { apiVersion: 'v1', kind: 'Node', name: chosen };
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target };
    const answer = await this.#cluster.ask('POST', `${path}/binding`, body);
    return answer.ok || answer.code !== 429;
  }
}

function isReady(pod: JsonObject): boolean {
  return listAt(pod, 'status', 'conditions').some(
    (one) => stringAt(one, 'type') === 'Ready' && stringAt(one, 'status') === 'True',
  );
}

/** The node that a daemon's pod is for; '' for others. */
function wantedNode(pod: JsonObject): string {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const terms = listAt(pod, 'spec', 'affinity', 'nodeAffinity', required, 'nodeSelectorTerms');
  const [field] = listAt(terms[0], 'matchFields');
  const [value] = listAt(field, 'values');
  return typeof value === 'string' ? value : '';
}

function partsOf(key: string): [namespace: string, name: string] {
  const slash = key.indexOf('/');
  return [key.slice(0, slash), key.slice(slash + 1)];
}

/** Plays the steps of a workload against an API server and waits for the pods to have nodes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { cpuSecondsExact } from '../harness.ts';
import { Progress } from './progress.ts';
import { NAMESPACE, type Template } from './templates.ts';
import type { Rig } from './rig.ts';
import type { PodsStep, Step, Workload } from './workloads.ts';

export interface Outcome {
  readonly pods: number;
  /** From the first pod's node to the last one's. */
  readonly perSecond: number;
  /** From the first request to the last pod's node. */
  readonly seconds: number;
  /** Processor seconds meanwhile; the driver's are those of this process. */
  readonly serverCpu: number;
  readonly schedulerCpu: number;
  readonly driverCpu: number;
}

const POLL_MS = 20;
const STUCK_MS = 300_000;
const RETRY_MS = 200;
/** Until the scheduler has seen, too, that pods are gone, and its events are written. */
const SETTLE_MS = 2000;
/** Where objects of each kind are made. */
const PATHS: Record<string, string> = {
  Pod: '/api/v1/namespaces/{namespace}/pods',
  Node: '/api/v1/nodes',
  Namespace: '/api/v1/namespaces',
  Service: '/api/v1/namespaces/{namespace}/services',
  PersistentVolume: '/api/v1/persistentvolumes',
  PersistentVolumeClaim: '/api/v1/namespaces/{namespace}/persistentvolumeclaims',
  CSINode: '/apis/storage.k8s.io/v1/csinodes',
  DeviceClass: '/apis/resource.k8s.io/v1/deviceclasses',
  ResourceClaim: '/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims',
  ResourceSlice: '/apis/resource.k8s.io/v1/resourceslices',
};

interface Order {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  readonly body: string | null;
}

/** Plays all steps. Resolves with what the measured pods took. */
export async function play(rig: Rig, workload: Workload): Promise<Outcome> {
  const player = new Player(rig);
  try {
    for (const [index, step] of workload.steps.entries()) await player.step(step, index);
  } finally {
    player.stop();
  }
  if (player.outcome === null) throw new Error(`${workload.name}: no step is measured`);
  return player.outcome;
}

class Player {
  readonly #rig: Rig;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #spaces = new Set<string>();
  /** Pods by namespace. */
  readonly #pods = new Map<string, number>();
  #turn = 0;
  outcome: Outcome | null = null;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  async step(step: Step, index: number): Promise<void> {
    switch (step.kind) {
      case 'nodes':
        return this.#send(step.count, (at) => orderOf(step.node, at, ''));
      case 'objects': {
        const { count, object, namespace = '' } = step;
        return this.#send(count, (at) => orderOf(object, at, namespace));
      }
      case 'namespaces':
        for (let at = 0; at < step.count; at++) await this.#space(`${step.prefix}${at}`);
        return;
      case 'churn':
        await this.#space('churn');
        this.#timers.push(setInterval(() => this.#churn(step), step.everyMs));
        return;
      case 'passing':
        return this.#passing(step.pod, step.count);
      case 'delete':
        return this.#delete(step.namespace, step.perSecond);
      case 'pods':
        return this.#podsOf(step, step.namespace ?? `namespace-${index}`);
    }
  }

  async #podsOf(step: PodsStep, namespace: string): Promise<void> {
    await this.#space(namespace);
    const { count, first = 0 } = step;
    this.#pods.set(namespace, first + count);
    if (step.isMeasured === true) return this.#measured(step, namespace);
    await this.#make(step, namespace);
    if (step.isLeft !== true) await this.#bound(namespace);
  }

  async #passing(pod: Template, count: number): Promise<void> {
    const namespace = 'before';
    await this.#podsOf({ kind: 'pods', count, pod }, namespace);
    const body = '{"gracePeriodSeconds":0}';
    const path = orderOf(pod, 0, namespace).path;
    const names = Array.from({ length: count }, (_, at) => nameOf(pod, at));
    await this.#send(count, (at) => ({ method: 'DELETE', path: `${path}/${names[at]}`, body }));
    await sleep(SETTLE_MS);
  }

  async #make({ count, first = 0, beside = [], pod }: PodsStep, namespace: string): Promise<void> {
    // What a pod needs is there before it is: else it would be tried twice.
    for (const object of beside) {
      await this.#send(count, (at) => orderOf(object, first + at, namespace));
    }
    await this.#send(count, (at) => orderOf(pod, first + at, namespace));
  }

  async #measured(step: PodsStep, namespace: string): Promise<void> {
    const { serverPid, schedulerPid } = this.#rig;
    const pids = [serverPid, schedulerPid, process.pid];
    const progress = new Progress((step.first ?? 0) + step.count);
    await progress.open(this.#client(), namespace);
    const before = pids.map(cpuSecondsExact);
    const startMs = performance.now();
    await this.#make(step, namespace);
    const trouble = await progress.ended(STUCK_MS);
    if (trouble !== null) throw new Error(`${namespace}: ${trouble}`);
    const spent = pids.map((pid, at) => cpuSecondsExact(pid) - (before[at] ?? 0));
    const [serverCpu = 0, schedulerCpu = 0, driverCpu = 0] = spent;
    this.outcome = {
      ...{ pods: step.count, perSecond: progress.perSecond },
      seconds: (progress.lastMs - startMs) / 1000,
      ...{ serverCpu, schedulerCpu, driverCpu },
    };
  }

  /** Asks for one pod without a node until there is none: cheap where that is indexed. */
  async #bound(namespace: string): Promise<void> {
    const query = 'fieldSelector=spec.nodeName%3D&limit=1&resourceVersion=0';
    const path = `/api/v1/namespaces/${namespace}/pods?${query}`;
    const endMs = performance.now() + STUCK_MS;
    while (performance.now() < endMs) {
      const found = await this.#client().request({ method: 'GET', path });
      if (found.ok && (found.object['items'] as readonly JsonObject[]).length === 0) return;
      await sleep(POLL_MS);
    }
    throw new Error(`pods of ${namespace} have no node after ${STUCK_MS / 1000} s`);
  }

  async #space(name: string): Promise<void> {
    if (this.#spaces.has(name)) return;
    this.#spaces.add(name);
    const { path, body } = orderOf(NAMESPACE, 0, name);
    await this.#send(1, () => ({
      method: 'POST',
      path,
      body: body?.replace('{name}', name) ?? '',
    }));
  }

  #churn({ objects, isReplaced }: Extract<Step, { kind: 'churn' }>): void {
    const turn = this.#turn++;
    for (const object of objects) {
      const order = orderOf(object, turn, 'churn');
      this.#shoot(order);
      if (!isReplaced || turn === 0) continue;
      const metadata = object.object['metadata'] as { name: string };
      const name = metadata.name.replace('{i}', String(turn - 1));
      this.#shoot({ method: 'DELETE', path: `${order.path}/${name}`, body: null });
    }
  }

  /** Goes on beside the steps that follow. */
  #delete(namespace: string, perSecond: number): void {
    const count = this.#pods.get(namespace) ?? 0;
    let next = 0;
    const timer = setInterval(() => {
      if (next === count) return clearInterval(timer);
      const path = `/api/v1/namespaces/${namespace}/pods/pod-${next++}`;
      this.#shoot({ method: 'DELETE', path, body: null });
    }, 1000 / perSecond);
    this.#timers.push(timer);
  }

  #client(): Client {
    const [client] = this.#rig.clients;
    if (client === undefined) throw new Error('--clients: at least 1');
    return client;
  }

  /** What is refused here does not matter: the next comes soon. */
  #shoot({ method, path, body }: Order): void {
    const client = this.#rig.clients.find((one) => one.room() > 0);
    client?.send(method, path, body === null ? '' : CONTENT.json, body, () => {});
  }

  /** Sends `count` orders over all clients. Rejects with the first that is refused for good. */
  async #send(count: number, order: (index: number) => Order): Promise<void> {
    const { clients } = this.#rig;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const again: number[] = [];
    let [next, done] = [0, 0];
    const pump = (): void => {
      if (done === count) return resolve();
      for (const client of clients) {
        while (client.room() > 0) {
          const index = again.pop() ?? (next < count ? next++ : -1);
          if (index < 0) return;
          const { method, path, body } = order(index);
          client.send(method, path, CONTENT.json, body, onAnswer, index);
        }
      }
    };
    const onAnswer = (
      status: number,
      bytes: Uint8Array,
      start: number,
      end: number,
      index: number,
    ): void => {
      if (status >= 200 && status < 300) done++;
      else if (status === 429 || status >= 500) {
        setTimeout(() => {
          again.push(index);
          pump();
        }, RETRY_MS);
        return;
      } else {
        const text = Buffer.from(bytes.subarray(start, end)).toString();
        reject(new Error(`${order(index).path}, number ${index}: ${status} ${text}`));
        return;
      }
      pump();
    };
    for (const client of clients) client.onRoom(pump);
    pump();
    await promise;
  }
}

/** The texts of templates, parted where the number of an object comes. */
const parts = new WeakMap<Template, readonly string[]>();

function nameOf({ object }: Template, index: number): string {
  const { name } = object['metadata'] as { name: string };
  return name.replace('{i}', String(index));
}

function orderOf(template: Template, index: number, namespace: string): Order {
  let texts = parts.get(template);
  if (texts === undefined) {
    texts = JSON.stringify(template.object).split('{i}');
    parts.set(template, texts);
  }
  const { turns } = template;
  const { kind } = template.object as { kind: string };
  let body = texts.join(String(index));
  if (turns !== undefined) body = body.replaceAll('{turn}', turns[index % turns.length] ?? '');
  if (body.includes('{namespace}')) body = body.replaceAll('{namespace}', namespace);
  return { method: 'POST', path: (PATHS[kind] ?? '').replace('{namespace}', namespace), body };
}

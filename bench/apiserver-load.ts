/** Load for the API server: bodies of requests, and clients that keep it busy. */
import type { Client, Method } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import * as harness from './harness.ts';

export const PODS = '/api/v1/namespaces/default/pods';
export const NODES = '/api/v1/nodes';
export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const UID = '5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11';
const ANSWER_BYTES_MAX = 2 ** 30;

export interface Shot {
  readonly method: Method;
  readonly path: string;
  readonly type: string;
  readonly body: Uint8Array | string | null;
}

/** Of `count` requests: how many a second of the clock and of the server's processor time. */
export interface Rate {
  readonly perSecond: number;
  readonly perCpuSecond: number;
}

/** `count` clients, each on connections of its own. */
export async function openClients(
  kubeconfig: string,
  count: number,
  connections: number,
  inFlight: number,
): Promise<Client[]> {
  const limits = {
    connections,
    inFlightMax: inFlight,
    queueMax: inFlight,
    answerBytesMax: ANSWER_BYTES_MAX,
  };
  return Promise.all(Array.from({ length: count }, () => createKubeClient({ kubeconfig, limits })));
}

/** Answers seen by the load, for those who need the revisions in them. */
export type Seen = (index: number, bytes: Uint8Array, start: number, end: number) => void;

/** Sends `count` requests over all clients; every answer must be below 300. */
export async function shoot(
  clients: readonly Client[],
  count: number,
  shotOf: (index: number) => Shot,
  seen?: Seen,
): Promise<void> {
  let next = 0;
  await Promise.all(
    clients.map(
      (client) =>
        new Promise<void>((resolve, reject) => {
          let inFlight = 0;
          const pump = (): void => {
            while (next < count && client.room() > 0) {
              const index = next++;
              const { method, path, type, body } = shotOf(index);
              client.send(method, path, type, body, onAnswer, index);
              inFlight++;
            }
            if (next >= count && inFlight === 0) resolve();
          };
          const onAnswer = (
            status: number,
            bytes: Uint8Array,
            start: number,
            end: number,
            index: number,
          ): void => {
            inFlight--;
            if (status < 200 || status >= 300) {
              const text = Buffer.from(bytes.subarray(start, end)).toString();
              reject(new Error(`request ${index} was answered ${status}: ${text.slice(0, 300)}`));
              return;
            }
            seen?.(index, bytes, start, end);
            pump();
          };
          client.onRoom(pump);
          pump();
        }),
    ),
  );
}

/** A server that was started, of one process or several. */
export interface Started {
  readonly pids: readonly number[];
  /** A file that clients get to it with. */
  readonly kubeconfig: string;
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Processor seconds of several processes, to the microsecond. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + harness.cpuSecondsExact(pid), 0);
}

/** Resident memory of several processes in MiB. */
export function rssMibOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + harness.rssMib(pid), 0);
}

/** What `work`, which does `count` things, costs the server. */
export async function rateOf(
  pids: readonly number[],
  count: number,
  work: () => Promise<void>,
): Promise<Rate> {
  const ticks = () => pids.reduce((sum, pid) => sum + harness.cpuSeconds(pid), 0);
  const startMs = performance.now();
  const startCpu = ticks();
  await work();
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = Math.max(0.01, ticks() - startCpu);
  return { perSecond: count / seconds, perCpuSecond: count / cpu };
}

/** Revisions of leases as their answers said. */
export class Leases {
  readonly #revisions: Float64Array;
  readonly #scan = new ObjectScan();
  /** How bodies are sent; answers are JSON. */
  isProtobuf = false;
  #tick = 0;

  constructor(count: number) {
    this.#revisions = new Float64Array(count);
  }

  readonly seen: Seen = (index, bytes, start, end) => {
    const at = index % this.#revisions.length;
    if (this.#scan.scan(bytes, start, end)) this.#revisions[at] = this.#scan.resourceVersion;
  };

  shot(index: number): Shot {
    const at = index % this.#revisions.length;
    const revision = this.#revisions[at] ?? 0;
    const name = `node-${at}`;
    const lease = leaseObject(name, revision, new Date(1_790_000_000_000 + this.#tick++));
    const body = this.isProtobuf ? protobufOf(lease) : JSON.stringify(lease);
    const type = this.isProtobuf ? 'application/vnd.kubernetes.protobuf' : 'application/json';
    if (revision === 0) return { method: 'POST', path: LEASES, type, body };
    return { method: 'PUT', path: `${LEASES}/${name}`, type, body };
  }
}

function protobufOf(object: JsonObject): Uint8Array {
  const bytes = encodeProtobuf(object);
  if (bytes === undefined) throw new Error('there is no protobuf of this kind');
  return bytes;
}

function leaseObject(name: string, revision: number, time: Date): JsonObject {
  const renewTime = time.toISOString().replace('Z', '000Z');
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid: UID };
  return {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: {
      name,
      namespace: 'kube-node-lease',
      ...(revision === 0 ? {} : { resourceVersion: String(revision) }),
      ownerReferences: [owner],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
  };
}

const SETTINGS = Array.from({ length: 26 }, (_, n) => ({
  name: `SETTING_${n}`,
  value: `value-of-the-setting-${1000 + n}`,
}));

function labelsOf(index: number): JsonObject {
  return { app: 'web', 'pod-template-hash': '5d4f6c7b8', part: `p${index % 100}` };
}

/** A pod of about 2 KB, as a controller makes them. */
export function podShot(index: number): Shot {
  const controller = { controller: true, blockOwnerDeletion: true };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f', uid: UID };
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: `pod-${index}`,
      namespace: 'default',
      labels: labelsOf(index),
      ownerReferences: [{ ...owner, ...controller }],
    },
    spec: {
      containers: [
        {
          name: 'main',
          image: 'registry.k8s.io/pause:3.10',
          ports: [{ containerPort: 80 }],
          resources: { requests: { cpu: '100m', memory: '64Mi' } },
          env: SETTINGS,
        },
      ],
    },
  };
  return { method: 'POST', path: PODS, type: 'application/json', body: JSON.stringify(pod) };
}

export function bindShot(index: number): Shot {
  const name = `pod-${index}`;
  const target = { apiVersion: 'v1', kind: 'Node', name: `node-${index % 1000}` };
  const binding = { kind: 'Binding', apiVersion: 'v1', metadata: { name }, target };
  const path = `${PODS}/${name}/binding`;
  return { method: 'POST', path, type: 'application/json', body: JSON.stringify(binding) };
}

/** What a kubelet says of a pod; `round` makes it a change each time. */
export function statusShot(index: number, round: number, isPatch: boolean): Shot {
  const time = new Date(1_790_000_000_000 + round * 1000).toISOString().replace('.000', '');
  const name = `pod-${index}`;
  const condition = (type: string): JsonObject => {
    return { type, status: 'True', lastProbeTime: null, lastTransitionTime: time };
  };
  const ip = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  const container = {
    name: 'main',
    image: 'registry.k8s.io/pause:3.10',
    imageID: '',
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: time } },
  };
  const status = {
    phase: 'Running',
    conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
    containerStatuses: [container],
    hostIP: '10.0.0.1',
    hostIPs: [{ ip: '10.0.0.1' }],
    podIP: ip,
    podIPs: [{ ip }],
    startTime: time,
  };
  const path = `${PODS}/${name}/status`;
  if (isPatch) {
    const type = 'application/strategic-merge-patch+json';
    return { method: 'PATCH', path, type, body: JSON.stringify({ status }) };
  }
  // a status that is put whole takes the labels along: without them they would be gone
  const metadata = { name, namespace: 'default', labels: labelsOf(index) };
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata, status };
  return { method: 'PUT', path, type: 'application/json', body: JSON.stringify(pod) };
}

/** A node of about 6 KB: most of it the images that it has. */
export function nodeShot(index: number): Shot {
  const name = `node-${index}`;
  const images = Array.from({ length: 40 }, (_, n) => ({
    names: [`registry.example.com/team/service-${n}@sha256:${'0123456789abcdef'.repeat(4)}`],
    sizeBytes: 100_000_000 + n,
  }));
  const node = {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, zone: `z${index % 3}` } },
    status: {
      capacity: { cpu: '4', memory: '32Gi', pods: '110' },
      allocatable: { cpu: '4', memory: '32Gi', pods: '110' },
      addresses: [{ type: 'Hostname', address: name }],
      images,
    },
  };
  return { method: 'POST', path: NODES, type: 'application/json', body: JSON.stringify(node) };
}

/** Milliseconds until a whole answer is in, and its size. */
export function fetchAll(
  client: Client,
  path: string,
  accept: string,
): Promise<{ readonly ms: number; readonly bytes: number }> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    let bytes = 0;
    let code = 0;
    client.stream(
      path,
      {
        onHead: (status) => (code = status),
        onData: (_, start, end) => (bytes += end - start),
        onEnd: (error) => {
          if (error !== null || code !== 200) reject(new Error(`${path}: ${code} ${error ?? ''}`));
          else resolve({ ms: performance.now() - startMs, bytes });
        },
      },
      accept,
    );
  });
}

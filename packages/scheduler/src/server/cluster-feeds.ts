/** Keeps the machine told of what the API server holds: one informer per kind. */
import type { Client } from '@megaplane/client/client';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { NodeNews } from '../cache/node-news.ts';
import type { KubeObject, NodeObject, OwnerObject } from '../api/objects.ts';
import type { ObjectWrite } from '../framework/reservation.ts';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import { parseJson } from '@megaplane/machinery/json-text';

export interface ClusterFeedsOptions {
  readonly client: Client;
  readonly core: SchedulerCore;
  /** Extenders want to see whole nodes. */
  readonly keepsNodes: boolean;
  readonly nowMs: () => number;
  readonly meter: EventMeter;
  /** Something changed: there may be pods to try. */
  readonly onChange: () => void;
  /** `undone`: writes that take back what was done for the pod. */
  readonly onPodGone: (id: number, undone: readonly ObjectWrite[]) => void;
  /** Everything is there. */
  readonly onSynced: () => void;
  readonly onTrouble: (message: string) => void;
}

/** Told how long it takes to take changes in. */
export interface EventMeter {
  /** Seconds since any fixed moment. */
  now(): number;
  handled(event: string, since: number): void;
}

type FeedHandler = Partial<Parameters<typeof createInformer>[0]['handler']>;

export interface FeedKind {
  readonly kind: string;
  readonly path: string;
  /** Discovery of its group: not all servers have it. */
  readonly group?: string;
}

const DEVICES = '/apis/resource.k8s.io/v1';
const GROUPS = '/apis/scheduling.k8s.io/v1alpha2';
/** Between two tries to learn what the server has. */
const DISCOVERY_RETRY_MS = 1000;

/** Kinds of which there are few, and of which only some members matter. */
export const FEED_KINDS: readonly FeedKind[] = [
  { kind: 'Namespace', path: '/api/v1/namespaces' },
  { kind: 'Service', path: '/api/v1/services' },
  { kind: 'ReplicationController', path: '/api/v1/replicationcontrollers' },
  { kind: 'ReplicaSet', path: '/apis/apps/v1/replicasets' },
  { kind: 'StatefulSet', path: '/apis/apps/v1/statefulsets' },
  { kind: 'PodDisruptionBudget', path: '/apis/policy/v1/poddisruptionbudgets' },
  { kind: 'PersistentVolume', path: '/api/v1/persistentvolumes' },
  { kind: 'PersistentVolumeClaim', path: '/api/v1/persistentvolumeclaims' },
  { kind: 'StorageClass', path: '/apis/storage.k8s.io/v1/storageclasses' },
  { kind: 'CSINode', path: '/apis/storage.k8s.io/v1/csinodes' },
  { kind: 'CSIDriver', path: '/apis/storage.k8s.io/v1/csidrivers' },
  { kind: 'CSIStorageCapacity', path: '/apis/storage.k8s.io/v1/csistoragecapacities' },
  { kind: 'VolumeAttachment', path: '/apis/storage.k8s.io/v1/volumeattachments' },
  { kind: 'ResourceClaim', path: `${DEVICES}/resourceclaims`, group: DEVICES },
  { kind: 'ResourceSlice', path: `${DEVICES}/resourceslices`, group: DEVICES },
  { kind: 'PodGroup', path: `${GROUPS}/podgroups`, group: GROUPS },
  { kind: 'DeviceClass', path: `${DEVICES}/deviceclasses`, group: DEVICES },
];
/** Of these, pods' siblings are told by the selector, and nothing else is kept. */
const SELECTOR_ONLY = new Set(['Service', 'ReplicationController', 'ReplicaSet', 'StatefulSet']);

/** Pods that have ended take no room and want none. */
const LIVE_PODS = 'status.phase!=Succeeded,status.phase!=Failed';

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function textAt(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
}

function trimmed(kind: string, object: KubeObject): OwnerObject {
  const { name, namespace, labels } = object.metadata;
  const space = namespace === undefined ? {} : { namespace };
  if (SELECTOR_ONLY.has(kind)) {
    const selector = (object as OwnerObject).spec?.selector;
    return {
      metadata: { name, ...space },
      ...(selector === undefined ? {} : { spec: { selector } }),
    };
  }
  if (kind === 'Namespace')
    return { metadata: { name, ...(labels === undefined ? {} : { labels }) } };
  return object;
}

export class ClusterFeeds {
  readonly #options: ClusterFeedsOptions;
  readonly #informers: Informer[] = [];
  readonly #pods: Informer;
  readonly #optional = new Map<string, Informer[]>();
  #waitsFor = 0;
  #isStopped = false;

  constructor(options: ClusterFeedsOptions) {
    this.#options = options;
    for (const small of FEED_KINDS) this.#addSmall(small);
    this.#addNodes();
    this.#pods = this.#addPods();
    this.#waitsFor = this.#informers.length;
    for (const informers of this.#optional.values()) this.#waitsFor += informers.length;
  }

  start(): void {
    for (const informer of this.#informers) informer.start();
    for (const [group, informers] of this.#optional) void this.#startGroup(group, informers);
  }

  stop(): void {
    this.#isStopped = true;
    for (const informer of this.#informers) informer.stop();
  }

  get isSynced(): boolean {
    return this.#waitsFor === 0;
  }

  /** Nothing is decided before it is known whether the server has the group, and what of it. */
  async #startGroup(group: string, informers: readonly Informer[]): Promise<void> {
    const { client } = this.#options;
    while (!this.#isStopped) {
      const answer = await client.request({ method: 'GET', path: group });
      if (this.#isStopped) return;
      if (answer.ok) {
        this.#informers.push(...informers);
        for (const informer of informers) informer.start();
        return;
      }
      if (answer.code === 404) return this.#synced(informers.length);
      const why = answer.status.message ?? String(answer.code);
      this.#options.onTrouble(`cannot learn whether the server has ${group}: ${why}`);
      await new Promise<void>((resolve) => {
        client.timers.after(DISCOVERY_RETRY_MS, resolve);
      });
    }
  }

  #synced(count: number): void {
    this.#waitsFor -= count;
    if (this.#waitsFor === 0) this.#options.onSynced();
  }

  /** `namespace/name` of a pod's row. */
  keyOfPod(id: number): string {
    return this.#pods.keyOf(id);
  }

  #add(path: string, handler: FeedHandler, group?: string): Informer {
    let isSynced = false;
    const informer = createInformer({
      client: this.#options.client,
      path,
      ...(path === '/api/v1/pods' ? { fieldSelector: LIVE_PODS } : {}),
      handler: {
        onUpsert: () => {},
        onDelete: () => {},
        ...handler,
        onTrouble: (message) => this.#options.onTrouble(message),
        onSynced: () => {
          if (isSynced) return;
          isSynced = true;
          this.#synced(1);
        },
      },
    });
    if (group === undefined) this.#informers.push(informer);
    else this.#optional.set(group, [...(this.#optional.get(group) ?? []), informer]);
    return informer;
  }

  /** Takes a change in; what it changed may let pods be tried. */
  #measured(take: () => void): void {
    const { core, meter, onChange } = this.#options;
    const since = meter.now();
    take();
    if (core.lastEvent !== '') meter.handled(core.lastEvent, since);
    onChange();
  }

  #addSmall({ kind, path, group }: FeedKind): void {
    const { core, nowMs } = this.#options;
    const handler: FeedHandler = {
      onUpsert: (_id, _isNew, bytes, start, end) => {
        const object = parseJson(textAt(bytes, start, end)) as unknown as KubeObject;
        this.#measured(() => core.objectSeen(kind, trimmed(kind, object), nowMs()));
      },
      onDelete: (id) => {
        this.#measured(() => core.objectGone(kind, informer.keyOf(id), nowMs()));
      },
    };
    const informer = this.#add(path, handler, group);
  }

  #addNodes(): void {
    const { core, keepsNodes, nowMs } = this.#options;
    const news = new NodeNews();
    const informer = this.#add('/api/v1/nodes', {
      onUpsert: (id, isNew, bytes, start, end) => {
        if (!keepsNodes && !news.isNews(id, isNew, bytes, start, end)) return;
        if (keepsNodes) {
          const node = parseJson(textAt(bytes, start, end)) as unknown as NodeObject;
          core.objects.set('Node', node);
          this.#measured(() => core.nodeSeen(node, nowMs()));
          return;
        }
        this.#measured(() => core.nodeBytesSeen(bufferOf(bytes), start, end, nowMs()));
      },
      onDelete: (id) => {
        if (keepsNodes) core.objects.delete('Node', informer.keyOf(id));
        this.#measured(() => core.nodeGone(informer.keyOf(id), nowMs()));
      },
    });
  }

  #addPods(): Informer {
    const { core, nowMs, onPodGone, onTrouble } = this.#options;
    return this.#add('/api/v1/pods', {
      onUpsert: (id, isNew, bytes, start, end) => {
        this.#measured(() => {
          if (core.podSeen(id, isNew, bufferOf(bytes), start, end, nowMs())) return;
          onTrouble('a pod cannot be read; it is left alone');
        });
      },
      onDelete: (id) => {
        this.#measured(() => onPodGone(id, core.podGone(id, nowMs())));
      },
    });
  }
}

/** The simulated nodes and pods of one process, wired: informers, kubelets, pods and stages. */
import { Uint32Column } from '@megaplane/base/column';
import type { Client } from '@megaplane/client/client';
import type { Informer } from '@megaplane/client/informer';
import { createInformer } from '@megaplane/client/informer';
import { readPages, type PagerResult } from '@megaplane/client/pager';
import { shardOf } from '@megaplane/machinery/sharding/selector';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import {
  commonCidr,
  plannedCidr,
  plannedNetworks,
  PodAddresses,
  type PodNetwork,
} from '../pod/pod-addresses.ts';
import { parseCalls, type Call } from '../fidelity/calls.ts';
import { imageList } from '../fidelity/image-list.ts';
import { KubeletTraffic } from '../fidelity/kubelet-traffic.ts';
import { Faults } from '../chaos/faults.ts';
import { Kubelets, KUBELET_STATUS_MS, STATUS_PERIOD_MS } from '../kubelet/kubelets.ts';
import { LEASE_PATH } from '../lease/lease-object.ts';
import { NodeValues, type NodeWay } from '../kubelet/node-values.ts';
import { Disregard, NodeFilter, selectorOf } from '../client/node-filter.ts';
import { markOldNodes } from '../kubelet/old-nodes.ts';
import { DEFAULT_TEMPLATE, NodeBodies, SIMULATED_SELECTOR } from '../kubelet/node-object.ts';
import { addressOfNode, type KubeletEndpoint } from '../kubelet/node-status.ts';
import { Pods, type PodCounts } from '../pod/pods.ts';
import type { PortConfig } from '../server/port-config.ts';
import type { Part } from '../client/membership.ts';
import type { KwokObject } from '../stages/kwok-objects.ts';
import { readStageFile } from '../stages/stage-file.ts';
import type { Stage } from '../stages/stage.ts';
import type { KubeletClock } from '../lease/renew-times.ts';
import { Registration } from '../kubelet/registration.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { FileError } from '../yaml/yaml-fields.ts';
import { defaultMetrics } from '../stages/kwok-files.ts';
import { loadStages, takeDocument, type KwokFile } from '../stages/stage-sets.ts';
import { StagedCluster } from './staged-cluster.ts';
import { retry } from '../client/retry.ts';
import { UidShard } from '../client/uid-shard.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';
import type { NodesOptions } from './nodes-options.ts';

/** Nodes whose leases are taken within this time are read together. */
const HELD_TOGETHER_MS = 200;
/** Nodes of others that are named in the log. */
const LEFT_TOLD_MAX = 10;

export interface ClusterParts {
  readonly client: Client;
  readonly heartbeats: Client;
  readonly options: NodesOptions;
  readonly metrics: SimulatorMetrics;
  readonly clock: KubeletClock;
  readonly endpoint: KubeletEndpoint;
  readonly config: PortConfig;
  /** Our name among the simulators of the cluster. */
  readonly identity: string;
  /** Which part of the nodes is ours. */
  readonly part: Part;
  /** Stages of the server. */
  readonly stages: readonly KwokObject[];
  /** No other world was there before it: what is wrong with files ends the program. */
  readonly isFirst: boolean;
  /** Asked once: the world that has kept leases until now; nobody else holds it any more. */
  takeOver(): SimulatedCluster | null;
  /** A Stage of the server cannot be played. */
  onRefused(stage: string, why: string): void;
}

/** Call `start` once and `tick` often. */
export class SimulatedCluster {
  readonly #parts: ClusterParts;
  readonly #staged: StagedCluster;
  readonly #kubelets: Kubelets;
  readonly #played: Pods;
  readonly #filter: NodeFilter;
  readonly #faults: Faults;
  readonly #traffic: KubeletTraffic | null;
  readonly #nodes: Informer;
  readonly #pods: Informer;
  readonly #values = new NodeValues();
  /** Containers that a node has started, by its row. */
  readonly #started = new Uint32Column();
  /** Nodes that have just become ours and are read next. */
  readonly #held: Set<number> = new Set();
  #isReading = false;
  #registration: Registration | null = null;
  #isStarted = false;
  #isStopped = false;
  #isRetired = false;
  #leftTold = 0;

  constructor(parts: ClusterParts) {
    const { client, heartbeats, options, metrics, endpoint } = parts;
    this.#parts = parts;
    const disregard = new Disregard(options.disregardAnnotations, options.disregardLabels);
    const onTrouble = (message: string): void => options.log('warn', message);
    const { index, count } = parts.part;
    const addresses = new PodAddresses(commonCidr(options.cidr), index, count);
    const networksOf = (node: string): readonly PodNetwork[] => this.#networksOf(node);
    this.#faults = this.#makeFaults();
    const calls = callsOf(options);
    this.#traffic = this.#makeTraffic(calls);
    const onStart = (node: string, containers: number): void => {
      const row = this.#findNode(node);
      if (row >= 0) this.#started.add(row, containers);
    };
    this.#staged = new StagedCluster({
      ...{ client, metrics, addresses, disregard, networksOf, onTrouble, onStart },
      isDown: (node) => this.#isDown(node),
      podListener: this.#traffic?.podHandler ?? null,
      endpoint,
      findNode: (name) => this.#findNode(name),
      nodeAddresses: (row) => this.#kubelets.addressesOf(row),
    });
    this.#kubelets = new Kubelets({
      ...{ clock: parts.clock, client: heartbeats },
      leaseDurationSeconds: options.leaseDurationSeconds,
      metrics,
      endpoint,
      isRegistering: () => this.#registration?.isUnderWay === true,
      faultOf: (id) => this.#faults.of(id),
      holder: options.fidelity === 'kwok' ? parts.identity : '',
      statusPeriodMs: calls.has('status') ? KUBELET_STATUS_MS : STATUS_PERIOD_MS,
      readsStatus: calls.has('status-get'),
      keepsStatus: () => !this.#staged.hasNodes,
      onTrouble,
      nameOf: (id) => this.#nodes.keyOf(id),
      onNode: (id) => {
        this.#started.set(id, 0);
        this.#played.onNode(this.#nodes.keyOf(id));
        this.#staged.onNode(this.#nodes.keyOf(id));
        this.#traffic?.onNode(this.#nodes.keyOf(id), this.#kubelets.uidOf(id));
      },
      onHeld: (id) => void this.#onHeld(id),
      onLeft: (id) => this.#tellLeft(id, 'somebody else renews its lease'),
    });
    this.#played = new Pods({
      ...{ client, metrics, addresses, disregard, calls, networksOf, onStart },
      isDown: (node) => this.#isDown(node),
      find: (namespace, name) => this.#pods.find(namespace, name),
      ...{ nodeAddresses: (node) => this.#addressesOf(node), onNodes: this.#countsPods() },
    });
    this.#pods = createInformer({
      client,
      path: '/api/v1/pods',
      fieldSelector: 'spec.nodeName!=',
      handler: { ...withTraffic(this.#played.handler, this.#traffic), onTrouble },
    });
    this.#filter = this.#makeFilter();
    this.#nodes = createInformer({
      client,
      path: '/api/v1/nodes',
      labelSelector: options.labelSelector,
      ...(options.singleNode === ''
        ? {}
        : { fieldSelector: `metadata.name=${options.singleNode}` }),
      ...shardSelectorOf(parts.part),
      capacity: Math.ceil(options.create / parts.part.count),
      handler: { ...this.#filter.handler, onTrouble, onSynced: () => this.#onSynced() },
    });
  }

  /** Rejects with an Error that says what is wrong with the files. */
  async start(): Promise<void> {
    const { options, config } = this.#parts;
    const warn = (message: string): void => options.log('warn', message);
    const load = (files: readonly KwokFile[], isDefault = false): readonly Stage[] =>
      loadStages(files, this.#staged.languages, takeDocument(config, isDefault), warn);
    const stages = load(options.files);
    // what nobody says otherwise
    if (!config.hasUsages && config.pages.length === 0) load(defaultMetrics(), true);
    const all = this.#withObjects(stages);
    await this.#staged.prepare(all, (stage, why) => {
      if (!stages.includes(stage)) return this.#parts.onRefused(stage.name, why);
      const message = `${stage.place}: stage ${stage.name}: ${why}`;
      // nodes that live already live on without it
      if (this.#parts.isFirst) throw new Error(message);
      return options.log('error', message);
    });
    if (!this.#isStopped) this.#nodes.start();
  }

  /** A Stage of the server takes the place of one of a file that has its name. */
  #withObjects(stages: readonly Stage[]): readonly Stage[] {
    const objects: Stage[] = [];
    for (const { key, text } of this.#parts.stages) {
      const name = key.slice(key.indexOf('/') + 1);
      try {
        objects.push(...readStageFile(`Stage ${name}`, text, this.#staged.languages).stages);
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        this.#parts.onRefused(name, error.message);
      }
    }
    const names = new Set(objects.map(({ name }) => name));
    return [...stages.filter(({ name }) => !names.has(name)), ...objects];
  }

  tick(): void {
    this.#kubelets.tick();
    if (this.#isRetired) return;
    this.#traffic?.tick();
    this.#staged.tick();
  }

  stop(): void {
    this.retire();
    this.#faults.stop();
    this.#nodes.stop();
    this.#kubelets.stop();
  }

  /** Leases are renewed. */
  get isRenewing(): boolean {
    return this.#kubelets.isRenewing;
  }

  /** From now on others renew the leases of nodes outside of this part. */
  narrow(part: Part): void {
    const { shardSelector } = shardSelectorOf(part);
    if (shardSelector === undefined) return;
    const shard = new UidShard(shardSelector);
    const has = (id: number): boolean => this.#nodes.has(id) && this.#filter.holds(id);
    this.#kubelets.leave(
      this.#nodes.idLimit,
      (id) => has(id) && !shard.holds(this.#kubelets.uidOf(id)),
    );
  }

  /** Keeps leases, and does nothing else, until the next world does. */
  retire(): void {
    this.#isStopped = true;
    this.#isRetired = true;
    this.#kubelets.retire();
    this.#traffic?.stop();
    this.#pods.stop();
    this.#staged.stop();
    this.#registration?.stop();
    this.#played.stop();
  }

  /** Tells the version of a node's lease that was written last, and when it is due. */
  tellLease(node: string, hear: (version: number, dueMs: number, isHeld: boolean) => void): void {
    const row = this.#findNode(node);
    if (row < 0) return;
    const kubelets = this.#kubelets;
    hear(kubelets.leaseVersionOf(row), kubelets.leaseDueMs(row), kubelets.isHeld(row));
  }

  nodeNames(): readonly string[] {
    const names: string[] = [];
    for (let id = 0; id < this.#nodes.idLimit; id++) {
      if (this.#nodes.has(id) && this.#filter.holds(id)) names.push(this.#nodes.keyOf(id));
    }
    return names;
  }

  /** A byte for each row of a node, to be looked at all at once. */
  nodeValues(way: NodeWay): Uint8Array {
    const nodes = this.#nodes;
    const rows = {
      idLimit: nodes.idLimit,
      has: (id: number): boolean => nodes.has(id) && this.#filter.holds(id),
      isReady: (id: number): boolean => this.#kubelets.isReady(id),
      dueMs: (id: number): number => this.#kubelets.leaseDueMs(id),
    };
    return this.#values.values(way, rows, this.#parts.clock.steadyMs());
  }

  /** The name of the node at a row; '' where there is none. */
  nodeNameAt(row: number): string {
    const isOurs = this.#nodes.has(row) && this.#filter.holds(row);
    return isOurs ? this.#nodes.keyOf(row) : '';
  }

  /** Containers that the node has started since this process began. */
  startedContainers(node: string): number {
    const row = this.#findNode(node);
    return row < 0 ? 0 : this.#started.get(row);
  }

  /** Each pod is counted on the row of its node. */
  #countsPods(): PodCounts {
    return {
      findNode: (node) => this.#findNode(node),
      onPod: (row, change) => this.#values.onPod(row, change),
    };
  }

  /** Row of a node that is ours, or -1. */
  #findNode(name: string): number {
    const id = this.#nodes.find('', name);
    return id >= 0 && this.#filter.holds(id) ? id : -1;
  }

  /** Where the node has none yet: what it is about to be given. */
  #addressesOf(node: string): readonly string[] | null {
    const row = this.#findNode(node);
    if (row < 0) return null;
    const own = this.#kubelets.addressesOf(row);
    return own.length > 0 ? own : [addressOfNode(node, this.#parts.endpoint)];
  }

  #networksOf(node: string): readonly PodNetwork[] {
    const row = this.#findNode(node);
    return row < 0 ? [] : this.#kubelets.networksOf(row);
  }

  #tellLeft(id: number, why: string): void {
    if (this.#leftTold++ >= LEFT_TOLD_MAX) return;
    this.#parts.options.log('info', `node ${this.#nodes.keyOf(id)} is left alone: ${why}`);
  }

  /** What holds the rows hears of nodes first, and of their end last. */
  #onNodes(): InformerHandler {
    const first = this.#kubelets.handler;
    return {
      onUpsert: (id, isNew, bytes, start, end) => {
        if (isNew) this.#faults.onNode(id, bytes, start, end);
        if (isNew) this.#values.onNode(id, bytes, start, end);
        first.onUpsert(id, isNew, bytes, start, end);
        if (this.#isRetired) return;
        this.#staged.nodeHandler?.onUpsert(id, isNew, bytes, start, end);
      },
      onDelete: (id, bytes, start, end) => {
        if (!this.#isRetired) {
          this.#traffic?.onNodeGone(this.#nodes.keyOf(id));
          this.#staged.nodeHandler?.onDelete(id, bytes, start, end);
        }
        first.onDelete(id, bytes, start, end);
      },
    };
  }

  #onSynced(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    if (!this.#staged.hasPods) this.#pods.start();
    this.#staged.start();
    this.#faults.start();
    this.#registration = this.#makeRegistration();
    this.#registration.start();
    void this.#startLeases();
    const { client, options } = this.#parts;
    if (options.labelSelector === SIMULATED_SELECTOR) {
      const isStopped = (): boolean => this.#isStopped;
      void markOldNodes({ client, isStopped, onTrouble: (text) => options.log('warn', text) });
    }
  }

  #makeFilter(): NodeFilter {
    const { annotationSelector, singleNode } = this.#parts.options;
    const flag = 'manage-nodes-with-annotation-selector';
    return new NodeFilter(
      {
        selector: selectorOf(flag, annotationSelector),
        takesMachines: singleNode !== '',
        onMachine: (id) => this.#tellLeft(id, 'the kubelet of a machine keeps it'),
      },
      this.#onNodes(),
    );
  }

  #makeTraffic(calls: ReadonlySet<Call>): KubeletTraffic | null {
    if (calls.size === 0) return null;
    const { client, metrics } = this.#parts;
    return new KubeletTraffic({
      ...{ client, calls, metrics },
      isOurs: (node) => this.#findNode(node) >= 0,
    });
  }

  #makeFaults(): Faults {
    const { client, options } = this.#parts;
    return new Faults({
      client,
      rows: {
        idLimit: () => this.#nodes.idLimit,
        has: (id) => this.#nodes.has(id) && this.#filter.holds(id),
        nameOf: (id) => this.#nodes.keyOf(id),
        find: (name) => this.#findNode(name),
      },
      onChange: (id) => this.#kubelets.onFault(id),
      onRecovered: (ids) => void this.#recover(new Set(ids)),
      onTrouble: (message) => options.log('info', message),
    });
  }

  /** Also a node that another simulator holds. */
  #isDown(node: string): boolean {
    const id = this.#findNode(node);
    return id >= 0 && (this.#faults.of(id)?.kind === 'down' || !this.#kubelets.isHeld(id));
  }

  /** A node has become ours: it is played from here on. Those of a moment are read together. */
  async #onHeld(id: number): Promise<void> {
    if (this.#isStopped) return;
    this.#held.add(id);
    if (this.#held.size > 1 || this.#isReading) return;
    this.#isReading = true;
    while (this.#held.size > 0 && !this.#isStopped) {
      await new Promise<void>((resolve) => {
        this.#parts.client.timers.after(HELD_TOGETHER_MS, resolve);
      });
      const ids = new Set(this.#held);
      this.#held.clear();
      await this.#recover(ids);
    }
    this.#isReading = false;
  }

  /** What nodes have missed while they were down is read again. */
  async #recover(ids: ReadonlySet<number>): Promise<void> {
    const isMeant = (name: string): boolean => ids.has(this.#findNode(name));
    const read = (path: string, fieldSelector: string, take: (one: JsonObject) => void) =>
      this.#readWell(path, fieldSelector, take);
    if (this.#staged.hasNodes) {
      await read('/api/v1/nodes', '', (node) => {
        if (isMeant(stringAt(node, 'metadata', 'name'))) this.#staged.replayNode(node);
      });
    }
    await read('/api/v1/pods', 'spec.nodeName!=', (pod) => {
      if (!isMeant(stringAt(pod, 'spec', 'nodeName'))) return;
      if (this.#staged.hasPods) this.#staged.replay(pod);
      else this.#played.replay(pod);
    });
  }

  /** Reads a whole collection, however long the server is in trouble; some objects come twice. */
  #readWell(path: string, fieldSelector: string, take: (one: JsonObject) => void): Promise<void> {
    const { client, options } = this.#parts;
    return retry({
      client,
      isStopped: () => this.#isStopped,
      onTrouble: (message) => options.log('warn', message),
      attempt: async () => {
        const result = await readPages({
          ...{ client, path, fieldSelector },
          onItem: (bytes, start, end) => {
            const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
            if (!this.#isStopped) take(parseJson(text.toString('utf8')) as JsonObject);
          },
        });
        return result.ok ? '' : `cannot read ${path}: ${result.status.message}`;
      },
    });
  }

  #makeRegistration(): Registration {
    const { client, options, metrics, endpoint, part } = this.#parts;
    const zones = options.zones.length > 0 ? options.zones : ['zone-a'];
    const given = options.template ?? DEFAULT_TEMPLATE;
    const plan = plannedNetworks(options.cidr);
    const template = callsOf(options).has('images') ? withImages(given) : given;
    return new Registration({
      client,
      metrics,
      count: options.create,
      part,
      bodies: new NodeBodies({
        ...{ template, zones, kubelet: endpoint },
        ...(plan === undefined ? {} : { podCidrOf: (index: number) => plannedCidr(plan, index) }),
      }),
      exists: (name) => this.#nodes.find('', name) >= 0,
      log: options.log,
    });
  }

  /** Leases of before are taken over: their versions are read page by page, then renewals begin. */
  async #startLeases(): Promise<void> {
    const { client, options } = this.#parts;
    await retry({
      client,
      isStopped: () => this.#isStopped,
      onTrouble: (message) => options.log('warn', message),
      attempt: async () => {
        const result = await this.#readLeases();
        return result.ok ? '' : `cannot read leases: ${result.status.message}`;
      },
    });
    if (this.#isStopped) return;
    const { idLimit } = this.#nodes;
    const isOurs = (id: number): boolean => this.#nodes.has(id) && this.#filter.holds(id);
    this.#takeOver(idLimit, isOurs);
    this.#kubelets.start(idLimit, isOurs);
  }

  /** What the world before has renewed since leases were read is known there. */
  #takeOver(idLimit: number, isOurs: (id: number) => boolean): void {
    const before = this.#parts.takeOver();
    if (before === null) return;
    for (let id = 0; id < idLimit; id++) {
      if (!isOurs(id)) continue;
      before.tellLease(this.#nodes.keyOf(id), (version, dueMs, isHeld) => {
        const isOwn = isHeld && this.#parts.options.fidelity === 'kwok';
        const isNewer = version > this.#kubelets.leaseVersionOf(id);
        if (isNewer || isOwn) this.#kubelets.adopt(id, version, dueMs, isOwn);
        if (isOwn) void this.#onHeld(id);
      });
    }
    before.stop();
  }

  #readLeases(): Promise<PagerResult> {
    const scan = new ObjectScan();
    return readPages({
      client: this.#parts.client,
      path: LEASE_PATH,
      onItem: (bytes, start, end) => {
        if (!scan.scan(bytes, start, end)) return;
        const dueMs = this.#kubelets.observe(bytes, start, end);
        const name = Buffer.from(bytes.subarray(scan.nameStart, scan.nameEnd)).toString('utf8');
        const id = this.#findNode(name);
        if (id < 0) return;
        this.#kubelets.keep(id, bytes, start, end);
        this.#kubelets.adopt(id, scan.resourceVersion, dueMs);
      },
    });
  }
}

function shardSelectorOf({ index, count }: Part): { readonly shardSelector?: string } {
  return count === 1 ? {} : { shardSelector: shardOf(index, count) };
}

function callsOf({ fidelity, kubeletCalls }: NodesOptions): ReadonlySet<Call> {
  return fidelity === 'kubelet' ? parseCalls('--kubelet-calls', kubeletCalls) : new Set();
}

function withTraffic(first: InformerHandler, traffic: KubeletTraffic | null): InformerHandler {
  if (traffic === null) return first;
  const second = traffic.podHandler;
  return {
    onUpsert: (id, isNew, bytes, start, end) => {
      first.onUpsert(id, isNew, bytes, start, end);
      second.onUpsert(id, isNew, bytes, start, end);
    },
    onDelete: (id, bytes, start, end) => {
      second.onDelete(id, bytes, start, end);
      first.onDelete(id, bytes, start, end);
    },
  };
}

function withImages(template: JsonObject): JsonObject {
  return { ...template, status: { ...objectAt(template, 'status'), images: imageList() } };
}

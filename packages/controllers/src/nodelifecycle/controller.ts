/** Node lifecycle, taint eviction and pod garbage collection, wired to informers and writers. */
import { asBuffer } from '@megaplane/base/bytes';
import { Int32Column } from '@megaplane/base/column';
import type { Informer } from '@megaplane/client/informer';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { leaseHash } from '../columns/lease-scan.ts';
import { NO_EXECUTE_ANY } from '../columns/node-flags.ts';
import { NodeLifecycle, type LifecycleRules } from './node-lifecycle.ts';
import { NodeScan } from '../columns/node-scan.ts';
import { NodeTable } from '../columns/node-table.ts';
import { NodeTtl } from './node-ttl.ts';
import { NodeControllerMetrics, type CollectedPod } from './metrics.ts';
import { NodeWriter } from './node-writer.ts';
import type { Log } from '../framework/options.ts';
import { PodGc } from './pod-gc.ts';
import { PodTable } from '../columns/pod-table.ts';
import { PodWriter } from './pod-writer.ts';
import type { Random } from '@megaplane/base/random';
import type { CollectionHandler } from '../framework/shared-informers.ts';
import { TaintEviction } from './taint-eviction.ts';

const LEASE_NAMESPACE = Buffer.from('kube-node-lease/');
/** How often the taint queues and the evictions that are due are looked at. */
const DRAIN_MS = 100;
const POD_GC_MS = 20_000;
/** How often annotations of nodes of which nothing is heard are looked at. */
const TTL_MS = 60_000;
/** Leases that are polled and were last read so much of the grace ago tell nothing of silence. */
const LEASES_AGE_SHARE_MAX = 0.8;

export interface NodeControllerOptions extends ControllerContext {
  readonly random: Random;
  readonly rules: LifecycleRules;
  readonly terminatedPodThreshold: number;
  readonly isLifecycle: boolean;
  readonly isEviction: boolean;
  readonly isPodGc: boolean;
  readonly isTtl: boolean;
  /** By component: `node-controller`, `taint-eviction-controller`. */
  readonly announce: (component: string) => Announce;
  readonly monotonicMs: () => number;
  readonly now: () => string;
  readonly log: Log;
}

export class NodeController {
  readonly #options: NodeControllerOptions;
  readonly nodes: NodeTable;
  readonly pods: PodTable;
  readonly lifecycle: NodeLifecycle;
  readonly eviction: TaintEviction;
  readonly #podGc: PodGc;
  readonly #writer: NodeWriter;
  readonly #podWriter: PodWriter;
  readonly #nodeInformer: Informer;
  readonly #leaseInformer: Informer;
  readonly #podInformer: Informer;
  /** Rows of the nodes' and the leases' informers -> row of the node table + 1; leases hold it. */
  readonly #ofNode = new Int32Column();
  readonly #ofLease = new Int32Column();
  readonly #scan = new NodeScan();
  /** When the watch of leases was cut off; -1 while it is whole. */
  #troubleMs = -1;
  #leasesReadMs = 0;
  /** Observed time of the readings of leases before this one, and before that. */
  #leasesSeenMs = 0;
  readonly #cancels: Set<() => void> = new Set();
  readonly #ttl = new NodeTtl();
  #isDraining = false;
  /** When the next stay of a pod ends, and what calls that off. */
  #evictMs = Infinity;
  #cancelEviction: () => void = () => {};
  #isStarted = false;
  #isStopped = false;
  readonly #metrics: NodeControllerMetrics;

  constructor(options: NodeControllerOptions) {
    this.#options = options;
    const { informers, random } = options;
    this.#metrics = new NodeControllerMetrics(informers.metrics);
    this.nodes = new NodeTable(random);
    this.pods = new PodTable(this.nodes, random);
    this.#writer = this.#newNodeWriter();
    this.lifecycle = new NodeLifecycle(this.nodes, options.rules, this.#writer);
    this.#writer.attach(this.lifecycle);
    this.#podWriter = new PodWriter({
      ...options,
      announce: options.announce('taint-eviction-controller'),
      collected: (namespace, why, isWell) => this.#metrics.collected(namespace, why, isWell),
    });
    this.eviction = this.#newEviction();
    this.#podGc = this.#newPodGc();
    this.nodes.released = (node) => this.#podGc.forget(node);
    this.#nodeInformer = informers.subscribe({ path: '/api/v1/nodes' }, this.#nodeHandler());
    this.#podInformer = informers.subscribe({ path: '/api/v1/pods' }, this.#podHandler());
    this.#leaseInformer = informers.subscribe(
      { path: '/apis/coordination.k8s.io/v1/leases' },
      this.#leaseHandler(),
    );
  }

  #newNodeWriter(): NodeWriter {
    const { announce, log } = this.#options;
    return new NodeWriter({
      ...this.#options,
      nodes: this.nodes,
      announce: announce('node-controller'),
      podsOn: (node) => this.#podsOn(node),
      missingTtl: (node) => this.#missingTtl(node),
      onDisruption: (isTotal) =>
        log(
          'warn',
          isTotal
            ? 'no node is ready in any zone: evictions are stopped until some are'
            : 'some nodes are ready again: evictions may go on',
        ),
    });
  }

  #podsOn(node: number): string[] {
    const keys: string[] = [];
    for (let pod = this.pods.first(node); pod >= 0; pod = this.pods.after(pod)) {
      keys.push(this.#podInformer.keyOf(pod));
    }
    return keys;
  }

  #newEviction(): TaintEviction {
    return new TaintEviction(this.pods, {
      evict: (pod, lateMs) => {
        this.#metrics.evicted(lateMs);
        this.#podWriter.evict(this.#podInformer.keyOf(pod), () =>
          this.eviction.evictionFailed(pod, this.#options.monotonicMs()),
        );
      },
      cancel: (pod) => {
        const key = this.#podInformer.keyOf(pod);
        this.#podWriter.announceEviction(key, `Cancelling deletion of Pod ${key}`);
      },
      due: (atMs) => this.#evictLater(atMs),
    });
  }

  #newPodGc(): PodGc {
    const by = (why: CollectedPod) => (pod: number) =>
      this.#podWriter.remove(this.#podInformer.keyOf(pod), why);
    return new PodGc(this.nodes, this.pods, this.#options.terminatedPodThreshold, {
      confirmGone: (node) => void this.#confirmGone(node).catch(this.#options.onError),
      orphaned: by('orphaned'),
      unscheduled: by('unscheduled'),
      outOfService: by('out-of-service'),
      terminated: by('terminated'),
    });
  }

  async #confirmGone(node: number): Promise<void> {
    const path = `/api/v1/nodes/${this.nodes.nameOf(node)}`;
    const answer = await this.#options.client.request({ method: 'GET', path });
    if (answer.code === 404) this.#podGc.nodeGone(node);
    else if (answer.ok) this.#podGc.nodeFound(node, this.#options.monotonicMs());
  }

  #nodeHandler(): CollectionHandler {
    return {
      onUpsert: (row, isNew, bytes, _start, _end, scan) => {
        this.#scan.read(bytes, scan);
        if (isNew) {
          this.#ttl.nodeCame();
          const key = Buffer.from(this.#nodeInformer.keyOf(row));
          this.#ofNode.set(row, this.nodes.rowOf(key, 0, key.length) + 1);
        }
        const id = this.#ofNode.get(row) - 1;
        if (id >= 0) this.#nodeChanged(id, row, bytes);
      },
      onDelete: (row, bytes, start, end) => {
        this.#ttl.nodeWent();
        const id = this.#ofNode.get(row) - 1;
        if (id < 0) return;
        if (this.lifecycle.isRegistered(id)) {
          this.#writer.removed(this.nodes.nameOf(id), asBuffer(bytes).subarray(start, end));
        }
        this.eviction.nodeRemoved(id);
        this.lifecycle.removed(id);
        this.nodes.release(id);
      },
    };
  }

  #nodeChanged(id: number, row: number, bytes: Uint8Array): void {
    const scan = this.#scan;
    const text = (start: number, end: number): string =>
      asBuffer(bytes).toString('utf8', start, end);
    const zone = `${text(scan.regionStart, scan.regionEnd)}:${text(scan.zoneStart, scan.zoneEnd)}`;
    const taints = text(scan.taintsStart, scan.taintsEnd);
    const { bits } = scan;
    this.nodes.revision.set(id, this.#nodeInformer.resourceVersionOf(row));
    this.nodes.setTaints(id, taints);
    const ttlBefore = this.nodes.ttl.get(id);
    this.nodes.ttl.set(id, scan.ttl + 1);
    const before = this.lifecycle.upsert(id, scan, zone);
    // What was right a moment ago waits: in a cluster that grows it is soon wrong again.
    const isEdited = scan.ttl < 0 || (ttlBefore > 0 && scan.ttl + 1 !== ttlBefore);
    const isMissing = isEdited && this.#missingTtl(id) >= 0;
    if (isMissing && !this.lifecycle.isTainting(id)) this.#writer.annotate(id);
    if (((before | bits) & NO_EXECUTE_ANY) === 0 || !this.#options.isEviction) return;
    const list = taints === '' ? [] : (parseJson(taints) as JsonValue[]);
    this.eviction.taintsChanged(id, list, this.#options.monotonicMs());
  }

  /** Seconds that the node's annotation should tell and does not, or -1. */
  #missingTtl(id: number): number {
    const { seconds } = this.#ttl;
    const isRight = this.nodes.ttl.get(id) === seconds + 1;
    return isRight || !this.#isStarted || !this.#options.isTtl ? -1 : seconds;
  }

  /** Nodes that came before the start, and those of before the cluster was of another size. */
  #annotateAll(): void {
    for (let id = 0; id < this.nodes.keys.idEnd; id++) {
      if (!this.nodes.exists(id)) continue;
      if (this.#missingTtl(id) >= 0) this.#writer.annotate(id);
    }
  }

  #podHandler(): CollectionHandler {
    return {
      onUpsert: (row, isNew, bytes, _start, _end, scan) => {
        const isOther = this.pods.upsert(row, isNew, bytes, scan);
        if (isOther && this.#options.isEviction) {
          this.eviction.podChanged(row, this.#options.monotonicMs());
        }
      },
      onDelete: (row) => {
        this.eviction.podRemoved(row);
        this.pods.remove(row);
      },
    };
  }

  #leaseHandler(): CollectionHandler {
    return {
      onUpsert: (row, isNew, bytes, start, end) => {
        if (isNew) this.#ofLease.set(row, this.#holdNodeOfLease(row));
        const node = this.#ofLease.get(row) - 1;
        if (node < 0) return;
        if (this.#troubleMs >= 0) this.#trustAgain();
        this.lifecycle.renewed(node, leaseHash(bytes, start, end));
      },
      onDelete: (row) => {
        const node = this.#ofLease.get(row) - 1;
        if (node >= 0) this.nodes.unhold(node);
      },
      onStill: (row, bytes, start, end) => {
        const node = this.#ofLease.get(row) - 1;
        if (node >= 0) this.lifecycle.stoodStill(node, leaseHash(bytes, start, end));
      },
      onMoved: (row) => {
        const node = this.#ofLease.get(row) - 1;
        if (node >= 0) this.lifecycle.moved(node, this.#leasesSeenMs);
      },
      onTrouble: () => this.#onLeaseTrouble(),
      onSynced: () => {
        this.#leasesReadMs = this.#options.monotonicMs();
        this.#leasesSeenMs = this.lifecycle.seenMs;
        this.#trustAgain();
      },
    };
  }

  #holdNodeOfLease(row: number): number {
    const key = Buffer.from(this.#leaseInformer.keyOf(row));
    const from = LEASE_NAMESPACE.length;
    if (key.subarray(0, from).compare(LEASE_NAMESPACE) !== 0) return 0;
    const node = this.nodes.rowOf(key, from, key.length);
    this.nodes.hold(node);
    return node + 1;
  }

  /**
   * While the watch of leases is cut off no node is judged. A lease that comes through it, a new
   * list, or a whole grace without further trouble (then there may be nobody left who renews)
   * ends that.
   */
  #onLeaseTrouble(): void {
    this.#troubleMs = this.#options.monotonicMs();
    this.lifecycle.distrust();
  }

  #trustAgain(): void {
    this.#troubleMs = -1;
    this.lifecycle.trust();
  }

  #pass(): void {
    const nowMs = this.#options.monotonicMs();
    const ageMsMax = this.#options.rules.graceMs * LEASES_AGE_SHARE_MAX;
    const isStale = nowMs - this.#leasesReadMs > ageMsMax;
    if (this.#leaseInformer.isPolling && isStale) this.lifecycle.distrust();
    if (this.#troubleMs >= 0 && nowMs - this.#troubleMs > this.#options.rules.graceMs) {
      this.#trustAgain();
    }
    this.lifecycle.pass(nowMs);
    this.#metrics.passed(this.#options.monotonicMs() - nowMs);
    this.#drainLater();
  }

  /** Ten times a second while nodes wait for their taints; an idle cluster wakes nobody. */
  #drainLater(): void {
    if (this.#isDraining || !this.lifecycle.waits) return;
    this.#isDraining = true;
    this.#after(DRAIN_MS, () => {
      this.#isDraining = false;
      this.lifecycle.drain(this.#options.monotonicMs());
      this.#drainLater();
    });
  }

  /** The stay of a pod ends then; until all began, `start` looks at it. */
  #evictLater(atMs: number): void {
    if (!this.#isStarted || !this.#options.isEviction || atMs >= this.#evictMs) return;
    this.#cancelEviction();
    this.#evictMs = atMs;
    this.#cancelEviction = this.#after(Math.max(0, atMs - this.#options.monotonicMs()), () => {
      this.#evictMs = Infinity;
      this.eviction.tick(this.#options.monotonicMs());
    });
  }

  /** Begins to act; nodes, leases and pods are in view. */
  start(): void {
    const { isLifecycle, isEviction, isPodGc, isTtl, monotonicMs, rules } = this.#options;
    this.#isStarted = true;
    if (isTtl) {
      this.#annotateAll();
      this.#every(TTL_MS, () => this.#annotateAll());
    }
    if (isLifecycle) {
      this.#pass();
      this.#every(rules.periodMs, () => this.#pass());
    }
    if (isEviction) this.eviction.tick(monotonicMs());
    if (isPodGc) {
      this.#every(POD_GC_MS, () => this.#podGc.pass(monotonicMs(), this.#podInformer.idLimit));
    }
  }

  #every(periodMs: number, action: () => void): void {
    this.#after(periodMs, () => {
      this.#every(periodMs, action);
      action();
    });
  }

  /** Returns what calls it off. */
  #after(delayMs: number, action: () => void): () => void {
    const cancel = this.#options.client.timers.after(delayMs, () => {
      this.#cancels.delete(cancel);
      if (this.#isStopped) return;
      try {
        action();
      } catch (error) {
        this.#options.onError(error);
      }
    });
    this.#cancels.add(cancel);
    return () => {
      this.#cancels.delete(cancel);
      cancel();
    };
  }

  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels) cancel();
  }
}

/** All controllers of one process: which are wanted, what they share, and when they begin. */
import type { Random } from '@megaplane/base/random';
import type { Client } from '@megaplane/client/client';
import { createEventRecorder, type EventRecorder } from '@megaplane/client/event-recorder';
import { formatTime } from '@megaplane/machinery/times';
import { eventVersionOf, type Announce } from '../framework/event-recorder.ts';
import type { Authority } from '../certificates/signing.ts';
import { collectionPath, ResourceDiscovery, type ApiResource } from '../framework/api-resources.ts';
import { GarbageCollector } from '../garbagecollector/garbage-collector.ts';
import { defaultServiceAccount, rootCaConfigMap } from '../namespace/namespace-defaults.ts';
import type { SignToken } from '../serviceaccount/legacy-token.ts';
import { NamespaceController } from '../namespace/controller.ts';
import type { LifecycleRules } from '../nodelifecycle/node-lifecycle.ts';
import { zoneLines } from '../nodelifecycle/node-metrics.ts';
import { NodeController } from '../nodelifecycle/controller.ts';
import type { ControllerName, ControllersOptions, Log } from '../framework/options.ts';
import { PacedClient } from '../framework/paced-client.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import { SharedInformers } from '../framework/shared-informers.ts';
import { TokenSecrets } from '../serviceaccount/token-secrets.ts';
import { workloadParts } from './workload-controllers.ts';

/** How often it is looked whether all informers have their first state. */
const SYNC_LOOK_MS = 20;
const DISCOVERY_MS = 30_000;
const DISCOVERY_AGAIN_MS = 1_000;
/** After so many tries at the start, controllers go on with the kinds that could be found. */
const DISCOVERIES_MAX = 30;
/** After a change of a definition, the server is asked what it serves now. */
const DEFINITION_MS = 1_000;
/** Troubles of the informers within this time are one line of the log. */
const TROUBLE_MS = 1_000;

export interface ManagerOptions {
  readonly client: Client;
  readonly chosen: ReadonlySet<ControllerName>;
  readonly options: ControllersOptions;
  /** PEM; empty where none is known. */
  readonly rootCa: string;
  /** Signs tokens in Secrets; without it the API server makes them. */
  readonly signToken?: SignToken | undefined;
  /** Who signs certificate requests, by signer; those of others stay unsigned. */
  readonly authorities?: ReadonlyMap<string, Authority> | undefined;
  readonly random: Random;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/** The rules of the node lifecycle, with upstream's defaults. */
export function rulesOf(options: ControllersOptions): LifecycleRules {
  return {
    periodMs: options.nodeMonitorPeriodMs ?? 5_000,
    graceMs: options.nodeMonitorGracePeriodMs ?? 50_000,
    startupGraceMs: options.nodeStartupGracePeriodMs ?? 60_000,
    evictionRate: options.nodeEvictionRate ?? 0.1,
    secondaryEvictionRate: options.secondaryNodeEvictionRate ?? 0.01,
    unhealthyThreshold: options.unhealthyZoneThreshold ?? 0.55,
    largeClusterSize: options.largeClusterSizeThreshold ?? 50,
  };
}

interface ResourceFollower {
  /** With `isWhole` false, some of what the server has may be missing. */
  setResources(resources: readonly ApiResource[], isWhole: boolean): void;
}

function isFollower(part: object): part is ResourceFollower {
  return 'setResources' in part;
}

export class Manager {
  readonly #given: ManagerOptions;
  readonly #discovery: ResourceDiscovery;
  readonly #informers: SharedInformers;
  readonly #recorders: Map<string, EventRecorder> = new Map();
  readonly #parts: { start(): void; stop(): void }[] = [];
  readonly nodePart: NodeController | undefined;
  readonly garbage: GarbageCollector | undefined;
  /** Those that work on whatever kinds there are. */
  readonly #followers: ResourceFollower[] = [];
  #hearsDefinitions = false;
  /** Discoveries that failed one after the other once the parts were at work. */
  #failedInRow = 0;
  #cancelRefresh: () => void = () => {};
  #refreshMs = Infinity;
  #discoveries = 0;
  #cancel: () => void = () => {};
  #isStopped = false;
  #isStarted = false;
  #troubles = 0;

  constructor(given: ManagerOptions) {
    this.#given = given;
    this.#discovery = new ResourceDiscovery(given.client);
    this.#informers = new SharedInformers(given.client, (text) => this.#onTrouble(text));
    this.nodePart = this.#newNodePart();
    this.#addNamespacePart();
    if (given.chosen.has('serviceaccount-token-controller')) {
      const own = this.#forPart('serviceaccount-token-controller');
      this.#parts.push(new TokenSecrets({ ...given, ...own }));
    }
    this.#parts.push(
      ...workloadParts({
        ...given,
        informers: this.#informers,
        announce: (component) => this.#announce(component),
        now: this.#now,
        onError: this.#onError,
      }),
    );
    if (given.chosen.has('garbage-collector-controller')) {
      this.garbage = new GarbageCollector({
        ...this.#forPart('garbage-collector-controller'),
        random: given.random,
        announce: this.#announce('garbage-collector-controller'),
      });
      this.#parts.push(this.garbage);
    }
    for (const part of this.#parts) if (isFollower(part)) this.#followers.push(part);
  }

  /** What a part is given that makes many requests, or has as many workers as a flag says. */
  #forPart(name: ControllerName): ControllerContext {
    const { client, options } = this.#given;
    const { concurrentSyncs, requestRate } = options;
    return {
      client: requestRate === undefined ? client : new PacedClient(client, requestRate),
      informers: this.#informers,
      workers: concurrentSyncs?.[name],
      onError: this.#onError,
    };
  }

  readonly #onError = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#given.log('error', `a controller failed and goes on: ${text}`);
  };

  /** A lost connection is told by every watch on it: one line for all of them. */
  #onTrouble(text: string): void {
    if (this.#troubles++ > 0) return;
    this.#given.client.timers.after(TROUBLE_MS, () => {
      const others = this.#troubles > 1 ? ` (and ${this.#troubles - 1} more)` : '';
      this.#troubles = 0;
      if (!this.#isStopped) this.#given.log('warn', text + others);
    });
  }

  readonly #now = (): string => formatTime(Math.floor(this.#given.client.timers.wallMs() / 1000));

  #announce(component: string): Announce {
    const { client } = this.#given;
    const recorder = createEventRecorder({ client, component });
    this.#recorders.set(component, recorder);
    return (kind, namespace, name, type, reason, message, uid) => {
      const apiVersion = eventVersionOf(kind);
      const subject = { kind, apiVersion, namespace, name, ...(uid === undefined ? {} : { uid }) };
      recorder.event(subject, type, reason, message);
    };
  }

  #newNodePart(): NodeController | undefined {
    const { chosen, options } = this.#given;
    const isLifecycle = chosen.has('node-lifecycle-controller');
    const isEviction = chosen.has('taint-eviction-controller');
    const isPodGc = chosen.has('pod-garbage-collector-controller');
    const isTtl = chosen.has('ttl-controller');
    if (!isLifecycle && !isEviction && !isPodGc && !isTtl) return undefined;
    const part = new NodeController({
      ...this.#given,
      informers: this.#informers,
      rules: rulesOf(options),
      terminatedPodThreshold: options.terminatedPodGcThreshold ?? 12_500,
      isLifecycle,
      isEviction,
      isPodGc,
      isTtl,
      announce: (component) => this.#announce(component),
      now: this.#now,
      onError: this.#onError,
    });
    this.#parts.push(part);
    return part;
  }

  #addNamespacePart(): void {
    const { chosen, rootCa, log } = this.#given;
    const defaults = [];
    if (chosen.has('serviceaccount-controller')) defaults.push(defaultServiceAccount());
    if (chosen.has('root-ca-certificate-publisher-controller')) {
      if (rootCa !== '') defaults.push(rootCaConfigMap(rootCa));
      else log('info', 'no CA is known (--root-ca-file): kube-root-ca.crt is not published');
    }
    const isDeletion = chosen.has('namespace-controller');
    if (!isDeletion && defaults.length === 0) return;
    this.#parts.push(
      new NamespaceController({
        ...this.#forPart('namespace-controller'),
        isDeletion,
        defaults,
        now: this.#now,
      }),
    );
  }

  /** Begins: the parts act once everything is in view. */
  start(): void {
    if (this.#followers.length > 0) void this.#refreshResources().catch(this.#onError);
    else this.#startInformers();
  }

  /** Watches what discovery tells; again from time to time, as definitions come and go. */
  async #refreshResources(): Promise<void> {
    this.#cancelRefresh();
    this.#refreshMs = Infinity;
    const { resources, failed } = await this.#discovery.discover();
    if (this.#isStopped) return;
    if (failed.length > 0) {
      this.#given.log('warn', `discovery failed: ${failed.join(', ')}`);
      // Whoever follows all kinds should not begin with some of them.
      if (!this.#isStarted && this.#discoveries++ < DISCOVERIES_MAX) {
        return this.#refreshAfter(DISCOVERY_AGAIN_MS);
      }
    }
    for (const one of this.#followers) one.setResources(resources, failed.length === 0);
    this.#hearDefinitions(resources);
    this.#startInformers();
    this.#failedInRow = failed.length > 0 ? this.#failedInRow + 1 : 0;
    const againMs = DISCOVERY_AGAIN_MS * 2 ** (this.#failedInRow - 1);
    return this.#refreshAfter(failed.length > 0 ? Math.min(DISCOVERY_MS, againMs) : DISCOVERY_MS);
  }

  /** An earlier appointment stands: changes that never end do not put it off. */
  #refreshAfter(delayMs: number): void {
    const { timers } = this.#given.client;
    if (this.#refreshMs <= timers.nowMs() + delayMs) return;
    this.#cancelRefresh();
    this.#refreshMs = timers.nowMs() + delayMs;
    this.#cancelRefresh = timers.after(delayMs, () => {
      if (!this.#isStopped) void this.#refreshResources().catch(this.#onError);
    });
  }

  /** A definition that comes, is served at last, or goes is not waited for. */
  #hearDefinitions(resources: readonly ApiResource[]): void {
    const definitions = resources.find(
      (one) => one.resource === 'customresourcedefinitions' && one.verbs.includes('watch'),
    );
    if (definitions === undefined || this.#hearsDefinitions) return;
    this.#hearsDefinitions = true;
    const heard = (): void => {
      if (this.#isStarted) this.#refreshAfter(DEFINITION_MS);
    };
    this.#informers.subscribe(
      { path: collectionPath(definitions) },
      { onUpsert: heard, onDelete: heard },
    );
  }

  #startInformers(): void {
    this.#informers.start();
    this.#awaitSync();
  }

  #awaitSync(): void {
    if (this.#isStopped || this.#isStarted) return;
    this.#cancel();
    if (!this.#informers.isSynced) {
      this.#cancel = this.#given.client.timers.after(SYNC_LOOK_MS, () => this.#awaitSync());
      return;
    }
    this.#isStarted = true;
    for (const part of this.#parts) part.start();
    this.#given.log('info', 'controllers are at work');
  }

  /** Controllers that have begun. */
  get atWork(): readonly string[] {
    return this.#isStarted && !this.#isStopped ? [...this.#given.chosen] : [];
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#cancelRefresh();
    for (const part of this.#parts) part.stop();
    this.#informers.stop();
  }

  /** In Prometheus' text format. */
  metricsText(): string {
    const lines: string[] = [];
    const put = (name: string, type: string, value: number): void => {
      lines.push(`# TYPE ${name} ${type}`, `${name} ${value}`);
    };
    const { nodePart, garbage } = this;
    if (nodePart !== undefined) {
      lines.push(...zoneLines(nodePart.lifecycle.zones));
      put('megaplane_node_lifecycle_stalls_total', 'counter', nodePart.lifecycle.stalls);
      put('megaplane_node_lifecycle_distrusts_total', 'counter', nodePart.lifecycle.distrusts);
    }
    if (garbage !== undefined) {
      put('megaplane_garbage_references', 'gauge', garbage.graph.edges);
      put('megaplane_garbage_pending', 'gauge', garbage.pending);
      put('megaplane_garbage_deletions_total', 'counter', garbage.deletions);
    }
    lines.push(...this.#informers.queues.lines(this.#given.client.timers.nowMs()));
    return `${lines.join('\n')}\n${this.#informers.metrics.text()}`;
  }
}

/**
 * The objects whose stages come from files: one informer and one player for each of their kinds.
 *
 * Pods are played on nodes that we hold; nodes are those of the informer that keeps the leases.
 */
import { ownMember } from '@megaplane/base/members';
import type { Client } from '@megaplane/client/client';
import { createEventRecorder } from '@megaplane/client/event-recorder';
import { createInformer, type Informer } from '@megaplane/client/informer';
import { listAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { PodsBeforeNodes } from '../pod/pods-before-nodes.ts';
import type { Disregard } from '../client/node-filter.ts';
import { KUBELET_VERSION } from '../kubelet/node-object.ts';
import type { KubeletEndpoint } from '../kubelet/node-status.ts';
import type { PodAddresses, PodNetwork } from '../pod/pod-addresses.ts';
import { PodCensus } from '../pod/pod-census.ts';
import type { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { StagePlayer } from '../stages/stage-player.ts';
import { resourcePath } from '../stages/stage-requests.ts';
import { StageResources } from '../stages/stage-resources.ts';
import type { Stage } from '../stages/stage.ts';
import { isPassing, retry } from '../client/retry.ts';
import { stageFunctions, type StageWorld } from '../gotemplate/stage-functions.ts';
import type { StageLanguages } from '../stages/stage-file.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

/** A server in trouble is asked for so long what kinds it has. */
const DISCOVERY_MS_MAX = 120_000;

export interface StagedOptions {
  readonly client: Client;
  readonly metrics: SimulatorMetrics;
  readonly addresses: PodAddresses;
  /** Nodes and pods that are left alone. */
  readonly disregard: Disregard;
  /** The node is down: nothing is done for it and its pods until `replay`. */
  readonly isDown: (node: string) => boolean;
  /** Of all kubelets. */
  readonly endpoint: KubeletEndpoint;
  /** Row of a node that we hold, or -1, and its addresses. */
  readonly findNode: (name: string) => number;
  readonly nodeAddresses: (row: number) => readonly string[];
  /** Networks of the pods of a node. */
  readonly networksOf: (node: string) => readonly PodNetwork[];
  /** A pod of one of our nodes is seen first: its containers count as started, as in kwok. */
  readonly onStart: (node: string, containers: number) => void;
  /** Hears of pods, too. */
  readonly podListener: InformerHandler | null;
  readonly onTrouble: (message: string) => void;
}

interface Played {
  readonly player: StagePlayer;
  readonly informer: Informer | null;
}

export class StagedCluster {
  /** For the templates and expressions of stages. */
  readonly languages: StageLanguages;
  readonly #options: StagedOptions;
  readonly #census: PodCensus;
  readonly #early = new PodsBeforeNodes();
  readonly #resources: StageResources;
  readonly #played: Played[] = [];
  #nodePlayer: StagePlayer | null = null;
  #pods: Informer | null = null;
  #podPlayer: StagePlayer | null = null;
  #isStopped = false;

  constructor(options: StagedOptions) {
    this.#options = options;
    this.#census = new PodCensus(options.metrics, options.addresses);
    this.#resources = new StageResources(options.client);
    this.languages = {
      functions: stageFunctions(this.#templateWorld()),
      clock: {
        nowMs: () => options.client.timers.wallMs(),
        random: () => options.client.random(),
      },
    };
  }

  #templateWorld(): StageWorld {
    const { nodeIp } = this.#options.endpoint;
    const nodeAddresses = (name: string): readonly string[] => {
      const row = this.#options.findNode(name);
      const own = row < 0 ? [] : this.#options.nodeAddresses(row);
      return own.length > 0 || nodeIp === '' ? own : [nodeIp];
    };
    return {
      nowMs: () => this.#options.client.timers.wallMs(),
      random: () => this.#options.client.random(),
      version: KUBELET_VERSION,
      nodePort: this.#options.endpoint.port,
      nodeName: this.#options.endpoint.hostname,
      nodeIp,
      nodeAddresses,
      podAddresses: ({ node, isHostNetwork, name, namespace }) => {
        if (isHostNetwork) return nodeAddresses(node);
        const row = this.#pods?.find(namespace, name) ?? -1;
        return this.#census.addressesOf(row, this.#options.networksOf(node));
      },
      anyAddress: () => this.#options.addresses.allocate()[0] ?? '',
    };
  }

  /** Makes a player for each kind; `refuse` hears of stages for kinds that the server has not. */
  async prepare(
    given: readonly Stage[],
    refuse: (stage: Stage, why: string) => void,
  ): Promise<void> {
    const reasons = new Map<string, string>();
    for (const version of new Set(given.map((stage) => stage.apiVersion))) {
      const reason = await this.#load(version);
      if (reason !== '') reasons.set(version, reason);
    }
    const stages = given.filter((stage) => {
      const { apiVersion, kind } = stage;
      if (this.#resources.of(apiVersion, kind) !== undefined) return true;
      const reason = reasons.get(apiVersion);
      const why = reason === undefined ? ` ${kind}` : `: ${reason}`;
      refuse(stage, `the server has no ${apiVersion}${why}`);
      return false;
    });
    for (const stage of stages) {
      const isKnown = stages.find(
        (one) => one.kind === stage.kind && one.apiVersion === stage.apiVersion,
      );
      if (isKnown !== stage) continue;
      const own = stages.filter(
        (one) => one.kind === stage.kind && one.apiVersion === stage.apiVersion,
      );
      this.#add(stage, own);
    }
  }

  /** Why the server does not tell a version's kinds; '' when it did. */
  async #load(version: string): Promise<string> {
    const { client, onTrouble } = this.#options;
    const endMs = client.timers.nowMs() + DISCOVERY_MS_MAX;
    let reason = '';
    const attempt = async (): Promise<string> => {
      reason = '';
      try {
        await this.#resources.load(version);
        return '';
      } catch (error) {
        const { message, cause } = error as Error;
        reason = message;
        const isLast = typeof cause !== 'number' || !isPassing(cause);
        return isLast || client.timers.nowMs() >= endMs ? '' : `${version}: ${message}`;
      }
    };
    await retry({ client, onTrouble, attempt, isStopped: () => this.#isStopped });
    return reason;
  }

  #add(first: Stage, stages: readonly Stage[]): void {
    const { client, metrics, onTrouble } = this.#options;
    const { apiVersion, kind } = first;
    const resource = this.#resources.of(apiVersion, kind);
    if (resource === undefined) return;
    const isPod = apiVersion === 'v1' && kind === 'Pod';
    const isNode = apiVersion === 'v1' && kind === 'Node';
    const player = new StagePlayer({
      client,
      resource,
      stages,
      recorder: createEventRecorder({ client, component: 'kwok_controller' }),
      metrics,
      isOurs: (object) => {
        if (isPod && !this.#isOurPod(object)) return false;
        if (isPod && this.#options.isDown(nodeOf(object))) return false;
        if (isNode && this.#options.isDown(memberText(object, 'metadata', 'name'))) return false;
        return !(isPod || isNode) || !this.#options.disregard.covers(object);
      },
      pathOf: (id) => {
        const key = (informer?.keyOf(id) ?? '').split('/');
        return resourcePath(resource, key.length > 1 ? (key[0] ?? '') : '', key.at(-1) ?? '');
      },
      resourceOf: this.#resources.of,
      onError: onTrouble,
    });
    let informer: Informer | null = null;
    if (isNode) {
      this.#nodePlayer = player;
    } else {
      informer = createInformer({
        client,
        path: resourcePath(resource, '', ''),
        ...(isPod ? { fieldSelector: 'spec.nodeName!=' } : {}),
        handler: { ...this.#handlerOf(player, isPod), onTrouble },
      });
    }
    if (isPod) {
      this.#pods = informer;
      this.#podPlayer = player;
    }
    this.#played.push({ player, informer });
  }

  #handlerOf(player: StagePlayer, isPod: boolean): InformerHandler {
    if (!isPod) return player.handler;
    const census = this.#census.handler;
    const listener = this.#options.podListener;
    return {
      onUpsert: (id, isNew, bytes, start, end) => {
        census.onUpsert(id, isNew, bytes, start, end);
        listener?.onUpsert(id, isNew, bytes, start, end);
        player.handler.onUpsert(id, isNew, bytes, start, end);
      },
      onDelete: (id, bytes, start, end) => {
        player.handler.onDelete(id, bytes, start, end);
        census.onDelete(id, bytes, start, end);
        listener?.onDelete(id, bytes, start, end);
      },
    };
  }

  #isOurPod(pod: JsonObject): boolean {
    const node = nodeOf(pod);
    if (this.#options.findNode(node) < 0) {
      this.#early.add(node, pod);
      return false;
    }
    const row = this.#rowOf(pod);
    if (row >= 0 && this.#census.begins(row)) {
      this.#options.onStart(node, listAt(pod, 'spec', 'containers').length);
    }
    return true;
  }

  /** Row of a pod, or -1. */
  #rowOf(pod: JsonObject): number {
    const namespace = memberText(pod, 'metadata', 'namespace');
    return this.#pods?.find(namespace, memberText(pod, 'metadata', 'name')) ?? -1;
  }

  /** Whether stages of files play for pods, or for nodes: then the compiled ones do not. */
  get hasPods(): boolean {
    return this.#podPlayer !== null;
  }
  get hasNodes(): boolean {
    return this.#nodePlayer !== null;
  }

  /** What the informer over nodes tells. */
  get nodeHandler(): InformerHandler | null {
    return this.#nodePlayer?.handler ?? null;
  }

  /** A node is known now: plays the pods that came before it. */
  onNode(name: string): void {
    for (const pod of this.#early.take(name)) this.replay(pod);
  }

  /** The pod's node is up again. */
  replay(pod: JsonObject): void {
    const row = this.#rowOf(pod);
    if (row >= 0) this.#podPlayer?.consider(row, pod);
  }

  /** A node is up again. */
  replayNode(node: JsonObject): void {
    const row = this.#options.findNode(memberText(node, 'metadata', 'name'));
    if (row >= 0) this.#nodePlayer?.consider(row, node);
  }

  start(): void {
    for (const { informer } of this.#played) informer?.start();
  }

  tick(): void {
    for (const { player } of this.#played) player.tick();
  }

  stop(): void {
    this.#isStopped = true;
    for (const { informer, player } of this.#played) {
      informer?.stop();
      player.stop();
    }
  }
}

function nodeOf(object: JsonObject): string {
  return memberText(object, 'spec', 'nodeName');
}

function memberText(object: JsonObject, part: string, name: string): string {
  const inner = ownMember(object, part);
  const value: JsonValue | undefined = isObject(inner) ? ownMember(inner, name) : undefined;
  return typeof value === 'string' ? value : '';
}

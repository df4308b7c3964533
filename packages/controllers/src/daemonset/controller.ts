/** DaemonSets: a pod on each node that their template fits, updated node by node. */
import type { Random } from '@megaplane/base/random';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { ControllerRevisions, REVISIONS_PATH } from '../framework/controller-revisions.ts';
import { DaemonRows } from './daemon-rows.ts';
import {
  daemonStatus,
  GENERATION,
  planPlaces,
  planSurge,
  planUpdate,
  podTextOf,
  templateNumber,
  updateLimits,
  type DaemonPlace,
  type DaemonPod,
} from './daemon-set.ts';
import { TemplateFits } from './template-fits.ts';
import { Expectations } from '../framework/expectations.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { ControllerRefManager } from '../framework/controller-ref-manager.ts';
import { burstOf, ownerOfObject, PodControl, type PodOwner } from '../framework/pod-control.ts';
import { HASH_LABEL } from '../columns/pod-revisions.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import {
  PHASE_FAILED,
  PHASE_SUCCEEDED,
  REPLICA_BOUND,
  REPLICA_DELETING,
  REPLICA_READY,
} from '../columns/replica-pods.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 2;
/** Pods that one look at a set makes, and that it deletes, at most. */
const BURST_PODS = 250;
const ROOT = '/apis/apps/v1';
/** How soon it is looked again whether the informer shows what was written. */
const EXPECTATION_LOOK_MS = 20;
/** Changes of nodes and pods are gathered, the longer the more nodes there are. */
const GATHER_MS_MIN = 20;
const NODES_PER_MS = 50;
const GATHER_MS_MAX = 5000;
/** A pod that failed is not replaced at once again and again: 1 s, doubled each time. */
const FAILED_MS_MIN = 1000;
const FAILED_MS_MAX = 900_000;

export interface DaemonSetControllerOptions extends ControllerContext {
  readonly random: Random;
  readonly pods: PodRows;
  readonly announce: Announce;
}

/** One look at a set. */
interface Round {
  readonly key: string;
  readonly set: JsonObject;
  readonly owner: PodOwner;
  readonly nowMs: number;
  readonly hash: string;
  readonly places: readonly DaemonPlace[];
  /** Pods that wait for a node that is not there. */
  readonly lost: readonly number[];
  /** When the next ready pod becomes available; Infinity if none does. */
  readonly nextMs: number;
}

/** How often pods of a set have failed on a node in a row, by the id of the node's name. */
interface Failures {
  readonly generation: number;
  readonly byNode: Map<number, { readonly count: number; readonly untilMs: number }>;
}

export class DaemonSetController {
  readonly #options: DaemonSetControllerOptions;
  readonly #workers: Workers<string>;
  readonly #control: PodControl;
  readonly #claims: ControllerRefManager;
  readonly #sets: ObjectCache;
  readonly #revisions: ControllerRevisions;
  readonly #rows: DaemonRows;
  readonly #fits: TemplateFits;
  readonly #expectations = new Expectations();
  /** By key of the set; those of an older generation of it count no more. */
  readonly #failures: Map<string, Failures> = new Map();

  constructor(options: DaemonSetControllerOptions) {
    this.#options = options;
    const { client, informers, pods, random, onError } = options;
    this.#control = new PodControl(client, options.announce);
    this.#claims = new ControllerRefManager(client, this.#control, pods);
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('daemonset'),
    );
    this.#sets = new ObjectCache(informers, `${ROOT}/daemonsets`, (key, after) => {
      this.#claims.note(key, after);
      this.#fits.forget(key);
      if (after !== undefined) return this.#workers.add(key);
      this.#expectations.forget(key);
      this.#failures.delete(key);
      return undefined;
    });
    const revisions = new ObjectCache(informers, REVISIONS_PATH, () => {});
    this.#revisions = new ControllerRevisions(client, revisions, HASH_LABEL);
    this.#rows = new DaemonRows(informers, random.fork('daemons'), (node, before, after) =>
      this.#nodeChanged(node, before, after),
    );
    this.#fits = new TemplateFits(this.#rows, (key) => this.#sets.get(key));
    pods.listen({ changed: (row, bytes, scan) => this.#podChanged(row, bytes, scan) });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  get #gatherMs(): number {
    return Math.min(GATHER_MS_MAX, GATHER_MS_MIN + this.#rows.nodes.size / NODES_PER_MS);
  }

  /** Only those sets are looked at that the node is another one to: others may wait for a retry. */
  #nodeChanged(node: number, before: number, after: number): void {
    for (const key of this.#sets.keys()) {
      const was = this.#fits.of(key, node, before);
      const is = this.#fits.of(key, node, after);
      if (was.shouldRun === is.shouldRun && was.mayStay === is.mayStay) continue;
      this.#workers.addAfter(key, this.#gatherMs);
    }
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    const { pods } = this.#options.pods;
    const owner = pods.ownerOf(row);
    const before = pods.ownerBefore;
    for (const one of owner === before ? [owner] : [owner, before]) {
      const key = one < 0 ? undefined : this.#sets.keyOfUid(pods.uidOf(one));
      if (key !== undefined) this.#workers.addAfter(key, this.#gatherMs);
    }
    if (scan === null) return;
    if (owner >= 0) return this.#rows.readPod(row, bytes, scan);
    const namespace = bytes.toString('utf8', scan.namespaceStart, scan.namespaceEnd);
    for (const key of this.#claims.wanting(row, this.#sets.inNamespace(namespace))) {
      this.#workers.addAfter(key, this.#gatherMs);
    }
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const set = this.#sets.get(key);
    if (set === undefined) return 'done';
    const owner = ownerOfObject('apps/v1', 'DaemonSet', set);
    if (stringAt(set, 'metadata', 'deletionTimestamp') !== '') return 'done';
    if (Object.keys(objectAt(set, 'spec', 'selector') ?? {}).length === 0) return 'done';
    const { client } = this.#options;
    const nowMs = client.timers.wallMs();
    const seen = this.#options.pods.informer.revision;
    const isMet = this.#expectations.isMet(key, seen, this.#options.pods.isGoing, nowMs);
    if (!isMet) return { againMs: EXPECTATION_LOOK_MS };
    const path = `${ROOT}/namespaces/${owner.namespace}/daemonsets/${owner.name}`;
    const claimed = await this.#claims.claim(key, path, owner);
    if (claimed === 'failed') return 'retry';
    for (const one of claimed.revisions) this.#expectations.expectRevision(key, one, nowMs);
    if (claimed.revisions.length > 0) return { againMs: EXPECTATION_LOOK_MS };
    const collisions = numberAt(set, 'status', 'collisionCount');
    const current = await this.#revisions.current(owner, set, collisions);
    if (current === undefined) return 'retry';
    const hash = stringAt(current.revision, 'metadata', 'labels', HASH_LABEL);
    const round = this.#look({ key, set, owner, nowMs, hash });
    const isDone = await this.#act(round);
    const limit = numberAt(set, 'spec', 'revisionHistoryLimit');
    if (current.old.length > limit) {
      const used = this.#usedHashes(owner);
      await this.#revisions.forget(owner, current.old, limit, (one) =>
        used.has(stringAt(one, 'metadata', 'labels', HASH_LABEL)),
      );
    }
    if (!(await this.#writeStatus(round, current.collisions)) || !isDone) return 'retry';
    const waitMs = Math.min(round.nextMs - nowMs, this.#failedWaitMs(round));
    return waitMs === Infinity ? 'done' : { againMs: Math.max(EXPECTATION_LOOK_MS, waitMs) };
  }

  #rowsOf(owner: PodOwner): number[] {
    const { pods } = this.#options.pods;
    const rows: number[] = [];
    const id = pods.findOwner(owner.uid);
    for (let row = pods.firstOfOwner(id); row >= 0; row = pods.nextOfOwner(row)) rows.push(row);
    return rows;
  }

  #usedHashes(owner: PodOwner): ReadonlySet<string> {
    return new Set(this.#rowsOf(owner).map((row) => this.#rows.revisions.of(row)));
  }

  /** All nodes that matter to the set, with its pods on them. */
  #look(round: Omit<Round, 'places' | 'lost' | 'nextMs'>): Round {
    const rows = this.#rows;
    const byNode = new Map<number, DaemonPod[]>();
    const lost: number[] = [];
    const minReadyMs = 1000 * numberAt(round.set, 'spec', 'minReadySeconds');
    const revision = rows.revisions.find(round.hash);
    const generation = templateNumber(stringAt(round.set, 'metadata', 'annotations', GENERATION));
    let nextMs = Infinity;
    for (const row of this.#rowsOf(round.owner)) {
      const node = rows.targetOf(row);
      const pod = this.#podOf(row, round, minReadyMs, revision, generation);
      if (pod.isReady && !pod.isAvailable) {
        nextMs = Math.min(nextMs, this.#options.pods.pods.readyS.get(row) * 1000 + minReadyMs);
      }
      if (node >= 0 && rows.classOf(node) >= 0) {
        const there = byNode.get(node);
        if (there === undefined) byNode.set(node, [pod]);
        else there.push(pod);
      } else if (!pod.isBound && !pod.isDeleting) lost.push(row);
    }
    return { ...round, places: this.#placesOf(round.key, byNode), lost, nextMs };
  }

  #podOf(
    row: number,
    { nowMs }: Pick<Round, 'nowMs'>,
    minReadyMs: number,
    revision: number,
    generation: number,
  ): DaemonPod {
    const { pods } = this.#options.pods;
    const flags = pods.flags.get(row);
    const isReady = (flags & REPLICA_READY) !== 0;
    const readyMs = pods.readyS.get(row) * 1000;
    return {
      row,
      createdS: pods.createdS.get(row),
      isBound: (flags & REPLICA_BOUND) !== 0,
      isDeleting: (flags & REPLICA_DELETING) !== 0,
      isFailed: pods.phaseOf(row) === PHASE_FAILED,
      isSucceeded: pods.phaseOf(row) === PHASE_SUCCEEDED,
      isReady,
      isAvailable: isReady && (minReadyMs === 0 || readyMs + minReadyMs <= nowMs),
      // by its number, too: pods that a set of another template left are as good as of this one
      isUpdated:
        (revision >= 0 && this.#rows.revisions.idOf(row) === revision) ||
        (generation > 0 && this.#rows.generationOf(row) === generation),
    };
  }

  #placesOf(key: string, byNode: ReadonlyMap<number, readonly DaemonPod[]>): DaemonPlace[] {
    const rows = this.#rows;
    const places: DaemonPlace[] = [];
    for (let node = 0; node < rows.nameEnd; node++) {
      const kind = rows.classOf(node);
      if (kind < 0) continue;
      const fit = this.#fits.of(key, node, kind);
      const pods = byNode.get(node) ?? [];
      if (fit.shouldRun || pods.length > 0) places.push({ node, ...fit, pods });
    }
    return places;
  }

  /** Makes and deletes what the plans say; false where something failed. */
  async #act(round: Round): Promise<boolean> {
    const { set, places } = round;
    const desired = places.filter(({ shouldRun }) => shouldRun).length;
    const limits = updateLimits(set, desired);
    const isRolling = stringAt(set, 'spec', 'updateStrategy', 'type') !== 'OnDelete';
    const surges = isRolling && limits.surge > 0;
    const plan = planPlaces(places, surges);
    const waiting = new Set(
      plan.failed.filter(([row]) => this.#isBackedOff(round, row)).map(first),
    );
    this.#tellEnded(
      round,
      'failed',
      plan.failed.filter(([row]) => !waiting.has(row)),
    );
    this.#tellEnded(round, 'succeeded', plan.succeeded);
    const remove = [...plan.remove, ...round.lost].filter((row) => !waiting.has(row));
    if (plan.create.length > 0 || remove.length > 0) {
      return (await this.#delete(round, remove)) && (await this.#create(round, plan.create));
    }
    if (!isRolling) return true;
    if (!surges) return this.#delete(round, planUpdate(places, limits));
    const surge = planSurge(places, limits);
    return (await this.#delete(round, surge.remove)) && this.#create(round, surge.create);
  }

  #tellEnded(
    { owner }: Round,
    how: 'failed' | 'succeeded',
    pods: readonly (readonly [row: number, node: number])[],
  ): void {
    for (const [row, node] of pods) {
      const pod = this.#options.pods.informer.keyOf(row);
      const text = `Found ${how} daemon pod ${pod} on node ${this.#rows.nameOf(node)}, will try to`;
      const { kind, namespace, name, uid } = owner;
      const isFailed = how === 'failed';
      this.#options.announce(
        kind,
        namespace,
        name,
        isFailed ? 'Warning' : 'Normal',
        isFailed ? 'FailedDaemonPod' : 'SucceededDaemonPod',
        `${text} ${isFailed ? 'kill' : 'delete'} it`,
        uid,
      );
    }
  }

  /** Of the generation that is at work: a new one begins with new hope. */
  #failuresOf({ key, set }: Pick<Round, 'key' | 'set'>): Failures['byNode'] {
    const generation = numberAt(set, 'status', 'observedGeneration');
    let failures = this.#failures.get(key);
    if (failures?.generation !== generation) {
      failures = { generation, byNode: new Map() };
      this.#failures.set(key, failures);
    }
    return failures.byNode;
  }

  /** A failed pod waits before it is replaced when one failed there not long ago. */
  #isBackedOff(round: Round, row: number): boolean {
    const { nowMs } = round;
    const failures = this.#failuresOf(round);
    const node = this.#rows.targetOf(row);
    const known = failures.get(node) ?? { count: 0, untilMs: 0 };
    if (nowMs < known.untilMs) return true;
    const isOld = nowMs > known.untilMs + 2 * FAILED_MS_MAX;
    const count = isOld ? 0 : known.count;
    const untilMs = nowMs + Math.min(FAILED_MS_MAX, FAILED_MS_MIN * 2 ** count);
    failures.set(node, { count: count + 1, untilMs });
    return false;
  }

  #failedWaitMs(round: Round): number {
    const failures = this.#failuresOf(round);
    let waitMs = Infinity;
    for (const { node, pods } of round.places) {
      if (!pods.some((pod) => pod.isFailed && !pod.isDeleting)) continue;
      const until = failures.get(node)?.untilMs ?? round.nowMs;
      waitMs = Math.min(waitMs, until - round.nowMs);
    }
    return waitMs;
  }

  async #create(
    { key, set, owner, hash, nowMs }: Round,
    nodes: readonly number[],
  ): Promise<boolean> {
    const burst = burstOf(this.#rows.nameEnd, BURST_PODS);
    const names = nodes.slice(0, burst).map((node) => this.#rows.nameOf(node));
    if (names.length === 0) return true;
    const textOf = podTextOf(set, owner, hash);
    const failed = await this.#control.createAll(
      owner,
      (index) => textOf(names[index] ?? ''),
      names.length,
      (revision) => this.#expectations.expectRevision(key, revision, nowMs),
    );
    if (nodes.length > burst) this.#workers.addAfter(key, EXPECTATION_LOOK_MS);
    return failed === undefined;
  }

  async #delete({ key, owner, nowMs }: Round, rows: readonly number[]): Promise<boolean> {
    const { informer } = this.#options.pods;
    const burst = burstOf(this.#rows.nameEnd, BURST_PODS);
    const pods = rows.slice(0, burst).map((row) => informer.keyOf(row));
    const results = await Promise.all(
      pods.map(async (pod) => {
        this.#expectations.expectDeletion(key, pod, nowMs);
        const result = await this.#control.delete(owner, pod.slice(owner.namespace.length + 1));
        if (!result.ok) this.#expectations.unexpectDeletion(key, pod);
        return result.ok;
      }),
    );
    if (rows.length > burst) this.#workers.addAfter(key, EXPECTATION_LOOK_MS);
    return results.every((isOk) => isOk);
  }

  async #writeStatus({ set, owner, places }: Round, collisions: number): Promise<boolean> {
    const status = daemonStatus(set, places, collisions);
    if (equals(valueAt(set, 'status') ?? {}, status)) return true;
    const path = `${ROOT}/namespaces/${owner.namespace}/daemonsets/${owner.name}/status`;
    const body = { ...set, apiVersion: 'apps/v1', kind: 'DaemonSet', status };
    const answer = await this.#options.client.request({ method: 'PUT', path, body });
    return answer.ok || answer.code === 404;
  }
}

function first([row]: readonly [row: number, node: number]): number {
  return row;
}

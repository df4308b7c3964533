/** ReplicaSets and ReplicationControllers: so many pods, whatever happens to them. */
import { exponential } from '@megaplane/client/bucket-histogram';
import { CONTENT } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { equals, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { LabelSelector } from '@megaplane/machinery/selectors';
import { LabelProgram } from '@megaplane/machinery/selectors-bytes';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { Expectations } from '../framework/expectations.ts';
import { controllerUid, ObjectCache } from '../framework/object-cache.ts';
import { NAMESPACE_ENDING, ownerOfObject, PodControl } from '../framework/pod-control.ts';
import { podOfTemplate, revisionOf, type PodOwner } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import type { Histogram } from '../framework/metrics-registry.ts';
import { rowsToDelete } from '../columns/replica-order.ts';
import { REPLICA_READY } from '../columns/replica-pods.ts';
import { countReplicas, replicasMissing, replicaStatusPatch, selectorOf } from './replicaset.ts';
import type { ReplicaCounts, ReplicaFailure, ReplicaKind } from './replicaset.ts';
import type { Rolling } from './rolling.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
/** Large sets gather changes of pods: a hundred replicas wait a millisecond, to 200 at most. */
const REPLICAS_PER_MS = 100;
const GATHER_MS_MAX = 200;
/** A key that waits for its own writes to be seen is looked at again after this, come what may. */
const EXPECTATION_LOOK_MS = 300_000;

export interface ReplicaSetControllerOptions extends ControllerContext {
  readonly kind: ReplicaKind;
  readonly pods: PodRows;
  readonly announce: Announce;
  readonly now: () => string;
  readonly rolling: Rolling;
}

/** What one round of work knows of its object. */
interface Round {
  readonly key: string;
  readonly object: JsonObject;
  readonly owner: PodOwner;
  readonly program: LabelProgram;
  readonly nowMs: number;
}

interface Claim {
  readonly verb: 'adopt' | 'release';
  readonly name: string;
  readonly revision: number;
}

/** Steps of readiness that wait to be told; what comes beyond them is told at once. */
const STEPS_MAX = 16;

/** Objects that are made together, as by one manifest, are all there before the pods come. */
const SETTLE_MS = 20;

export class ReplicaSetController {
  readonly #options: ReplicaSetControllerOptions;
  readonly #cache: ObjectCache;
  readonly #control: PodControl;
  readonly #ageRatio: Histogram;
  readonly #workers: Workers<string>;
  readonly #expectations = new Expectations();
  readonly #selectors: Map<string, LabelProgram> = new Map();
  /** Pods at the last count. */
  readonly #sizes: Map<string, number> = new Map();
  /** Revisions of the last status written. */
  readonly #written: Map<string, number> = new Map();
  /** What events that had to wait came to, each other number of ready pods: see `#work`. */
  readonly #steps: Map<string, ReplicaCounts[]> = new Map();
  /** Servers before 1.35 drop the count: it would be written again and again. */
  #tellsTerminating: boolean;
  /** Owners for which there may be pods to adopt. */
  readonly #adopting: Set<string> = new Set();

  constructor(options: ReplicaSetControllerOptions) {
    this.#options = options;
    const { client, kind, informers, pods } = options;
    this.#tellsTerminating = kind.kind === 'ReplicaSet';
    this.#control = new PodControl(client, options.announce);
    if (kind.kind === 'ReplicaSet') options.rolling.wake = (key) => this.#workers.add(key);
    this.#ageRatio = informers.metrics.histogram(
      'replicaset_controller_sorting_deletion_age_ratio',
      "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time).",
      exponential(0.25, 6),
    );
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      options.onError,
      options.informers.queues.queue(
        options.kind.kind === 'ReplicaSet' ? 'replicaset' : 'replicationmanager',
      ),
    );
    this.#cache = new ObjectCache(
      informers,
      `${kind.root}/${kind.resource}`,
      (key, after, before) => this.#objectChanged(key, after, before),
      () => this.#addWaiting(),
    );
    pods.listen({
      changed: (row, _bytes, scan) => this.#podChanged(row, scan === null),
      synced: () => this.#addWaiting(),
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #addWaiting(): void {
    for (const key of this.#expectations.keys()) this.#workers.add(key);
    for (const key of this.#written.keys()) this.#workers.add(key);
  }

  #objectChanged(key: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    const isOther =
      stringAt(after, 'metadata', 'uid') !== stringAt(before, 'metadata', 'uid') ||
      after === undefined;
    if (isOther) {
      this.#expectations.forget(key);
      this.#selectors.delete(key);
      this.#adopting.delete(key);
      this.#written.delete(key);
      this.#steps.delete(key);
      this.#sizes.delete(key);
    }
    if (after === undefined) return;
    // That of a ReplicationController may change: pods are let go of, and others taken.
    const selects = (object: JsonObject | undefined) => objectAt(object, 'spec', 'selector');
    if (isOther || !equals(selects(after), selects(before))) {
      const selector: LabelSelector | undefined = selectorOf(this.#options.kind, after);
      if (selector === undefined) {
        this.#selectors.delete(key);
        return;
      }
      this.#selectors.set(key, new LabelProgram(selector));
      this.#adopting.add(key);
      if (isOther) return this.#workers.addAfter(key, SETTLE_MS);
    }
    this.#workers.add(key);
  }

  #podChanged(row: number, isGone: boolean): void {
    const { pods } = this.#options.pods;
    const owner = pods.ownerOf(row);
    if (pods.ownerBefore >= 0) this.#addOwner(pods.ownerBefore);
    if (owner >= 0 && owner !== pods.ownerBefore) this.#addOwner(owner);
    if (isGone || owner >= 0) return;
    const labels = pods.labelsOf(row);
    const isNews = pods.ownerBefore >= 0 || labels !== pods.labelsBefore;
    if (!isNews || labels < 0 || !pods.isActive(row)) return;
    for (const key of this.#cache.inNamespace(pods.namespaceOfSet(labels))) {
      const program = this.#selectors.get(key);
      if (program === undefined || !pods.matches(labels, program)) continue;
      this.#adopting.add(key);
      this.#workers.add(key);
    }
  }

  #addOwner(owner: number): void {
    const key = this.#cache.keyOfUid(this.#options.pods.pods.uidOf(owner));
    if (key === undefined) return;
    const delayMs = Math.min(GATHER_MS_MAX, (this.#sizes.get(key) ?? 0) / REPLICAS_PER_MS);
    if (delayMs >= 1) return this.#workers.addAfter(key, delayMs);
    const { queue } = this.#workers;
    const wasDue = queue.isDue(key);
    this.#workers.add(key);
    const isUnseen = this.#cache.informer.revision < (this.#written.get(key) ?? 0);
    // Unless this very event is being worked on: where all workers are busy it waits.
    if (wasDue || isUnseen || !queue.isActive(key)) this.#noteStep(key);
    return undefined;
  }

  #noteStep(key: string): void {
    const object = this.#cache.get(key);
    const steps = this.#steps.get(key) ?? [];
    if (object === undefined || steps.length >= STEPS_MAX) return;
    const { client, pods } = this.#options;
    const nowMs = client.timers.wallMs();
    if (!this.#expectations.isMet(key, pods.informer.revision, pods.isGoing, nowMs)) return;
    const uid = stringAt(object, 'metadata', 'uid');
    const active = this.#activeRows(uid);
    const owned = { active, terminating: this.#terminating(key, uid) };
    const step = countReplicas(object, pods.pods, owned, nowMs);
    const told = steps.at(-1)?.ready ?? numberAt(object, 'status', 'readyReplicas');
    if (step.ready === told) return;
    this.#steps.set(key, [...steps, step]);
  }

  /**
   * Counts before it waits for anything, so that the event that woke it is counted alone: two pods
   * that become ready are two statuses, one after the other, and two steps of a rollout, even where
   * both come in one chunk. Upstream works on each event as it comes in the same way.
   */
  async #work(key: string): Promise<WorkResult> {
    const object = this.#cache.get(key);
    const program = this.#selectors.get(key);
    if (object === undefined || program === undefined) {
      this.#expectations.forget(key);
      return 'done';
    }
    const { client, kind } = this.#options;
    const owner = ownerOfObject(kind.apiVersion, kind.kind, object);
    const nowMs = client.timers.wallMs();
    const round = { key, object, owner, program, nowMs };
    const seen = this.#options.pods.informer.revision;
    const isMet = this.#expectations.isMet(key, seen, this.#options.pods.isGoing, nowMs);
    const isDeleting = stringAt(object, 'metadata', 'deletionTimestamp') !== '';
    const claims = this.#claimsOf(round, isDeleting);
    if (claims.length > 0) {
      // Until the informer shows what was taken and let go, counting would count wrong.
      const isDone = await this.#claim(round, claims);
      return isDone ? { againMs: EXPECTATION_LOOK_MS } : 'retry';
    }
    const rows = this.#activeRows(owner.uid);
    const terminating = this.#terminating(key, owner.uid);
    this.#sizes.set(key, rows.length + (terminating ?? 0));
    // The event that shows the last of our own changes brings one status for all of them.
    if (!isMet) return { againMs: EXPECTATION_LOOK_MS };
    const missing = isDeleting ? 0 : replicasMissing(object, rows.length);
    const failure = missing === 0 ? null : await this.#manage(round, rows, missing);
    const owned = { active: rows, terminating };
    const counts = countReplicas(object, this.#options.pods.pods, owned, nowMs);
    const work = failure === null ? this.#comesTooSoon(object, counts) : undefined;
    if (work !== undefined) {
      this.#noteStep(key);
      this.#options.rolling.await(work, key);
      return { againMs: EXPECTATION_LOOK_MS };
    }
    const isWritten = await this.#writeStatus(round, counts, failure);
    if (!isWritten || failure !== null) return 'retry';
    return counts.nextS === Infinity ? 'done' : { againMs: counts.nextS * 1000 - nowMs };
  }

  /**
   * The key of the Deployment that is to end its round first: at work on one step, it would take
   * the next ones for one.
   */
  #comesTooSoon(object: JsonObject, counts: ReplicaCounts): string | undefined {
    const isStep = counts.ready !== numberAt(object, 'status', 'readyReplicas');
    if (!isStep || !replicasAreFew(counts)) return undefined;
    return this.#options.rolling.workOf(controllerUid(object));
  }

  #activeRows(uid: string): number[] {
    const { pods } = this.#options.pods;
    const rows: number[] = [];
    const owner = pods.findOwner(uid);
    for (let row = pods.firstOfOwner(owner); row >= 0; row = pods.nextOfOwner(row)) {
      if (pods.isActive(row)) rows.push(row);
    }
    return rows;
  }

  /** Pods on their way out; undefined where the status is not to tell of them. */
  #terminating(key: string, uid: string): number | undefined {
    const program = this.#selectors.get(key);
    if (!this.#tellsTerminating || program === undefined) return undefined;
    const { pods } = this.#options.pods;
    const known: Map<number, boolean> = new Map();
    const owner = pods.findOwner(uid);
    let count = 0;
    for (let row = pods.firstOfOwner(owner); row >= 0; row = pods.nextOfOwner(row)) {
      if (!pods.isTerminating(row)) continue;
      const labels = pods.labelsOf(row);
      const isOurs = known.get(labels) ?? (labels >= 0 && pods.matches(labels, program));
      known.set(labels, isOurs);
      if (isOurs) count++;
    }
    return count;
  }

  /** Pods to let go of as they no longer match, and those to take that do and are nobody's. */
  #claimsOf({ key, owner, program }: Round, isDeleting: boolean): Claim[] {
    const { pods } = this.#options.pods;
    // Pods share label sets: each set is matched once, however many pods have it.
    const known: Map<number, boolean> = new Map();
    const stray = this.#activeRows(owner.uid).filter((row) => {
      const labels = pods.labelsOf(row);
      const isKnown = known.get(labels) ?? (labels >= 0 && pods.matches(labels, program));
      known.set(labels, isKnown);
      return !isKnown;
    });
    const orphans: number[] = [];
    if (!isDeleting && this.#adopting.has(key)) {
      for (let set = pods.firstSet(owner.namespace); set >= 0; set = pods.nextSet(set)) {
        if (!pods.matches(set, program)) continue;
        for (let row = pods.firstOfSet(set); row >= 0; row = pods.nextOfSet(row)) {
          if (pods.ownerOf(row) < 0 && pods.isActive(row)) orphans.push(row);
        }
      }
    }
    if (stray.length === 0 && orphans.length === 0) this.#adopting.delete(key);
    // Rows may serve other pods after the first wait.
    return [
      ...stray.map((row) => this.#claimOf(row, 'release')),
      ...orphans.map((row) => this.#claimOf(row, 'adopt')),
    ];
  }

  /** True where it is done. */
  async #claim(round: Round, claims: readonly Claim[]): Promise<boolean> {
    const { key, owner } = round;
    const isAdopting = claims.some(({ verb }) => verb === 'adopt');
    if (isAdopting && !(await this.#mayAdopt(round))) return false;
    const revisions = await Promise.all(
      claims.map(({ verb, name, revision }) => {
        const path = `/api/v1/namespaces/${owner.namespace}/pods/${name}`;
        return this.#control[verb](path, owner, revision);
      }),
    );
    for (const revision of revisions) {
      this.#expectations.expectRevision(key, revision, round.nowMs);
    }
    if (revisions.includes(-1)) return false;
    this.#adopting.delete(key);
    return true;
  }

  #claimOf(row: number, verb: 'adopt' | 'release'): Claim {
    const { informer } = this.#options.pods;
    const key = informer.keyOf(row);
    const name = key.slice(key.indexOf('/') + 1);
    return { verb, name, revision: informer.resourceVersionOf(row) };
  }

  /** Read from the server, not from the informer: what is going must not take pods along. */
  async #mayAdopt({ owner }: Round): Promise<boolean> {
    const answer = await this.#options.client.request({ method: 'GET', path: this.#path(owner) });
    if (!answer.ok) return false;
    const metadata = objectAt(answer.object, 'metadata');
    return (
      stringAt(metadata, 'uid') === owner.uid && stringAt(metadata, 'deletionTimestamp') === ''
    );
  }

  #path({ namespace, name }: PodOwner): string {
    const { root, resource } = this.#options.kind;
    return `${root}/namespaces/${namespace}/${resource}/${name}`;
  }

  async #manage(
    round: Round,
    rows: readonly number[],
    missing: number,
  ): Promise<ReplicaFailure | null> {
    return missing > 0 ? this.#create(round, missing) : this.#delete(round, rows, -missing);
  }

  async #create(
    { key, object, owner, nowMs }: Round,
    count: number,
  ): Promise<ReplicaFailure | null> {
    const body = JSON.stringify(podOfTemplate(objectAt(object, 'spec', 'template'), owner));
    const failed = await this.#control.createAll(
      owner,
      () => body,
      count,
      (revision) => this.#expectations.expectRevision(key, revision, nowMs),
    );
    if (failed === undefined || failed.ok || failed.reason === NAMESPACE_ENDING) return null;
    return { reason: 'FailedCreate', message: failed.text };
  }

  async #delete(
    { key, object, owner, nowMs }: Round,
    rows: readonly number[],
    count: number,
  ): Promise<ReplicaFailure | null> {
    const { informer, pods } = this.#options.pods;
    const neighbours = this.#neighbours(object, rows);
    const nowS = Math.floor(nowMs / 1000);
    const victims = rowsToDelete(pods, rows, count, neighbours, nowS);
    this.#tellAges(rows, victims, nowS);
    const keys = victims.map((row) => informer.keyOf(row));
    const results = await Promise.all(
      keys.map(async (pod) => {
        this.#expectations.expectDeletion(key, pod, nowMs);
        const result = await this.#control.delete(owner, pod.slice(owner.namespace.length + 1));
        if (!result.ok) this.#expectations.unexpectDeletion(key, pod);
        return result;
      }),
    );
    const failed = results.find((one) => !one.ok);
    if (failed === undefined || failed.ok) return null;
    return { reason: 'FailedDelete', message: failed.text };
  }

  /** How much older than the youngest those are that go, of pods that are ready. */
  #tellAges(rows: readonly number[], victims: readonly number[], nowS: number): void {
    const { pods } = this.#options.pods;
    const agesOf = (some: readonly number[]): number[] =>
      some
        .filter((row) => (pods.flags.get(row) & REPLICA_READY) !== 0)
        .map((row) => Math.max(1, nowS - pods.createdS.get(row)));
    const youngest = agesOf(rows).reduce((least, age) => Math.min(least, age), Infinity);
    for (const age of agesOf(victims)) this.#ageRatio.record(age / youngest);
  }

  /** Active pods by node, of this and of all others with the same controller; none without one. */
  #neighbours(object: JsonObject, own: readonly number[]): Map<number, number> {
    const { pods } = this.#options.pods;
    const counts: Map<number, number> = new Map();
    const uid = controllerUid(object);
    if (uid === '') return counts;
    const namespace = stringAt(object, 'metadata', 'namespace');
    const siblings = this.#cache.controlledBy(uid, namespace);
    let rows = [...own];
    for (const key of siblings) {
      const sibling = stringAt(this.#cache.get(key), 'metadata', 'uid');
      if (sibling !== stringAt(object, 'metadata', 'uid')) {
        rows = rows.concat(this.#activeRows(sibling));
      }
    }
    for (const row of rows) {
      const node = pods.node.get(row);
      if (node !== 0) counts.set(node, (counts.get(node) ?? 0) + 1);
    }
    return counts;
  }

  /** What of the status is to be written: that of the oldest step which says something else. */
  #nextStatus(
    key: string,
    object: JsonObject,
    counts: ReplicaCounts,
    failure: ReplicaFailure | null,
  ): { readonly status: JsonObject; readonly step: ReplicaCounts } | undefined {
    const now = this.#options.now();
    const steps = this.#steps.get(key) ?? [];
    this.#steps.delete(key);
    for (const [index, step] of [...steps, counts].entries()) {
      const status = replicaStatusPatch(object, step, failure, now);
      if (status === undefined) continue;
      if (index + 1 < steps.length) this.#steps.set(key, steps.slice(index + 1));
      return { status, step };
    }
    return undefined;
  }

  async #writeStatus(
    { key, object, owner }: Round,
    counts: ReplicaCounts,
    failure: ReplicaFailure | null,
  ): Promise<boolean> {
    // Our last status is not in view yet; its event brings the key back.
    if (this.#cache.informer.revision < (this.#written.get(key) ?? 0)) return true;
    const next = this.#nextStatus(key, object, counts, failure);
    if (next === undefined) return true;
    const { status, step } = next;
    const resourceVersion = stringAt(object, 'metadata', 'resourceVersion');
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `${this.#path(owner)}/status`,
      contentType: CONTENT.mergePatch,
      body: { metadata: { resourceVersion }, status },
    });
    if (answer.ok) {
      this.#written.set(key, revisionOf(answer.object));
      const told = objectAt(answer.object, 'status')?.['terminatingReplicas'];
      if (told === undefined) this.#tellsTerminating = false;
    } else if (replicasAreFew(step)) this.#steps.set(key, [step, ...(this.#steps.get(key) ?? [])]);
    return answer.ok || answer.code === 404;
  }
}

/** Of few replicas each one that becomes ready is told; of many they are gathered. */
function replicasAreFew({ replicas }: ReplicaCounts): boolean {
  return replicas < REPLICAS_PER_MS;
}

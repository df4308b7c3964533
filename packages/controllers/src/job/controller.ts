/** Jobs: carries out what `planJob` decides, and lets pods go whose Job is over or gone. */
import { CONTENT } from '@megaplane/client/client';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { equals, listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { mergeOf } from '../framework/conditions.ts';
import { Expectations } from '../framework/expectations.ts';
import { isFinished, planJob, type JobPlan, type JobPod, type NewPod } from './job.ts';
import type { JobBackoff } from './job-backoff.ts';
import { JobClaims } from './job-claims.ts';
import { JobMetrics } from './job-metrics.ts';
import { INDEX, INDEX_FAILURES, INDEX_IGNORED, JobPods, TRACKING } from './job-pods.ts';
import { judgeFailure } from './job-policy.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { NAMESPACE_ENDING, ownerOfObject, PodControl } from '../framework/pod-control.ts';
import { podOfTemplate, revisionOf, type PodOwner } from '../framework/pod-control.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { PHASE_FAILED, PHASE_RUNNING, PHASE_SUCCEEDED } from '../columns/replica-pods.ts';
import { REPLICA_BOUND, REPLICA_DELETING, REPLICA_READY } from '../columns/replica-pods.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
/** DefaultJobApiBackOff and MaxJobApiBackOff of upstream's job_controller.go. */
const RETRY = { minMs: 1_000, maxMs: 60_000 };
const LOOSE_WORKERS = 20;
/** News of pods and of statuses are gathered: SyncJobBatchPeriod of upstream. */
const GATHER_MS = 1_000;
const EXPECTATION_LOOK_MS = 300_000;
const UID_LABEL = 'batch.kubernetes.io/controller-uid';
const MANAGED_BY = 'kubernetes.io/job-controller';

export interface JobControllerOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly announce: Announce;
}

export class JobController {
  readonly #options: JobControllerOptions;
  readonly #control: PodControl;
  readonly #workers: Workers<string>;
  /** Keys of pods whose finalizer nobody else will take off. */
  readonly #loose: Workers<string>;
  readonly #jobs: ObjectCache;
  readonly #pods = new JobPods();
  readonly #expectations = new Expectations();
  readonly #written = new Expectations();
  readonly #backoffs: Map<string, JobBackoff> = new Map();
  /** Jobs whose last creation of pods was refused, by key. */
  readonly #refused: Set<string> = new Set();
  readonly #claims: JobClaims;
  readonly #metrics: JobMetrics;
  /** What is being carried out, by key. */
  readonly #planned: Map<string, JobPlan> = new Map();
  /** Jobs under way whose selector is their user's own. */
  readonly #manual: Set<string> = new Set();

  constructor(options: JobControllerOptions) {
    this.#options = options;
    const { client, informers, pods, onError } = options;
    this.#control = new PodControl(client, options.announce);
    this.#claims = new JobClaims(client, pods);
    this.#metrics = new JobMetrics(informers.metrics);
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#timedWork(key),
      onError,
      informers.queues.queue('job'),
      RETRY,
    );
    this.#loose = new Workers(
      client.timers,
      LOOSE_WORKERS,
      (key) => this.#letGo(key),
      onError,
      informers.queues.queue('job_orphan_pod'),
      RETRY,
    );
    const synced = (): void => this.#addWaiting();
    this.#jobs = new ObjectCache(
      informers,
      '/apis/batch/v1/jobs',
      (key, after, before) => this.#jobChanged(key, after, before),
      synced,
    );
    pods.listen({
      changed: (row, bytes, scan) => this.#podChanged(row, bytes, scan),
      synced,
    });
  }

  start(): void {
    this.#workers.start();
    this.#loose.start();
  }

  stop(): void {
    this.#workers.stop();
    this.#loose.stop();
  }

  #addWaiting(): void {
    for (const key of this.#expectations.keys()) this.#workers.add(key);
    for (const key of this.#written.keys()) this.#workers.add(key);
  }

  #jobChanged(key: string, after: JsonObject | undefined, before: JsonObject | undefined): void {
    if (after !== undefined) {
      const manager = managerOf(after);
      if (before === undefined && manager !== '') this.#metrics.foreign(manager);
      const isManual = valueAt(after, 'spec', 'manualSelector') === true;
      if (isManual && !isFinished(after)) this.#manual.add(key);
      else this.#manual.delete(key);
      const generation = numberAt(after, 'metadata', 'generation');
      const isSame = generation === numberAt(before, 'metadata', 'generation');
      if (before !== undefined && isSame) return this.#workers.addAfter(key, GATHER_MS);
      return this.#workers.add(key);
    }
    this.#manual.delete(key);
    this.#expectations.forget(key);
    this.#written.forget(key);
    this.#backoffs.delete(key);
    this.#refused.delete(key);
    const uid = stringAt(before, 'metadata', 'uid');
    this.#claims.searchAgain(uid);
    for (const row of this.#rowsOf(uid)) this.#addLoose(row);
    return undefined;
  }

  #rowsOf(uid: string): number[] {
    const { pods } = this.#options.pods;
    const rows: number[] = [];
    const owner = pods.findOwner(uid);
    for (let row = pods.firstOfOwner(owner); row >= 0; row = pods.nextOfOwner(row)) rows.push(row);
    return rows;
  }

  #addLoose(row: number): void {
    if (this.#pods.tracked.get(row) === 1) this.#loose.add(this.#options.pods.informer.keyOf(row));
  }

  #podChanged(row: number, bytes: Buffer, scan: ObjectScan | null): void {
    const { pods } = this.#options.pods;
    const wasHeld = this.#pods.tracked.get(row) === 1 && pods.phaseBefore >= PHASE_SUCCEEDED;
    if (scan === null) this.#pods.tracked.set(row, 0);
    else this.#pods.upsert(row, bytes, scan);
    const isHeld = this.#pods.tracked.get(row) === 1 && pods.phaseOf(row) >= PHASE_SUCCEEDED;
    if (isHeld !== wasHeld) this.#metrics.held(isHeld);
    const owner = pods.ownerOf(row);
    const before = pods.ownerBefore;
    const key = owner < 0 ? undefined : this.#jobs.keyOfUid(pods.uidOf(owner));
    if (key !== undefined) this.#workers.addAfter(key, GATHER_MS);
    if (before >= 0 && before !== owner) {
      const former = this.#jobs.keyOfUid(pods.uidOf(before));
      if (former !== undefined) this.#workers.addAfter(former, GATHER_MS);
    }
    if (scan !== null && key === undefined) this.#addLoose(row);
    if (scan !== null && owner < 0) this.#offer(row, bytes, scan);
  }

  /** A pod that belongs to nobody is looked at by the Jobs that may select it. */
  #offer(row: number, bytes: Buffer, { labelsStart, labelsEnd }: ObjectScan): void {
    if (labelsStart < 0) return;
    const labels = bytes.subarray(labelsStart, labelsEnd);
    const named = labels.includes(UID_LABEL)
      ? stringAt(parseJson(labels.toString('utf8')), UID_LABEL)
      : '';
    const key = this.#jobs.keyOfUid(named);
    const [namespace = ''] = this.#options.pods.informer.keyOf(row).split('/');
    const manual = [...this.#manual].filter((one) => one.startsWith(`${namespace}/`));
    for (const one of key === undefined ? manual : [...manual, key]) {
      this.#claims.searchAgain(stringAt(this.#jobs.get(one), 'metadata', 'uid'));
      this.#workers.addAfter(one, GATHER_MS);
    }
  }

  /** A pod whose Job is gone, or that was set free. */
  async #letGo(pod: string): Promise<WorkResult> {
    await Promise.resolve();
    const { informer, pods } = this.#options.pods;
    const slash = pod.indexOf('/');
    const row = informer.find(pod.slice(0, slash), pod.slice(slash + 1));
    if (row < 0 || this.#pods.tracked.get(row) === 0) return 'done';
    const owner = pods.ownerOf(row);
    if (owner >= 0 && this.#jobs.keyOfUid(pods.uidOf(owner)) !== undefined) return 'done';
    return (await this.#untrack(pod.slice(0, slash), pod.slice(slash + 1))) < 0 ? 'retry' : 'done';
  }

  /** Takes the tracking finalizer off: the revision, 0 where the pod is gone, -1 if it failed. */
  async #untrack(namespace: string, name: string): Promise<number> {
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `/api/v1/namespaces/${namespace}/pods/${name}`,
      contentType: CONTENT.strategicPatch,
      body: { metadata: { '$deleteFromPrimitiveList/finalizers': [TRACKING] } },
    });
    if (answer.ok) return revisionOf(answer.object);
    return answer.code === 404 || answer.code === 422 ? 0 : -1;
  }

  async #timedWork(key: string): Promise<WorkResult> {
    const { timers } = this.#options.client;
    const startMs = timers.nowMs();
    this.#planned.delete(key);
    const result = await this.#work(key);
    const job = this.#jobs.get(key);
    const isSynced = job !== undefined && managerOf(job) === '' && !isFinished(job);
    const seconds = (timers.nowMs() - startMs) / 1000;
    if (isSynced) this.#metrics.synced(job, result !== 'retry', this.#planned.get(key), seconds);
    this.#planned.delete(key);
    return result;
  }

  async #work(key: string): Promise<WorkResult> {
    // Events of one chunk are all delivered before the first of them is worked on.
    await Promise.resolve();
    const job = this.#jobs.get(key);
    if (job === undefined) return 'done';
    if (managerOf(job) !== '') return 'done';
    const nowMs = this.#options.client.timers.wallMs();
    const podsSeen = this.#options.pods.informer.revision;
    const isSeen =
      this.#expectations.isMet(key, podsSeen, this.#options.pods.isGoing, nowMs) &&
      this.#written.isMet(key, this.#jobs.informer.revision, () => true, nowMs);
    if (!isSeen) return { againMs: EXPECTATION_LOOK_MS };
    const owner = ownerOfObject('batch/v1', 'Job', job);
    const pods = this.#podsOf(owner);
    if (isFinished(job)) return this.#clean(key, owner, pods, nowMs);
    const claimed = await this.#claims.claim(job, owner);
    for (const revision of claimed) this.#expectations.expectRevision(key, revision, nowMs);
    if (claimed.includes(-1)) return 'retry';
    // What was taken comes with its event.
    if (claimed.some((revision) => revision > 0)) return { againMs: EXPECTATION_LOOK_MS };
    const judged = await this.#judge(job, owner, pods);
    if (judged === undefined) return 'retry';
    const backoff = this.#backoffs.get(key) ?? { failures: 0, lastFailureMs: 0 };
    const next = { ...backoff };
    const plan = this.#without(key, planJob(job, judged, next, nowMs));
    this.#planned.set(key, plan);
    if (!(await this.#writeStatus(key, job, owner, plan, nowMs))) return 'retry';
    // Only now are the failures known to the server: decided again, they must not count twice.
    this.#backoffs.set(key, next);
    if (!(await this.#carryOut(key, job, owner, plan, nowMs))) return 'retry';
    return plan.againMs === Infinity ? 'done' : { againMs: plan.againMs };
  }

  /** Pods that were refused just now are tried again, but not told of as if they were there. */
  #without(key: string, plan: JobPlan): JobPlan {
    if (!this.#refused.has(key) || plan.create.length === 0) return plan;
    const { active, ...status } = plan.status;
    const there = (typeof active === 'number' ? active : 0) - plan.create.length;
    return { ...plan, status: { ...status, ...(there > 0 ? { active: there } : {}) } };
  }

  #podsOf(owner: PodOwner): JobPod[] {
    const { informer, pods } = this.#options.pods;
    return this.#rowsOf(owner.uid).map((row) => {
      const flags = pods.flags.get(row);
      const phase = pods.phaseOf(row);
      const isReady = (flags & REPLICA_READY) !== 0;
      const readyS = pods.readyS.get(row);
      const createdS = pods.createdS.get(row);
      return {
        name: informer.keyOf(row).slice(owner.namespace.length + 1),
        uid: this.#pods.uidOf(row),
        phase:
          phase === PHASE_SUCCEEDED ? 'succeeded' : phase === PHASE_FAILED ? 'failed' : 'active',
        isDeleting: (flags & REPLICA_DELETING) !== 0,
        isReady,
        isTracked: this.#pods.tracked.get(row) === 1,
        index: this.#pods.indexOf(row),
        failures: this.#pods.failures.get(row),
        ignored: this.#pods.ignored.get(row),
        restarts: this.#pods.restarts.get(row),
        endedS:
          this.#pods.finishedS.get(row) ||
          (isReady ? 0 : readyS) ||
          this.#pods.goingS.get(row) ||
          createdS,
        isBound: (flags & REPLICA_BOUND) !== 0,
        isRunning: phase === PHASE_RUNNING,
        readyS,
        createdS,
      };
    });
  }

  /** A finished Job's pods need no finalizer any more. */
  async #clean(
    key: string,
    owner: PodOwner,
    pods: readonly JobPod[],
    nowMs: number,
  ): Promise<WorkResult> {
    const tracked = pods.filter((pod) => pod.isTracked).map((pod) => pod.name);
    return (await this.#untrackAll(key, owner, tracked, nowMs)) ? 'done' : 'retry';
  }

  async #untrackAll(
    key: string,
    owner: PodOwner,
    names: readonly string[],
    nowMs: number,
  ): Promise<boolean> {
    const revisions = await Promise.all(names.map((name) => this.#untrack(owner.namespace, name)));
    for (const revision of revisions) this.#expectations.expectRevision(key, revision, nowMs);
    return !revisions.includes(-1);
  }

  /** Reads failed pods whole where a policy wants to know why; undefined if that failed. */
  async #judge(
    job: JsonObject,
    owner: PodOwner,
    pods: readonly JobPod[],
  ): Promise<readonly JobPod[] | undefined> {
    if (objectAt(job, 'spec', 'podFailurePolicy') === undefined) return pods;
    const judged: JobPod[] = [];
    for (const pod of pods) {
      if (!pod.isTracked || pod.phase !== 'failed') {
        judged.push(pod);
        continue;
      }
      const path = `/api/v1/namespaces/${owner.namespace}/pods/${pod.name}`;
      const answer = await this.#options.client.request({ method: 'GET', path });
      if (answer.ok) judged.push({ ...pod, verdict: judgeFailure(job, answer.object) });
      else if (answer.code !== 404) return undefined;
    }
    return judged;
  }

  async #carryOut(
    key: string,
    job: JsonObject,
    owner: PodOwner,
    plan: JobPlan,
    nowMs: number,
  ): Promise<boolean> {
    const isDone = await this.#carryOutPods(key, job, owner, plan, nowMs);
    // As upstream: what became of the Job is told after what became of its pods.
    for (const { type, reason, message } of plan.events) {
      this.#options.announce('Job', owner.namespace, owner.name, type, reason, message, owner.uid);
    }
    return isDone;
  }

  async #carryOutPods(
    key: string,
    job: JsonObject,
    owner: PodOwner,
    plan: JobPlan,
    nowMs: number,
  ): Promise<boolean> {
    const isDeleting = stringAt(job, 'metadata', 'deletionTimestamp') !== '';
    // Pods that are dropped must not count as failed: they are let go before they end.
    const untracked = await this.#untrackAll(key, owner, [...plan.untrack, ...plan.drop], nowMs);
    const names = [...plan.drop, ...plan.fail];
    const deleted = await Promise.all(
      names.map((name) => this.#deletePod(key, owner, name, nowMs)),
    );
    if (!untracked || deleted.includes(false)) return false;
    if (isDeleting || plan.create.length === 0) return true;
    const bodyOf = (at: number): string => {
      return JSON.stringify(podOf(job, owner, plan.create[at]));
    };
    let made = 0;
    const failed = await this.#control.createAll(owner, bodyOf, plan.create.length, (revision) => {
      made++;
      this.#expectations.expectRevision(key, revision, nowMs);
    });
    this.#metrics.created(job, plan, made, failed === undefined || failed.ok ? 0 : 1);
    if (failed === undefined || failed.ok) this.#refused.delete(key);
    else this.#refused.add(key);
    return failed === undefined || failed.ok || failed.reason === NAMESPACE_ENDING;
  }

  /** Until the watch shows that the pod is going, the Job is not looked at again. */
  async #deletePod(key: string, owner: PodOwner, name: string, nowMs: number): Promise<boolean> {
    const pod = `${owner.namespace}/${name}`;
    this.#expectations.expectDeletion(key, pod, nowMs);
    const { ok } = await this.#control.delete(owner, name);
    if (!ok) this.#expectations.unexpectDeletion(key, pod);
    return ok;
  }

  async #writeStatus(
    key: string,
    job: JsonObject,
    { namespace, name }: PodOwner,
    plan: JobPlan,
    nowMs: number,
  ): Promise<boolean> {
    const before = objectAt(job, 'status');
    const status = mergeOf(before, plan.status, equals);
    if (status === undefined) return true;
    // A merge patch adds to an object; the lists of uids are replaced as a whole.
    if (objectAt(status, 'uncountedTerminatedPods') !== undefined) {
      const uids = objectAt(plan.status, 'uncountedTerminatedPods');
      const { succeeded = null, failed = null } = uids ?? {};
      status['uncountedTerminatedPods'] = { succeeded, failed };
    }
    const resourceVersion = stringAt(job, 'metadata', 'resourceVersion');
    const answer = await this.#options.client.request({
      method: 'PATCH',
      path: `/apis/batch/v1/namespaces/${namespace}/jobs/${name}/status`,
      contentType: CONTENT.mergePatch,
      body: { metadata: { resourceVersion }, status },
    });
    if (!answer.ok) return false;
    this.#written.expectRevision(key, revisionOf(answer.object), nowMs);
    this.#metrics.wrote(job, plan);
    return true;
  }
}

/** Who else takes care of a Job; '' for nobody. */
function managerOf(job: JsonObject): string {
  const manager = stringAt(job, 'spec', 'managedBy');
  return manager === MANAGED_BY ? '' : manager;
}

/** As upstream shortens names, so that the index stays in them. */
const NAME_BASE_MAX = 58;

/** The pod for a completion index, or for none (-1). */
function podOf(job: JsonObject, owner: PodOwner, made: NewPod | undefined): JsonObject {
  const { index, failures, ignored } = made ?? { index: -1, failures: 0, ignored: 0 };
  const pod = podOfTemplate(objectAt(job, 'spec', 'template'), owner);
  const metadata = objectAt(pod, 'metadata') ?? {};
  const kept = listAt(metadata, 'finalizers');
  const finalizers = [...kept.filter((one) => one !== TRACKING), TRACKING];
  if (index < 0) return { ...pod, metadata: { ...metadata, finalizers } };
  const annotations: JsonObject = {
    ...objectAt(metadata, 'annotations'),
    [INDEX]: String(index),
  };
  if (valueAt(job, 'spec', 'backoffLimitPerIndex') !== undefined) {
    annotations[INDEX_FAILURES] = String(failures);
    if (ignored > 0) annotations[INDEX_IGNORED] = String(ignored);
  }
  const labels = { ...objectAt(metadata, 'labels'), [INDEX]: String(index) };
  const end = `-${index}-`;
  const generateName = owner.name.slice(0, NAME_BASE_MAX - end.length) + end;
  const spec: JsonObject = { ...objectAt(pod, 'spec'), hostname: `${owner.name}-${index}` };
  for (const field of ['containers', 'initContainers']) {
    const containers = listAt(spec, field).filter(isObject);
    if (containers.length > 0) spec[field] = containers.map(withIndex);
  }
  return { ...pod, metadata: { ...metadata, generateName, finalizers, annotations, labels }, spec };
}

const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';

function withIndex(container: JsonObject): JsonValue {
  const env = listAt(container, 'env');
  if (env.some((one) => stringAt(one, 'name') === INDEX_VARIABLE)) return container;
  const fieldRef = { fieldPath: `metadata.labels['${INDEX}']` };
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef } }] };
}

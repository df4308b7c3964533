/**
 * A Job decides what to do next. Pure: from the Job and its pods as they are seen to a status and
 * to the pods to make, to delete and to let go.
 *
 * No pod is counted twice or lost: a finalizer keeps each until its end is in the status. First its
 * uid is written to `uncountedTerminatedPods`, then the finalizer goes, then the uid becomes one
 * more in `succeeded` or `failed`. Completed indexes need no uids: an index counts once by itself.
 */
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { formatTime, parseTime } from '@megaplane/machinery/times';
import { findCondition, withoutCondition } from './conditions.ts';
import { formatIndexes, parseIndexes } from './index-set.ts';
import { metSuccessRule, type FailureVerdict } from './job-policy.ts';
import { BURST_REPLICAS } from './pod-control.ts';

const BACKOFF_MS_MIN = 10_000;
const BACKOFF_MS_MAX = 600_000;
/** Ended pods that wait to be counted at one time. */
const UNCOUNTED_MAX = 500;

export interface JobPod {
  readonly name: string;
  readonly uid: string;
  readonly phase: 'active' | 'succeeded' | 'failed';
  readonly isDeleting: boolean;
  readonly isReady: boolean;
  readonly isTracked: boolean;
  readonly index: number;
  /** How often its index had failed before. */
  readonly failures: number;
  readonly restarts: number;
  /** When its readiness changed last, which for an ended pod is about when it ended. */
  readonly endedS: number;
  /** What its failure means; absent for what counts. */
  readonly verdict?: FailureVerdict;
}

/** Failures since the last success, which slow down the making of pods. */
export interface JobBackoff {
  failures: number;
  lastFailureMs: number;
}

export interface JobPlan {
  readonly status: JsonObject;
  /** Indexes of pods to make with the failures before; -1 for pods without index. */
  readonly create: readonly { readonly index: number; readonly failures: number }[];
  /** Pods to delete that count as failed. */
  readonly fail: readonly string[];
  /** Pods to delete that do not count. */
  readonly drop: readonly string[];
  /** Pods to let go once the status is written. */
  readonly untrack: readonly string[];
  readonly events: readonly {
    readonly type: 'Normal' | 'Warning';
    readonly reason: string;
    readonly message: string;
  }[];
  /** Look again after so long; Infinity = when something changes. */
  readonly againMs: number;
}

export function isFinished(job: JsonObject): boolean {
  const conditions = listAt(job, 'status', 'conditions');
  return ['Complete', 'Failed'].some(
    (type) => stringAt(findCondition(conditions, type), 'status') === 'True',
  );
}

export function planJob(
  job: JsonObject,
  pods: readonly JobPod[],
  backoff: JobBackoff,
  nowMs: number,
): JobPlan {
  return new Plan(job, pods, backoff, nowMs).decide();
}

interface Failure {
  readonly reason: string;
  readonly message: string;
}

const FAILURES = {
  BackoffLimitExceeded: 'Job has reached the specified backoff limit',
  DeadlineExceeded: 'Job was active longer than specified deadline',
  MaxFailedIndexesExceeded: 'Job has exceeded the specified maximal number of failed indexes',
  FailedIndexes: 'Job has failed indexes',
} as const;

class Plan {
  readonly #job: JsonObject;
  readonly #pods: readonly JobPod[];
  readonly #backoff: JobBackoff;
  readonly #nowMs: number;
  readonly #now: string;
  readonly #completions: number | undefined;
  readonly #isIndexed: boolean;
  /** With a failure policy a pod that is being deleted is judged when it has ended. */
  readonly #isPatient: boolean;
  /** The Job is being deleted: it makes no pods any more. */
  readonly #isGoing: boolean;
  readonly #completed: Set<number>;
  readonly #failedIndexes: Set<number>;
  readonly #uncounted: { succeeded: Set<string>; failed: Set<string> };
  readonly #untrack: string[] = [];
  readonly #events: JobPlan['events'][number][] = [];
  #conditions: readonly JsonValue[];
  #succeeded: number;
  #failed: number;
  #startTime: string;
  #policyFailure: Failure | undefined;
  #create: JobPlan['create'] = [];
  #fail: string[] = [];
  #drop: string[] = [];
  #againMs = Infinity;

  constructor(job: JsonObject, pods: readonly JobPod[], backoff: JobBackoff, nowMs: number) {
    this.#job = job;
    this.#pods = pods;
    this.#backoff = backoff;
    this.#nowMs = nowMs;
    this.#now = formatTime(Math.floor(nowMs / 1000));
    const completions = valueAt(job, 'spec', 'completions');
    this.#completions = typeof completions === 'number' ? completions : undefined;
    this.#isIndexed = stringAt(job, 'spec', 'completionMode') === 'Indexed';
    this.#isPatient =
      objectAt(job, 'spec', 'podFailurePolicy') !== undefined ||
      stringAt(job, 'spec', 'podReplacementPolicy') === 'Failed';
    this.#isGoing = stringAt(job, 'metadata', 'deletionTimestamp') !== '';
    const status = objectAt(job, 'status');
    const end = this.#completions ?? 0;
    this.#completed = parseIndexes(stringAt(status, 'completedIndexes'), end);
    this.#failedIndexes = parseIndexes(stringAt(status, 'failedIndexes'), end);
    const uids = (field: string): Set<string> =>
      new Set(listAt(status, 'uncountedTerminatedPods', field).map(String));
    this.#uncounted = { succeeded: uids('succeeded'), failed: uids('failed') };
    this.#conditions = listAt(status, 'conditions');
    this.#succeeded = numberAt(status, 'succeeded');
    this.#failed = numberAt(status, 'failed');
    this.#startTime = stringAt(status, 'startTime');
  }

  decide(): JobPlan {
    this.#countOld();
    this.#countNew();
    const isSuspended = valueAt(this.#job, 'spec', 'suspend') === true;
    const active = this.#pods.filter((pod) => pod.phase === 'active' && !pod.isDeleting);
    this.#noteFailure(active);
    const failure = findCondition(this.#conditions, 'FailureTarget');
    this.#noteSuccess();
    if (failure !== undefined) this.#fail = active.map((pod) => pod.name);
    else if (this.#policySuccess() !== undefined) this.#drop = active.map((pod) => pod.name);
    else if (!this.#isGoing && isSuspended) this.#suspend(active);
    else if (!this.#isGoing) this.#run(active);
    this.#finish(active, failure);
    return this.#plan(active);
  }

  /** Uids whose pods have been let go become numbers. */
  #countOld(): void {
    const tracked = new Set(this.#pods.filter((pod) => pod.isTracked).map((pod) => pod.uid));
    for (const uid of this.#uncounted.succeeded) {
      if (tracked.has(uid)) continue;
      this.#uncounted.succeeded.delete(uid);
      this.#succeeded++;
    }
    for (const uid of this.#uncounted.failed) {
      if (tracked.has(uid)) continue;
      this.#uncounted.failed.delete(uid);
      this.#failed++;
    }
  }

  #countNew(): void {
    const isWon = this.#policySuccess() !== undefined;
    for (const pod of this.#pods) {
      // A Job on its way out holds none of its pods, whether they have ended or not.
      const isRunning = pod.phase === 'active' && (isWon || !this.#hasFailed(pod));
      if (this.#isGoing && pod.isTracked && isRunning) {
        this.#untrack.push(pod.name);
        continue;
      }
      // Whoever still ran when the policy was met is let go, and has not failed.
      if (isWon && pod.phase === 'active') {
        // As the policy is met, neither the pod that goes nor its index has failed.
        if (pod.isTracked && pod.isDeleting) this.#untrack.push(pod.name);
        continue;
      }
      if (!pod.isTracked || (pod.phase !== 'succeeded' && !this.#hasFailed(pod))) continue;
      const { succeeded, failed } = this.#uncounted;
      if (succeeded.size + failed.size >= UNCOUNTED_MAX) return;
      this.#untrack.push(pod.name);
      if (pod.phase === 'succeeded') this.#countSuccess(pod);
      else if (!failed.has(pod.uid)) this.#countFailure(pod);
    }
  }

  #hasFailed(pod: JobPod): boolean {
    if (pod.phase !== 'active') return pod.phase === 'failed';
    return pod.isDeleting && (!this.#isPatient || this.#isOver());
  }

  #isOver(): boolean {
    return findCondition(this.#conditions, 'FailureTarget') !== undefined;
  }

  #countSuccess(pod: JobPod): void {
    const isKnown = this.#isIndexed
      ? this.#completed.has(pod.index)
      : this.#uncounted.succeeded.has(pod.uid);
    if (isKnown) return;
    if (pod.endedS * 1000 >= this.#backoff.lastFailureMs) this.#backoff.failures = 0;
    if (!this.#isIndexed) this.#uncounted.succeeded.add(pod.uid);
    else if (pod.index >= 0 && pod.index < (this.#completions ?? 0)) {
      this.#completed.add(pod.index);
    }
  }

  #countFailure(pod: JobPod): void {
    const action = pod.verdict?.action ?? 'Count';
    if (action === 'Ignore') return;
    this.#uncounted.failed.add(pod.uid);
    this.#backoff.failures++;
    const endedMs = pod.endedS === 0 ? this.#nowMs : pod.endedS * 1000;
    this.#backoff.lastFailureMs = Math.max(this.#backoff.lastFailureMs, endedMs);
    if (action === 'FailJob' && this.#policyFailure === undefined) {
      this.#policyFailure = { reason: 'PodFailurePolicy', message: pod.verdict?.message ?? '' };
    }
    this.#countFailedIndex(pod, action);
  }

  #countFailedIndex(pod: JobPod, action: string): void {
    const limit = valueAt(this.#job, 'spec', 'backoffLimitPerIndex');
    // Pods that end because the Job has failed say nothing of their index.
    if (typeof limit !== 'number' || pod.index < 0 || this.#isOver()) return;
    if (action === 'FailIndex' || pod.failures >= limit) this.#failedIndexes.add(pod.index);
  }

  get #allSucceeded(): number {
    if (this.#isIndexed) return this.#completed.size;
    return this.#succeeded + this.#uncounted.succeeded.size;
  }

  #noteFailure(active: readonly JobPod[]): void {
    if (this.#isOver() || findCondition(this.#conditions, 'SuccessCriteriaMet')) return;
    const failure = this.#policyFailure ?? this.#limitFailure(active);
    if (failure !== undefined) this.#setCondition('FailureTarget', 'True', failure);
  }

  /** A success policy can be met before all indexes have succeeded. */
  #noteSuccess(): void {
    if (!this.#isIndexed || this.#isOver()) return;
    if (findCondition(this.#conditions, 'SuccessCriteriaMet') !== undefined) return;
    const rule = metSuccessRule(this.#job, this.#completed, this.#completions ?? 0);
    if (rule < 0) return;
    const message = `Matched rules at index ${rule}`;
    this.#setCondition('SuccessCriteriaMet', 'True', { reason: 'SuccessPolicy', message });
  }

  #policySuccess(): JsonObject | undefined {
    const met = findCondition(this.#conditions, 'SuccessCriteriaMet');
    return stringAt(met, 'reason') === 'SuccessPolicy' ? met : undefined;
  }

  #limitFailure(active: readonly JobPod[]): Failure | undefined {
    const because = (reason: keyof typeof FAILURES): Failure => {
      return { reason, message: FAILURES[reason] };
    };
    const limit = numberAt(this.#job, 'spec', 'backoffLimit');
    if (this.#failed + this.#uncounted.failed.size > limit) return because('BackoffLimitExceeded');
    const template = objectAt(this.#job, 'spec', 'template');
    if (stringAt(template, 'spec', 'restartPolicy') === 'OnFailure') {
      const restarts = active.reduce((sum, pod) => sum + pod.restarts, 0);
      if (limit === 0 ? restarts > 0 : restarts >= limit) return because('BackoffLimitExceeded');
    }
    if (this.#deadlineMs() <= this.#nowMs) return because('DeadlineExceeded');
    const most = valueAt(this.#job, 'spec', 'maxFailedIndexes');
    if (typeof most === 'number' && this.#failedIndexes.size > most) {
      return because('MaxFailedIndexesExceeded');
    }
    const isAllDone = this.#completed.size + this.#failedIndexes.size >= (this.#completions ?? 0);
    if (this.#failedIndexes.size > 0 && isAllDone) return because('FailedIndexes');
    return undefined;
  }

  #deadlineMs(): number {
    const seconds = valueAt(this.#job, 'spec', 'activeDeadlineSeconds');
    // One that is resumed just now starts anew, however long it was held.
    const known = findCondition(this.#conditions, 'Suspended');
    const isHeld =
      valueAt(this.#job, 'spec', 'suspend') === true || stringAt(known, 'status') === 'True';
    if (typeof seconds !== 'number' || this.#startTime === '' || isHeld) return Infinity;
    return ((parseTime(this.#startTime)?.seconds ?? 0) + seconds) * 1000;
  }

  #setCondition(type: string, status: string, { reason, message }: Failure): void {
    const made = {
      type,
      status,
      lastProbeTime: this.#now,
      lastTransitionTime: this.#now,
      reason,
      message,
    };
    this.#conditions = [...withoutCondition(this.#conditions, type), made];
  }

  #suspend(active: readonly JobPod[]): void {
    this.#drop = active.map((pod) => pod.name);
    const known = findCondition(this.#conditions, 'Suspended');
    if (stringAt(known, 'status') === 'True') return;
    const message = 'Job suspended';
    this.#setCondition('Suspended', 'True', { reason: 'JobSuspended', message });
    this.#events.push({ type: 'Normal', reason: 'Suspended', message });
  }

  #run(active: readonly JobPod[]): void {
    const known = findCondition(this.#conditions, 'Suspended');
    if (stringAt(known, 'status') === 'True') {
      const message = 'Job resumed';
      this.#setCondition('Suspended', 'False', { reason: 'JobResumed', message });
      this.#events.push({ type: 'Normal', reason: 'Resumed', message });
      this.#startTime = '';
    }
    if (this.#startTime === '') this.#startTime = this.#now;
    this.#againMs = Math.min(this.#againMs, this.#deadlineMs() - this.#nowMs);
    const wanted = this.#wantedActive(active.length);
    const surplus = active.length - wanted;
    if (this.#isIndexed) this.#dropWrongIndexes(active);
    const rest = active.filter((pod) => !this.#drop.includes(pod.name));
    for (const pod of rest.toReversed()) {
      if (this.#drop.length >= surplus) break;
      this.#drop.push(pod.name);
    }
    const going = this.#isPatient
      ? this.#pods.filter((pod) => pod.phase === 'active' && pod.isDeleting).length
      : 0;
    const missing = wanted - (active.length - this.#drop.length) - going;
    if (missing > 0) this.#createMissing(Math.min(missing, BURST_REPLICAS), active);
  }

  #wantedActive(active: number): number {
    const parallelism = numberAt(this.#job, 'spec', 'parallelism');
    const done = this.#allSucceeded;
    if (this.#completions === undefined)
      return done > 0 ? Math.min(active, parallelism) : parallelism;
    const left = this.#completions - done - this.#failedIndexes.size;
    return Math.max(0, Math.min(parallelism, left));
  }

  /** Pods of an index that is none, that is done already, or that has a pod already. */
  #dropWrongIndexes(active: readonly JobPod[]): void {
    const seen: Set<number> = new Set();
    for (const { index, name } of active) {
      const isOutside = index < 0 || index >= (this.#completions ?? 0);
      const isDone = this.#completed.has(index) || this.#failedIndexes.has(index);
      if (isOutside || isDone || seen.has(index)) this.#drop.push(name);
      seen.add(index);
    }
  }

  #createMissing(count: number, active: readonly JobPod[]): void {
    if (valueAt(this.#job, 'spec', 'backoffLimitPerIndex') !== undefined) {
      this.#createIndexes(count, active, true);
      return;
    }
    const waitMs = this.#waitMs(this.#backoff.failures, this.#backoff.lastFailureMs);
    if (waitMs > 0) this.#againMs = Math.min(this.#againMs, waitMs);
    else if (this.#isIndexed) this.#createIndexes(count, active, false);
    else this.#create = Array.from({ length: count }, () => ({ index: -1, failures: 0 }));
  }

  #waitMs(failures: number, sinceMs: number): number {
    if (failures === 0) return 0;
    const delayMs = BACKOFF_MS_MIN * 2 ** Math.min(failures - 1, 20);
    return sinceMs + Math.min(delayMs, BACKOFF_MS_MAX) - this.#nowMs;
  }

  /** The lowest indexes that have no pod; each waits for its own failures where they count. */
  #createIndexes(count: number, active: readonly JobPod[], isPerIndex: boolean): void {
    const taken = new Set(active.map((pod) => pod.index));
    const last: Map<number, JobPod> = new Map();
    for (const pod of this.#pods) {
      if (pod.phase === 'active' && !pod.isDeleting) continue;
      if (this.#isPatient && pod.phase === 'active') taken.add(pod.index);
      const known = last.get(pod.index);
      if (known === undefined || pod.failures > known.failures) last.set(pod.index, pod);
    }
    const create: { index: number; failures: number }[] = [];
    for (let index = 0; index < (this.#completions ?? 0) && create.length < count; index++) {
      if (taken.has(index) || this.#completed.has(index) || this.#failedIndexes.has(index))
        continue;
      const before = last.get(index);
      const isIgnored = before?.verdict?.action === 'Ignore';
      const failures = before === undefined ? 0 : before.failures + (isIgnored ? 0 : 1);
      const sinceMs = before === undefined ? 0 : before.endedS * 1000;
      const waitMs = isPerIndex ? this.#waitMs(failures, sinceMs) : 0;
      if (waitMs > 0) this.#againMs = Math.min(this.#againMs, waitMs);
      else create.push({ index, failures });
    }
    this.#create = create;
  }

  /** The Job is over when what it decided is true of all its pods, and all are counted. */
  #finish(active: readonly JobPod[], failure: JsonObject | undefined): void {
    const { succeeded, failed } = this.#uncounted;
    const isSettled = active.length === 0 && succeeded.size + failed.size === 0;
    const isGone = this.#pods.every((pod) => pod.phase !== 'active');
    if (failure !== undefined) {
      if (!isSettled || !isGone || this.#untrack.length > 0) return;
      const reason = stringAt(failure, 'reason');
      const message = stringAt(failure, 'message');
      this.#setCondition('Failed', 'True', { reason, message });
      this.#events.push({ type: 'Warning', reason, message });
      return;
    }
    const isSuspended = valueAt(this.#job, 'spec', 'suspend') === true;
    const policy = this.#policySuccess();
    const isReached =
      this.#completions === undefined
        ? this.#allSucceeded > 0 && active.length === 0
        : this.#allSucceeded >= this.#completions;
    if (policy === undefined && (!isReached || isSuspended)) return;
    const text = 'Reached expected number of succeeded pods';
    const reason = policy === undefined ? 'CompletionsReached' : 'SuccessPolicy';
    const message = policy === undefined ? text : stringAt(policy, 'message');
    const because = { reason, message };
    if (findCondition(this.#conditions, 'SuccessCriteriaMet') === undefined) {
      this.#setCondition('SuccessCriteriaMet', 'True', because);
    }
    if (!isSettled || !isGone || this.#untrack.length > 0) return;
    this.#setCondition('Complete', 'True', because);
    this.#events.push({ type: 'Normal', reason: 'Completed', message: 'Job completed' });
  }

  #plan(active: readonly JobPod[]): JobPlan {
    const going = this.#pods.filter((pod) => pod.phase === 'active' && pod.isDeleting);
    const isComplete = findCondition(this.#conditions, 'Complete') !== undefined;
    const removed = new Set([...this.#fail, ...this.#drop]);
    const kept = active.filter((pod) => !removed.has(pod.name));
    const { succeeded, failed } = this.#uncounted;
    const counts = {
      active: kept.length + this.#create.length,
      succeeded: this.#isIndexed ? this.#completed.size : this.#succeeded,
      failed: this.#failed,
    };
    const status: JsonObject = {
      terminating: going.length,
      ready: kept.filter((pod) => pod.isReady).length,
      uncountedTerminatedPods: {
        ...(succeeded.size === 0 ? {} : { succeeded: [...succeeded] }),
        ...(failed.size === 0 ? {} : { failed: [...failed] }),
      },
    };
    for (const [field, value] of Object.entries(counts)) if (value > 0) status[field] = value;
    if (this.#startTime !== '') status['startTime'] = this.#startTime;
    if (this.#conditions.length > 0) status['conditions'] = [...this.#conditions];
    const completionTime = stringAt(this.#job, 'status', 'completionTime');
    if (isComplete) status['completionTime'] = completionTime || this.#now;
    if (this.#completed.size > 0) status['completedIndexes'] = formatIndexes(this.#completed);
    if (valueAt(this.#job, 'spec', 'backoffLimitPerIndex') !== undefined) {
      status['failedIndexes'] = formatIndexes(this.#failedIndexes);
    }
    return {
      status,
      create: this.#create,
      fail: this.#fail,
      drop: this.#drop,
      untrack: this.#untrack,
      events: this.#events,
      againMs: Math.max(0, this.#againMs),
    };
  }
}

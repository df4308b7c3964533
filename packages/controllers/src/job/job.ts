/**
 * A Job decides what to do next. Pure: from the Job and its pods as they are seen to a status and
 * to the pods to make, to delete and to let go.
 *
 * No pod is counted twice or lost: a finalizer keeps each until its end is in the status. First its
 * uid is written to `uncountedTerminatedPods`, then the finalizer goes, then the uid becomes one
 * more in `succeeded` or `failed`. Completed indexes need no uids: an index counts once by itself.
 */
import { assert } from '@megaplane/base/assert';
import { putMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { formatTime, parseTime } from '@megaplane/machinery/times';
import { findCondition, withoutCondition } from '../framework/conditions.ts';
import { formatIndexes, parseIndexes } from '../columns/index-set.ts';
import { metSuccessRule, type FailureVerdict } from './job-policy.ts';
import { noteEnds, remainingMs, type JobBackoff } from './job-backoff.ts';
import { leastMissed, repeatedIndexes } from './job-removal.ts';
import { BURST_REPLICAS } from '../framework/pod-control.ts';

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
  /** How often it had failed besides, which did not count. */
  readonly ignored: number;
  /** Of all its containers together. */
  readonly restarts: number;
  /** When it ended or began to go, as well as that is known. */
  readonly endedS: number;
  readonly isBound: boolean;
  readonly isRunning: boolean;
  /** When its readiness changed last; 0 where that was never told. */
  readonly readyS: number;
  readonly createdS: number;
  /** What its failure means; absent for what counts. */
  readonly verdict?: FailureVerdict;
}

export interface JobPlan {
  readonly status: JsonObject;
  /** Indexes of pods to make with the failures before; -1 for pods without index. */
  readonly create: readonly NewPod[];
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
  /** What a failure policy decided of the pods that are let go. */
  readonly verdicts: readonly FailureVerdict[];
  /** Look again after so long; Infinity = when something changes. */
  readonly againMs: number;
}

export interface NewPod {
  readonly index: number;
  readonly failures: number;
  readonly ignored: number;
}

const WITHOUT_INDEX: NewPod = { index: -1, failures: 0, ignored: 0 };

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
  /** Failed pods that keep their finalizer until another of their index is there, by index. */
  readonly #delayed: Map<number, JobPod> = new Map();
  readonly #untrack: string[] = [];
  readonly #verdicts: FailureVerdict[] = [];
  readonly #events: JobPlan['events'][number][] = [];
  #conditions: readonly JsonValue[];
  #succeeded: number;
  #failed: number;
  /** With those that are not in the status yet. */
  #succeededNow = 0;
  #failedNow = 0;
  #startTime: string;
  #policyFailure: Failure | undefined;
  /** No pod is made because of earlier failures. */
  #isHeldBack = false;
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
    const isSuspended = valueAt(this.#job, 'spec', 'suspend') === true;
    const active = this.#pods.filter((pod) => pod.phase === 'active' && !pod.isDeleting);
    this.#judgeNew(active);
    this.#noteFailure();
    this.#noteSuccess();
    const failure = findCondition(this.#conditions, 'FailureTarget');
    if (failure !== undefined) this.#fail = active.map((pod) => pod.name);
    else if (this.#policySuccess() !== undefined) this.#drop = active.map((pod) => pod.name);
    else if (!this.#isGoing && isSuspended) this.#drop = active.map((pod) => pod.name);
    else if (!this.#isGoing) this.#run(active);
    if (failure === undefined) this.#noteCompletion(active);
    const isMet = findCondition(this.#conditions, 'SuccessCriteriaMet') !== undefined;
    if (failure === undefined && !isMet && !this.#isGoing && isSuspended) this.#noteSuspension();
    this.#countNew();
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

  /** What has ended since, before any of it is in the status. */
  #judgeNew(active: readonly JobPod[]): void {
    const { succeeded, failed } = this.#uncounted;
    const tracked = this.#pods.filter((pod) => pod.isTracked);
    const isNew = (known: ReadonlySet<string>) => (pod: JobPod) => !known.has(pod.uid);
    const won = tracked.filter((pod) => pod.phase === 'succeeded').filter(isNew(succeeded));
    const allLost = tracked.filter((pod) => pod.phase !== 'succeeded' && this.#hasFailed(pod));
    const lost = allLost.filter(isNew(failed));
    noteEnds(this.#backoff, won, lost);
    for (const pod of won) if (this.#isInside(pod.index)) this.#completed.add(pod.index);
    const counted = lost.filter((pod) => pod.verdict?.action !== 'Ignore');
    this.#failedNow = this.#failed + failed.size + counted.length;
    this.#succeededNow = this.#isIndexed
      ? this.#completed.size
      : this.#succeeded + succeeded.size + won.length;
    const fatal = this.#pods.find((pod) => pod.verdict?.action === 'FailJob')?.verdict;
    if (fatal !== undefined) {
      this.#policyFailure = { reason: 'PodFailurePolicy', message: fatal.message };
    }
    if (this.#limitPerIndex === undefined || this.#isOver()) return;
    if (findCondition(this.#conditions, 'SuccessCriteriaMet') !== undefined) return;
    for (const pod of allLost) this.#judgeIndex(pod, this.#limitPerIndex);
    const running = new Set(active.map((pod) => pod.index));
    for (const pod of allLost) this.#delay(pod, running);
  }

  get #limitPerIndex(): number | undefined {
    const limit = valueAt(this.#job, 'spec', 'backoffLimitPerIndex');
    return this.#isIndexed && typeof limit === 'number' ? limit : undefined;
  }

  #isInside(index: number): boolean {
    return this.#isIndexed && index >= 0 && index < (this.#completions ?? 0);
  }

  #judgeIndex({ index, failures, verdict }: JobPod, limit: number): void {
    if (!this.#isInside(index) || verdict?.action === 'Ignore') return;
    if (verdict?.action === 'FailIndex' || failures >= limit) this.#failedIndexes.add(index);
  }

  /** The next pod of the index is to know from it how often the index has failed. */
  #delay(pod: JobPod, running: ReadonlySet<number>): void {
    const { index } = pod;
    if (!this.#isInside(index) || running.has(index)) return;
    if (this.#completed.has(index) || this.#failedIndexes.has(index)) return;
    const known = this.#delayed.get(index);
    const isLater =
      known === undefined ||
      (known.failures + known.ignored <= pod.failures + pod.ignored && known.endedS <= pod.endedS);
    if (isLater) this.#delayed.set(index, pod);
  }

  #countNew(): void {
    const isWon = this.#policySuccess() !== undefined;
    const isDone = findCondition(this.#conditions, 'SuccessCriteriaMet') !== undefined;
    for (const pod of this.#pods) {
      const isRunning = pod.phase === 'active' && (isWon || !this.#hasFailed(pod));
      // Whoever still runs when the Job is done, or is on its way out, is let go uncounted: neither
      // the pod nor its index has failed.
      if (isRunning && (this.#isGoing || (isDone && pod.isDeleting))) {
        if (pod.isTracked) this.#untrack.push(pod.name);
        continue;
      }
      if (isWon && pod.phase === 'active') continue;
      if (!pod.isTracked || (pod.phase !== 'succeeded' && !this.#hasFailed(pod))) continue;
      if (!isDone && this.#isKept(pod)) continue;
      const { succeeded, failed } = this.#uncounted;
      if (succeeded.size + failed.size >= UNCOUNTED_MAX) return;
      this.#untrack.push(pod.name);
      if (pod.phase !== 'succeeded') this.#countFailure(pod);
      else if (!this.#isIndexed) succeeded.add(pod.uid);
    }
  }

  #isKept(pod: JobPod): boolean {
    return !this.#isGoing && !this.#isOver() && this.#delayed.get(pod.index)?.uid === pod.uid;
  }

  #hasFailed(pod: JobPod): boolean {
    if (pod.phase !== 'active') return pod.phase === 'failed';
    return pod.isDeleting && (!this.#isPatient || this.#isOver());
  }

  #isOver(): boolean {
    return findCondition(this.#conditions, 'FailureTarget') !== undefined;
  }

  #countFailure({ uid, index, verdict }: JobPod): void {
    if (this.#uncounted.failed.has(uid)) return;
    // Indexes that are none any more are of no interest.
    if (this.#isIndexed && !this.#isInside(index)) return;
    if (verdict !== undefined) this.#verdicts.push(verdict);
    if (verdict?.action !== 'Ignore') this.#uncounted.failed.add(uid);
  }

  #noteFailure(): void {
    if (this.#isOver() || findCondition(this.#conditions, 'SuccessCriteriaMet')) return;
    const failure = this.#policyFailure ?? this.#limitFailure();
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

  #limitFailure(): Failure | undefined {
    const because = (reason: keyof typeof FAILURES): Failure => {
      return { reason, message: FAILURES[reason] };
    };
    const limit = numberAt(this.#job, 'spec', 'backoffLimit');
    if (this.#failedNow > limit) return because('BackoffLimitExceeded');
    const template = objectAt(this.#job, 'spec', 'template');
    if (stringAt(template, 'spec', 'restartPolicy') === 'OnFailure') {
      const running = this.#pods.filter((pod) => pod.phase === 'active');
      const restarts = running.reduce((sum, pod) => sum + pod.restarts, 0);
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

  #noteSuspension(): void {
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
    this.#drop = this.#surplus(active, active.length - wanted);
    // As upstream: either pods go or others come, and those that go first.
    if (this.#drop.length > 0) return;
    const going = this.#isPatient
      ? this.#pods.filter((pod) => pod.phase === 'active' && pod.isDeleting).length
      : 0;
    const missing = wanted - active.length - going;
    if (missing > 0) this.#createMissing(Math.min(missing, BURST_REPLICAS), active);
  }

  #wantedActive(active: number): number {
    const parallelism = numberAt(this.#job, 'spec', 'parallelism');
    const done = this.#succeededNow;
    if (this.#completions === undefined) return done > 0 ? active : parallelism;
    return Math.max(0, Math.min(parallelism, this.#completions - done));
  }

  #surplus(active: readonly JobPod[], count: number): string[] {
    const repeated = this.#isIndexed ? repeatedIndexes(active, this.#completions ?? 0) : [];
    const rest = active.filter((pod) => !repeated.includes(pod));
    const more = leastMissed(rest, Math.max(0, count - repeated.length));
    return [...repeated, ...more].map((pod) => pod.name);
  }

  #createMissing(count: number, active: readonly JobPod[]): void {
    const { failures, lastFailureMs } = this.#backoff;
    const isPerIndex = this.#limitPerIndex !== undefined;
    const waitMs = isPerIndex ? 0 : remainingMs(failures, lastFailureMs, this.#nowMs);
    if (waitMs > 0) this.#holdBack(waitMs);
    else if (this.#isIndexed) this.#createIndexes(count, active);
    else this.#create = Array.from({ length: count }, () => WITHOUT_INDEX);
  }

  #holdBack(waitMs: number): void {
    this.#isHeldBack = true;
    this.#againMs = Math.min(this.#againMs, waitMs);
  }

  /** The lowest indexes that have no pod; each waits for its own failures where they count. */
  #createIndexes(count: number, active: readonly JobPod[]): void {
    const taken = new Set([...active.map((pod) => pod.index), ...this.#completed]);
    for (const index of this.#failedIndexes) taken.add(index);
    for (const pod of this.#pods) {
      if (this.#isPatient && pod.phase === 'active') taken.add(pod.index);
    }
    const create: NewPod[] = [];
    let waitMs = Infinity;
    let left = count;
    for (let index = 0; index < (this.#completions ?? 0) && left > 0; index++) {
      if (taken.has(index)) continue;
      // One that must wait takes its turn all the same.
      left--;
      const before = this.#delayed.get(index);
      if (before === undefined) {
        create.push({ index, failures: 0, ignored: 0 });
        continue;
      }
      const { failures, ignored, endedS } = before;
      const ownMs = remainingMs(failures + ignored + 1, endedS * 1000, this.#nowMs);
      const isIgnored = before.verdict?.action === 'Ignore';
      const after = isIgnored
        ? { failures, ignored: ignored + 1 }
        : { failures: failures + 1, ignored };
      if (ownMs > 0) waitMs = Math.min(waitMs, ownMs);
      else create.push({ index, ...after });
    }
    if (create.length === 0 && waitMs < Infinity) this.#holdBack(waitMs);
    this.#create = create;
  }

  /** Enough have succeeded, and none is left. */
  #noteCompletion(active: readonly JobPod[]): void {
    if (findCondition(this.#conditions, 'SuccessCriteriaMet') !== undefined) return;
    const isReached =
      this.#completions === undefined
        ? this.#succeededNow > 0
        : this.#succeededNow >= this.#completions;
    const left = active.length - this.#drop.length + this.#create.length;
    if (!isReached || left > 0) return;
    const message = 'Reached expected number of succeeded pods';
    this.#setCondition('SuccessCriteriaMet', 'True', { reason: 'CompletionsReached', message });
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
    const met = findCondition(this.#conditions, 'SuccessCriteriaMet');
    if (met === undefined || !isSettled || !isGone || this.#untrack.length > 0) return;
    const because = { reason: stringAt(met, 'reason'), message: stringAt(met, 'message') };
    this.#setCondition('Complete', 'True', because);
    if (this.#completions !== undefined && this.#succeededNow > this.#completions) {
      const message = 'Too many succeeded pods running after completion count reached';
      this.#events.push({ type: 'Warning', reason: 'TooManySucceededPods', message });
    }
    this.#events.push({ type: 'Normal', reason: 'Completed', message: 'Job completed' });
  }

  #plan(active: readonly JobPod[]): JobPlan {
    const going = this.#pods.filter((pod) => pod.phase === 'active' && pod.isDeleting);
    const isComplete = findCondition(this.#conditions, 'Complete') !== undefined;
    const removed = new Set([...this.#fail, ...this.#drop]);
    const kept = active.filter((pod) => !removed.has(pod.name));
    const { succeeded, failed } = this.#uncounted;
    const ready = kept.filter((pod) => pod.isReady).length;
    // As upstream, which tells of none while failures hold it back; but never of fewer than are
    // ready, which API servers refuse.
    const isTold = !this.#isHeldBack || ready > 0;
    const counts = {
      active: isTold ? kept.length + this.#create.length : 0,
      succeeded: this.#isIndexed ? this.#completed.size : this.#succeeded,
      failed: this.#failed,
    };
    const status: JsonObject = {
      terminating: going.length,
      ready,
      uncountedTerminatedPods: {
        ...(succeeded.size === 0 ? {} : { succeeded: [...succeeded] }),
        ...(failed.size === 0 ? {} : { failed: [...failed] }),
      },
    };
    assert(counts.active >= ready, 'no more pods are ready than are active');
    assert(kept.length + removed.size === active.length, 'only active pods are deleted');
    const isOneWay = this.#create.length === 0 || removed.size === 0;
    assert(isOneWay, 'pods go or others come, not both');
    for (const [field, value] of Object.entries(counts))
      if (value > 0) putMember(status, field, value);
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
      verdicts: this.#verdicts,
      againMs: Math.max(0, this.#againMs),
    };
  }
}

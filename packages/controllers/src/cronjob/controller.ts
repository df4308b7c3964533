/** CronJobs: a Job is made for each run that is due, and what has finished is tidied up. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Client } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { equals, listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { formatTime } from '@megaplane/machinery/times';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { Announce } from '../framework/event-recorder.ts';
import { dueRun, endOf, isTooLate, jobName, jobOf, surplusJobs, timeMs } from './cron-job.ts';
import { isTimeZone, parseSchedule, type Schedule } from './schedule.ts';
import type { Histogram } from '../framework/metrics-registry.ts';
import { controllerUid, ObjectCache } from '../framework/object-cache.ts';
import { Expectations } from '../framework/expectations.ts';
import {
  failureOf,
  isNamespaceEnding,
  ownerOfObject,
  type PodOwner,
} from '../framework/pod-control.ts';
import { revisionOf } from '../framework/pod-control.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;
const ROOT = '/apis/batch/v1';
/** A run is looked at so long after its time, when the second has surely come. */
const AFTER_MS = 100;
/** How soon it is looked again whether the informer shows what was written. */
const WRITTEN_LOOK_MS = 20;
/** Longest wait of one timer: clocks may be set. */
const WAIT_MS_MAX = 3_600_000;

export interface CronJobControllerOptions extends ControllerContext {
  readonly announce: Announce;
}

/** A CronJob under work: its status changes step by step and is written once. */
interface Work {
  readonly key: string;
  readonly owner: PodOwner;
  readonly cronJob: JsonObject;
  readonly jobs: readonly JsonObject[];
  active: JsonValue[];
  status: JsonObject;
}

export class CronJobController {
  readonly #options: CronJobControllerOptions;
  readonly #client: Client;
  readonly #skew: Histogram;
  readonly #workers: Workers<string>;
  readonly #cronJobs: ObjectCache;
  readonly #jobs: ObjectCache;
  /** What was written comes back first: an old status would call replaced Jobs missing. */
  readonly #written = new Expectations();

  constructor(options: CronJobControllerOptions) {
    this.#options = options;
    const { client, informers, onError } = options;
    this.#client = client;
    this.#skew = informers.metrics.histogram(
      'cronjob_controller_job_creation_skew_duration_seconds',
      'Time between when a cronjob is scheduled to be run, and when its job is created',
      exponential(1, 10),
    );
    this.#workers = new Workers(
      client.timers,
      options.workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('cronjob'),
    );
    this.#cronJobs = new ObjectCache(informers, `${ROOT}/cronjobs`, (key, after, before) => {
      if (after !== undefined) this.#changed(key, after, before);
      else this.#written.forget(key);
    });
    this.#jobs = new ObjectCache(informers, `${ROOT}/jobs`, (_key, after, before) => {
      const key = this.#cronJobs.keyOfUid(controllerUid(after ?? before ?? {}));
      if (key !== undefined) this.#workers.add(key);
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /**
   * Another schedule is waited for: what it would have had to do before is not made up for, unless
   * something else happens meanwhile.
   */
  #changed(key: string, after: JsonObject, before: JsonObject | undefined): void {
    const [text, zone] = timingOf(after);
    if (before === undefined || equals([text, zone], [...timingOf(before)])) {
      return this.#workers.add(key);
    }
    const parsed = parseSchedule(text, zone);
    if (!parsed.ok) return this.#workers.add(key);
    return this.#workers.addAfter(key, this.#waitMs(parsed.schedule));
  }

  /** How long until the next run; not longer than a timer may wait. */
  #waitMs(schedule: Schedule, lastMs = 0): number {
    const nowMs = this.#client.timers.wallMs();
    const nextMs = schedule.next(Math.max(nowMs, lastMs));
    return Math.min(WAIT_MS_MAX, Math.max(0, nextMs - nowMs) + AFTER_MS);
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const cronJob = this.#cronJobs.get(key);
    if (cronJob === undefined) return 'done';
    const nowMs = this.#client.timers.wallMs();
    const isSeen = this.#written.isMet(key, this.#cronJobs.informer.revision, () => true, nowMs);
    if (!isSeen) return { againMs: WRITTEN_LOOK_MS };
    const owner = ownerOfObject('batch/v1', 'CronJob', cronJob);
    const jobs = [...this.#jobs.controlledBy(owner.uid, owner.namespace)]
      .map((job) => this.#jobs.get(job))
      .filter((job) => job !== undefined);
    const status = { ...objectAt(cronJob, 'status') };
    const active = [...listAt(cronJob, 'status', 'active')];
    const work: Work = { key, owner, cronJob, jobs, active, status };
    // What the limits take away is not told of as completed: upstream cleans up first.
    if (!(await this.#tidy(work)) || !(await this.#follow(work))) return 'retry';
    const result = await this.#run(work);
    if (result === 'retry') return 'retry';
    if (!(await this.#write(work))) return 'retry';
    return result;
  }

  /** Takes note of Jobs that have ended, or are gone. False where the server does not answer. */
  async #follow(work: Work): Promise<boolean> {
    const forgotten = work.jobs.filter((job) => !this.#followJob(work, job));
    if (forgotten.length > 0 && !(await this.#tellForgotten(work, forgotten))) return false;
    for (const reference of [...work.active]) {
      const uid = stringAt(reference, 'uid');
      const isKnown = work.jobs.some((job) => stringAt(job, 'metadata', 'uid') === uid);
      if (isKnown) continue;
      const name = stringAt(reference, 'name');
      const path = `${ROOT}/namespaces/${work.owner.namespace}/jobs/${name}`;
      const answer = await this.#client.request({ method: 'GET', path });
      if (!answer.ok && answer.code !== 404) return false;
      if (answer.ok) continue;
      this.#tell(work.owner, 'Normal', 'MissingJob', `Active job went missing: ${name}`);
      dropActive(work, uid);
    }
    return true;
  }

  /** Jobs that run and are not in the status; it may be only our view of it that is old. */
  async #tellForgotten({ owner }: Work, jobs: readonly JsonObject[]): Promise<boolean> {
    const path = `${ROOT}/namespaces/${owner.namespace}/cronjobs/${owner.name}`;
    const answer = await this.#client.request({ method: 'GET', path });
    if (!answer.ok) return answer.code === 404;
    const active = listAt(answer.object, 'status', 'active').map((one) => stringAt(one, 'uid'));
    for (const job of jobs) {
      if (active.includes(stringAt(job, 'metadata', 'uid'))) continue;
      const name = stringAt(job, 'metadata', 'name');
      const text = `Saw a job that the controller did not create or forgot: ${name}`;
      this.#tell(owner, 'Warning', 'UnexpectedJob', text);
    }
    return true;
  }

  /** False for a Job that runs and is not in the status. */
  #followJob(work: Work, job: JsonObject): boolean {
    const uid = stringAt(job, 'metadata', 'uid');
    const name = stringAt(job, 'metadata', 'name');
    const isActive = work.active.some((one) => stringAt(one, 'uid') === uid);
    const end = endOf(job);
    if (!isActive && end === undefined) return false;
    if (isActive && end !== undefined) {
      dropActive(work, uid);
      const text = `Saw completed job: ${name}, condition: ${end}`;
      this.#tell(work.owner, 'Normal', 'SawCompletedJob', text);
    }
    const completed = timeMs(job, 'status', 'completionTime');
    if (end !== 'Complete' || completed === undefined) return true;
    const last = timeMs({ status: work.status }, 'status', 'lastSuccessfulTime') ?? -Infinity;
    if (completed > last) work.status['lastSuccessfulTime'] = formatTime(completed / 1000);
    return true;
  }

  /** Starts the run that is due, if any; tells when to look again. */
  async #run(work: Work): Promise<WorkResult> {
    const { cronJob, owner } = work;
    if (stringAt(cronJob, 'metadata', 'deletionTimestamp') !== '') return 'done';
    const zone = stringAt(cronJob, 'spec', 'timeZone');
    if (zone !== '' && !isTimeZone(zone)) {
      const text = `invalid timeZone: ${JSON.stringify(zone)}: unknown time zone ${zone}`;
      this.#tell(owner, 'Warning', 'UnknownTimeZone', text);
      return 'done';
    }
    if (valueAt(cronJob, 'spec', 'suspend') === true) return 'done';
    const text = stringAt(cronJob, 'spec', 'schedule');
    const parsed = parseSchedule(text, zone);
    if (!parsed.ok) {
      const message = `unparseable schedule: ${JSON.stringify(text)} : ${parsed.message}`;
      this.#tell(owner, 'Warning', 'UnparseableSchedule', message);
      return 'done';
    }
    const nowMs = this.#client.timers.wallMs();
    const due = dueRun(cronJob, parsed.schedule, nowMs);
    if (due.isNever === true) {
      const why = 'time difference between two schedules is less than 1 second';
      this.#tell(owner, 'Warning', 'InvalidSchedule', `invalid schedule: ${text} : ${why}`);
      return 'done';
    }
    if (due.missesMany && due.atMs !== undefined) {
      const advice = 'Set or decrease .spec.startingDeadlineSeconds or check clock skew';
      const message = `too many missed start times. ${advice}`;
      this.#tell(owner, 'Warning', 'TooManyMissedTimes', message);
    }
    const isStarted = due.atMs === undefined || (await this.#startRun(work, due.atMs, nowMs));
    return isStarted ? this.#nextLook(work, parsed.schedule) : 'retry';
  }

  #nextLook(work: Work, schedule: Schedule): WorkResult {
    const lastMs = lastRunMs(work) ?? 0;
    if (schedule.next(Math.max(this.#client.timers.wallMs(), lastMs)) === Infinity) return 'done';
    return { againMs: this.#waitMs(schedule, lastMs) };
  }

  /** False where it must be tried again. */
  async #startRun(work: Work, atMs: number, nowMs: number): Promise<boolean> {
    const { cronJob, owner } = work;
    if (isTooLate(cronJob, atMs, nowMs)) {
      const time = new Date(atMs).toUTCString().replace('GMT', '+0000');
      const text = `Missed scheduled time to start a job: ${time}`;
      this.#tell(owner, 'Warning', 'MissSchedule', text);
      return true;
    }
    const name = jobName(cronJob, atMs);
    const isMade = work.active.some((one) => stringAt(one, 'name') === name);
    if (isMade || lastRunMs(work) === atMs) return true;
    const policy = stringAt(cronJob, 'spec', 'concurrencyPolicy');
    if (policy === 'Forbid' && work.active.length > 0) {
      const why = 'prior execution is running and concurrency policy is Forbid';
      this.#tell(owner, 'Normal', 'JobAlreadyActive', `Not starting job because ${why}`);
      return true;
    }
    if (policy === 'Replace') {
      for (const reference of [...work.active]) {
        if (!(await this.#delete(work, stringAt(reference, 'name')))) return false;
        dropActive(work, stringAt(reference, 'uid'));
      }
    }
    return this.#create(work, atMs);
  }

  async #create(work: Work, atMs: number): Promise<boolean> {
    const { owner, cronJob } = work;
    const path = `${ROOT}/namespaces/${owner.namespace}/jobs`;
    const body = jobOf(cronJob, owner, atMs);
    let answer = await this.#client.request({ method: 'POST', path, body });
    const name = jobName(cronJob, atMs);
    if (answer.ok) {
      this.#skew.record(Math.max(0, this.#client.timers.wallMs() - atMs) / 1000);
      this.#tell(owner, 'Normal', 'SuccessfulCreate', `Created job ${name}`);
    } else if (answer.code === 409) {
      // Made before, by a try whose answer was lost; or it is somebody else's.
      answer = await this.#client.request({ method: 'GET', path: `${path}/${name}` });
      if (!answer.ok || controllerUid(answer.object) !== owner.uid) return false;
    } else {
      if (isNamespaceEnding(answer.status)) return true;
      const { text } = failureOf(answer);
      this.#tell(owner, 'Warning', 'FailedCreate', `Error creating job: ${text}`);
      return false;
    }
    const job = answer.object;
    // One that was made before and has ended is told of as completed at the next look.
    work.active.push(referenceTo(job));
    work.status['lastScheduleTime'] = formatTime(atMs / 1000);
    return true;
  }

  /** Deletes finished Jobs beyond the limits. */
  async #tidy(work: Work): Promise<boolean> {
    for (const job of surplusJobs(work.cronJob, work.jobs)) {
      if (stringAt(job, 'metadata', 'deletionTimestamp') !== '') continue;
      if (!(await this.#delete(work, stringAt(job, 'metadata', 'name')))) return false;
      dropActive(work, stringAt(job, 'metadata', 'uid'));
    }
    return true;
  }

  async #delete({ owner }: Work, name: string): Promise<boolean> {
    const path = `${ROOT}/namespaces/${owner.namespace}/jobs/${name}`;
    const body = { propagationPolicy: 'Background' };
    const answer = await this.#client.request({ method: 'DELETE', path, body });
    if (answer.ok) this.#tell(owner, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`);
    else if (answer.code !== 404) {
      const { text } = failureOf(answer);
      this.#tell(owner, 'Warning', 'FailedDelete', `Deleted job: ${text}`);
      return false;
    }
    return true;
  }

  async #write(work: Work): Promise<boolean> {
    const { key, cronJob, owner } = work;
    const status: JsonObject = { ...work.status };
    if (work.active.length > 0) status['active'] = work.active;
    else delete status['active'];
    if (equals(status, objectAt(cronJob, 'status') ?? {})) return true;
    const path = `${ROOT}/namespaces/${owner.namespace}/cronjobs/${owner.name}/status`;
    const body = { ...cronJob, apiVersion: 'batch/v1', kind: 'CronJob', status };
    const answer = await this.#client.request({ method: 'PUT', path, body });
    if (answer.ok) {
      const revision = revisionOf(answer.object);
      this.#written.expectRevision(key, revision, this.#client.timers.wallMs());
    }
    return answer.ok || answer.code === 404;
  }

  #tell(owner: PodOwner, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { kind, namespace, name, uid } = owner;
    this.#options.announce(kind, namespace, name, type, reason, message, uid);
  }
}

function timingOf(cronJob: JsonObject): readonly [schedule: string, timeZone: string] {
  return [stringAt(cronJob, 'spec', 'schedule'), stringAt(cronJob, 'spec', 'timeZone')];
}

function lastRunMs({ status }: Work): number | undefined {
  return timeMs({ status }, 'status', 'lastScheduleTime');
}

function dropActive(work: Work, uid: string): void {
  work.active = work.active.filter((one) => stringAt(one, 'uid') !== uid);
}

function referenceTo(job: JsonObject): JsonObject {
  const metadata = objectAt(job, 'metadata');
  return {
    kind: 'Job',
    namespace: stringAt(metadata, 'namespace'),
    name: stringAt(metadata, 'name'),
    uid: stringAt(metadata, 'uid'),
    apiVersion: 'batch/v1',
    resourceVersion: stringAt(metadata, 'resourceVersion'),
  };
}

/** What the job controller tells of its work, under upstream's names. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { findCondition } from '../framework/conditions.ts';
import { parseIndexes } from '../columns/index-set.ts';
import type { JobPlan } from './job.ts';
import type { MetricsRegistry } from '../framework/metrics-registry.ts';

const SUBSYSTEM = 'job_controller';
const MODE = 'completion_mode';

export class JobMetrics {
  readonly #seconds;
  readonly #syncs;
  readonly #finished;
  readonly #pods;
  readonly #indexes;
  readonly #verdicts;
  readonly #created;
  readonly #foreign;
  readonly #tracked;

  constructor(board: MetricsRegistry) {
    const counter = (name: string, help: string, labels: readonly string[]) =>
      board.counter(`${SUBSYSTEM}_${name}`, help, labels);
    const of = [MODE, 'result', 'action'];
    const edges = exponential(0.004, 15);
    const name = `${SUBSYSTEM}_job_sync_duration_seconds`;
    this.#seconds = board.histogram(name, 'The time it took to sync a job', edges, of);
    this.#syncs = counter('job_syncs_total', 'The number of job syncs', of);
    const over = [MODE, 'result', 'reason'];
    this.#finished = counter('jobs_finished_total', 'The number of finished jobs', over);
    const ended = 'The number of finished Pods that are fully tracked';
    this.#pods = counter('job_pods_finished_total', ended, [MODE, 'result']);
    const indexes = 'The number of finished indexes';
    this.#indexes = counter('job_finished_indexes_total', indexes, ['status', 'backoffLimit']);
    const judged = 'The number of failed Pods handled by failure policy, by its action';
    this.#verdicts = counter('pod_failures_handled_by_failure_policy_total', judged, ['action']);
    const made = 'The number of Pods created by the Job controller, by reason and outcome';
    this.#created = counter('job_pods_creation_total', made, ['reason', 'status']);
    const foreign = 'The number of Jobs managed by an external controller';
    this.#foreign = counter('jobs_by_external_controller_total', foreign, ['controller_name']);
    const held = 'The number of terminated pods that have the finalizer of tracking';
    this.#tracked = counter('terminated_pods_tracking_finalizer_total', held, ['event']);
  }

  synced(job: JsonObject, isWell: boolean, plan: JobPlan | undefined, seconds: number): void {
    const labels = [modeOf(job), isWell ? 'success' : 'error', actionOf(plan)];
    this.#syncs.add(labels);
    this.#seconds.record(seconds, labels);
  }

  /** A status was written over another. */
  wrote(job: JsonObject, plan: JobPlan): void {
    const mode = modeOf(job);
    const before = valueAt(job, 'status');
    const { status } = plan;
    const grown = (field: string): number =>
      Math.max(0, numberAt(status, field) - numberAt(before ?? null, field));
    this.#pods.add([mode, 'succeeded'], grown('succeeded'));
    this.#pods.add([mode, 'failed'], grown('failed'));
    for (const { action, message } of plan.verdicts)
      if (message !== '') this.#verdicts.add([action]);
    if (mode === 'Indexed') this.#countIndexes(job, status);
    for (const type of ['Complete', 'Failed']) {
      const known = findCondition(listAt(job, 'status', 'conditions'), type);
      const made = findCondition(listAt(status, 'conditions'), type);
      if (known !== undefined || made === undefined) continue;
      const result = type === 'Complete' ? 'succeeded' : 'failed';
      this.#finished.add([mode, result, stringAt(made, 'reason')]);
    }
  }

  #countIndexes(job: JsonObject, status: JsonObject): void {
    const end = numberAt(job, 'spec', 'completions');
    const isPerIndex = valueAt(job, 'spec', 'backoffLimitPerIndex') !== undefined;
    const limit = isPerIndex ? 'perIndex' : 'global';
    for (const [result, field] of [
      ['succeeded', 'completedIndexes'],
      ['failed', 'failedIndexes'],
    ] as const) {
      const size = (text: string): number => parseIndexes(text, end).size;
      const more = size(stringAt(status, field)) - size(stringAt(job, 'status', field));
      if (more > 0 || result === 'succeeded') this.#indexes.add([result, limit], Math.max(0, more));
    }
  }

  created(job: JsonObject, plan: JobPlan, succeeded: number, failed: number): void {
    const isPatient = stringAt(job, 'spec', 'podReplacementPolicy') === 'Failed';
    const hasFailed = numberAt(plan.status, 'failed') > 0;
    const isAgain = hasFailed || numberAt(plan.status, 'terminating') > 0;
    const again = isAgain ? 'recreate_terminating_or_failed' : 'new';
    const reason = isPatient && hasFailed ? 'recreate_failed' : again;
    if (succeeded > 0) this.#created.add([reason, 'succeeded'], succeeded);
    if (failed > 0) this.#created.add([reason, 'failed'], failed);
  }

  /** A Job came that another controller takes care of. */
  foreign(manager: string): void {
    this.#foreign.add([manager]);
  }

  /** A pod that has ended has come to be held by the finalizer, or is no more. */
  held(isHeld: boolean): void {
    this.#tracked.add([isHeld ? 'add' : 'delete']);
  }
}

function modeOf(job: JsonObject): string {
  return stringAt(job, 'spec', 'completionMode') || 'NonIndexed';
}

function actionOf(plan: JobPlan | undefined): string {
  if (plan === undefined) return 'reconciling';
  if (plan.drop.length > 0) return 'pods_deleted';
  return plan.create.length > 0 ? 'pods_created' : 'tracking';
}

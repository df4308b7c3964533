/** Deletes Jobs when they have been finished for `spec.ttlSecondsAfterFinished`. */
import { exponential } from '@megaplane/client/bucket-histogram';
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import type { ControllerContext } from '../framework/controller-context.ts';
import { isFinished } from './job.ts';
import type { Histogram } from '../framework/metrics-registry.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const WORKERS = 5;

export class TtlController {
  readonly #client: Client;
  readonly #workers: Workers<string>;
  readonly #jobs: ObjectCache;
  readonly #seconds: Histogram;

  constructor({ client, informers, onError, workers }: ControllerContext) {
    this.#client = client;
    this.#seconds = informers.metrics.histogram(
      'ttl_after_finished_controller_job_deletion_duration_seconds',
      'The time it took to delete the job since it became eligible for deletion',
      exponential(0.1, 14),
    );
    this.#workers = new Workers(
      client.timers,
      workers ?? WORKERS,
      (key) => this.#work(key),
      onError,
      informers.queues.queue('ttl_jobs_to_delete'),
    );
    this.#jobs = new ObjectCache(informers, '/apis/batch/v1/jobs', (key, after) => {
      if (after !== undefined && expiresMs(after) < Infinity) this.#workers.add(key);
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  async #work(key: string): Promise<WorkResult> {
    await Promise.resolve();
    const job = this.#jobs.get(key);
    if (job === undefined) return 'done';
    const waitMs = expiresMs(job) - this.#client.timers.wallMs();
    if (waitMs > 0) return waitMs === Infinity ? 'done' : { againMs: waitMs };
    const [namespace = '', name = ''] = key.split('/');
    const path = `/apis/batch/v1/namespaces/${namespace}/jobs/${name}`;
    // The server may know better than the informer: the time to live can have been raised.
    const fresh = await this.#client.request({ method: 'GET', path });
    if (!fresh.ok) return fresh.code === 404 ? 'done' : 'retry';
    if (expiresMs(fresh.object) > this.#client.timers.wallMs()) return 'retry';
    const preconditions = { uid: stringAt(fresh.object, 'metadata', 'uid') };
    const body = { propagationPolicy: 'Foreground', preconditions };
    const answer = await this.#client.request({ method: 'DELETE', path, body });
    if (answer.ok) this.#seconds.record(Math.max(0, -waitMs) / 1000);
    return answer.ok || answer.code === 404 || answer.code === 409 ? 'done' : 'retry';
  }
}

/** When a Job is to be deleted, milliseconds since 1970; Infinity for never. */
function expiresMs(job: JsonObject): number {
  const seconds = valueAt(job, 'spec', 'ttlSecondsAfterFinished');
  const isDeleting = stringAt(job, 'metadata', 'deletionTimestamp') !== '';
  if (typeof seconds !== 'number' || isDeleting || !isFinished(job)) return Infinity;
  const over = listAt(job, 'status', 'conditions').find(
    (one) =>
      ['Complete', 'Failed'].includes(stringAt(one, 'type')) && stringAt(one, 'status') === 'True',
  );
  const since = parseTime(stringAt(over, 'lastTransitionTime'));
  return since === undefined ? Infinity : (since.seconds + seconds) * 1000;
}

/**
 * Pods that were told they would be disrupted, and then were not: after two minutes without a
 * deletion the condition is taken back (syncStalePodDisruption of upstream's disruption.go).
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import type { ObjectScan } from '@megaplane/machinery/object-scan';
import { parseTime } from '@megaplane/machinery/times';
import { findCondition } from '../framework/conditions.ts';
import { livePod } from '../framework/uncached-pod.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { PodRows } from '../framework/pod-rows.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';

const STALE_MS = 120_000;
const WORKERS = 1;
const MARK = Buffer.from('"DisruptionTarget"');
const CONDITION = 'DisruptionTarget';

export interface StaleDisruptionsOptions extends ControllerContext {
  readonly pods: PodRows;
  readonly now: () => string;
}

export class StaleDisruptions {
  readonly #client: Client;
  readonly #pods: PodRows;
  readonly #now: () => string;
  readonly #workers: Workers<string>;

  constructor({ client, informers, pods, now, onError }: StaleDisruptionsOptions) {
    this.#client = client;
    this.#pods = pods;
    this.#now = now;
    const queue = informers.queues.queue('stale_pod_disruption');
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError, queue);
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  /** A pod is there or was changed. */
  seen(row: number, bytes: Buffer, scan: ObjectScan): void {
    const { statusStart, statusEnd, deletionTimestampStart } = scan;
    if (statusStart < 0 || deletionTimestampStart >= 0) return;
    if (!bytes.subarray(statusStart, statusEnd).includes(MARK)) return;
    this.#workers.add(this.#pods.informer.keyOf(row));
  }

  async #work(key: string): Promise<WorkResult> {
    const pod = await livePod(this.#client, key);
    if (typeof pod === 'string') return pod;
    const atMs = staleMs(pod);
    if (atMs === Infinity) return 'done';
    const waitMs = atMs - this.#client.timers.wallMs();
    if (waitMs > 0) return { againMs: waitMs };
    const [namespace = '', name = ''] = key.split('/');
    const generation = numberAt(pod, 'metadata', 'generation');
    const condition: JsonObject = {
      ...{ type: CONDITION, status: 'False', lastTransitionTime: this.#now() },
      ...{ lastProbeTime: null, reason: null, message: null },
      ...(generation === 0 ? {} : { observedGeneration: generation }),
    };
    const uid = stringAt(pod, 'metadata', 'uid');
    const resourceVersion = stringAt(pod, 'metadata', 'resourceVersion');
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      contentType: CONTENT.strategicPatch,
      body: { metadata: { uid, resourceVersion }, status: { conditions: [condition] } },
    });
    return answer.ok || answer.code === 404 ? 'done' : 'retry';
  }
}

/** When the condition of a pod is stale, milliseconds since 1970; Infinity for never. */
function staleMs(pod: JsonObject): number {
  const condition = findCondition(listAt(pod, 'status', 'conditions'), CONDITION);
  const phase = stringAt(pod, 'status', 'phase');
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (stringAt(condition, 'status') !== 'True' || isOver) return Infinity;
  // What a kubelet announces may take it any time.
  if (stringAt(condition, 'reason') === 'TerminationByKubelet') return Infinity;
  const since = parseTime(stringAt(condition, 'lastTransitionTime'));
  return since === undefined ? 0 : since.seconds * 1000 + STALE_MS;
}

/** Deletions of pods that the machines decide, with what has to be written before. */
import { CONTENT, type Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import type { Announce } from '../framework/event-recorder.ts';
import { conditionsPatch, findCondition } from '../framework/conditions.ts';
import { ConcurrencyLimiter } from '../columns/concurrency-limiter.ts';
import type { CollectedPod } from './metrics.ts';

const DISRUPTED = 'DisruptionTarget';
const LANES = 64;
const TRIES_MAX = 5;

export interface PodWriterOptions {
  readonly client: Client;
  readonly announce: Announce;
  readonly now: () => string;
  readonly onError: (error: unknown) => void;
  /** Garbage collection of a pod has ended. */
  readonly collected?: (namespace: string, why: CollectedPod, isWell: boolean) => void;
}

/** Keys are `namespace/name`. */
export class PodWriter {
  readonly #options: PodWriterOptions;
  readonly #lanes: ConcurrencyLimiter;
  /** Pods with a deletion under way. */
  readonly #busy: Set<string> = new Set();

  constructor(options: PodWriterOptions) {
    this.#options = options;
    this.#lanes = new ConcurrencyLimiter(LANES, options.onError);
  }

  /** Taint eviction: the pod is told why, then deleted with its own grace. */
  evict(key: string, onFailed: () => void): void {
    this.#once(key, async (namespace, name, path) => {
      this.announceEviction(key, `Marking for deletion Pod ${namespace}/${name}`);
      const condition = {
        reason: 'DeletionByTaintManager',
        message: 'Taint manager: deleting due to NoExecute taint',
      };
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const pod = await this.#options.client.request({ method: 'GET', path });
        if (!pod.ok && pod.code === 404) return;
        const isMarked = pod.ok && (await this.#mark(path, pod.object, condition, undefined));
        if (isMarked && (await this.#delete(path, {}))) return;
      }
      onFailed();
    });
  }

  announceEviction(key: string, message: string): void {
    const [namespace = '', name = ''] = key.split('/');
    const reason = 'TaintManagerEviction';
    this.#options.announce('Pod', namespace, name, 'Normal', reason, message);
  }

  /** Pod garbage collection: gone at once, as no kubelet will do it. */
  remove(key: string, why: CollectedPod): void {
    this.#once(key, async (namespace, _name, path) => {
      const answer = await this.#options.client.request({ method: 'GET', path });
      if (!answer.ok) return;
      const phase = stringAt(answer.object, 'status', 'phase');
      const isEnded = phase === 'Succeeded' || phase === 'Failed';
      const condition =
        why === 'orphaned'
          ? { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' }
          : undefined;
      // one that has ended is told nothing more: a Job would count it by that
      if (!isEnded) {
        const isMarked = await this.#mark(path, answer.object, condition, 'Failed');
        if (!isMarked) {
          this.#options.collected?.(namespace, why, false);
          return;
        }
      }
      const uid = stringAt(answer.object, 'metadata', 'uid');
      const body = { gracePeriodSeconds: 0, preconditions: { uid } };
      this.#options.collected?.(namespace, why, await this.#delete(path, body));
    });
  }

  #once(key: string, task: (namespace: string, name: string, path: string) => Promise<void>): void {
    if (this.#busy.has(key)) return;
    this.#busy.add(key);
    const [namespace = '', name = ''] = key.split('/');
    this.#lanes.run(async () => {
      try {
        await task(namespace, name, `/api/v1/namespaces/${namespace}/pods/${name}`);
      } finally {
        this.#busy.delete(key);
      }
    });
  }

  /** True where the pod is marked, or gone. */
  async #mark(
    path: string,
    pod: JsonObject,
    condition: JsonObject | undefined,
    phase: string | undefined,
  ): Promise<boolean> {
    const generation = numberAt(pod, 'metadata', 'generation');
    const observed = generation === 0 ? {} : { observedGeneration: generation };
    let status: JsonObject = phase === undefined ? {} : { phase, ...observed };
    if (condition !== undefined) {
      const before = listAt(pod, 'status', 'conditions');
      const known = findCondition(before, DISRUPTED);
      const isKept = stringAt(known, 'status') === 'True';
      const lastTransitionTime = isKept
        ? stringAt(known, 'lastTransitionTime')
        : this.#options.now();
      const made = { type: DISRUPTED, status: 'True', lastTransitionTime, ...condition };
      status = { ...status, ...conditionsPatch(before, [{ ...made, ...observed }]) };
    }
    const written = await this.#options.client.request({
      method: 'PATCH',
      path: `${path}/status`,
      contentType: CONTENT.strategicPatch,
      // not of another pod that has its name by now
      body: { metadata: { uid: stringAt(pod, 'metadata', 'uid') }, status },
    });
    return written.ok || written.code === 404;
  }

  async #delete(path: string, body: JsonObject): Promise<boolean> {
    const gone = await this.#options.client.request({ method: 'DELETE', path, body });
    return gone.ok || gone.code === 404;
  }
}

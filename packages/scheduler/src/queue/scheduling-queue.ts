/**
 * Pods that want a node: those to be tried now, those whose last try was a moment ago, and those
 * that wait for a change of the cluster. Time is an argument.
 */
import { assert } from '@megaplane/base/assert';
import type { Failure } from '../placement/topology/failure.ts';
import type { ClusterEvent } from './hints/hints.ts';
import type { Identities } from '../cache/identities.ts';
import { PodHeap } from '../collections/pod-heap.ts';
import { PLACE, type PodTable } from '../cache/pod-table.ts';
import { WaitingRoom } from './waiting-room.ts';

export interface QueueLimits {
  /** Pause after the first failed try; doubles with each further one. 0: no pauses. */
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  /** After this long without an event a pod is tried again anyhow. */
  readonly unschedulableMs: number;
}

export const QUEUE_LIMITS: QueueLimits = {
  initialBackoffMs: 1000,
  maxBackoffMs: 10_000,
  unschedulableMs: 300_000,
};

/** Pauses end on whole seconds, so that pods of one second are ordered by priority. */
const WINDOW_MS = 1000;
const ATTEMPTS_MAX = 255;

export interface QueueCounts {
  active: number;
  backoff: number;
  unschedulable: number;
  gated: number;
}

const QUEUE_OF: Readonly<Record<number, keyof QueueCounts>> = {
  [PLACE.active]: 'active',
  [PLACE.backoff]: 'backoff',
  [PLACE.errorBackoff]: 'backoff',
  [PLACE.unschedulable]: 'unschedulable',
  [PLACE.gated]: 'gated',
};

export class SchedulingQueue {
  readonly counts: QueueCounts = { active: 0, backoff: 0, unschedulable: 0, gated: 0 };
  /** Pods that came into a queue, by event. */
  readonly incoming: Map<string, QueueCounts> = new Map();
  readonly waiting: WaitingRoom;
  /** Counts what may have woken pods. */
  changes = 0;
  /** Pods that are tried once more only because they waited so long. */
  readonly flushed: Set<number> = new Set();
  readonly #pods: PodTable;
  readonly #identities: Identities;
  readonly #limits: QueueLimits;
  readonly #active = new PodHeap();
  readonly #backoff = new PodHeap();
  readonly #errors = new PodHeap();

  constructor(pods: PodTable, identities: Identities, limits: QueueLimits) {
    this.#pods = pods;
    this.#identities = identities;
    this.#limits = limits;
    this.waiting = new WaitingRoom(pods);
  }

  /** A new pod, or one whose gates are gone. */
  add(id: number, event: string, nowMs: number): void {
    const pods = this.#pods;
    this.flushed.delete(id);
    pods.sinceMs.set(id, nowMs);
    if (pods.firstMs.get(id) === 0) pods.firstMs.set(id, nowMs);
    this.#activate(id, event);
  }

  addGated(id: number): void {
    this.#move(id, PLACE.gated, 'UnschedulablePodAdd');
  }

  /** Takes a pod out of whatever queue it is in. */
  remove(id: number): void {
    this.flushed.delete(id);
    this.#move(id, PLACE.none, '');
  }

  /** The pod to try next, out of all queues; -1 when there is none. */
  pop(): number {
    const active = this.#pop(this.#active, PLACE.active);
    if (active >= 0) return active;
    // With nothing else to do there is no point in waiting; but errors get their rest.
    const resting = this.#pop(this.#backoff, PLACE.backoff);
    if (resting >= 0) this.#incomingBy('PopFromBackoffQ').active++;
    return resting;
  }

  /** Takes those of some pods out that wait or are to be tried, gated ones excepted. */
  takeAll(ids: Iterable<number>): number[] {
    const taken: number[] = [];
    for (const id of ids) {
      const queue = QUEUE_OF[this.#pods.place.get(id)];
      if (queue === undefined || queue === 'gated') continue;
      this.remove(id);
      taken.push(id);
    }
    return taken;
  }

  /** A try found no node. */
  reject(id: number, failure: Failure, nowMs: number): void {
    const { isIndexed, rejecters, message } = failure;
    this.flushed.delete(id);
    const pods = this.#pods;
    pods.rejections.set(id, Math.min(ATTEMPTS_MAX, pods.rejections.get(id) + 1));
    pods.errors.set(id, 0);
    pods.sinceMs.set(id, nowMs);
    const podClass = pods.podClass.get(id);
    const wasAwake = this.waiting.isAwake(podClass);
    assert(!this.#isQueued(id), 'a pod that was tried is in no queue');
    this.#move(id, PLACE.unschedulable, 'ScheduleAttemptFailure');
    if (!isIndexed) {
      this.waiting.addOther(id, rejecters, failure.isOfNodes === true);
      // What stopped this one says nothing about the next of its class.
      if (wasAwake) this.follow(podClass, nowMs);
      return;
    }
    const isNews = wasAwake && this.waiting.isNews(podClass, message);
    this.waiting.addIndexed(podClass, id, pods.stamp.get(id), failure);
    if (isNews) this.follow(podClass, nowMs);
  }

  /** A try failed for reasons that are not the cluster's: wait, then try again. */
  fail(id: number, nowMs: number): void {
    const pods = this.#pods;
    this.flushed.delete(id);
    pods.errors.set(id, Math.min(ATTEMPTS_MAX, pods.errors.get(id) + 1));
    pods.sinceMs.set(id, nowMs);
    assert(!this.#isQueued(id), 'a pod that was tried is in no queue');
    this.#move(id, PLACE.errorBackoff, 'ScheduleAttemptFailure');
    this.#errors.push(id, pods.stamp.get(id), this.#readyMs(id), 0, 0);
    const podClass = pods.podClass.get(id);
    if (this.waiting.isAwake(podClass)) this.follow(podClass, nowMs);
  }

  /** A pod of the class found a node: perhaps there is one more. */
  follow(podClass: number, nowMs: number): void {
    const next = this.waiting.wakeNext(podClass);
    if (next >= 0) this.#wake(next, 'AssignedPodAdd', nowMs);
  }

  /** One of each waiting class that something helps: `helps` is asked with who rejected it. */
  wakeClasses(
    helps: (podClass: number, rejecters: ReadonlySet<string>) => boolean,
    event: string,
    nowMs: number,
  ): void {
    if (this.waiting.classCount === 0) return;
    for (const [podClass, rejecters] of this.waiting.classes()) {
      if (this.waiting.isAwake(podClass) || !helps(podClass, rejecters)) continue;
      const id = this.waiting.wakeNext(podClass);
      if (id >= 0) this.#wake(id, event, nowMs);
    }
  }

  /** Something happened: `helps` says whether with what a plugin had against a waiting pod. */
  wakeOthers(
    event: ClusterEvent,
    helps: (id: number, plugin: string) => boolean,
    label: string,
    nowMs: number,
  ): void {
    this.changes++;
    for (const id of this.waiting.wakeOthers(event, helps)) this.#wake(id, label, nowMs);
  }

  /** A waiting pod has itself changed. */
  wake(id: number, event: string, nowMs: number): void {
    if (this.#pods.place.get(id) === PLACE.unschedulable) this.#wake(id, event, nowMs);
  }

  /** Ends pauses that are over. */
  tick(nowMs: number): void {
    this.#flush(this.#backoff, PLACE.backoff, nowMs);
    this.#flush(this.#errors, PLACE.errorBackoff, nowMs);
  }

  /** Tries again what has waited too long for an event. */
  flushUnschedulable(nowMs: number): void {
    for (const id of this.waiting.takeOlder(nowMs - this.#limits.unschedulableMs)) {
      this.flushed.add(id);
      this.#wake(id, 'UnschedulableTimeout', nowMs);
    }
  }

  #wake(id: number, event: string, nowMs: number): void {
    const pods = this.#pods;
    const readyMs = this.#readyMs(id);
    if (readyMs <= nowMs) return this.#activate(id, event);
    this.#move(id, PLACE.backoff, event);
    const { priority } = this.#identities.classes.get(pods.podClass.get(id));
    this.#backoff.push(id, pods.stamp.get(id), readyMs, -priority, pods.sinceMs.get(id));
  }

  #activate(id: number, event: string): void {
    const pods = this.#pods;
    this.#move(id, PLACE.active, event);
    const { priority } = this.#identities.classes.get(pods.podClass.get(id));
    this.#active.push(id, pods.stamp.get(id), -priority, pods.sinceMs.get(id), 0);
  }

  #pop(heap: PodHeap, place: number): number {
    const pods = this.#pods;
    while (heap.size > 0) {
      const id = heap.topId;
      const isCurrent = pods.place.get(id) === place && pods.stamp.get(id) === heap.topStamp;
      heap.pop();
      if (!isCurrent) continue;
      assert(this.counts.active + this.counts.backoff > 0, 'a pod to try was counted');
      this.#move(id, PLACE.none, '');
      return id;
    }
    return -1;
  }

  #flush(heap: PodHeap, place: number, nowMs: number): void {
    const pods = this.#pods;
    while (heap.size > 0 && heap.topFirst <= nowMs) {
      const id = heap.topId;
      const isCurrent = pods.place.get(id) === place && pods.stamp.get(id) === heap.topStamp;
      heap.pop();
      if (isCurrent) this.#activate(id, 'BackoffComplete');
    }
  }

  #isQueued(id: number): boolean {
    return QUEUE_OF[this.#pods.place.get(id)] !== undefined;
  }

  /** When the pause after the last try is over. */
  #readyMs(id: number): number {
    const pods = this.#pods;
    const errors = pods.errors.get(id);
    const count = errors > 0 ? errors : pods.rejections.get(id);
    const { initialBackoffMs, maxBackoffMs } = this.#limits;
    if (count === 0 || initialBackoffMs === 0) return 0;
    const pauseMs = Math.min(maxBackoffMs, initialBackoffMs * 2 ** (count - 1));
    const endMs = pods.sinceMs.get(id) + pauseMs;
    return Math.floor(endMs / WINDOW_MS) * WINDOW_MS + WINDOW_MS;
  }

  /** Every change of place makes entries that heaps and lists hold of the pod void. */
  #move(id: number, place: number, event: string): void {
    const pods = this.#pods;
    // Whoever is held back again, or gone, is not to be woken: its row may be another's by then.
    if (pods.place.get(id) === PLACE.unschedulable) this.waiting.removeOther(id);
    const before = QUEUE_OF[pods.place.get(id)];
    const after = QUEUE_OF[place];
    if (before !== undefined) this.counts[before]--;
    const isCounted = before === undefined || this.counts[before] >= 0;
    assert(isCounted, 'a pod leaves the queue that counted it');
    if (after !== undefined) {
      this.counts[after]++;
      // Upstream keeps pods with gates among those that wait, and counts them as such.
      this.#incomingBy(event)[after === 'gated' ? 'unschedulable' : after]++;
    }
    pods.place.set(id, place);
    pods.stamp.add(id, 1);
  }

  #incomingBy(event: string): QueueCounts {
    let counts = this.incoming.get(event);
    if (counts === undefined) {
      counts = { active: 0, backoff: 0, unschedulable: 0, gated: 0 };
      this.incoming.set(event, counts);
    }
    return counts;
  }
}

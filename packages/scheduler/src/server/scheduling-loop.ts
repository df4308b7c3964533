/**
 * Tries pods one after another, as long as there are any and bindings can be sent, in slices that
 * leave the process time to read what the API server says.
 */
import type { Clock } from '@megaplane/base/clock';
import type { ApiWriter } from '../binding/api-writer.ts';
import type { PreBinder } from '../binding/pre-binder.ts';
import type { Question } from '../extenders/extender.ts';
import type { Attempt } from '../queue/attempt.ts';
import type { SchedulerCore } from '../core/scheduler-core.ts';
import type { SchedulerMetrics } from '../metrics/text/scheduler-metrics.ts';
import type { Answer } from '../extenders/extender-answer.ts';

export interface SchedulingLoopOptions {
  readonly core: SchedulerCore;
  readonly writer: ApiWriter;
  readonly preBinder: PreBinder;
  readonly metrics: SchedulerMetrics;
  readonly clock: Clock;
  /** False where another may lead by now, as after the process was stopped for a while. */
  mayDecide(): boolean;
  /** Asks extenders, or for a pod; resolves with an answer for each call. */
  ask(question: Question): Promise<readonly Answer[]>;
  /** A decision was not that of full evaluation. */
  onMismatch(text: string): void;
  /** Runs something soon, after what is to be read has been read. */
  defer(run: () => void): void;
}

/** Longest time without a look at the sockets. */
const SLICE_MS = 5;

export class SchedulingLoop {
  readonly #options: SchedulingLoopOptions;
  #isSynced = false;
  #isLeading = false;
  #isDeferred = false;
  #isAsking = false;
  /** Looks again whether the process leads, where answers wait for that. */
  #lookAgain: (() => void) | null = null;
  /** Decisions by full evaluation so far. */
  #evaluated = 0;

  constructor(options: SchedulingLoopOptions) {
    this.#options = options;
  }

  /** Everything that the API server holds is known: decisions can be made. */
  setSynced(): void {
    this.#isSynced = true;
    this.wake();
  }

  setLeading(isLeading: boolean): void {
    this.#isLeading = isLeading;
    this.wake();
  }

  /** There may be pods to try. */
  wake(): void {
    this.#lookAgain?.();
    if (this.#isDeferred || this.#isAsking || !this.#isSynced || !this.#isLeading) return;
    this.#isDeferred = true;
    this.#options.defer(this.#slice);
  }

  #reportMismatch(): void {
    const { placement } = this.#options.core;
    this.#options.onMismatch(placement.mismatch);
    placement.mismatch = '';
  }

  readonly #slice = (): void => {
    this.#isDeferred = false;
    const { core, writer, clock } = this.#options;
    if (!this.#isLeading || this.#isAsking || !this.#options.mayDecide()) return;
    const nowMs = clock.nowMs();
    const endMs = clock.monotonicMs() + SLICE_MS;
    while (writer.hasRoom) {
      const startedMs = clock.monotonicMs();
      if (startedMs > endMs) return this.wake();
      const attempt = core.attempt(nowMs);
      if (core.question !== null) return void this.#ask(core.question, startedMs);
      if (attempt === null) return;
      if (core.placement.mismatch !== '') this.#reportMismatch();
      this.#take(attempt, startedMs);
    }
  };

  /** Nothing else is decided until all questions of this decision are answered. */
  async #ask(first: Question, startedMs: number): Promise<void> {
    const { core, clock } = this.#options;
    this.#isAsking = true;
    let attempt: Attempt | null = null;
    for (let question: Question | null = first; question !== null; question = core.question) {
      attempt = core.answer(await this.#answers(question), clock.nowMs());
    }
    this.#isAsking = false;
    if (attempt !== null) this.#take(attempt, startedMs);
    this.wake();
  }

  /** Who slept past its lease while it asked goes on once it leads again, if it ever does. */
  async #answers(question: Question): Promise<readonly Answer[]> {
    const answers = await this.#options.ask(question);
    while (!this.#isLeading || !this.#options.mayDecide()) {
      await new Promise<void>((resolve) => (this.#lookAgain = resolve));
    }
    this.#lookAgain = null;
    return answers;
  }

  /** No plugin has a say there, which takes no time; upstream counts pods by it all the same. */
  #permitted({ id }: Attempt): void {
    const { core, metrics } = this.#options;
    const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
    metrics.plugins.recordPoint('Permit', 'Success', schedulerName, 0);
  }

  #foundByIndex({ id }: Attempt, seconds: number): void {
    const { core, metrics } = this.#options;
    const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
    metrics.plugins.recordPoint('Filter', 'Success', schedulerName, seconds);
  }

  /** Sets off what follows from a decision. */
  #take(attempt: Attempt, startedMs: number): void {
    const { core, writer, preBinder, metrics, clock } = this.#options;
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
    const { evaluated } = core.placement.metrics;
    // Where an index found the node, filtering and scoring were one step.
    if (evaluated === this.#evaluated) this.#foundByIndex(attempt, seconds);
    this.#evaluated = evaluated;
    preBinder.write(core.takeWrites());
    if (core.groupTry !== null) metrics.work.groupTried(core.groupTry, seconds);
    core.groupTry = null;
    if (attempt.kind === 'bind') {
      metrics.decided(seconds);
      this.#permitted(attempt);
      if (attempt.reservations.length === 0) return writer.bind(attempt.id, startedMs);
      writer.delay(attempt.id, startedMs);
      return preBinder.start(core.pods.tagOf(attempt.id), attempt.reservations);
    }
    const { id, failure, displaced } = attempt;
    const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
    const result = failure.isError ? 'error' : 'unschedulable';
    metrics.attempted(result, schedulerName, seconds);
    if (failure.nomination !== null || failure.message.includes('preemption: ')) {
      metrics.preemptions++;
    }
    writer.report(id, failure, displaced);
    preBinder.write(failure.writes ?? []);
  }
}

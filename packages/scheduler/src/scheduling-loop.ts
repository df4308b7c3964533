/**
 * Tries pods one after another, as long as there are any and bindings can be sent, in slices that
 * leave the process time to read what the API server says.
 */
import type { Clock } from '@megaplane/base/clock';
import type { ApiWriter } from './api-writer.ts';
import type { PreBinder } from './pre-binder.ts';
import type { SchedulerCore } from './scheduler-core.ts';
import type { SchedulerMetrics } from './scheduler-metrics.ts';

export interface SchedulingLoopOptions {
  readonly core: SchedulerCore;
  readonly writer: ApiWriter;
  readonly preBinder: PreBinder;
  readonly metrics: SchedulerMetrics;
  readonly clock: Clock;
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
    if (this.#isDeferred || !this.#isSynced || !this.#isLeading) return;
    this.#isDeferred = true;
    this.#options.defer(this.#slice);
  }

  readonly #slice = (): void => {
    this.#isDeferred = false;
    const { core, writer, preBinder, clock } = this.#options;
    if (!this.#isLeading) return;
    const nowMs = clock.nowMs();
    const endMs = clock.monotonicMs() + SLICE_MS;
    while (writer.hasRoom) {
      const startedMs = clock.monotonicMs();
      if (startedMs > endMs) return this.wake();
      const attempt = core.attempt(nowMs);
      if (attempt === null) return;
      if (attempt.kind === 'bind') {
        this.#options.metrics.decided((clock.monotonicMs() - startedMs) / 1000);
        if (attempt.reservations.length === 0) {
          writer.bind(attempt.id, startedMs);
        } else {
          writer.delay(attempt.id, startedMs);
          preBinder.start(core.tagOf(attempt.id), attempt.reservations);
        }
        continue;
      }
      const { id, failure, displaced } = attempt;
      const { schedulerName } = core.identities.classes.get(core.pods.podClass.get(id));
      const result = failure.isError ? 'error' : 'unschedulable';
      const seconds = (clock.monotonicMs() - startedMs) / 1000;
      this.#options.metrics.attempted(result, schedulerName, seconds);
      writer.report(id, failure, displaced);
      preBinder.write(failure.writes ?? []);
    }
  };
}

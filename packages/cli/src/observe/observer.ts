// shell: looks again and again
/**
 * Looks at a cluster's programs again and again, and keeps what was seen. Looking costs those that
 * are looked at, too: about twice what reading it costs here. So the pause between two looks is as
 * long as it must be for all of them together to spend at most a fiftieth of a core.
 */
import { afterMs, unawaited } from '@megaplane/base/deferred';
import type { Client } from '@megaplane/client/client';
import { History } from '@megaplane/dashboard/history';
import type { Sample, View, ViewData } from '@megaplane/dashboard/protocol';
import { figuresBetween, WANTED_FAMILIES } from './figures.ts';
import type { Look, Source } from './sources.ts';
import { lookAt } from './sources.ts';
import { viewBetween } from './views.ts';

export const LOOK_EVERY_MS = 1000;
/** A fiftieth of a core, for all that a look costs. */
const REST_FACTOR = 50;
/** What a look costs all programs together, by what it costs this one (measured). */
const COST_OF_ALL = 3;
const REST_MS_MAX = 60_000;
/** What one slow answer took says less than what most took. */
const COST_WEIGHT = 0.2;

export interface ObserverOptions {
  readonly client: Client;
  /** Asked before each look: programs come back with other ports and numbers. */
  readonly sources: () => readonly Source[];
  readonly onSample: (sample: Sample) => void;
}

export class Observer {
  readonly history: History = new History();
  readonly #options: ObserverOptions;
  #before: Look | null = null;
  #now: Look | null = null;
  #costMs = 0;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  start(): void {
    unawaited(this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** What a view shows now; undefined until there were two looks. */
  view(view: View): ViewData | undefined {
    if (this.#before === null || this.#now === null) return undefined;
    return viewBetween(view, this.#before, this.#now);
  }

  get #pauseMs(): number {
    return Math.min(REST_MS_MAX, Math.max(LOOK_EVERY_MS, this.#costMs * REST_FACTOR));
  }

  async #look(): Promise<void> {
    const startMs = performance.now();
    const before = process.cpuUsage();
    try {
      const look = await lookAt(this.#options.sources(), this.#options.client, WANTED_FAMILIES);
      const tookMs = costMs(before, startMs);
      // who does not answer costs nothing
      if (look.troubles.length === 0) this.#costMs += (tookMs - this.#costMs) * COST_WEIGHT;
      if (!this.#isStopped) this.#take(look);
    } finally {
      const restMs = Math.max(0, this.#pauseMs - (performance.now() - startMs));
      if (!this.#isStopped) this.#timer = afterMs(restMs, () => unawaited(this.#look()));
    }
  }

  #take(look: Look): void {
    this.#before = this.#now;
    this.#now = look;
    if (this.#before === null) return;
    const figures = figuresBetween(this.#before, look);
    this.history.add(look.timeMs, figures);
    this.#options.onSample({
      timeMs: look.timeMs,
      values: Object.fromEntries(figures),
      troubles: look.troubles,
      everyMs: this.#pauseMs,
    });
  }
}

/**
 * Milliseconds of processor that something has cost all programs together since `before`: never
 * more than the time that has passed, for one core.
 */
export function costMs(before: NodeJS.CpuUsage, startMs: number): number {
  const { user, system } = process.cpuUsage(before);
  return Math.min(((user + system) / 1000) * COST_OF_ALL, performance.now() - startMs);
}

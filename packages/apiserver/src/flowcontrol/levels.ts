/**
 * All priority levels of the server, and how they share its seats: by their nominal shares, and
 * every ten seconds anew by what they could use (borrowing and lending, KEP-1040).
 */
import { allocateSeats } from './seat-allocation.ts';
import { PriorityLevel, type LevelConfig } from './priority-level.ts';

const BORROWING_MS = 10_000;

export class Levels<T> {
  readonly #serverSeats: number;
  readonly #byName = new Map<string, PriorityLevel<T>>();
  #all: readonly PriorityLevel<T>[] = [];
  #configs: readonly LevelConfig[] = [];
  #nextMs: number;
  fairFraction = 0;

  constructor(serverSeats: number, nowMs: number) {
    this.#serverSeats = serverSeats;
    this.#nextMs = nowMs + BORROWING_MS;
  }

  all(): readonly PriorityLevel<T>[] {
    return this.#all;
  }

  /** Nominal seats of all levels. */
  get seats(): number {
    return this.#all.reduce((sum, { nominalSeats }) => sum + nominalSeats, 0);
  }

  /** As many may wait in the queues of all levels. */
  get places(): number {
    return this.#all.reduce((sum, level) => sum + level.places, 0);
  }

  find(name: string): PriorityLevel<T> | undefined {
    return this.#byName.get(name);
  }

  /** These levels from now on; what is left of others drains. */
  configure(configs: readonly LevelConfig[], nowMs: number): void {
    this.#configs = configs;
    const wanted = new Set(configs.map(({ name }) => name));
    for (const level of this.all()) {
      level.isQuiescing = !wanted.has(level.name);
      if (level.isQuiescing && level.isIdle) this.#byName.delete(level.name);
    }
    const draining = [...this.#byName.values()].filter((level) => level.isQuiescing);
    const all = [...configs, ...draining.map(({ config }) => config)];
    const sum = all.reduce((total, { shares }) => total + shares, 0);
    for (const config of all) {
      let level = this.#byName.get(config.name);
      if (level === undefined) {
        level = new PriorityLevel<T>(config, nowMs);
        this.#byName.set(config.name, level);
      }
      level.configure(config, this.#serverSeats, sum);
    }
    this.#all = [...this.#byName.values()];
    this.#share(nowMs);
  }

  /** About once a second. */
  tick(nowMs: number): void {
    // the seats of a level that has drained are the others' again
    const hasDrained = this.all().some(({ isQuiescing, isIdle }) => isQuiescing && isIdle);
    if (hasDrained) this.configure(this.#configs, nowMs);
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + BORROWING_MS;
    this.#share(nowMs);
  }

  #share(nowMs: number): void {
    const levels = this.#all;
    const spare = Math.max(1, Math.round(this.#serverSeats / 10));
    const allot = (level: PriorityLevel<T>, seats: number): void => {
      level.allot(seats, spare, nowMs);
    };
    const total = levels.reduce((sum, { nominalSeats }) => sum + nominalSeats, 0);
    let remaining = total;
    const limited: PriorityLevel<T>[] = [];
    for (const level of levels) {
      level.demand.close(nowMs);
      if (level.config.type === 'exempt') {
        allot(level, Math.max(level.lowerSeats, level.demand.highWatermark));
        level.targetSeats = Math.max(level.seats, level.demand.smoothed);
        remaining -= level.seats;
      } else limited.push(level);
    }
    const claims = limited.map(({ lowerSeats, upperSeats, nominalSeats, demand }) => {
      const lower = Math.max(lowerSeats, Math.min(nominalSeats, demand.highWatermark));
      return { lower, upper: upperSeats, target: Math.max(lower, demand.smoothed) };
    });
    for (const [index, level] of limited.entries()) {
      level.targetSeats = claims[index]?.target ?? 0;
    }
    const lowest = limited.reduce((sum, { lowerSeats }) => sum + lowerSeats, 0);
    const wanted = claims.reduce((sum, { lower }) => sum + lower, 0);
    this.fairFraction = 0;
    if (remaining <= lowest) {
      for (const level of limited) allot(level, level.lowerSeats);
    } else if (remaining <= wanted) {
      const part = (remaining - lowest) / (wanted - lowest);
      for (const [index, level] of limited.entries()) {
        const more = (claims[index]?.lower ?? 0) - level.lowerSeats;
        allot(level, level.lowerSeats + Math.round(more * part));
      }
    } else {
      // as upstream: out of all seats, though exempt requests may use some of them just now
      const allocation = allocateSeats(total, claims);
      this.fairFraction = allocation?.fairFraction ?? 0;
      for (const [index, level] of limited.entries()) {
        allot(level, Math.round(allocation?.seats[index] ?? level.seats));
      }
    }
  }
}

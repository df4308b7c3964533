/**
 * Where events of the audit log go, and what stands between: buffers, bounds of size, several at
 * once. Rules are those of upstream's plugins (apiserver/plugin/pkg/audit).
 */
import { printFamily } from '../metrics/metric-families.ts';
import type { AuditEvent } from './audit-event.ts';

export type Told = (isKept: boolean) => void;

export interface AuditBackend {
  /** Takes events; says once, now or later, whether all of them are kept. */
  take(events: readonly AuditEvent[], told: Told): void;
  /** Lets go of what waits; settles when it is gone or given up. */
  close(): Promise<void>;
}

/** Time, given by the shell. */
export interface AuditTimers {
  nowMs(): number;
  /** Runs `work` once, later. */
  after(ms: number, work: () => void): void;
  /** From 0 to below 1. */
  random(): number;
}

/** Events that got lost, by the plugin that lost them. */
export class AuditFaults {
  readonly #lost = new Map<string, number>();
  readonly #log: (message: string) => void;

  constructor(log: (message: string) => void) {
    this.#log = log;
  }

  report(plugin: string, why: string, events: readonly AuditEvent[]): void {
    this.#lost.set(plugin, (this.#lost.get(plugin) ?? 0) + events.length);
    const lines = events.map(({ line }) => `${line}\n`).join('');
    const what = `Error in audit plugin '${plugin}' affecting ${events.length} audit events`;
    this.#log(`${what}: ${why}\nImpacted events:\n${lines}`);
  }

  /** Appends the counts in Prometheus' text format. */
  print(lines: string[]): void {
    printFamily(lines, 'apiserver_audit_error_total');
    for (const [plugin, count] of this.#lost) {
      lines.push(`apiserver_audit_error_total{plugin="${plugin}"} ${count}`);
    }
  }
}

/** Mode `blocking`: losing events fails no request. */
export function forgiving(backend: AuditBackend): AuditBackend {
  return {
    take: (events, told) => backend.take(events, () => told(true)),
    close: () => backend.close(),
  };
}

/** Each gets all events. */
export function unitedBackends(backends: readonly AuditBackend[]): AuditBackend {
  return {
    take: (events, told) => {
      let waiting = backends.length;
      let isKept = true;
      for (const backend of backends) {
        backend.take(events, (isOneKept) => {
          isKept &&= isOneKept;
          if (--waiting === 0) told(isKept);
        });
      }
    },
    close: async () => {
      await Promise.all(backends.map((backend) => backend.close()));
    },
  };
}

export interface TruncateBounds {
  readonly eventBytesMax: number;
  readonly batchBytesMax: number;
}

/** Events that are too large lose their objects; batches that are too large are split. */
export function truncating(
  backend: AuditBackend,
  { eventBytesMax, batchBytesMax }: TruncateBounds,
  faults: AuditFaults,
): AuditBackend {
  const take = (events: readonly AuditEvent[], told: Told): void => {
    const batches: AuditEvent[][] = [];
    const impacted: AuditEvent[] = [];
    let batchBytes = 0;
    for (const whole of events) {
      const isCut = whole.sizeBytes > eventBytesMax && whole.hasObjects;
      const event = isCut ? whole.truncated() : whole;
      const size = event.sizeBytes;
      if (size > eventBytesMax) {
        impacted.push(event);
        continue;
      }
      const last = batches.at(-1);
      if (last === undefined || batchBytes + size > batchBytesMax) {
        batches.push([event]);
        batchBytes = size;
      } else {
        last.push(event);
        batchBytes += size;
      }
    }
    if (impacted.length > 0) {
      faults.report('truncate', 'event is too large even after truncating', impacted);
    }
    let waiting = batches.length;
    let isKept = true;
    if (waiting === 0) told(true);
    for (const batch of batches) {
      backend.take(batch, (isBatchKept) => {
        isKept &&= isBatchKept;
        if (--waiting === 0) told(isKept);
      });
    }
  };
  return { take, close: () => backend.close() };
}

export interface BatchOptions {
  /** Events that wait to be gathered. */
  readonly bufferSize: number;
  readonly batchSizeMax: number;
  /** A batch that is not full leaves after this. */
  readonly waitMsMax: number;
  /** Batches a second on average, and at once; null: any number. */
  readonly throttle: { readonly perSecond: number; readonly burst: number } | null;
}

/** Mode `batch`: no request waits; what fits no buffer is lost. */
export class BufferedBackend implements AuditBackend {
  readonly #backend: AuditBackend;
  readonly #options: BatchOptions;
  readonly #timers: AuditTimers;
  readonly #faults: AuditFaults;
  #waiting: AuditEvent[] = [];
  /** A batch was gathered, and leaves when the rate allows. */
  #isHeld = false;
  #isTimed = false;
  #isClosing = false;
  /** When the gathering of the current batch began. */
  #sinceMs: number;
  #tokens: number;
  #tokensMs: number;
  #sending = 0;
  #onIdle: (() => void) | null = null;

  constructor(
    backend: AuditBackend,
    options: BatchOptions,
    timers: AuditTimers,
    faults: AuditFaults,
  ) {
    this.#backend = backend;
    this.#options = options;
    this.#timers = timers;
    this.#faults = faults;
    this.#sinceMs = timers.nowMs();
    this.#tokens = options.throttle?.burst ?? 0;
    this.#tokensMs = this.#sinceMs;
  }

  take(events: readonly AuditEvent[], told: Told): void {
    const { bufferSize, batchSizeMax } = this.#options;
    for (const [index, event] of events.entries()) {
      if (this.#isClosing || (this.#isHeld && this.#waiting.length >= bufferSize)) {
        const why = this.#isClosing ? 'audit backend shut down' : 'audit buffer queue blocked';
        this.#faults.report('buffered', why, events.slice(index));
        break;
      }
      this.#waiting.push(event);
      if (!this.#isHeld && this.#waiting.length >= batchSizeMax) this.#gather();
    }
    if (this.#waiting.length > 0 && !this.#isHeld) this.#watchClock();
    told(true);
  }

  /** The clock of batches runs on, whether there are events or not. */
  #watchClock(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    const { waitMsMax } = this.#options;
    const passed = this.#timers.nowMs() - this.#sinceMs;
    const left = waitMsMax === 0 ? 0 : waitMsMax - (passed % waitMsMax);
    this.#timers.after(left, () => {
      this.#isTimed = false;
      if (!this.#isHeld) this.#gather();
    });
  }

  #gather(): void {
    this.#sinceMs = this.#timers.nowMs();
    if (this.#waiting.length === 0) return;
    const { batchSizeMax } = this.#options;
    const batch = this.#waiting.slice(0, batchSizeMax);
    this.#waiting = this.#waiting.slice(batchSizeMax);
    const delay = this.#isClosing ? 0 : this.#delayMs();
    if (delay === 0) {
      this.#send(batch);
      return;
    }
    this.#isHeld = true;
    this.#sending++;
    this.#timers.after(delay, () => {
      this.#isHeld = false;
      this.#sending--;
      this.#send(batch);
      while (this.#waiting.length >= batchSizeMax && !this.#isHeld) this.#gather();
      if (this.#waiting.length > 0 && !this.#isHeld) this.#watchClock();
    });
  }

  #send(batch: readonly AuditEvent[]): void {
    this.#sending++;
    this.#backend.take(batch, () => {
      this.#sending--;
      if (this.#sending === 0) this.#onIdle?.();
    });
  }

  /** Takes a token from the bucket; how long until it may be used. */
  #delayMs(): number {
    const { throttle } = this.#options;
    if (throttle === null) return 0;
    const nowMs = this.#timers.nowMs();
    const earned = ((nowMs - this.#tokensMs) * throttle.perSecond) / 1000;
    this.#tokens = Math.min(throttle.burst, this.#tokens + earned) - 1;
    this.#tokensMs = nowMs;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens * 1000) / throttle.perSecond);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    while (this.#waiting.length > 0) this.#gather();
    const idle = new Promise<void>((done) => {
      this.#onIdle = done;
      if (this.#sending === 0) done();
    });
    await Promise.all([idle, this.#backend.close()]);
  }
}

/**
 * Every request from its arrival to its answer: how many are in flight and how many may be, how
 * long
 * one may take, what is told of slow ones, and who writes down what was asked.
 *
 * Most requests are answered in the turn in which they came; only those that wait for somebody
 * (etcd, a webhook) are held in a list.
 */
import { actFor } from '@megaplane/base/deferred';
import { timeout } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import type { Metrics } from './metrics.ts';
import { printFamily } from '../metrics/metric-families.ts';
import { effectiveVerb } from '../request/request-terms.ts';
import { isLongRunning } from '../request/long-running.ts';
import type { Auditor } from '../audit/auditor.ts';

/** `--max-requests-inflight` and `--max-mutating-requests-inflight` of upstream. */
export const READS_MAX = 400;
export const WRITES_MAX = 200;
export const REQUEST_MS_MAX = 60_000;
/** Upstream's threshold for a trace. */
const SLOW_MS = 500;
/** Slow requests that are told about in a second; the others are counted. */
const SLOW_TOLD_MAX = 10;
const MASTERS = 'system:masters';
const READING: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

export interface TrackerOptions {
  /** 0: no limit. */
  readonly readsMax?: number;
  readonly writesMax?: number;
  /** Others decide how many may be in flight; the limits above are theirs. */
  readonly isUnlimited?: boolean;
  readonly requestMsMax?: number;
  readonly auditor?: Auditor | null;
  /** For one line about each slow request. */
  readonly log?: (message: string) => void;
  /** Chance that an answer asks an HTTP/2 client to connect anew, 0 to 0.02. */
  readonly goawayChance?: number;
}

export class RequestTracker {
  readonly auditor: Auditor | null;
  readonly goawayChance: number;
  readonly #nowMs: () => number;
  readonly #metrics: Metrics;
  readonly #readsMax: number;
  readonly #writesMax: number;
  readonly #requestMsMax: number;
  readonly #log: (message: string) => void;
  readonly #pending = new Set<Call>();
  #reads = 0;
  #writes = 0;
  /** The most at a time in this second, and in the one before. */
  #readsPeak = 0;
  #writesPeak = 0;
  #lastReadsPeak = 0;
  #lastWritesPeak = 0;
  #refused = 0;
  #slowTold = 0;
  #slowUntold = 0;

  constructor(nowMs: () => number, metrics: Metrics, options: TrackerOptions = {}) {
    this.#nowMs = nowMs;
    this.#metrics = metrics;
    this.auditor = options.auditor ?? null;
    this.goawayChance = options.goawayChance ?? 0;
    const isUnlimited = options.isUnlimited === true;
    this.#readsMax = isUnlimited ? 0 : (options.readsMax ?? READS_MAX);
    this.#writesMax = isUnlimited ? 0 : (options.writesMax ?? WRITES_MAX);
    this.#requestMsMax = options.requestMsMax ?? REQUEST_MS_MAX;
    this.#log = options.log ?? ((): void => {});
    metrics.addSource((lines) => this.#render(lines));
  }

  /**
   * Takes a request in. `run` answers it, now or later; it is told whether that is another turn
   * than the one in which the request came.
   */
  track(call: Call, run: (isLater: boolean) => void): void {
    call.watcher = this;
    const { auditor } = this;
    if (auditor === null) {
      this.#begin(call, () => run(false));
      return;
    }
    let isTold = false;
    let isLater = false;
    auditor.received(call, (isKept) => {
      isTold = true;
      if (!isKept) call.sendText(500, unkept(call));
      else if (isLater && call.exchange.closed) call.code = 499;
      else this.#begin(call, () => run(isLater));
    });
    isLater = true;
    if (!isTold) call.keepBody();
  }

  #begin(call: Call, run: () => void): void {
    run();
    if (isLongRunning(call) || call.code !== 0) return;
    if (!call.exchange.closed) this.#pending.add(call);
    else this.answered(call);
  }

  /**
   * Counts a request among those in flight, which whom it acts for decides; false where there are
   * too many: it was refused then.
   */
  admit(call: Call): boolean {
    if (call.code !== 0) return false;
    if (isLongRunning(call)) return true;
    const isReading = READING.has(effectiveVerb(call));
    if (this.#isFull(call, isReading)) {
      this.#refused++;
      call.sendText(429, 'Too many requests, please try again later.\n', ['retry-after', '1']);
      return false;
    }
    if (isReading) this.#readsPeak = Math.max(this.#readsPeak, ++this.#reads);
    else this.#writesPeak = Math.max(this.#writesPeak, ++this.#writes);
    call.isCounted = true;
    return true;
  }

  #isFull(call: Call, isReading: boolean): boolean {
    const isBelow = isReading
      ? this.#readsMax === 0 || this.#reads < this.#readsMax
      : this.#writesMax === 0 || this.#writes < this.#writesMax;
    return !isBelow && !call.identity.groups.includes(MASTERS);
  }

  /** The code of an answer is known; called once for each request. */
  answered(call: Call): void {
    this.#pending.delete(call);
    if (call.isCounted) {
      call.isCounted = false;
      if (READING.has(effectiveVerb(call))) this.#reads--;
      else this.#writes--;
    }
    const tookMs = Math.max(0, this.#nowMs() - call.nowMs);
    if (!isLongRunning(call)) {
      this.#metrics.count(call, tookMs);
      if (tookMs >= SLOW_MS) this.#tellSlow(call, tookMs);
      return;
    }
    if (call.code < 400) this.#metrics.begin(call, tookMs);
    else this.#metrics.count(call, tookMs);
    if (call.record !== null) this.auditor?.started(call);
  }

  ended(call: Call): void {
    this.auditor?.complete(call);
  }

  #tellSlow(call: Call, tookMs: number): void {
    if (this.#slowTold >= SLOW_TOLD_MAX) {
      this.#slowUntold++;
      return;
    }
    this.#slowTold++;
    const { method, path } = call.exchange;
    const agent = call.exchange.header('user-agent') ?? '';
    this.#log(
      `slow request: ${method} ${path} by ${call.identity.user} took ${tookMs} ms, ` +
        `answered ${call.code} (audit-id ${call.auditId}, ${agent})`,
    );
  }

  /** About once a second: ends what takes too long. */
  tick(nowMs: number): void {
    [this.#lastReadsPeak, this.#readsPeak] = [this.#readsPeak, this.#reads];
    [this.#lastWritesPeak, this.#writesPeak] = [this.#writesPeak, this.#writes];
    this.#slowTold = 0;
    if (this.#slowUntold > 0) {
      this.#log(`${this.#slowUntold} more slow requests`);
      this.#slowUntold = 0;
    }
    this.#metrics.lasting.tick(nowMs);
    this.auditor?.tick();
    for (const call of this.#pending) {
      if (call.exchange.closed) this.#drop(call);
      else if (nowMs - call.nowMs >= this.#limitOf(call)) {
        call.retry = null;
        actFor(call, () => call.fail(timeout()));
      }
    }
  }

  /** What the server allows, or the client if that is less; upstream's rule. */
  #limitOf(call: Call): number {
    const own = this.#requestMsMax === 0 ? Infinity : this.#requestMsMax;
    const asked = call.timeoutMs;
    return asked > 0 ? Math.min(own, asked) : own;
  }

  /** The client has gone before the answer. */
  #drop(call: Call): void {
    this.#pending.delete(call);
    if (call.code === 0) call.code = 499;
  }

  #render(lines: string[]): void {
    printFamily(lines, 'apiserver_current_inflight_requests');
    lines.push(
      `apiserver_current_inflight_requests{request_kind="readOnly"} ${this.#lastReadsPeak}`,
      `apiserver_current_inflight_requests{request_kind="mutating"} ${this.#lastWritesPeak}`,
      '# HELP apiserver_dropped_requests_total Requests refused with 429.',
      '# TYPE apiserver_dropped_requests_total counter',
      `apiserver_dropped_requests_total ${this.#refused}`,
    );
  }
}

function unkept({ exchange }: Call): string {
  const path = JSON.stringify(exchange.path);
  return `Internal Server Error: ${path}: failed to store audit event\n`;
}

/**
 * `--audit-webhook-config-file`: lists of events are sent to a program elsewhere, and sent again
 * where that fails for whatever reason (upstream's apiserver/plugin/pkg/audit/webhook).
 */
import { httpFailure } from '../webhook/client-failure.ts';
import { callFailure, type WebhookCaller, type WebhookTarget } from '../webhook/webhook-call.ts';
import type { AuditBackend, AuditFaults, AuditTimers, Told } from './audit-backends.ts';
import type { AuditEvent } from './audit-event.ts';

const CALL_MS_MAX = 30_000;
const ATTEMPTS_MAX = 5;
const DELAY_FACTOR = 1.5;
const DELAY_JITTER = 0.2;
/**
 * Lists under way, whether they are being sent or wait to be sent again; more are lost, and
 * counted. A receiver that never answers holds each list for minutes.
 */
const UNDERWAY_BYTES_MAX: number = 64 * 1024 * 1024;
const LIST_HEAD = '{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[';

export interface AuditWebhookOptions {
  readonly target: WebhookTarget;
  readonly caller: WebhookCaller;
  readonly initialDelayMs: number;
}

interface Sending {
  readonly events: readonly AuditEvent[];
  readonly body: Buffer;
  readonly told: Told;
  attempts: number;
  delayMs: number;
  /** It failed, and is sent again later. */
  isWaiting: boolean;
}

export class AuditWebhook implements AuditBackend {
  readonly #options: AuditWebhookOptions;
  readonly #timers: AuditTimers;
  readonly #faults: AuditFaults;
  readonly #sending = new Set<Sending>();
  #underwayBytes = 0;
  #isClosing = false;
  #onIdle: (() => void) | null = null;

  constructor(options: AuditWebhookOptions, timers: AuditTimers, faults: AuditFaults) {
    this.#options = options;
    this.#timers = timers;
    this.#faults = faults;
  }

  take(events: readonly AuditEvent[], told: Told): void {
    const body = Buffer.from(`${LIST_HEAD}${events.map(({ item }) => item).join()}]}\n`);
    const isFull = this.#underwayBytes + body.length > UNDERWAY_BYTES_MAX;
    // a list that alone is larger goes when nothing else does
    if (isFull && this.#sending.size > 0) {
      this.#faults.report('webhook', 'too many events wait for the webhook', events);
      told(false);
      return;
    }
    this.#underwayBytes += body.length;
    const { initialDelayMs: delayMs } = this.#options;
    const sending: Sending = { events, body, told, attempts: 0, delayMs, isWaiting: false };
    this.#sending.add(sending);
    this.#try(sending);
  }

  #try(sending: Sending): void {
    const { caller, target } = this.#options;
    sending.attempts++;
    sending.isWaiting = false;
    caller.call(target, sending.body, CALL_MS_MAX, (response) => {
      if (!response.ok) {
        const scheme = target.isPlain === true ? 'http' : 'https';
        const url = `${scheme}://${target.authority}${target.path}`;
        this.#failed(sending, callFailure(url, response));
      } else if (response.status < 200 || response.status > 299) {
        const { status, body, contentType } = response;
        this.#failed(sending, httpFailure(status, body, contentType));
      } else this.#end(sending, true);
    });
  }

  #failed(sending: Sending, why: string): void {
    if (sending.attempts >= ATTEMPTS_MAX || this.#isClosing) {
      this.#faults.report('webhook', why, sending.events);
      this.#end(sending, false);
      return;
    }
    const delay = sending.delayMs * (1 + this.#timers.random() * DELAY_JITTER);
    sending.delayMs *= DELAY_FACTOR;
    sending.isWaiting = true;
    this.#timers.after(delay, () => {
      if (sending.isWaiting) this.#try(sending);
    });
  }

  #end(sending: Sending, isKept: boolean): void {
    this.#sending.delete(sending);
    this.#underwayBytes -= sending.body.length;
    sending.told(isKept);
    if (this.#sending.size === 0) this.#onIdle?.();
  }

  /** Calls under way may end; what waits for another is sent once more. */
  close(): Promise<void> {
    this.#isClosing = true;
    for (const sending of this.#sending) if (sending.isWaiting) this.#try(sending);
    return new Promise((done) => {
      this.#onIdle = done;
      if (this.#sending.size === 0) done();
    });
  }
}

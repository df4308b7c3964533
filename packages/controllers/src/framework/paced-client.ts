/**
 * A client that begins so many requests a second at most, as `--kube-api-qps` and
 * `--kube-api-burst` want it. As upstream, every controller has one of its own; watches are not
 * counted.
 */
import type {
  Client,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
} from '@megaplane/client/client';
import { ClientLayer } from './client-layer.ts';
import type { RequestRate } from './options.ts';

/** Requests that wait for their turn; more are refused, as by a client whose queue is full. */
const WAITING_MAX = 10_000;

export class PacedClient extends ClientLayer {
  readonly #rate: RequestRate;
  readonly #waiting: (() => void)[] = [];
  #tokens: number;
  #countedMs: number;
  #isArmed = false;
  /** A request was refused because too many wait: who asked is told when half of them are gone. */
  #wasFull = false;
  readonly #onRoom: (() => void)[] = [];

  constructor(client: Client, rate: RequestRate) {
    super(client);
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#countedMs = client.timers.nowMs();
  }

  override send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag?: number,
    user?: string,
  ): boolean {
    if (this.#waiting.length === 0 && this.#take()) {
      return super.send(method, path, contentType, body, done, tag, user);
    }
    if (this.#waiting.length >= WAITING_MAX) {
      this.#wasFull = true;
      return false;
    }
    // The caller may write over its bytes as soon as this returns.
    const kept = body instanceof Uint8Array ? Buffer.from(body) : body;
    this.#wait(() => {
      if (this.next.send(method, path, contentType, kept, done, tag, user)) return;
      const text = Buffer.from('the queue of the client is full');
      done(0, text, 0, text.length, tag ?? 0);
    });
    return true;
  }

  override async request(request: ClientRequest): Promise<ClientResponse> {
    if (this.#waiting.length > 0 || !this.#take()) {
      await new Promise<void>((resolve) => this.#wait(resolve));
    }
    return super.request(request);
  }

  #wait(begin: () => void): void {
    this.#waiting.push(begin);
    this.#arm();
  }

  #take(): boolean {
    const { perSecond, burst } = this.#rate;
    const nowMs = this.timers.nowMs();
    const gained = ((nowMs - this.#countedMs) * perSecond) / 1000;
    this.#tokens = Math.min(burst, this.#tokens + gained);
    this.#countedMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #arm(): void {
    if (this.#isArmed || this.#waiting.length === 0) return;
    this.#isArmed = true;
    const delayMs = Math.max(1, ((1 - this.#tokens) * 1000) / this.#rate.perSecond);
    this.timers.after(delayMs, () => {
      this.#isArmed = false;
      while (this.#waiting.length > 0 && this.#take()) this.#waiting.shift()?.();
      this.#arm();
      if (!this.#wasFull || this.#waiting.length >= WAITING_MAX / 2) return;
      this.#wasFull = false;
      for (const callback of this.#onRoom) callback();
    });
  }

  override room(): number {
    return Math.min(super.room(), WAITING_MAX - this.#waiting.length);
  }

  override onRoom(callback: () => void): void {
    this.#onRoom.push(callback);
    super.onRoom(callback);
  }
}

/** A client without sockets: records what is sent, and answers when the test says so. */
import type {
  Client,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  SendDone,
  StreamHandle,
  StreamSink,
  Timers,
} from '@megaplane/client/client';
import { RequestMetrics } from '@megaplane/client/request-metrics';
import { SimulatedClock } from '@megaplane/base/clock';
import { Random } from '@megaplane/base/random';

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly user: string;
  readonly done: SendDone;
  readonly tag: number;
}

/** Only what machines use: `send`, room, timers and random numbers. */
export class FakeClient implements Client {
  readonly clock: SimulatedClock = new SimulatedClock(1_767_323_045_000);
  readonly sent: Sent[] = [];
  queueMax = 1000;
  inFlight = 0;
  retryAfterSeconds = 0;
  /** By how much the wall clock was set. */
  setMs = 0;
  readonly metrics: ClientMetrics = {
    requestsStarted: 0,
    requestsInFlight: 0,
    requestsQueued: 0,
    requestsRefused: 0,
    answersByClass: new Float64Array(6),
    retries: 0,
    throttled: 0,
    streamsOpen: 0,
    connects: 0,
    connectFailures: 0,
    bytesSent: 0,
    bytesReceived: 0,
    requests: new RequestMetrics(),
  };
  readonly timers: Timers;
  readonly #random: Random;
  readonly #timeouts: { atMs: number; fire: () => void }[] = [];
  readonly #onRoom: (() => void)[] = [];

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.timers = {
      nowMs: () => this.clock.nowMs(),
      wallMs: () => this.clock.nowMs() + this.setMs,
      after: (delayMs, fire) => {
        const timeout = { atMs: this.clock.nowMs() + delayMs, fire };
        this.#timeouts.push(timeout);
        return () => void this.#timeouts.splice(this.#timeouts.indexOf(timeout), 1);
      },
    };
  }

  send(
    method: string,
    path: string,
    _contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag = 0,
    user = '',
  ): boolean {
    if (this.room() === 0) return false;
    this.inFlight++;
    this.sent.push({ method, path, body: String(body ?? ''), done, tag, user });
    return true;
  }

  /** Takes the oldest request and answers it. */
  answer(status: number, body: object = {}): Sent {
    const request = this.sent.shift();
    if (request === undefined) throw new Error('nothing was sent');
    this.inFlight--;
    const bytes = Buffer.from(JSON.stringify(body));
    request.done(status, bytes, 0, bytes.length, request.tag);
    if (this.inFlight * 2 < this.queueMax) for (const callback of this.#onRoom) callback();
    return request;
  }

  /** Lets time pass, firing timeouts in order. */
  pass(durationMs: number): void {
    this.clock.advance(durationMs);
    const due = this.#timeouts.filter(({ atMs }) => atMs <= this.clock.nowMs());
    for (const timeout of due) {
      this.#timeouts.splice(this.#timeouts.indexOf(timeout), 1);
      timeout.fire();
    }
  }

  room(): number {
    return this.queueMax - this.inFlight;
  }

  onRoom(callback: () => void): void {
    this.#onRoom.push(callback);
  }

  random(): number {
    return this.#random.next();
  }

  request(_request: ClientRequest): Promise<ClientResponse> {
    throw new Error('machines do not wait for answers');
  }

  stream(_path: string, _sink: StreamSink): StreamHandle {
    throw new Error('machines do not watch');
  }

  close(): void {
    this.sent.length = 0;
  }
}

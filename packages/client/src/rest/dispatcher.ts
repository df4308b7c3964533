/**
 * The client without sockets and clock: requests over a few connections that others dial.
 *
 *     send, request ──► queue ──► in flight on an open connection ──► done
 *                         ▲                 │
 *                         └── refused, 429 ─┘   (after the time that the server asked for)
 *
 * A request lives in a slot: an object that is made once and reused, found again by its number,
 * which is the tag of the stream that carries it. Requests wait here and not in a connection until
 * one is open and has room, so that a lost connection takes with it only what was really sent.
 */
import { assert } from '@megaplane/base/assert';
import type {
  ClientConnection,
  ClientStream,
  RequestFailure,
  ResponseSink,
} from '@megaplane/wire/client';
import type {
  Client,
  ClientLimits,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
  StreamHandle,
  StreamSink,
  Timers,
} from './client.ts';
import { CONTENT, STATUS_NONE } from './client.ts';
import { decodeAnswer, noAnswer } from './answer.ts';
import { ConnectionPool } from './connection-pool.ts';
import { fieldOf, RequestFields, retryAfterOf } from './request-fields.ts';
import { RequestMetrics } from '../metrics/request-metrics.ts';
import { Slot } from './slot.ts';
import { StreamRequest } from './stream-request.ts';
import type { FieldList } from '@megaplane/wire/fields';

/** Places in the queue for `request` alone: control-plane code must get on beside hot producers. */
const REQUESTS_RESERVED = 1000;
/** How often deadlines are looked at. */
const SWEEP_MS = 250;
/** Steps in which repeated requests wait; they go out in groups. */
const DELAY_STEP_MS = 100;
/** Longest wait that a Retry-After is granted. */
const RETRY_AFTER_SECONDS_MAX = 60;
/**
 * Who is put off again waits twice as long each time, up to this or what the server says: servers
 * say one second whatever their trouble is, and thousands of requests wait here for the same one.
 */
const PUT_OFF_MS_MAX = 8000;

const CLOSED_TEXT = 'the client is closed';

export interface DispatcherOptions {
  /** Makes a connection; it may be used when its `onOpen` was called. */
  readonly dial: () => ClientConnection;
  /** Bearer token for each request, or ''. May change over time. */
  readonly token: () => string;
  readonly userAgent: string;
  /** Put before each path; from a server URL that has a path. */
  readonly pathPrefix: string;
  /** What to call the server in messages. */
  readonly serverName: string;
  readonly timers: Timers;
  readonly random: () => number;
  readonly limits: ClientLimits;
  /** A connection carries one request at a time: make more of them when they are busy. */
  readonly isSerial?: boolean;
}

/** Slots that go out again at the same time. */
interface DelayedGroup {
  readonly slots: Slot[];
  readonly cancel: () => void;
}

export class Dispatcher implements Client, ResponseSink {
  readonly metrics: ClientMetrics = freshMetrics();
  readonly takesAnyName = true;
  readonly timers: Timers;
  readonly #options: DispatcherOptions;
  readonly #limits: ClientLimits;
  readonly #fields: RequestFields;
  /** Of the answer that is told now. */
  #etag = '';
  retryAfterSeconds = 0;
  readonly #links: ConnectionPool;
  readonly #slots: Slot[] = [];
  readonly #free: Slot[] = [];
  /** Waiting slots, a list through `next`. */
  #first: Slot | null = null;
  #last: Slot | null = null;
  /** Slots that wait for a time, by the step in which they go out. */
  readonly #delayed: Map<number, DelayedGroup> = new Map();
  /** Slots that wait so. They take room: a server that puts all off is not sent ever more. */
  #putOff = 0;
  readonly #streams: Set<StreamRequest> = new Set();
  readonly #waitingStreams: StreamRequest[] = [];
  readonly #roomCallbacks: (() => void)[] = [];
  #wasFull = false;
  #isClosed = false;
  #cancelSweep: (() => void) | null = null;
  #isPumping = false;
  #isPumpDue = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#limits = options.limits;
    this.timers = options.timers;
    this.#fields = new RequestFields(options.userAgent);
    this.#links = new ConnectionPool({
      dial: options.dial,
      timers: options.timers,
      random: options.random,
      count: options.limits.connections,
      isSerial: options.isSerial ?? false,
      metrics: this.metrics,
      onRoom: () => this.#pump(),
      onFailure: (message) => this.#failStreams(message),
    });
  }

  random(): number {
    return this.#options.random();
  }

  send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag: number = 0,
    user: string = '',
  ): boolean {
    if (this.#isClosed || this.room() <= 0) {
      this.#wasFull = true;
      this.metrics.requestsRefused++;
      return false;
    }
    const { requestTimeoutMs } = this.#limits;
    const extra = user === '' ? '' : `impersonate-user: ${user}`;
    this.#start(method, path, contentType, '', body, done, tag, requestTimeoutMs, extra);
    return true;
  }

  room(): number {
    if (this.#isClosed) return 0;
    const inFlightRoom = Math.max(0, this.#limits.inFlightMax - this.metrics.requestsInFlight);
    const waiting = this.metrics.requestsQueued + this.#putOff;
    return Math.max(0, inFlightRoom + this.#limits.queueMax - waiting);
  }

  onRoom(callback: () => void): void {
    this.#roomCallbacks.push(callback);
  }

  request(request: ClientRequest): Promise<ClientResponse> {
    return new Promise((resolve) => {
      const { body = null } = request;
      const isValue = typeof body === 'object' && body !== null && !(body instanceof Uint8Array);
      const bytes = isValue ? JSON.stringify(body) : body;
      const contentType = request.contentType ?? CONTENT.json;
      const timeoutMs = request.timeoutMs ?? this.#limits.requestTimeoutMs;
      const extra =
        request.ifNoneMatch === undefined ? '' : `if-none-match: ${request.ifNoneMatch}`;
      const done: SendDone = (status, answer, start, end) =>
        resolve(decodeAnswer(request, status, answer, start, end, this.#etag));
      if (this.#isClosed) return resolve(noAnswer(request, CLOSED_TEXT));
      if (this.metrics.requestsQueued >= this.#limits.queueMax + REQUESTS_RESERVED) {
        return resolve(noAnswer(request, 'too many requests are waiting'));
      }
      const { method, path, accept = '' } = request;
      this.#start(method, path, contentType, accept, bytes, done, 0, timeoutMs, extra);
    });
  }

  stream(path: string, sink: StreamSink, accept: string = CONTENT.lean): StreamHandle {
    const onHead = (status: number): void => this.metrics.requests.streamed(status);
    const stream = new StreamRequest(path, sink, accept, onHead, (ended) => {
      if (this.#streams.delete(ended)) this.metrics.streamsOpen--;
    });
    this.#streams.add(stream);
    this.metrics.streamsOpen++;
    if (this.#isClosed) {
      stream.fail(CLOSED_TEXT);
      return stream;
    }
    this.#waitingStreams.push(stream);
    this.#pump();
    return stream;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelSweep?.();
    for (const slot of this.#slots) {
      if (slot.state === 'flying') slot.stream?.cancel();
      else if (slot.state !== 'free' && slot.state !== 'dead') this.#finish(slot, CLOSED_TEXT);
    }
    this.#first = null;
    this.#last = null;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    for (const stream of this.#streams) stream.cancel();
    this.#waitingStreams.length = 0;
    this.#links.close();
  }

  #start(
    method: Method,
    path: string,
    contentType: string,
    accept: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag: number,
    timeoutMs: number,
    extra: string,
  ): void {
    let slot = this.#free.pop();
    if (slot === undefined) {
      slot = new Slot(this.#slots.length);
      this.#slots.push(slot);
    }
    slot.fill(method, path, body === null ? '' : contentType, accept, body, done, tag);
    slot.extra = extra;
    slot.startMs = this.timers.nowMs();
    slot.deadlineMs = slot.startMs + timeoutMs;
    this.metrics.requestsStarted++;
    this.#enqueue(slot, false);
    this.#keepSweeping();
    this.#pump();
    // Producers that look at `room()` are told as those whose `send` was refused.
    if (this.room() === 0) this.#wasFull = true;
  }

  #enqueue(slot: Slot, isRepeated: boolean): void {
    slot.state = 'queued';
    this.metrics.requestsQueued++;
    if (this.#first === null || this.#last === null) {
      this.#first = slot;
      this.#last = slot;
    } else if (isRepeated) {
      // It has waited its time already.
      slot.next = this.#first;
      this.#first = slot;
    } else {
      this.#last.next = slot;
      this.#last = slot;
    }
  }

  /** Puts under way what may go. Calls that come while it runs make it go round once more. */
  #pump(): void {
    this.#isPumpDue = true;
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#isPumpDue && !this.#isClosed) {
      this.#isPumpDue = false;
      this.#pumpStreams();
      this.#pumpQueue();
    }
    this.#isPumping = false;
    const waiting = this.metrics.requestsQueued + this.#putOff;
    if (!this.#wasFull || waiting > this.#limits.queueMax / 2) return;
    this.#wasFull = false;
    for (const callback of this.#roomCallbacks) callback();
  }

  #pumpStreams(): void {
    while (this.#waitingStreams.length > 0) {
      const link = this.#links.pick(true);
      if (link === null) return;
      const stream = this.#waitingStreams.shift();
      if (stream === undefined || !stream.isWaiting) continue;
      const fields = this.#fields.prepare('', stream.accept, this.#options.token(), '');
      stream.begin(link, this.#options.pathPrefix + stream.path, fields);
    }
  }

  #pumpQueue(): void {
    while (this.#first !== null && this.metrics.requestsInFlight < this.#limits.inFlightMax) {
      const link = this.#links.pick(false);
      if (link === null) return;
      const slot = this.#first;
      this.#first = slot.next;
      if (this.#first === null) this.#last = null;
      slot.next = null;
      if (slot.state === 'dead') {
        this.#release(slot);
        continue;
      }
      this.metrics.requestsQueued--;
      this.#transmit(slot, link);
    }
  }

  #transmit(slot: Slot, link: ClientConnection): void {
    const accept = slot.accept === '' ? CONTENT.lean : slot.accept;
    const token = this.#options.token();
    const fields = this.#fields.prepare(slot.contentType, accept, token, slot.extra);
    const body = slot.body();
    slot.beginAnswer();
    slot.state = 'flying';
    slot.tries++;
    this.metrics.requestsInFlight++;
    slot.sentBytes = body?.length ?? 0;
    this.metrics.bytesSent += slot.sentBytes;
    const path = this.#options.pathPrefix + slot.path;
    const stream = link.request(slot.method, path, fields, body, this, slot.index);
    if (slot.state === 'flying' && !stream.closed) slot.stream = stream;
  }

  // The answers, by the sink that all requests share.

  onHead(stream: ClientStream, status: number, fields: FieldList): void {
    const slot = this.#slotOf(stream);
    slot.status = status;
    slot.retryAfterSeconds = retryAfterOf(fields, RETRY_AFTER_SECONDS_MAX);
    // answers to `send` are told without their fields
    if (slot.accept !== '') slot.etag = fieldOf(fields, 'etag');
  }

  onData(stream: ClientStream, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const slot = this.#slotOf(stream);
    this.metrics.bytesReceived += end - start;
    const { answerBytesMax } = this.#limits;
    if (slot.answerLength + end - start <= answerBytesMax) {
      if (isLast && slot.answerLength === 0) slot.lendAnswer(bytes, start, end);
      else slot.addAnswer(bytes, start, end, answerBytesMax);
      return;
    }
    slot.isTooLarge = true;
    stream.cancel();
  }

  onEnd(stream: ClientStream, failure: RequestFailure | null): void {
    const slot = this.#slotOf(stream);
    assert(slot.state === 'flying', 'an answer ends that is not under way');
    slot.stream = null;
    this.metrics.requestsInFlight--;
    if (failure === null) this.#answered(slot);
    else this.#failed(slot, failure);
    this.#pump();
  }

  #slotOf(stream: ClientStream): Slot {
    const slot = this.#slots[stream.tag];
    assert(slot !== undefined, 'an answer to no request');
    return slot;
  }

  #answered(slot: Slot): void {
    const { status, retryAfterSeconds } = slot;
    const isPutOff = retryAfterSeconds > 0 && (status === 429 || status >= 500);
    if (isPutOff && slot.tries <= this.#limits.retriesMax) {
      this.metrics.throttled++;
      const leastMs = retryAfterSeconds * 1000;
      const grownMs = Math.min(PUT_OFF_MS_MAX, leastMs * 2 ** (slot.tries - 1));
      return this.#delay(slot, Math.max(leastMs, grownMs) * (1 + this.random() / 4));
    }
    const digit = Math.min(5, Math.floor(status / 100));
    this.metrics.answersByClass[digit] = (this.metrics.answersByClass[digit] ?? 0) + 1;
    const { done, tag, answer, answerStart, answerLength } = slot;
    this.#count(slot, status);
    this.#etag = slot.etag;
    this.retryAfterSeconds = retryAfterSeconds;
    done(status, answer, answerStart, answerStart + answerLength, tag);
    this.#release(slot);
  }

  #failed(slot: Slot, failure: RequestFailure): void {
    const isDue = this.timers.nowMs() >= slot.deadlineMs;
    const isSafe = slot.method === 'GET' || slot.method === 'HEAD';
    const mayRepeat = failure.kind === 'refused' || (isSafe && failure.kind !== 'cancelled');
    if (mayRepeat && !isDue && slot.tries <= this.#limits.retriesMax) {
      this.metrics.retries++;
      if (slot.tries === 1) return this.#enqueue(slot, true);
      // What is broken off each time is so for a while, say by a proxy whose server is away.
      return this.#delay(slot, Math.min(PUT_OFF_MS_MAX, DELAY_STEP_MS * 2 ** (slot.tries - 2)));
    }
    if (slot.isTooLarge) {
      this.#finish(slot, `the answer is larger than ${this.#limits.answerBytesMax} bytes`);
    } else if (isDue) {
      this.#finish(slot, `${this.#options.serverName} did not answer in time`);
    } else {
      this.#finish(slot, failure.message);
    }
  }

  /** Ends a request without an answer. */
  #finish(slot: Slot, why: string): void {
    this.metrics.answersByClass[STATUS_NONE] = (this.metrics.answersByClass[STATUS_NONE] ?? 0) + 1;
    const text = Buffer.from(why);
    const { done, tag } = slot;
    this.#count(slot, STATUS_NONE);
    const isListed = slot.state === 'queued' || slot.state === 'delayed';
    if (slot.state === 'queued') this.metrics.requestsQueued--;
    else if (slot.state === 'delayed') this.#putOff--;
    slot.state = 'dead';
    this.retryAfterSeconds = 0;
    done(STATUS_NONE, text, 0, text.length, tag);
    if (!isListed) this.#release(slot);
  }

  #count({ method, startMs, sentBytes, answerLength }: Slot, code: number): void {
    const seconds = (this.timers.nowMs() - startMs) / 1000;
    this.metrics.requests.answered(method, code, seconds, sentBytes, answerLength);
  }

  #release(slot: Slot): void {
    slot.clear();
    this.#free.push(slot);
  }

  /** Repeats a request after a pause. */
  #delay(slot: Slot, pauseMs: number): void {
    slot.state = 'delayed';
    this.#putOff++;
    const step = Math.ceil((this.timers.nowMs() + pauseMs) / DELAY_STEP_MS);
    const group = this.#delayed.get(step);
    if (group !== undefined) {
      group.slots.push(slot);
      return;
    }
    const cancel = this.timers.after(step * DELAY_STEP_MS - this.timers.nowMs(), () => {
      const { slots } = this.#delayed.get(step) ?? { slots: [] };
      this.#delayed.delete(step);
      for (const next of slots) {
        if (next.state === 'delayed') {
          this.#putOff--;
          this.#enqueue(next, true);
        } else this.#release(next);
      }
      this.#pump();
    });
    this.#delayed.set(step, { slots: [slot], cancel });
  }

  /** No connection can be made: whoever streams is told, requests wait for their deadlines. */
  #failStreams(message: string): void {
    for (const stream of this.#waitingStreams.splice(0)) {
      stream.fail(`cannot reach ${this.#options.serverName}: ${message}`);
    }
  }

  #keepSweeping(): void {
    this.#cancelSweep ??= this.timers.after(SWEEP_MS, () => {
      this.#cancelSweep = null;
      this.#sweep(this.timers.nowMs());
    });
  }

  #sweep(nowMs: number): void {
    let isAnyLeft = false;
    for (const slot of this.#slots) {
      if (slot.state === 'free' || slot.state === 'dead') continue;
      isAnyLeft = true;
      if (slot.deadlineMs > nowMs) continue;
      // Cancelling calls `onEnd`, which sees that the deadline has passed.
      if (slot.state === 'flying') slot.stream?.cancel();
      else this.#finish(slot, this.#whyNotSent());
    }
    this.#dropDead();
    if (isAnyLeft) this.#keepSweeping();
    this.#pump();
  }

  /** Takes out of the queue what ended while it waited there. */
  #dropDead(): void {
    let slot = this.#first;
    this.#first = null;
    this.#last = null;
    while (slot !== null) {
      const { next } = slot;
      slot.next = null;
      if (slot.state === 'dead') this.#release(slot);
      else if (this.#last === null) this.#first = slot;
      else this.#last.next = slot;
      if (slot.state === 'queued') this.#last = slot;
      slot = next;
    }
  }

  #whyNotSent(): string {
    const { serverName } = this.#options;
    if (this.#links.isAnyOpen) return `${serverName} took no more requests in time`;
    return `cannot reach ${serverName}: ${this.#links.lastFailure || 'no connection in time'}`;
  }
}

function freshMetrics(): ClientMetrics {
  return {
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
}

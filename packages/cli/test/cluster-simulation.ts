/**
 * An API server with its store, and a client of it, in one process and under one seeded clock.
 * Requests fail, answers are lost, watches are cut and the server starts anew as a test tells it.
 */
import { createApiServer } from '@megaplane/apiserver/assembly';
import { EmbeddedStorage } from '@megaplane/apiserver/embedded-storage';
import { ExchangeModel } from '@megaplane/apiserver/exchange-model.sim';
import type { WebhookCaller } from '@megaplane/apiserver/admission/webhook-call';
import type { ApiServer } from '@megaplane/apiserver/server';
import type { StorageWatch } from '@megaplane/apiserver/storage';
import { madeUpStatus } from '@megaplane/client/answer';
import { Random } from '@megaplane/base/random';
import type {
  Client,
  ClientMetrics,
  ClientRequest,
  ClientResponse,
  Method,
  SendDone,
  StreamHandle,
  StreamSink,
} from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import * as status from '@megaplane/machinery/status';
import { Store } from '@megaplane/store/store';
import { SimulatedLine } from './simulated-line.ts';
import { SimulatedWebhook } from './simulated-webhook.ts';
import { SimulatedClock, SimulatedTimers } from './simulated-timers.ts';

const START_MS: number = Date.UTC(2026, 0, 5);
/** The server looks at its own clock, and history is cut, so often. */
const TICK_MS = 10_000;

/**
 * What becomes of a request: `lost` makes it and tells nobody, `slow` tells later, and `crash` ends
 * the server amid it, one to three turns after it came.
 */
export type Fault = 'none' | 'lost' | 'refused' | 'throttled' | 'unreachable' | 'slow' | 'crash';
/** An answer that is late is so by this at most. */
const LATE_MS_MAX = 10_000;
const CRASH_TURNS_MAX = 3;

/** Ends with its server, as it does when a process ends: the store forgets its watches. */
class MortalStorage extends EmbeddedStorage {
  readonly #watches: StorageWatch[] = [];
  readonly #listeners: (() => void)[] = [];

  override onPublish(listener: () => void): void {
    if (this.#listeners.push(listener) > 1) return;
    super.onPublish(() => {
      for (const told of this.#listeners) told();
    });
  }

  override watch(...place: Parameters<EmbeddedStorage['watch']>): StorageWatch | null {
    const watch = super.watch(...place);
    if (watch !== null) this.#watches.push(watch);
    return watch;
  }

  end(): void {
    for (const watch of this.#watches.splice(0)) watch.close();
    this.#listeners.length = 0;
  }
}

interface Pending {
  readonly exchange: ExchangeModel;
  /** Null for what users and kubelets ask: the server does not crash amid it. */
  readonly request: ClientRequest | null;
  readonly finish: () => void;
}

export class ClusterSimulation implements Client {
  readonly timers: SimulatedTimers = new SimulatedTimers(START_MS);
  readonly serverClock: SimulatedClock = new SimulatedClock(this.timers);
  readonly metrics: ClientMetrics = undefined as unknown as ClientMetrics;
  readonly retryAfterSeconds = 0;
  /** Asked for each request of the client. */
  faultOf: (request: ClientRequest) => Fault = () => 'none';
  /** Told of each request of the client, before its fault. */
  heard: (request: ClientRequest) => void = () => {};
  /** Told whenever something may have been stored. */
  stored: () => void = () => {};
  /** Told of each request that was made and whose answer is lost. */
  lost: (request: ClientRequest) => void = () => {};
  /** Answers come in another order than that in which they were given. */
  isDisordered = false;
  readonly webhook: SimulatedWebhook = new SimulatedWebhook(this.timers);
  /** Told of each request of users and kubelets. */
  asked: (method: Method, path: string, body?: JsonObject | string) => void = () => {};
  readonly store: Store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  readonly #random: Random;
  readonly #later: (() => void)[] = [];
  readonly #lines: Set<SimulatedLine> = new Set();
  /** Until when nothing gets through on a line. */
  readonly #stalledMs: Map<SimulatedLine, number> = new Map();
  /** Of troubles alone: what happens on quiet days does not depend on them. */
  readonly #luck: Random;
  /** The server ends after so many turns; 0: not at all. */
  #crashIn = 0;
  #pending: Pending[] = [];
  #storage: MortalStorage | null = null;
  #server: ApiServer;
  #uuids = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#luck = new Random(seed).fork('luck');
    this.#server = this.#start();
    this.#tick();
  }

  #start(): ApiServer {
    const storage = new MortalStorage(this.store, () => Promise.resolve());
    this.#storage = storage;
    // A server that has ended does nothing more.
    const alive = (work: () => void): void => {
      if (this.#storage === storage) work();
    };
    const later = (work: () => void): void => void this.#later.push(() => alive(work));
    const webhooks: WebhookCaller = {
      call: (target, body, timeoutMs, then) =>
        this.webhook.call(target, body, timeoutMs, (answer) => alive(() => then(answer))),
    };
    const edge = {
      nowMs: () => this.serverClock.wallMs(),
      below: (count: number) => this.#random.below(count),
      uuid: () => this.#uuid(),
      defer: later,
      deferPiece: later,
    };
    return createApiServer({ storage, edge, webhooks, address: '127.0.0.1:6443' });
  }

  #uuid(): string {
    const head = (this.#random.int32() >>> 0).toString(16).padStart(8, '0');
    return `${head}-0000-4000-8000-${String(++this.#uuids).padStart(12, '0')}`;
  }

  #tick(): void {
    this.timers.after(TICK_MS, () => {
      this.#server.tick(this.serverClock.wallMs());
      this.store.tick(this.timers.nowMs());
      this.#tick();
    });
  }

  random(): number {
    return this.#random.next();
  }

  /** What a user or a kubelet asks: without faults, answered at once. */
  async ask(
    method: Method,
    path: string,
    body?: JsonObject | string,
    contentType: string = CONTENT.json,
  ): Promise<ClientResponse> {
    this.asked(method, path, body);
    const exchange = this.#exchange({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      contentType,
    });
    return new Promise((resolve) => {
      const finish = (): void => resolve(answerOf(exchange));
      this.#pending.push({ exchange, finish, request: null });
    });
  }

  #exchange(request: ClientRequest): ExchangeModel {
    const { method, path, body, contentType = CONTENT.json, accept = CONTENT.lean } = request;
    const headers: Record<string, string> = { accept };
    if (body !== undefined) headers['content-type'] = contentType;
    const exchange = new ExchangeModel(method, path, body, headers);
    this.#server.handle(exchange);
    return exchange;
  }

  request(request: ClientRequest): Promise<ClientResponse> {
    this.heard(request);
    const fault = this.faultOf(request);
    if (fault === 'refused' || fault === 'throttled' || fault === 'unreachable') {
      return new Promise((resolve) => this.#later.push(() => resolve(REFUSALS[fault])));
    }
    const exchange = this.#exchange(request);
    const { timeoutMs = Infinity } = request;
    const lateMs = fault === 'slow' ? this.#luck.below(LATE_MS_MAX) : 0;
    const isLost = fault === 'lost' || fault === 'crash' || lateMs >= timeoutMs;
    if (isLost) this.lost(request);
    if (fault === 'crash') this.#crashIn = 1 + this.#luck.below(CRASH_TURNS_MAX);
    return new Promise((resolve) => {
      const finish = (): void => {
        const answer = isLost ? REFUSALS.unreachable : answerOf(exchange);
        if (lateMs === 0) resolve(answer);
        else this.timers.after(Math.min(lateMs, timeoutMs), () => resolve(answer));
      };
      this.#pending.push({ exchange, finish, request });
    });
  }

  send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag = 0,
  ): boolean {
    const request = { method, path, contentType, ...(body === null ? {} : { body }) };
    const exchange = this.#exchange(request);
    const finish = (): void => {
      const { bytes } = exchange;
      done(exchange.status, bytes, 0, bytes.length, tag);
    };
    this.#pending.push({ exchange, finish, request });
    return true;
  }

  stream(path: string, sink: StreamSink): StreamHandle {
    const line = new SimulatedLine(path, sink, { accept: CONTENT.lean });
    this.#lines.add(line);
    this.#server.handle(line);
    return line;
  }

  /** Runs everything that follows from what has happened, until nothing more does. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 2;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#turn() ? 0 : quiet + 1;
    }
  }

  #turn(): boolean {
    if (this.#crashIn > 0 && --this.#crashIn === 0) this.#crash();
    this.store.flush();
    this.stored();
    let hasMoved = this.#later.length > 0;
    for (let turns = this.#later.length; turns > 0; turns--) this.#later.shift()?.();
    for (const line of [...this.#lines]) {
      if (line.isOver) this.#lines.delete(line);
      else if (this.#isStalled(line)) continue;
      else if (line.pump()) hasMoved = true;
    }
    const ready = this.#pending.filter(({ exchange }) => exchange.closed);
    if (ready.length === 0) return hasMoved || this.#crashIn > 0;
    this.#pending = this.#pending.filter(({ exchange }) => !exchange.closed);
    for (let left = this.isDisordered ? ready.length : 0; left > 1; left--) {
      ready.push(...ready.splice(this.#luck.below(left), 1));
    }
    for (const { finish } of ready) finish();
    return true;
  }

  #isStalled(line: SimulatedLine): boolean {
    const untilMs = this.#stalledMs.get(line);
    if (untilMs === undefined) return false;
    if (untilMs > this.timers.nowMs()) return true;
    this.#stalledMs.delete(line);
    return false;
  }

  /** Nothing gets through on half of the watches, for each its own time. */
  stall(msMax: number): void {
    for (const line of this.#lines) {
      if (this.#luck.below(2) === 0) continue;
      const stallMs = this.#luck.below(msMax);
      this.#stalledMs.set(line, this.timers.nowMs() + stallMs);
      this.timers.after(stallMs, () => {});
    }
  }

  /** History is forgotten: watches that are taken up again are told so, with 410. */
  forget(): void {
    this.store.flush();
    this.stored();
    this.cut();
    this.#storage?.compact(this.store.publishedRevision);
  }

  /** Once nobody asks who takes no for an answer. */
  #crash(): void {
    const isAwaited = this.#pending.some(
      ({ request, exchange }) => request === null && !exchange.closed,
    );
    if (isAwaited) this.#crashIn = 1;
    else this.restart();
  }

  /** Time passes, timer by timer, with all that follows from each. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.timers.nowMs() + byMs;
    await this.settle();
    while (this.timers.step(untilMs)) await this.settle();
  }

  /** All watches break off. */
  cut(): void {
    for (const line of [...this.#lines]) line.cut();
    this.#lines.clear();
    this.#stalledMs.clear();
  }

  /** The server ends and starts anew: what was under way is answered by nobody. */
  restart(): void {
    this.#crashIn = 0;
    this.cut();
    this.#server.drain();
    for (const { exchange, finish, request } of this.#pending) {
      if (!exchange.closed && request !== null) this.lost(request);
      if (!exchange.closed) exchange.cancel();
      finish();
    }
    this.#pending = [];
    this.#storage?.end();
    this.#server = this.#start();
  }

  room(): number {
    return 1_000;
  }

  onRoom(): void {}
  close(): void {}
}

function refusal(code: number, text: status.Status): ClientResponse {
  return { ok: false, code, status: text };
}

const REFUSALS = {
  refused: refusal(500, status.internalError('the test refuses')),
  throttled: refusal(429, status.internalError('too many requests')),
  unreachable: refusal(0, status.timeout()),
} as const;

function answerOf(exchange: ExchangeModel): ClientResponse {
  if (exchange.status === 0) return REFUSALS.unreachable;
  const { bytes, status: code } = exchange;
  if (code < 300) return new ModelAnswer(code, bytes);
  const text = bytes.toString('utf8');
  const isStatus = text.startsWith('{');
  // paths that nobody serves are answered in plain text
  const told = isStatus ? (JSON.parse(text) as status.Status) : madeUpStatus(code, text);
  return { ok: false, code, status: told };
}

/** Read when somebody looks: most renewals are never looked at. */
class ModelAnswer {
  readonly ok = true;
  readonly code: number;
  readonly bytes: Buffer;
  #object: JsonObject | undefined;

  constructor(code: number, bytes: Buffer) {
    this.code = code;
    this.bytes = bytes;
  }

  get object(): JsonObject {
    this.#object ??= JSON.parse(this.bytes.toString('utf8')) as JsonObject;
    return this.#object;
  }
}

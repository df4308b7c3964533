/**
 * An API server with its store, and a client of it, in one process and under one seeded clock.
 * Requests fail, answers are lost, watches are cut and the server starts anew as a test tells it.
 */
import { createApiServer } from '@megaplane/apiserver/assembly';
import { EmbeddedStorage } from '@megaplane/apiserver/embedded-storage';
import { ExchangeModel } from '@megaplane/apiserver/exchange-model.sim';
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
import { SimulatedClock, SimulatedTimers } from './simulated-timers.ts';

const START_MS: number = Date.UTC(2026, 0, 5);
/** The server looks at its own clock, and history is cut, so often. */
const TICK_MS = 10_000;

export type Fault = 'none' | 'lost' | 'refused' | 'throttled' | 'unreachable';

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
  /** Told of each request of users and kubelets. */
  asked: (method: Method, path: string, body?: JsonObject | string) => void = () => {};
  readonly store: Store = new Store({ dataDir: null, durability: 'none', prefixes: [] }, 1);
  readonly #random: Random;
  readonly #later: (() => void)[] = [];
  readonly #lines: Set<SimulatedLine> = new Set();
  #pending: Pending[] = [];
  #storage: MortalStorage | null = null;
  #server: ApiServer;
  #uuids = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#server = this.#start();
    this.#tick();
  }

  #start(): ApiServer {
    const storage = new MortalStorage(this.store, () => Promise.resolve());
    this.#storage = storage;
    const later = (work: () => void): void => void this.#later.push(work);
    const edge = {
      nowMs: () => this.serverClock.wallMs(),
      below: (count: number) => this.#random.below(count),
      uuid: () => this.#uuid(),
      defer: later,
      deferPiece: later,
    };
    return createApiServer({ storage, edge, address: '127.0.0.1:6443' });
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

  /** The same client in a process on another machine, with its clock. */
  at(timers: SimulatedClock): Client {
    return {
      timers,
      metrics: this.metrics,
      retryAfterSeconds: 0,
      request: (request) => this.request(request),
      send: (method, path, contentType, body, done, tag) =>
        this.send(method, path, contentType, body, done, tag),
      stream: (path, sink) => this.stream(path, sink),
      room: () => this.room(),
      random: () => this.random(),
      onRoom: () => {},
      close: () => {},
    };
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
      this.#pending.push({ exchange, finish: () => resolve(answerOf(exchange)) });
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
    if (fault === 'lost') this.lost(request);
    return new Promise((resolve) => {
      const finish = (): void =>
        resolve(fault === 'lost' ? REFUSALS.unreachable : answerOf(exchange));
      this.#pending.push({ exchange, finish });
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
    this.#pending.push({ exchange, finish });
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
    this.store.flush();
    this.stored();
    let hasMoved = this.#later.length > 0;
    for (let turns = this.#later.length; turns > 0; turns--) this.#later.shift()?.();
    for (const line of [...this.#lines]) {
      if (line.isOver) this.#lines.delete(line);
      else if (line.pump()) hasMoved = true;
    }
    const ready = this.#pending.filter(({ exchange }) => exchange.closed);
    if (ready.length === 0) return hasMoved;
    this.#pending = this.#pending.filter(({ exchange }) => !exchange.closed);
    for (const { finish } of ready) finish();
    return true;
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
  }

  /** The server ends and starts anew: what was under way is answered by nobody. */
  restart(): void {
    this.cut();
    this.#server.drain();
    for (const { exchange, finish } of this.#pending) {
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

// shell: the services of a shard, and what it does about the effects of its core
import { randomUUID } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { pauseMs, unawaited } from '@megaplane/base/deferred';
import type { Page } from '@megaplane/client/http-endpoint';
import { processMetrics } from '@megaplane/client/process-metrics';
import { systemTimers } from '@megaplane/client/system-timers';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCallHandler } from '@megaplane/wire/grpc';
import type { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { pathOfMethod } from '../contract/calls.ts';
import { identityOf } from '../contract/identity.ts';
import { OperatorMessageSchema, Shard } from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import type { FleetTls } from '../contract/tls-files.ts';
import { ShardCore } from './core.ts';
import { CoordinatorLink, readAssigned } from './coordinator-link.ts';
import { Domains } from './domains.ts';
import type { Effect } from './effects.ts';
import { metricsPage } from './metrics-page.ts';
import { Outbox } from './outbox.ts';
import { ProviderLink } from './provider-link.ts';
import { serveReaders } from './reading.ts';
import type { RunShardOptions } from './run-options.ts';
import { serveSingleCall } from './single-call.ts';

/** A shard that stops waits so long for what is under way. */
const STOP_MS_MAX = 5000;
const STOP_LOOK_MS = 20;
/** Longest pause between two looks at what is due. */
const WAKE_MS_MAX = 60_000;
/** Between two reports to the coordinator. */
const REPORT_MS = 30_000;

interface Stream {
  readonly call: GrpcCall;
  readonly outbox: Outbox;
}

export class ShardServer {
  readonly #options: RunShardOptions;
  readonly #core: ShardCore;
  readonly #links: readonly ProviderLink[];
  readonly #streams = new Map<number, Stream>();
  readonly #tls: FleetTls | null;
  readonly #epoch: bigint;
  readonly #domains: Domains;
  readonly #term: bigint;
  #coordinator: CoordinatorLink | null = null;
  /** Told of each cycle that worked out all rows. */
  #onInspected: () => void = () => undefined;
  #sessions = 0;
  #cancelWake: (() => void) | null = null;
  #isStopped = false;

  constructor(options: RunShardOptions, epoch: bigint, tls: FleetTls | null) {
    this.#options = options;
    this.#tls = tls;
    this.#epoch = epoch;
    const { term, pairs } = readAssigned(options.dataDir);
    this.#term = term;
    this.#domains = new Domains(pairs);
    const domains = this.#domains;
    const { shardId, engine, cycleMs, joinMs, concurrency, isIncremental, providers } = options;
    this.#core = new ShardCore({
      ...{ shardId, epoch, engine, cycleMs, joinMs, concurrency, isIncremental, domains },
      newId: randomUUID,
      providers: providers.map((one) => `${one.host}:${one.port}`),
      listWaitMs: Math.max(1000, cycleMs),
    });
    this.#links = providers.map(
      ({ isSecure, ...address }) =>
        new ProviderLink(address, () => (isSecure ? tls?.current.connect : undefined)),
    );
  }

  /** `address`: where operators reach this shard, for its coordinator. */
  start(address: string): void {
    const { coordinators = [], shardId, dataDir, reportMs = REPORT_MS, log } = this.#options;
    if (coordinators.length > 0) {
      this.#coordinator = new CoordinatorLink({
        ...{ addresses: coordinators, shardId, dataDir, address, log, intervalMs: reportMs },
        ...{ epoch: this.#epoch, domains: this.#domains, term: this.#term },
        tls: () => this.#tls?.current.connect,
        reported: () => {
          const { number: cycle, shortfalls } = this.#core.last;
          return { cycle, shortfalls, inventory: this.#core.machines.inventory };
        },
        changed: () => this.#act((nowMs) => this.#core.reassigned(nowMs)),
      });
      this.#coordinator.start();
    }
    this.#act(() => {});
  }

  serve(routes: GrpcRoutes): void {
    routes.call(pathOfMethod(Shard.method.session), (call) => this.#session(call));
    const act = (tell: (nowMs: number) => void): void => this.#act(tell);
    this.#onInspected = serveReaders(routes, this.#core, act);
    serveSingleCall(routes, this.#core, act);
  }

  page(path: string): Page | null {
    const contentType = 'text/plain; version=0.0.4';
    const { paused } = this.#options.engine;
    if (path === '/metrics') {
      return { contentType, text: metricsPage(this.#core, paused) + processMetrics() };
    }
    if (path === '/healthz' || path === '/livez') return { contentType: 'text/plain', text: 'ok' };
    if (path !== '/readyz') return null;
    if (this.#core.isReady) return { contentType: 'text/plain', text: 'ok' };
    const text = 'not all providers have told their machines\n';
    return { status: 503, contentType: 'text/plain', text };
  }

  async stop(): Promise<void> {
    this.#act(() => this.#core.stop());
    const deadlineMs = systemTimers.nowMs() + STOP_MS_MAX;
    while (this.#core.actuator.inFlight > 0 && systemTimers.nowMs() < deadlineMs) {
      await pauseMs(STOP_LOOK_MS);
    }
    this.#isStopped = true;
    this.#cancelWake?.();
    this.#coordinator?.stop();
    for (const { call } of this.#streams.values()) {
      call.finish(GRPC_CODES.unavailable, 'the shard stops');
    }
    this.#streams.clear();
    for (const link of this.#links) link.close();
  }

  /** Tells the core something, does what it wants then, and comes back when it is due. */
  #act(tell: (nowMs: number) => void): void {
    if (this.#isStopped) return;
    const { number } = this.#core.last;
    const beganMs = performance.now();
    const nowMs = systemTimers.nowMs();
    try {
      tell(nowMs);
      this.#core.tick(nowMs);
    } catch (error) {
      // one cluster's words or one cycle end nothing else
      this.#options.log('error', (error as Error).stack ?? String(error));
    }
    if (this.#core.last.number > number) {
      this.#core.counts.cycleSeconds.record((performance.now() - beganMs) / 1000);
    }
    for (const effect of this.#core.takeEffects()) this.#carryOut(effect);
    if (this.#core.inspection !== null) this.#onInspected();
    this.#cancelWake?.();
    const delayMs = Math.min(WAKE_MS_MAX, Math.max(1, this.#core.wakeMs - nowMs));
    this.#cancelWake = systemTimers.after(delayMs, () => this.#act(() => {}));
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'send': {
        const stream = this.#streams.get(effect.session);
        if (stream === undefined) return;
        if (!stream.outbox.put(effect.payload)) return this.#tooSlow(effect.session, stream);
        return flush(stream);
      }
      case 'close': {
        const stream = this.#streams.get(effect.session);
        this.#streams.delete(effect.session);
        stream?.call.finish(effect.code, effect.message);
        return;
      }
      case 'call': {
        const { call, change, provider } = effect;
        this.#answer(
          provider,
          (link) => link.change(change),
          (answer, nowMs) => {
            this.#core.called(call, answer, nowMs);
          },
        );
        return;
      }
      case 'list': {
        const { list, provider, sinceRevision } = effect;
        this.#answer(
          provider,
          (link) => link.list(sinceRevision),
          (answer, nowMs) => {
            this.#core.listed(provider, list, answer, nowMs);
          },
        );
        return;
      }
      case 'log':
        return this.#options.log(effect.level, effect.message);
    }
  }

  #answer<Answer>(
    provider: number,
    ask: (link: ProviderLink) => Promise<Answer>,
    tell: (answer: Answer, nowMs: number) => void,
  ): void {
    const link = this.#links[provider];
    if (link === undefined) return;
    unawaited(ask(link).then((answer) => this.#act((nowMs) => tell(answer, nowMs))));
  }

  #tooSlow(session: number, { call }: Stream): void {
    this.#streams.delete(session);
    call.finish(GRPC_CODES.resourceExhausted, 'too many messages wait to be read');
    this.#core.closed(session);
  }

  #session(call: GrpcCall): GrpcCallHandler {
    const session = ++this.#sessions;
    const stream = { call, outbox: new Outbox() };
    this.#streams.set(session, stream);
    this.#act((nowMs) => this.#core.opened(session, identityOf(call.connection), nowMs));
    const gone = (): void => {
      this.#streams.delete(session);
      this.#act(() => this.#core.closed(session));
    };
    return {
      onMessage: (bytes, start, end) => {
        let message: OperatorMessage;
        try {
          // what is kept of a message must not lie in what the wire reads into next
          message = fromBinary(OperatorMessageSchema, Buffer.from(bytes.subarray(start, end)));
        } catch (error) {
          this.#act(() => this.#core.malformed(session, (error as Error).message));
          return;
        }
        this.#act((nowMs) => this.#core.received(session, message, nowMs));
      },
      onHalfClose: () => {
        gone();
        call.finish(GRPC_CODES.ok);
      },
      onCancel: gone,
      onWritable: () => flush(stream),
    };
  }
}

function flush({ call, outbox }: Stream): void {
  while (!call.closed && call.writable() > 0) {
    const frame = outbox.next();
    if (frame === undefined) return;
    call.send(frame);
  }
}

// shell: ports, clock and connections of `megaplane fleet shard`
import { randomUUID } from 'node:crypto';
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { pauseMs, unawaited } from '@megaplane/base/deferred';
import { serveHttp } from '@megaplane/client/http-endpoint';
import type { Page } from '@megaplane/client/http-endpoint';
import { systemTimers } from '@megaplane/client/system-timers';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall, GrpcCallHandler } from '@megaplane/wire/grpc';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';
import { MESSAGE_BYTES_MAX, pathOfMethod } from '../contract/calls.ts';
import { OperatorMessageSchema, Shard } from '../contract/tables/shard.ts';
import type { OperatorMessage } from '../contract/tables/shard.ts';
import {
  InspectNeedsRequestSchema,
  InspectNeedsResponseSchema,
} from '../contract/tables/shardread.ts';
import { ShardRead } from '../contract/tables/shardread.ts';
import type { InspectNeedsRequest, InspectNeedsResponse } from '../contract/tables/shardread.ts';
import type { ShardOptions } from '../engine/shard.ts';
import { ShardCore } from './core.ts';
import type { Effect } from './effects.ts';
import { beginEpoch } from './epoch.ts';
import { identityOf, mayRead } from './identity.ts';
import { inspectionFrames } from './inspection.ts';
import { metricsPage } from './metrics-page.ts';
import { Outbox } from './outbox.ts';
import { ProviderLink } from './provider-link.ts';
import type { ProviderAddress } from './provider-link.ts';
import { ShardTls } from './shard-tls.ts';
import type { ShardTlsFiles } from './shard-tls.ts';

/** Readers that wait for a cycle. */
export const READERS_WAITING_MAX = 64;
/** A reader that has waited so long is told that nothing was computed yet. */
const READER_MS_MAX = 5000;
/** A shard that stops waits so long for what is under way. */
const STOP_MS_MAX = 5000;
const STOP_LOOK_MS = 20;
/** Longest pause between two looks at what is due. */
const WAKE_MS_MAX = 60_000;

export interface RunShardOptions {
  readonly shardId: string;
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  /** `host:port` of metrics and health. */
  readonly metricsAddress: string;
  /** `isSecure`: over TLS, with the shard's own certificate. */
  readonly providers: readonly (ProviderAddress & { readonly isSecure: boolean })[];
  readonly tls?: ShardTlsFiles;
  readonly engine: ShardOptions;
  readonly cycleMs: number;
  readonly joinMs: number;
  readonly concurrency: number;
  readonly isIncremental: boolean;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
}

/** Starts a shard; it works until `stop`. Throws where files are wrong or ports are taken. */
export async function runShard(options: RunShardOptions): Promise<{
  readonly listens: string;
  readonly port: number;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}> {
  const { host, port, log } = options;
  const tls =
    options.tls === undefined ? null : new ShardTls(options.tls, (text) => log('warn', text));
  const server = new ShardServer(options, beginEpoch(options.dataDir), tls);
  const routes = new GrpcRoutes({
    messageBytesMax: MESSAGE_BYTES_MAX,
    messageTooLargeText: (bytes, bytesMax) => `a message of ${bytes} bytes, over ${bytesMax}`,
  });
  server.serve(routes);
  const listener = await listen({
    ...{ host, port, grpc: routes },
    ...(tls === null ? {} : { tls: tls.current.listen, currentTls: () => tls.current.listen }),
    handler: (exchange) => exchange.respond(404, 'text/plain', 'only gRPC is served here\n'),
  });
  const pages = await serveHttp(options.metricsAddress, ({ path }) => server.page(path)).catch(
    async (error: unknown) => {
      await listener.close();
      throw error;
    },
  );
  server.start();
  const shown = `${host}:${listener.address.port}`;
  if (tls === null && !/^(127\.|::1$|localhost$)/.test(host)) {
    log('warn', `${shown} is open to others without TLS: anybody may speak for any cluster`);
  }
  return {
    listens: `shard ${options.shardId} on ${shown}, metrics on ${pages.url}`,
    port: listener.address.port,
    metricsUrl: pages.url,
    stop: async () => {
      await server.stop();
      await listener.close();
      await pages.close();
    },
  };
}

interface Stream {
  readonly call: GrpcCall;
  readonly outbox: Outbox;
}

class ShardServer {
  readonly #options: RunShardOptions;
  readonly #core: ShardCore;
  readonly #links: readonly ProviderLink[];
  readonly #streams = new Map<number, Stream>();
  readonly #readers = new Set<() => void>();
  #sessions = 0;
  #cancelWake: (() => void) | null = null;
  #isStopped = false;

  constructor(options: RunShardOptions, epoch: bigint, tls: ShardTls | null) {
    this.#options = options;
    const { shardId, engine, cycleMs, joinMs, concurrency, isIncremental, providers } = options;
    this.#core = new ShardCore({
      ...{ shardId, epoch, engine, cycleMs, joinMs, concurrency, isIncremental },
      newId: randomUUID,
      providers: providers.map((one) => `${one.host}:${one.port}`),
      listWaitMs: Math.max(1000, cycleMs),
    });
    this.#links = providers.map(
      ({ isSecure, ...address }) =>
        new ProviderLink(address, () => (isSecure ? tls?.current.connect : undefined)),
    );
  }

  start(): void {
    this.#act(() => {});
  }

  serve(routes: GrpcRoutes): void {
    routes.call(pathOfMethod(Shard.method.session), (call) => this.#session(call));
    const path = pathOfMethod(ShardRead.method.inspectNeeds);
    routes.call(path, (call) => this.#inspect(call), 'server_stream');
  }

  page(path: string): Page | null {
    const contentType = 'text/plain; version=0.0.4';
    const { paused } = this.#options.engine;
    if (path === '/metrics') {
      return { contentType, text: metricsPage(this.#core, paused) };
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
    if (this.#core.inspection !== null) for (const answer of [...this.#readers]) answer();
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

  #inspect(call: GrpcCall): GrpcCallHandler {
    let request: InspectNeedsRequest | undefined;
    let frames: Iterator<InspectNeedsResponse> | undefined;
    const send = (): void => {
      while (frames !== undefined && !call.closed && call.writable() > 0) {
        const { done, value } = frames.next();
        if (done === true) return call.finish(GRPC_CODES.ok);
        call.send(toBinary(InspectNeedsResponseSchema, value));
      }
    };
    const answer = (): void => {
      this.#readers.delete(answer);
      if (request === undefined || frames !== undefined) return;
      const nothing = { cycle: 0, atMs: 0, views: [] };
      frames = inspectionFrames(request, this.#core.inspection ?? nothing);
      send();
    };
    return {
      onMessage: (bytes, start, end) => {
        try {
          request = fromBinary(InspectNeedsRequestSchema, bytes.subarray(start, end));
        } catch (error) {
          call.finish(GRPC_CODES.invalidArgument, (error as Error).message);
        }
      },
      onHalfClose: () => {
        const refusal = this.#readerRefusal(call);
        if (refusal !== undefined) return call.finish(...refusal);
        this.#readers.add(answer);
        systemTimers.after(READER_MS_MAX, answer);
        this.#act((nowMs) => this.#core.inspected(nowMs));
      },
      onCancel: () => this.#readers.delete(answer),
      onWritable: send,
    };
  }

  #readerRefusal(call: GrpcCall): Parameters<GrpcCall['finish']> | undefined {
    if (!mayRead(identityOf(call.connection))) {
      return [GRPC_CODES.permissionDenied, 'the certificate is neither readonly nor admin'];
    }
    if (this.#readers.size < READERS_WAITING_MAX) return undefined;
    return [GRPC_CODES.resourceExhausted, `${READERS_WAITING_MAX} readers wait already`];
  }
}

function flush({ call, outbox }: Stream): void {
  while (!call.closed && call.writable() > 0) {
    const frame = outbox.next();
    if (frame === undefined) return;
    call.send(frame);
  }
}

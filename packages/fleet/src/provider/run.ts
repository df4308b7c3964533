// shell: the port and the clock of `megaplane fleet provider`
import { randomInt } from 'node:crypto';
import { Random } from '@megaplane/base/random';
import { serveHttp } from '@megaplane/client/http-endpoint';
import { systemTimers } from '@megaplane/client/system-timers';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { connect } from '@megaplane/wire/connect';
import type { ConnectTls } from '@megaplane/wire/connect';
import { GRPC_CODES } from '@megaplane/wire/grpc';
import type { GrpcCall } from '@megaplane/wire/grpc';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';
import { CallError, callUnary, MESSAGE_BYTES_MAX, serveUnary } from '../contract/calls.ts';
import { identityOf } from '../contract/identity.ts';
import { CapacityProvider } from '../contract/tables/provider.ts';
import { FleetTls } from '../contract/tls-files.ts';
import type { FleetTlsFiles } from '../contract/tls-files.ts';
import { nodesBackend, simulatedBackend, staticBackend } from './backends.ts';
import { readCatalogue, readInventory } from './catalogue.ts';
import { certify } from './certify.ts';
import type { CertifyOptions, ProviderCalls } from './certify-bench.ts';
import type { Verdict } from './certify.ts';
import { Journal } from './journal.ts';
import { providerMetrics } from './metrics-page.ts';
import { NodeJoins } from './node-joins.ts';
import { Provider } from './provider.ts';
import type { Backend } from './provider.ts';

const CALL_MS = 30_000;
const LIST_MS = 120_000;
const INSTANCE_MAX = 2 ** 47;
/** Transitions end when somebody asks, and so often by themselves: nodes join meanwhile. */
const TICK_MS = 1000;

export interface RunProviderOptions {
  readonly host: string;
  readonly port: number;
  /**
   * A catalogue to be played with a seed, a list of hosts, or a catalogue whose machines join
   * clusters as Nodes.
   */
  readonly source:
    | { readonly kind: 'simulated' | 'nodes'; readonly file: JsonValue; readonly seed: number }
    | { readonly kind: 'static'; readonly file: JsonValue };
  readonly timeoutMs: number;
  /** Where machines and tokens are kept over a restart; without it they are not. */
  readonly dataDir?: string;
  readonly tls?: FleetTlsFiles;
  /** `host:port` of metrics and health; none without it. */
  readonly metricsAddress?: string;
  readonly log?: (level: 'info' | 'warn' | 'error', message: string) => void;
}

/** Listens, and plays a provider until `stop`. Throws where the file is wrong. */
export async function runProvider(options: RunProviderOptions): Promise<{
  readonly listens: string;
  readonly port: number;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}> {
  const { host, port, dataDir, source, metricsAddress, log = () => {} } = options;
  const tls =
    options.tls === undefined ? null : new FleetTls(options.tls, (text) => log('warn', text));
  const journal = dataDir === undefined ? null : new Journal(dataDir, randomInt(1, INSTANCE_MAX));
  const joins = new NodeJoins({
    settle: (id, operationId, failure) => {
      provider.settle(id, operationId, failure, systemTimers.nowMs());
      journal?.flush();
    },
    log,
  });
  const provider: Provider = providerOf(options, journal, joins);
  if (journal !== null) journal.leftNow = () => provider.left;
  const routes = new GrpcRoutes({
    messageBytesMax: MESSAGE_BYTES_MAX,
    messageTooLargeText: (bytes, bytesMax) => `a message of ${bytes} bytes, over ${bytesMax}`,
  });
  const flush = (): void => journal?.flush();
  serveProvider(routes, provider, () => systemTimers.nowMs(), flush);
  const listener = await listen({
    ...{ host, port, grpc: routes },
    ...(tls === null ? {} : { tls: tls.current.listen, currentTls: () => tls.current.listen }),
    handler: (exchange) => exchange.respond(404, 'text/plain', 'only gRPC is served here\n'),
  });
  const contentType = 'text/plain; version=0.0.4';
  const pages =
    metricsAddress === undefined
      ? null
      : await serveHttp(metricsAddress, ({ path }) => {
          if (path === '/metrics') return { contentType, text: providerMetrics(provider) };
          return path === '/healthz' ? { contentType: 'text/plain', text: 'ok' } : null;
        });
  let cancel = (): void => {};
  const turn = (): void => {
    provider.tick(systemTimers.nowMs());
    flush();
    cancel = systemTimers.after(TICK_MS, turn);
  };
  turn();
  const shown = `${host}:${listener.address.port}`;
  if (tls === null && !/^(127\.|::1$|localhost$)/.test(host)) {
    log('warn', `${shown} is open to others without TLS: anybody may take machines`);
  }
  const metrics = pages === null ? '' : `, metrics on ${pages.url}`;
  return {
    listens: `${source.kind} provider on ${shown}${metrics}`,
    port: listener.address.port,
    metricsUrl: pages?.url ?? '',
    stop: async () => {
      cancel();
      joins.stop();
      await listener.close();
      await pages?.close();
      journal?.close();
    },
  };
}

function providerOf(
  { source, timeoutMs }: RunProviderOptions,
  journal: Journal | null,
  joins: NodeJoins,
): Provider {
  const kept =
    journal === null
      ? { instance: randomInt(1, INSTANCE_MAX) }
      : {
          ...{ instance: journal.instance, life: journal.life, left: journal.left },
          keeper: journal,
        };
  const make = (machines: ReturnType<typeof readInventory>, backend: Backend): Provider =>
    new Provider({ machines, backend, timeoutMs, ...kept });
  if (source.kind === 'static') return make(readInventory(source.file), staticBackend());
  const catalogue = readCatalogue(source.file);
  const random = new Random(source.seed);
  const backend =
    source.kind === 'simulated'
      ? simulatedBackend(catalogue, random)
      : nodesBackend(simulatedBackend(catalogue, random), (started) => joins.started(started));
  return make([...catalogue.machines], backend);
}

/**
 * Serves the six calls. Time passes for the provider when it is called; `flush` is called before
 * each answer. Over TLS a shard changes machines by its own name alone.
 */
export function serveProvider(
  routes: GrpcRoutes,
  provider: Provider,
  nowMs: () => number,
  flush: () => void = () => {},
): void {
  const { method } = CapacityProvider;
  const flushed = <Answer>(answer: Answer): Answer => {
    flush();
    return answer;
  };
  const change = <Request extends { readonly shardId: string }, Answer>(
    call: GrpcCall,
    request: Request,
    make: (request: Request, nowMs: number) => Answer,
  ): Answer => {
    admit(call, request.shardId);
    try {
      return make(request, nowMs());
    } finally {
      // a token that passed counts, whatever becomes of the call
      flush();
    }
  };
  serveUnary(routes, method.create, (request, call) =>
    change(call, request, (one, at) => provider.create(one, at)),
  );
  serveUnary(routes, method.configure, (request, call) =>
    change(call, request, (one, at) => provider.configure(one, at)),
  );
  serveUnary(routes, method.drain, (request, call) =>
    change(call, request, (one, at) => provider.drain(one, at)),
  );
  serveUnary(routes, method.delete, (request, call) =>
    change(call, request, (one, at) => provider.delete(one, at)),
  );
  serveUnary(routes, method.get, ({ id }) => flushed(provider.get(id, nowMs())));
  serveUnary(routes, method.list, (filter) => flushed(provider.list(filter, nowMs())));
}

/** Throws `PermissionDenied` where a certificate is of another shard, and not the admin's. */
function admit(call: GrpcCall, shardId: string): void {
  const identity = identityOf(call.connection);
  if (identity === undefined || identity === 'bigfleet://admin') return;
  if (identity === `bigfleet://shard/${shardId}`) return;
  const why = `the certificate is not of shard ${shardId || '(none)'}`;
  throw new CallError(GRPC_CODES.permissionDenied, why);
}

/** Runs the certification against a provider that listens; resolves with a verdict each. */
export async function certifyProvider(
  where: { readonly host: string; readonly port: number; readonly tls?: ConnectTls },
  options: Pick<CertifyOptions, 'profile'> & Partial<Pick<CertifyOptions, 'restart' | 'seed'>>,
): Promise<readonly Verdict[]> {
  const { host, port, tls } = where;
  const dial = (): ReturnType<typeof connect> =>
    connect({ host, port, ...(tls === undefined ? {} : { tls }) });
  let connection = dial();
  const client = (): ReturnType<typeof grpcClient> => {
    const { state } = connection;
    if (state !== 'connecting' && state !== 'open') connection = dial();
    return grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  };
  const { method } = CapacityProvider;
  const calls: ProviderCalls = {
    create: (request) => callUnary(client(), method.create, request, CALL_MS),
    configure: (request) => callUnary(client(), method.configure, request, CALL_MS),
    drain: (request) => callUnary(client(), method.drain, request, CALL_MS),
    delete: (request) => callUnary(client(), method.delete, request, CALL_MS),
    get: (request) => callUnary(client(), method.get, request, CALL_MS),
    list: (request) => callUnary(client(), method.list, request, LIST_MS),
  };
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => systemTimers.after(ms, resolve));
  const shard = `certify-${randomInt(1, INSTANCE_MAX)}`;
  const seed = options.seed ?? randomInt(1, INSTANCE_MAX);
  const restart = async (): Promise<void> => {
    await options.restart?.();
    connection.destroy();
    connection = dial();
  };
  const lane = options.restart === undefined ? {} : { restart };
  try {
    return await certify(calls, { ...options, ...lane, seed, sleep, shard });
  } finally {
    connection.destroy();
  }
}

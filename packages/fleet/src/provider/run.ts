// shell: the port and the clock of `megaplane fleet provider`
import { randomInt } from 'node:crypto';
import { Random } from '@megaplane/base/random';
import { systemTimers } from '@megaplane/client/system-timers';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { connect } from '@megaplane/wire/connect';
import { grpcClient } from '@megaplane/wire/grpc-client';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';
import { callUnary, MESSAGE_BYTES_MAX, serveUnary } from '../contract/calls.ts';
import { CapacityProvider } from '../contract/tables/provider.ts';
import { simulatedBackend, staticBackend } from './backends.ts';
import { readCatalogue, readInventory } from './catalogue.ts';
import { certify } from './certify.ts';
import type { Verdict } from './certify.ts';
import { Provider } from './provider.ts';
import type { ProviderCalls } from './certify-bench.ts';

const CALL_MS = 30_000;
const LIST_MS = 120_000;
const INSTANCE_MAX = 2 ** 47;

export interface RunProviderOptions {
  readonly host: string;
  readonly port: number;
  /** A catalogue to be played with a seed, or a list of hosts. */
  readonly source:
    | { readonly kind: 'simulated'; readonly file: JsonValue; readonly seed: number }
    | { readonly kind: 'static'; readonly file: JsonValue };
  readonly timeoutMs: number;
}

/** Listens, and plays a provider until `stop`. Throws where the file is wrong. */
export async function runProvider(
  options: RunProviderOptions,
): Promise<{ readonly listens: string; readonly port: number; stop(): Promise<void> }> {
  const provider = providerOf(options);
  const routes = new GrpcRoutes({
    messageBytesMax: MESSAGE_BYTES_MAX,
    messageTooLargeText: (bytes, bytesMax) => `a message of ${bytes} bytes, over ${bytesMax}`,
  });
  serveProvider(routes, provider, () => systemTimers.nowMs());
  const { host, port } = options;
  const handler: Parameters<typeof listen>[0]['handler'] = (exchange) => {
    exchange.respond(404, 'text/plain', 'only gRPC is served here\n');
  };
  const listener = await listen({ host, port, grpc: routes, handler });
  return {
    listens: `${options.source.kind} provider on ${host}:${listener.address.port}`,
    port: listener.address.port,
    stop: () => listener.close(),
  };
}

function providerOf({ source, timeoutMs }: RunProviderOptions): Provider {
  const instance = randomInt(1, INSTANCE_MAX);
  if (source.kind === 'static') {
    const machines = readInventory(source.file);
    return new Provider({ machines, backend: staticBackend(), timeoutMs, instance });
  }
  const catalogue = readCatalogue(source.file);
  const backend = simulatedBackend(catalogue, new Random(source.seed));
  return new Provider({ machines: catalogue.machines, backend, timeoutMs, instance });
}

/** Serves the six calls. Time passes for the provider when it is called. */
export function serveProvider(routes: GrpcRoutes, provider: Provider, nowMs: () => number): void {
  const { method } = CapacityProvider;
  serveUnary(routes, method.create, (request) => provider.create(request, nowMs()));
  serveUnary(routes, method.configure, (request) => provider.configure(request, nowMs()));
  serveUnary(routes, method.drain, (request) => provider.drain(request, nowMs()));
  serveUnary(routes, method.delete, (request) => provider.delete(request, nowMs()));
  serveUnary(routes, method.get, ({ id }) => provider.get(id, nowMs()));
  serveUnary(routes, method.list, (filter) => provider.list(filter, nowMs()));
}

/** Runs the certification against a provider that listens; resolves with a verdict each. */
export async function certifyProvider(
  host: string,
  port: number,
  profile: Parameters<typeof certify>[1]['profile'],
): Promise<readonly Verdict[]> {
  const connection = connect({ host, port });
  const client = grpcClient(connection, { messageBytesMax: MESSAGE_BYTES_MAX });
  const { method } = CapacityProvider;
  const calls: ProviderCalls = {
    create: (request) => callUnary(client, method.create, request, CALL_MS),
    configure: (request) => callUnary(client, method.configure, request, CALL_MS),
    drain: (request) => callUnary(client, method.drain, request, CALL_MS),
    delete: (request) => callUnary(client, method.delete, request, CALL_MS),
    get: (request) => callUnary(client, method.get, request, CALL_MS),
    list: (request) => callUnary(client, method.list, request, LIST_MS),
  };
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => systemTimers.after(ms, resolve));
  try {
    return await certify(calls, { profile, sleep, shard: `certify-${randomInt(1, INSTANCE_MAX)}` });
  } finally {
    connection.destroy();
  }
}

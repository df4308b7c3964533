// shell: ports of `megaplane fleet shard`
import { serveHttp } from '@megaplane/client/http-endpoint';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';
import { MESSAGE_BYTES_MAX } from '../contract/calls.ts';
import { FleetTls } from '../contract/tls-files.ts';
import { beginEpoch } from './epoch.ts';
import type { RunShardOptions } from './run-options.ts';
import { ShardServer } from './server.ts';

export type { RunShardOptions } from './run-options.ts';

/** Starts a shard; it works until `stop`. Throws where files are wrong or ports are taken. */
export async function runShard(options: RunShardOptions): Promise<{
  readonly listens: string;
  readonly port: number;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}> {
  const { host, port, log } = options;
  const tls =
    options.tls === undefined ? null : new FleetTls(options.tls, (text) => log('warn', text));
  const epoch = beginEpoch(options.dataDir);
  const server = new ShardServer(options, epoch, tls);
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
  const shown = `${host}:${listener.address.port}`;
  server.start(options.advertised ?? shown);
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

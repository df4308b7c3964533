// shell: ports and clock of `megaplane fleet coordinator`
import { serveHttp } from '@megaplane/client/http-endpoint';
import type { Page } from '@megaplane/client/http-endpoint';
import { systemTimers } from '@megaplane/client/system-timers';
import { GrpcRoutes } from '@megaplane/wire/grpc-routes';
import { listen } from '@megaplane/wire/listener';
import { MESSAGE_BYTES_MAX } from '../contract/calls.ts';
import { FleetTls } from '../contract/tls-files.ts';
import type { FleetTlsFiles } from '../contract/tls-files.ts';
import { Coordinator } from './coordinator.ts';
import type { Keeping } from './keeping.ts';
import { coordinatorMetrics } from './metrics-page.ts';
import { serveCoordinator } from './service.ts';

export type { Keeping } from './keeping.ts';

export interface RunCoordinatorOptions {
  readonly host: string;
  readonly port: number;
  readonly metricsAddress: string;
  /** An etcd v3 cluster. Whoever made it closes it. */
  readonly keeping: Keeping;
  /** Keys of this fleet begin so; it ends in a slash. */
  readonly prefix: string;
  /** Where others reach this one; default: where it listens. */
  readonly advertised?: string;
  readonly ttlSeconds: number;
  readonly tls?: FleetTlsFiles;
  readonly log: (level: 'info' | 'warn' | 'error', message: string) => void;
}

/** Starts a coordinator; it works until `stop`. Throws where files are wrong or ports taken. */
export async function runCoordinator(options: RunCoordinatorOptions): Promise<{
  readonly listens: string;
  readonly port: number;
  readonly metricsUrl: string;
  stop(): Promise<void>;
}> {
  const { host, port, log, keeping, prefix, ttlSeconds } = options;
  const tls =
    options.tls === undefined ? null : new FleetTls(options.tls, (text) => log('warn', text));
  const routes = new GrpcRoutes({
    messageBytesMax: MESSAGE_BYTES_MAX,
    messageTooLargeText: (bytes, bytesMax) => `a message of ${bytes} bytes, over ${bytesMax}`,
  });
  const listener = await listen({
    ...{ host, port, grpc: routes },
    ...(tls === null ? {} : { tls: tls.current.listen, currentTls: () => tls.current.listen }),
    handler: (exchange) => exchange.respond(404, 'text/plain', 'only gRPC is served here\n'),
  });
  const shown = `${host}:${listener.address.port}`;
  const coordinator = new Coordinator({
    ...{ keeping, prefix, ttlSeconds, log, clock: systemTimers },
    self: options.advertised ?? shown,
  });
  serveCoordinator(routes, coordinator);
  const pages = await serveHttp(options.metricsAddress, ({ path }) =>
    pageAt(coordinator, path),
  ).catch(async (error: unknown) => {
    await listener.close();
    throw error;
  });
  if (tls === null && !/^(127\.|::1$|localhost$)/.test(host)) {
    log('warn', `${shown} is open to others without TLS: anybody may change the fleet`);
  }
  coordinator.leadership.start();
  return {
    listens: `coordinator on ${shown}, metrics on ${pages.url}`,
    port: listener.address.port,
    metricsUrl: pages.url,
    stop: async () => {
      await coordinator.leadership.stop();
      await listener.close();
      await pages.close();
    },
  };
}

function pageAt(coordinator: Coordinator, path: string): Page | null {
  if (path === '/metrics') {
    const contentType = 'text/plain; version=0.0.4';
    return { contentType, text: coordinatorMetrics(coordinator) };
  }
  if (path === '/healthz' || path === '/livez') return { contentType: 'text/plain', text: 'ok' };
  if (path !== '/readyz') return null;
  const { leader, fault } = coordinator.leadership;
  if (leader !== '') return { contentType: 'text/plain', text: 'ok' };
  return { status: 503, contentType: 'text/plain', text: `nobody leads ${fault}\n` };
}

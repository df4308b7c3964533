// shell: the simulator's clockwork, sockets and files
/** `megaplane nodes`: registers simulated kubelets and plays their part against an API server. */
import { afterMs, everyMs } from '@megaplane/base/deferred';
import { randomUUID } from 'node:crypto';
import type { Client, ClientLimits } from '@megaplane/client/client';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { processMetrics } from '@megaplane/client/process-metrics';
import { stringAt } from '@megaplane/machinery/json';
import { frontProxyOf, type FrontProxy } from '../server/front-proxy.ts';
import { KubeletData } from '../server/kubelet-data.ts';
import { publishMetricsApi } from '../server/metrics-service.ts';
import { openKubeletPort, type KubeletPort } from '../server/kubelet-port.ts';
import { PortAccess } from '../server/port-access.ts';
import { PortConfig } from '../server/port-config.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import { judgeKwokFiles } from '../stages/kwok-files.ts';
import { isPassing, retry } from '../client/retry.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';
import { Clusters } from './clusters.ts';
import type { NodesOptions, Log } from './nodes-options.ts';

/**
 * How often what is due is sent: often enough for leases of tens of seconds, and many at once: a
 * server that is woken 20 times a second for 10,000 renewals works a tenth less than for 50.
 */
const TICK_MS = 50;
/** Connections for renewals, for each one for everything else, and renewals in flight on each. */
const RENEWAL_CONNECTIONS_FACTOR = 2;
const RENEWALS_IN_FLIGHT_MAX = 1000;
/** A server that is not reached after so long is told of. */
const UNREACHED_MS = 3000;
/** Where API servers publish the authority of their clients. */
const AUTHORITY_PATH =
  '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';

export interface NodesService {
  readonly listens: string;
  stop(): Promise<void>;
}

/**
 * Enough in flight that neither end waits for the other: a server that answers renewals in groups
 * would otherwise be asked for the next group only when the last has been read. What a server puts
 * off is told at once: kubelets pace themselves, and a repetition each second of what a million
 * nodes ask would be ten times what they usually ask.
 */
function renewalLimits(connections: number): Partial<ClientLimits> {
  const count = connections * RENEWAL_CONNECTIONS_FACTOR;
  return { connections: count, inFlightMax: count * RENEWALS_IN_FLIGHT_MAX, retriesMax: 0 };
}

/**
 * Starts the simulator, with options that `validateOptions` has found fine. Resolves when it plays;
 * registering `create` nodes goes on after that.
 */
export async function runNodes(options: NodesOptions): Promise<NodesService> {
  judgeKwokFiles(options.files);
  const limits = { connections: options.connections };
  const client = await createKubeClient({ kubeconfig: options.kubeconfig, limits });
  // As a kubelet does: renewals never wait behind the other traffic of their own process.
  const heartbeats = await createKubeClient({
    kubeconfig: options.kubeconfig,
    limits: renewalLimits(options.connections),
  });
  tellUnreached(client, options.log);
  const metrics = new SimulatorMetrics();
  const host: { worlds: Clusters | null } = { worlds: null };
  const config = new PortConfig({
    nowMs: () => client.timers.wallMs(),
    random: () => client.random(),
    startedContainers: (node) => host.worlds?.present?.startedContainers(node) ?? 0,
  });
  const world = (): SimulatedCluster | null => host.worlds?.present ?? null;
  const port = await openPort({ options, client, config, metrics, world });
  const endpoint = { ...options.endpoint, port: options.endpoint.port || port.port };
  const identity = `megaplane-nodes-${randomUUID()}`;
  const worlds = new Clusters({
    ...{ client, heartbeats, options, metrics, endpoint, config, identity },
    clock: { steadyMs: () => performance.now(), wallMs: () => Date.now() },
  });
  host.worlds = worlds;
  const stop = async (): Promise<void> => {
    await worlds.stop();
    client.close();
    heartbeats.close();
    await port.close();
  };
  try {
    await worlds.start();
  } catch (error) {
    await stop();
    throw error;
  }
  if (options.metricsApi) {
    const host = options.endpoint.hostname || options.endpoint.nodeIp || 'localhost';
    const log = (message: string): void => options.log('warn', message);
    void publishMetricsApi(client, { host, port: endpoint.port }, log);
  }
  const interval = everyMs(TICK_MS, () => worlds.tick());
  return {
    listens: `${client.server}; kubelets https://${port.address}; metrics http://${port.address}/metrics`,
    stop: async () => {
      clearInterval(interval);
      await stop();
    },
  };
}

function tellUnreached(client: KubeClient, log: Log): void {
  afterMs(UNREACHED_MS, () => {
    const { connects, connectFailures } = client.metrics;
    if (connects > 0 || connectFailures === 0) return;
    log('warn', `${client.server} cannot be reached yet; trying on (is it running?)`);
  }).unref();
}

interface PortParts {
  readonly options: NodesOptions;
  readonly client: Client;
  readonly config: PortConfig;
  readonly metrics: SimulatorMetrics;
  readonly world: () => SimulatedCluster | null;
}

async function openPort(parts: PortParts): Promise<KubeletPort> {
  const { options, client, config, metrics, world } = parts;
  const { certificate, key } = options.tls;
  const published = await publishedAuthorities(client, options.log);
  const clientCa = options.tls.clientCa ?? published.clientCa;
  if (clientCa === null) {
    const why = 'the API server publishes no authority of its clients';
    options.log('info', `${why}: only tokens open the kubelets' port (see --client-ca-file)`);
  }
  return openKubeletPort({
    address: options.serverAddress,
    tls: { certificate, key, clientCa, frontProxy: published.frontProxy },
    access: new PortAccess(client),
    config,
    data: new KubeletData(client),
    nowMs: () => client.timers.wallMs(),
    metrics: () => metrics.text() + processMetrics(),
    nodeNames: () => world()?.nodeNames() ?? [],
    nodeValues: (way) => world()?.nodeValues(way) ?? new Uint8Array(0),
    nodeNameAt: (row) => world()?.nodeNameAt(row) ?? '',
    onTrouble: (message) => options.log('warn', message),
  });
}

interface Published {
  readonly clientCa: string | null;
  readonly frontProxy: FrontProxy | null;
}

/** Waits for a server in trouble: whom the port believes is not looked at again. */
async function publishedAuthorities(client: Client, log: Log): Promise<Published> {
  let published: Published = { clientCa: null, frontProxy: null };
  await retry({
    client,
    isStopped: () => false,
    onTrouble: (message) => log('warn', message),
    attempt: async () => {
      const answer = await client.request({ method: 'GET', path: AUTHORITY_PATH });
      if (!answer.ok) return isPassing(answer.code) ? (answer.status.message ?? 'no answer') : '';
      const clientCa = stringAt(answer.object, 'data', 'client-ca-file') || null;
      published = { clientCa, frontProxy: frontProxyOf(answer.object) };
      return '';
    },
  });
  return published;
}

// shell: the simulator's clockwork, sockets and files
/** `megaplane nodes`: registers simulated kubelets and plays their part against an API server. */
import type { Client } from '@megaplane/client/client';
import type { Informer, InformerHandler } from '@megaplane/client/informer';
import { createInformer } from '@megaplane/client/informer';
import { createKubeClient } from '@megaplane/client/kube-client';
import { readPages } from '@megaplane/client/pager';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import { AddressPool, parseCidr } from './addresses.ts';
import { Kubelets } from './kubelets.ts';
import { LEASE_PATH } from './lease-object.ts';
import { serveMetrics } from '@megaplane/client/metrics-endpoint';
import { DEFAULT_TEMPLATE, NodeBodies } from './node-object.ts';
import { Pods } from './pods.ts';
import { Registration } from './registration.ts';
import { SimulatorMetrics } from './simulator-metrics.ts';
import { loadStages } from './stages/stage-sets.ts';
import { StagedWorld } from './staged-world.ts';

/** How often what is due is sent: often enough for leases, and many at once in one write. */
const TICK_MS = 20;

export type Log = (level: 'error' | 'warn' | 'info' | 'debug', message: string) => void;

export interface NodesOptions {
  readonly kubeconfig: string;
  /** Nodes to register, `node-0` and on; those that exist already are taken over. */
  readonly create: number;
  /** A Node as JSON; name, zone label and addresses are filled in. */
  readonly template?: JsonObject;
  readonly zones: readonly string[];
  /** Only nodes that match are simulated; empty: all. */
  readonly labelSelector: string;
  /** Addresses of pods. */
  readonly cidr: string;
  /** Files of stages, or names of sets that come with the program; none: the compiled ones. */
  readonly stages: readonly string[];
  /** 0: no leases. */
  readonly leaseDurationSeconds: number;
  /** Connections for nodes and pods, and as many again for heartbeats. */
  readonly connections: number;
  /** `host:port` of the metrics endpoint. */
  readonly metricsAddress: string;
  readonly log: Log;
}

export interface NodesService {
  readonly listens: string;
  stop(): Promise<void>;
}

/** Starts the simulator. Resolves when it plays; registering `create` nodes goes on after that. */
export async function runNodes(options: NodesOptions): Promise<NodesService> {
  if (parseCidr(options.cidr) === undefined) {
    throw new Error(`--cidr: ${options.cidr} is no IPv4 network of /8 to /30, such as 10.0.0.0/9`);
  }
  const limits = { connections: options.connections };
  const client = await createKubeClient({ kubeconfig: options.kubeconfig, limits });
  // As a kubelet does: renewals never wait behind the other traffic of their own process.
  const heartbeats = await createKubeClient({ kubeconfig: options.kubeconfig, limits });
  const metrics = new SimulatorMetrics();
  const world = await play({ client, heartbeats, options, metrics });
  const endpoint = await serveMetrics(options.metricsAddress, () => metrics.text());
  const interval = setInterval(() => world.tick(), TICK_MS);
  return {
    listens: `${client.server}; metrics ${endpoint.url}`,
    stop: async () => {
      clearInterval(interval);
      world.stop();
      client.close();
      heartbeats.close();
      await endpoint.close();
    },
  };
}

interface Parts {
  readonly client: Client;
  readonly heartbeats: Client;
  readonly options: NodesOptions;
  readonly metrics: SimulatorMetrics;
}

interface World {
  tick(): void;
  stop(): void;
}

/** Everything wired, and begun. Rejects with an Error that says what is wrong with the stages. */
async function play({ client, heartbeats, options, metrics }: Parts): Promise<World> {
  const onTrouble = (message: string): void => options.log('warn', message);
  const addresses = new AddressPool(options.cidr);
  const findNode = (name: string): number => nodes.find('', name);
  const nodeAddress = (row: number): number => kubelets.addressOf(row);
  const staged = new StagedWorld({ client, metrics, addresses, findNode, nodeAddress, onTrouble });
  await staged.prepare(loadStages(options.stages, staged.functions, onTrouble));
  const kubelets: Kubelets = new Kubelets({
    client: heartbeats,
    leaseDurationSeconds: options.leaseDurationSeconds,
    metrics,
    keepsStatus: !staged.hasNodes,
    nameOf: (id) => nodes.keyOf(id),
    onNode: (id) => {
      played.onNode(nodes.keyOf(id));
      staged.onNode(nodes.keyOf(id));
    },
  });
  const played: Pods = new Pods({
    client,
    metrics,
    addresses,
    find: (namespace, name) => pods.find(namespace, name),
    nodeAddress: (node) => (findNode(node) < 0 ? -1 : nodeAddress(findNode(node))),
  });
  const pods: Informer = createInformer({
    client,
    path: '/api/v1/pods',
    fieldSelector: 'spec.nodeName!=',
    handler: { ...played.handler, onTrouble },
  });
  let isStarted = false;
  const onSynced = (): void => {
    if (isStarted) return;
    isStarted = true;
    if (!staged.hasPods) pods.start();
    staged.start();
    registrationOf({ client, heartbeats, options, metrics }, nodes).start();
    void startLeases(client, kubelets, nodes).catch((error: Error) => onTrouble(error.message));
  };
  const nodes: Informer = createInformer({
    client,
    path: '/api/v1/nodes',
    labelSelector: options.labelSelector,
    capacity: options.create,
    handler: { ...both(kubelets.handler, staged.nodeHandler), onTrouble, onSynced },
  });
  nodes.start();
  return {
    tick: () => {
      kubelets.tick();
      staged.tick();
    },
    stop: () => {
      nodes.stop();
      pods.stop();
      staged.stop();
    },
  };
}

function registrationOf({ client, options, metrics }: Parts, nodes: Informer): Registration {
  const zones = options.zones.length > 0 ? options.zones : ['zone-a'];
  return new Registration({
    client,
    metrics,
    count: options.create,
    bodies: new NodeBodies({ template: options.template ?? DEFAULT_TEMPLATE, zones }),
    exists: (name) => nodes.find('', name) >= 0,
    log: options.log,
  });
}

/** Two handlers of one informer; what holds the rows hears of them first. */
function both(first: InformerHandler, second: InformerHandler | null): InformerHandler {
  if (second === null) return first;
  return {
    onUpsert: (id, isNew, bytes, start, end) => {
      first.onUpsert(id, isNew, bytes, start, end);
      second.onUpsert(id, isNew, bytes, start, end);
    },
    onDelete: (id, bytes, start, end) => {
      second.onDelete(id, bytes, start, end);
      first.onDelete(id, bytes, start, end);
    },
  };
}

/** Leases from before are taken over: their versions are read page by page, then renewals begin. */
async function startLeases(client: Client, kubelets: Kubelets, nodes: Informer): Promise<void> {
  const scan = new ObjectScan();
  const result = await readPages({
    client,
    path: LEASE_PATH,
    onItem: (bytes, start, end) => {
      if (!scan.scan(bytes, start, end)) return;
      const name = Buffer.from(bytes.subarray(scan.nameStart, scan.nameEnd)).toString('utf8');
      const id = nodes.find('', name);
      if (id >= 0) kubelets.adopt(id, scan.resourceVersion);
    },
  });
  if (!result.ok) throw new Error(`cannot read leases: ${result.status.message}`);
  kubelets.start(nodes.idLimit, (id) => nodes.has(id));
}

// shell
/**
 * Processor time of single requests, without sockets and without a log:
 *
 *     node packages/apiserver/src/server/request-path.bench.ts [part of a name ...]
 *
 * An API server over a store in memory; each figure is microseconds of this process per request:
 * the median of many short slices, and the slice that an eighth of them beat, which is what a
 * quiet machine would show.
 */
import { randomUUID } from 'node:crypto';
import { widgetDefinition, widgetOf } from '@megaplane/machinery/custom/widgets.sim';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { openStore } from '@megaplane/store/open';
import { createApiServer } from './assembly.ts';
import { bootstrap } from '../controlplane/bootstrap.ts';
import { EmbeddedStorage } from '../storage/embedded/embedded-storage.ts';
import { ConnectionModel, ExchangeModel } from '../testing/exchange-model.sim.ts';
import { identityOf } from '../request/identity.ts';

const COUNT = Number(process.env['COUNT'] ?? 10_000);
const ROUNDS = 6;
/** Timed by themselves, so that a busy neighbour spoils some and not all. */
const SLICE = 400;

const opened = openStore({
  dataDir: null,
  durability: 'none',
  prefixes: [],
  historyBytesMax: 16 * 1024 * 1024,
});
const storage = new EmbeddedStorage(opened.store, () => opened.close());
let uuids = 0;
/** By how much the turn is older than it is. */
let lateMs = 0;
let later: (() => void)[] = [];
/** Requests whose turn comes when the slice settles. */
const waiting: ExchangeModel[] = [];
/** As simulated nodes come: as a node of that name they might renew one lease only. */
const KUBELETS = identityOf('system:megaplane:nodes', ['system:megaplane:nodes']);
const api = createApiServer({
  storage,
  edge: {
    nowMs: () => Date.now(),
    below: (n) => ++uuids % n,
    uuid: () => randomUUID(),
    defer: (work) => void later.push(work),
    deferPiece: (work) => setImmediate(work),
  },
  address: '127.0.0.1:6443',
  clockMs: () => performance.now() + lateMs,
  authorizers: [() => ({ allowed: true, reason: '' })],
  tokenReaders: () => [() => KUBELETS],
});
const connection = new ConnectionModel();
const foreign = new ConnectionModel(false);
const DEFAULT = '/api/v1/namespaces/default';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

function ask(method: string, path: string, body?: Buffer, type?: string): ExchangeModel {
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
  const exchange = new ExchangeModel(method, path, body, headers, connection);
  api.handle(exchange);
  return exchange;
}

/** The next turns, until nothing is left to do. */
function settle(): void {
  while (later.length > 0) {
    const now = later;
    later = [];
    for (const work of now) work();
  }
}

function expect(exchange: ExchangeModel, status: number): ExchangeModel {
  if (exchange.status !== status) throw new Error(`${exchange.status}: ${exchange.text}`);
  return exchange;
}

const OWNERS = [{ apiVersion: 'v1', kind: 'Pod', name: 'res-0', uid: randomUUID() }];
const ENV = Array.from({ length: 20 }, (_, n) => ({ name: `SETTING_${n}`, value: 'x'.repeat(50) }));

/** About 500 bytes as `up` sends it, or about 2 KB as a workload has it. */
function podBody(name: string, isLarge: boolean): Buffer {
  const container = {
    name: 'main',
    image: 'registry.k8s.io/pause:3.10',
    resources: { requests: { cpu: '100m', memory: '64Mi' } },
    ...(isLarge ? { env: ENV } : {}),
  };
  const metadata = { name, ownerReferences: OWNERS, labels: { app: 'res' } };
  const tolerations = [{ key: 'kwok.x-k8s.io/node', operator: 'Exists', effect: 'NoSchedule' }];
  const spec = { terminationGracePeriodSeconds: 1, tolerations, containers: [container] };
  return Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec }));
}

function bindingBody(name: string): Buffer {
  const target = { apiVersion: 'v1', kind: 'Node', name: `node-${name}` };
  const metadata = { name, namespace: 'default' };
  return Buffer.from(JSON.stringify({ kind: 'Binding', apiVersion: 'v1', metadata, target }));
}

/** What a kubelet says of a pod that runs; `second` makes each one a change. */
function statusOf(second: number): object {
  const now = new Date(second * 1000).toISOString().replace('.000', '');
  const condition = (type: string) => ({
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: now,
  });
  const image = 'registry.k8s.io/pause:3.10';
  const about = { name: 'main', image, imageID: '', ready: true, started: true, restartCount: 0 };
  return {
    phase: 'Running',
    conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady'].map(
      condition,
    ),
    containerStatuses: [{ ...about, state: { running: { startedAt: now } } }],
    hostIP: '10.0.0.1',
    hostIPs: [{ ip: '10.0.0.1' }],
    podIP: '10.1.0.1',
    podIPs: [{ ip: '10.1.0.1' }],
    startTime: now,
  };
}

function leaseBody(name: string, revision: string, second: number): Buffer {
  const renewTime = new Date(second * 1000).toISOString().replace('Z', '000Z');
  const metadata = {
    name,
    namespace: 'default',
    ...(revision === '' ? {} : { resourceVersion: revision }),
  };
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
  const apiVersion = 'coordination.k8s.io/v1';
  return Buffer.from(JSON.stringify({ kind: 'Lease', apiVersion, metadata, spec }));
}

/** A custom resource of a schema of 200 nodes and five rules. */
function widgetBody(name: string): Buffer {
  const widget = widgetOf(1);
  return Buffer.from(JSON.stringify({ ...widget, metadata: { name, namespace: 'default' } }));
}

/** As kubelets register: four conditions, 32 CPUs, an address of its own. */
function nodeBody(name: string, index: number, second: number): Buffer {
  const now = new Date(second * 1000).toISOString().replace('.000', '');
  const condition = (type: string) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
    reason: `Kubelet${type}`,
    message: `kubelet tells of ${type}`,
  });
  const types = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
  const amounts = { cpu: '32', memory: '256Gi', pods: '110', 'ephemeral-storage': '1Ti' };
  const labels = {
    'beta.kubernetes.io/arch': 'amd64',
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    'kubernetes.io/hostname': name,
    'topology.kubernetes.io/zone': `zone-${index % 3}`,
  };
  const address = `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
  const status = {
    capacity: amounts,
    allocatable: amounts,
    conditions: types.map(condition),
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    nodeInfo: { kubeletVersion: 'v1.36.1', operatingSystem: 'linux', architecture: 'amd64' },
  };
  const metadata = { name, labels };
  return Buffer.from(
    JSON.stringify({ kind: 'Node', apiVersion: 'v1', metadata, spec: {}, status }),
  );
}

let round = 0;
const nodes = '/api/v1/nodes';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const revisions = new Map<number, string>();

function revisionOf(exchange: ExchangeModel): string {
  return /"resourceVersion":"(\d+)"/.exec(exchange.text)?.[1] ?? '';
}

/** Each prepares its bodies first, so that only the server's part is timed. */
const SHAPES: Readonly<Record<string, (index: number) => () => ExchangeModel>> = {
  'create a pod of 500 B': (index) => {
    const body = podBody(`s${round}-${index}`, false);
    return () => expect(ask('POST', `${DEFAULT}/pods`, body), 201);
  },
  'create a pod of 2 KB': (index) => {
    const body = podBody(`l${round}-${index}`, true);
    return () => expect(ask('POST', `${DEFAULT}/pods`, body), 201);
  },
  'create a pod in protobuf': (index) => {
    const text = podBody(`b${round}-${index}`, true).toString();
    const body = encodeProtobuf(JSON.parse(text) as JsonObject);
    return () => expect(ask('POST', `${DEFAULT}/pods`, body, PROTOBUF), 201);
  },
  'bind a pod': (index) => {
    const name = `s${round}-${index}`;
    const body = bindingBody(name);
    return () => expect(ask('POST', `${DEFAULT}/pods/${name}/binding`, body), 201);
  },
  'patch the status, strategic': (index) => {
    const status = statusOf(1_700_000_000 + round);
    const uid = expect(ask('GET', `${DEFAULT}/pods/s${round}-${index}`), 200);
    const own =
      /"uid":"([^"]+)","creation/.exec(uid.text)?.[1] ?? /"uid":"([^"]+)"/.exec(uid.text)?.[1];
    const body = Buffer.from(JSON.stringify({ metadata: { uid: own }, status }));
    const path = `${DEFAULT}/pods/s${round}-${index}/status`;
    const type = 'application/strategic-merge-patch+json';
    return () => expect(ask('PATCH', path, body, type), 200);
  },
  'patch the status with an id': (index) => {
    const containerID = `containerd://${randomUUID().replaceAll('-', '').repeat(2)}`;
    const containerStatuses = [{ name: 'main', containerID }];
    const body = Buffer.from(JSON.stringify({ status: { containerStatuses } }));
    const path = `${DEFAULT}/pods/s${round}-${index}/status`;
    const type = 'application/strategic-merge-patch+json';
    return () => expect(ask('PATCH', path, body, type), 200);
  },
  'put the status': (index) => {
    const path = `${DEFAULT}/pods/s${round}-${index}`;
    const pod = JSON.parse(ask('GET', path).text) as { metadata: Record<string, unknown> };
    delete pod.metadata['resourceVersion'];
    const body = Buffer.from(JSON.stringify({ ...pod, status: statusOf(1_800_000_000 + round) }));
    return () => expect(ask('PUT', `${path}/status`, body), 200);
  },
  'get a pod': (index) => () => expect(ask('GET', `${DEFAULT}/pods/s${round}-${index}`), 200),
  'create a lease': (index) => {
    const body = leaseBody(`l${round}-${index}`, '', 1_700_000_000);
    return () => {
      const made = expect(ask('POST', leases, body), 201);
      revisions.set(index, revisionOf(made));
      return made;
    };
  },
  'renew a lease': (index) => {
    const name = `l${round}-${index}`;
    const body = leaseBody(name, revisions.get(index) ?? '', 1_700_000_010);
    return () => expect(ask('PUT', `${leases}/${name}`, body, 'application/json'), 200);
  },
  'create a node': (index) => {
    const name = `n${round}-${index}`;
    const body = nodeBody(name, index, 1_700_000_000 + round);
    return () => {
      const made = expect(ask('POST', nodes, body), 201);
      revisions.set(index, revisionOf(made));
      return made;
    };
  },
  'patch a node, as its lifecycle does': (index) => {
    const annotations = { 'node.alpha.kubernetes.io/ttl': '300' };
    const metadata = { resourceVersion: revisions.get(index) ?? '', annotations };
    const body = Buffer.from(JSON.stringify({ metadata, spec: { taints: null } }));
    const path = `${nodes}/n${round}-${index}`;
    return () => expect(ask('PATCH', path, body, 'application/merge-patch+json'), 200);
  },
  'patch the status of a node': (index) => {
    const { status } = JSON.parse(nodeBody('x', 0, 1_700_000_300 + round).toString()) as {
      status: { conditions: object[] };
    };
    const { conditions } = status;
    const daemonEndpoints = { kubeletEndpoint: { Port: 10_250 } };
    const body = Buffer.from(JSON.stringify({ status: { conditions, daemonEndpoints } }));
    const path = `${nodes}/n${round}-${index}/status`;
    return () => expect(ask('PATCH', path, body, 'application/strategic-merge-patch+json'), 200);
  },
  'create a custom resource of 2 KB': (index) => {
    const body = widgetBody(`w${round}-${index}`);
    return () => expect(ask('POST', widgets, body), 201);
  },
  'renew a lease, after others': (index) => {
    const path = `${leases}/l${round}-${index}`;
    const revision = revisionOf(expect(ask('GET', path), 200));
    const body = leaseBody(`l${round}-${index}`, revision, 1_700_000_020);
    const headers = { 'content-type': 'application/json', authorization: 'Bearer kubelets' };
    return () => {
      const exchange = new ExchangeModel('PUT', path, body, headers, foreign);
      api.handle(exchange);
      // all others of the slice come in a turn that has lasted too long
      lateMs += 10;
      waiting.push(exchange);
      if (index % SLICE === SLICE - 1) {
        settle();
        for (const held of waiting.splice(0)) expect(held, 200);
      }
      return exchange;
    };
  },
};

bootstrap(api.parts.world, { serviceAddress: '10.96.0.1', address: '127.0.0.1', port: 6443 });
const account = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
ask('POST', `${DEFAULT}/serviceaccounts`, Buffer.from(JSON.stringify(account)));
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
ask('POST', definitions, Buffer.from(JSON.stringify(widgetDefinition())));
// it is established by the writes of the turns after this one
while (ask('GET', widgets).status !== 200) await new Promise((resolve) => setImmediate(resolve));

const chosen = Object.entries(SHAPES).filter(([name]) => {
  return process.argv.length === 2 || process.argv.slice(2).some((part) => name.includes(part));
});
const times = new Map<string, number[]>();
for (; round < ROUNDS; round++) {
  for (const [name, prepare] of chosen) {
    const runs = Array.from({ length: COUNT }, (_, index) => prepare(index));
    const slices = times.get(name) ?? [];
    times.set(name, slices);
    for (let at = 0; at < COUNT; at += SLICE) {
      const start = process.cpuUsage();
      for (let index = at; index < at + SLICE; index++) runs[index]?.();
      const { user, system } = process.cpuUsage(start);
      if (round > 0) slices.push((user + system) / SLICE);
    }
    settle();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
process.stdout.write(`${'us of a request'.padEnd(32)}   median     quiet\n`);
for (const [name, all] of times) {
  const sorted = all.toSorted((left, right) => left - right);
  const cells = [sorted[sorted.length >> 1] ?? 0, sorted[sorted.length >> 3] ?? 0];
  const text = cells.map((cell) => cell.toFixed(1).padStart(9)).join('');
  process.stdout.write(`${name.padEnd(32)}${text}\n`);
}
await storage.close();

/**
 * Memory of simulated nodes and pods, and the processor time of renewals without sockets.
 *
 *     node --expose-gc packages/nodes/src/kubelet/kubelets.bench.ts [nodes] [pods]
 */
import type { Client, SendDone, StreamSink } from '@megaplane/client/client';
import { createInformer } from '@megaplane/client/informer';
import { PodAddresses } from '../pod/pod-addresses.ts';
import { Kubelets, STATUS_PERIOD_MS } from './kubelets.ts';
import { DEFAULT_TEMPLATE, NodeBodies } from './node-object.ts';
import { Pods } from '../pod/pods.ts';
import { SimulatorMetrics } from '../metrics/simulator-metrics.ts';
import type { InformerHandler } from '@megaplane/client/informer-options';

const NODES = Number(process.argv[2] ?? 1_000_000);
const PODS = Number(process.argv[3] ?? 1_000_000);
const CHUNK_BYTES = 64 * 1024;
const UID = '5f0c3a8e-7d0b-4a60-9d39-';
const TICK_MS = 20;
const STILL_MS = 40_000;

let nowMs = 1_767_323_045_000;
const sinks: StreamSink[] = [];
const sent: { done: SendDone; tag: number; isPost: boolean }[] = [];
const client = {
  timers: { nowMs: () => nowMs, after: () => () => {} },
  random: Math.random,
  room: () => 1_000_000,
  onRoom: () => {},
  send: (method: string, _p: string, _t: string, _b: unknown, done: SendDone, tag: number) => {
    sent.push({ done, tag, isPost: method === 'POST' });
    return true;
  },
  stream: (_path: string, sink: StreamSink) => {
    sinks.push(sink);
    return { cancel: () => {}, pause: () => {}, resume: () => {} };
  },
} as unknown as Client;

function memory(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Fills an informer with objects of which `text` gives the JSON. */
function fill(path: string, handler: InformerHandler, count: number, text: (id: number) => string) {
  const informer = createInformer({ client, path, handler });
  informer.start();
  const sink = sinks.pop();
  sink?.onHead(200, 0);
  let chunk = '';
  for (let id = 0; id < count; id++) {
    chunk += `{"type":"ADDED","object":${text(id)}}\n`;
    if (chunk.length < CHUNK_BYTES && id < count - 1) continue;
    const bytes = Buffer.from(chunk);
    sink?.onData(bytes, 0, bytes.length);
    chunk = '';
  }
  return informer;
}

const versioned = (id: number): string =>
  `"uid":"${UID}${id.toString(16).padStart(12, '0')}","resourceVersion":"${id + 1}","name":"`;
const metrics = new SimulatorMetrics();
const bodies = new NodeBodies({ template: DEFAULT_TEMPLATE, zones: ['a', 'b', 'c'] });
const kubelets: Kubelets = new Kubelets({
  clock: { steadyMs: () => client.timers.nowMs(), wallMs: () => client.timers.nowMs() },
  client,
  metrics,
  leaseDurationSeconds: 40,
  isRegistering: () => false,
  faultOf: () => null,
  holder: '',
  statusPeriodMs: STATUS_PERIOD_MS,
  readsStatus: false,
  keepsStatus: () => true,
  endpoint: { port: 10_250, hostname: '', nodeIp: '' },
  nameOf: (id) => nodes.keyOf(id),
  onNode: () => {},
});
const atStart = memory();
const nodes = fill('/api/v1/nodes', kubelets.handler, NODES, (id) =>
  bodies.body(id, '2026-01-02T03:04:05Z').replace('"name":"', versioned(id)),
);
kubelets.start(nodes.idLimit, (id) => nodes.has(id));
const answer = Buffer.from('{"kind":"Lease","metadata":{"resourceVersion":"123456789"}}');
const answerAll = (): void => {
  for (const { done, tag, isPost } of sent.splice(0)) {
    done(isPost ? 201 : 200, answer, 0, answer.length, tag);
  }
};
const live = (durationMs: number): void => {
  for (let passed = 0; passed < durationMs; passed += TICK_MS) {
    nowMs += TICK_MS;
    kubelets.tick();
    answerAll();
  }
};
live(STILL_MS);
process.stdout.write(`${((memory() - atStart) / NODES).toFixed(0)} bytes a node of ${NODES}\n`);
const renewed = metrics.renewals;
const start = process.cpuUsage();
live(STILL_MS);
const { user, system } = process.cpuUsage(start);
const perSecond = ((metrics.renewals - renewed) * 1e6) / (user + system);
process.stdout.write(`${perSecond.toFixed(0)} renewals per second of processor, no sockets\n`);

const before = memory();
const addresses = new PodAddresses('10.0.0.0/9');
const pods = new Pods({
  ...{ client, metrics, addresses },
  find: (namespace, name) => rows.find(namespace, name),
  nodeAddresses: () => ['10.128.0.1'],
});
const rows = fill('/api/v1/pods', pods.handler, PODS, (id) => {
  const name = `web-7d9c5b8f6-${id}`;
  return (
    `{"metadata":{${versioned(id)}${name}","namespace":"default"},` +
    `"spec":{"nodeName":"node-${id % NODES}","containers":[{"name":"c","image":"i"}]},` +
    '"status":{"phase":"Running","podIP":"10.0.0.9"}}'
  );
});
process.stdout.write(`${((memory() - before) / PODS).toFixed(0)} bytes a pod of ${PODS}\n`);

/**
 * Pods of one cluster, whose requests are there already: memory a pod, time of an adoption.
 *
 *     node --expose-gc packages/fleet/src/pods/pods-controller.bench.ts [pods] [--json]
 */
import { cpus } from 'node:os';
import type { Client, StreamSink } from '@megaplane/client/client';
import { PodsController } from './pods-controller.ts';

const [count = '500000'] = process.argv.slice(2).filter((word) => word !== '--json');
const PODS = Number(count);
const CHUNK_BYTES = 64 * 1024;
const FILLER = JSON.stringify({ containers: [{ name: 'main', image: 'x'.repeat(1200) }] });

const streams = new Map<string, StreamSink>();
const client = {
  timers: { nowMs: () => performance.now(), after: () => () => {} },
  random: Math.random,
  room: () => 1000,
  onRoom: () => {},
  send: () => true,
  stream: (path: string, sink: StreamSink) => {
    streams.set(path.slice(0, path.indexOf('?')), sink);
    return { cancel: () => {}, pause: () => {}, resume: () => {} };
  },
} as unknown as Client;

function uidOf(index: number): string {
  return `5f0c3a8e-7d0b-4a60-9d39-${index.toString(16).padStart(12, '0')}`;
}

function nameOf(index: number): string {
  return `deployment-${index % 1000}-7d9c5b8f6-${index.toString(36).padStart(5, '0')}`;
}

function podText(index: number): string {
  return (
    `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{` +
    `"resourceVersion":"${index + 1}",` +
    `"name":"${nameOf(index)}","namespace":"team-${index % 100}",` +
    `"uid":"${uidOf(index)}"},"spec":${FILLER},"status":{"phase":"Running"}}}\n`
  );
}

function requestText(index: number): string {
  const uid = uidOf(index);
  const name = nameOf(index);
  const kind = '"apiVersion":"v1","kind":"Pod"';
  const owner = `{${kind},"name":"${name}","uid":"${uid}","controller":true}`;
  return (
    `{"type":"ADDED","object":{"metadata":{"resourceVersion":"${PODS + index}",` +
    `"name":"cr-pod-${name}-${uid.slice(-10)}",` +
    `"namespace":"team-${index % 100}","labels":{"bigfleet.lucy.sh/owned-by-pod":"${uid}"},` +
    `"ownerReferences":[${owner}]},"spec":{"priority":0,"resources":{"cpu":"1"}}}}\n`
  );
}

function feed(sink: StreamSink | undefined, count: number, text: (index: number) => string): void {
  if (sink === undefined) throw new Error('nothing was asked for');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES + 4096);
  let length = 0;
  for (let index = 0; index < count; index++) {
    length += chunk.write(text(index), length);
    if (length < CHUNK_BYTES) continue;
    sink.onData(chunk, 0, length);
    length = 0;
  }
  sink.onData(chunk, 0, length);
}

function memoryBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + Math.max(external, arrayBuffers);
}

function microseconds(spentMs: number): string {
  return ((spentMs * 1e3) / PODS).toFixed(2);
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const controller = new PodsController({ client, classes: new Map(), log: () => {} });
controller.start();
const pods = [...streams.values()][0];
pods?.onHead(200, 0);
const beforeBytes = memoryBytes();
let startMs = cpuMs();
feed(pods, PODS, podText);
const podsMs = cpuMs() - startMs;
const end =
  `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":` +
  `"${PODS}","annotations":{"k8s.io/initial-events-end":"true"}}}}\n`;
pods?.onData(Buffer.from(end), 0, end.length);
const requestsPath = [...streams.keys()][1] ?? '';
const list = streams.get(requestsPath);
const empty = `{"kind":"List","metadata":{"resourceVersion":"${PODS}"},"items":[]}`;
list?.onHead(200, 0);
list?.onData(Buffer.from(empty), 0, empty.length);
list?.onEnd(null);
await new Promise((resolve) => setImmediate(resolve));
const watch = streams.get(requestsPath);
watch?.onHead(200, 0);
startMs = cpuMs();
feed(watch, PODS, requestText);
const requestsMs = cpuMs() - startMs;
await new Promise((resolve) => setImmediate(resolve));
const bytes = memoryBytes() - beforeBytes;
const { held, wanting } = controller.requests;
process.stdout.write(
  `${cpus()[0]?.model}, node ${process.version}, processor time\n` +
    `${PODS} pods: ${held} requests adopted, ${wanting} to make\n` +
    `${(bytes / PODS).toFixed(0)} bytes a pod\n` +
    `a pod ${microseconds(podsMs)} us, a request ${microseconds(requestsMs)} us\n`,
);
if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ bytes: bytes / PODS, held, wanting })}\n`);
}

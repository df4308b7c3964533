/**
 * A million pods of 2 KB into one informer, then changes: rows per second, memory per row, pauses.
 *
 *     node --expose-gc packages/client/src/cache/informer.bench.ts [rows]
 */
import { PerformanceObserver, performance } from 'node:perf_hooks';
import type { Client, StreamSink } from '../rest/client.ts';
import { createInformer } from './informer.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const CHUNK_BYTES = 64 * 1024;
const FILLER = JSON.stringify({ containers: [{ name: 'main', image: 'x'.repeat(1600) }] });

let longestPauseMs = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) longestPauseMs = Math.max(longestPauseMs, entry.duration);
}).observe({ entryTypes: ['gc'] });

const sinks: StreamSink[] = [];
const client = {
  timers: { nowMs: () => performance.now(), after: () => () => {} },
  random: Math.random,
  stream: (_path: string, sink: StreamSink) => {
    sinks.push(sink);
    return { cancel: () => {}, pause: () => {}, resume: () => {} };
  },
} as unknown as Client;

let upserts = 0;
const informer = createInformer({
  client,
  path: '/api/v1/pods',
  handler: { onUpsert: () => upserts++, onDelete: () => {} },
});
informer.start();
const sink = sinks[0];
if (sink === undefined) throw new Error('the informer asked for nothing');

function line(type: string, index: number, version: number): string {
  const name = `deployment-${index % 1000}-7d9c5b8f6-${index}`;
  return (
    `{"type":"${type}","object":{"kind":"Pod","apiVersion":"v1","metadata":{` +
    `"resourceVersion":"${version}","name":"${name}","namespace":"team-${index % 100}",` +
    `"uid":"5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11"},"spec":${FILLER},` +
    `"status":{"phase":"Running"}}}\n`
  );
}

/** Feeds `count` events in chunks; only the informer's own time is counted. */
function feed(type: string, count: number, version: number): number {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES + 4096);
  let length = 0;
  let spentMs = 0;
  const flush = (): void => {
    const startMs = performance.now();
    sink?.onData(chunk, 0, length);
    spentMs += performance.now() - startMs;
    length = 0;
  };
  for (let i = 0; i < count; i++) {
    length += chunk.write(line(type, i, version + i), length, 'latin1');
    if (length >= CHUNK_BYTES) flush();
  }
  flush();
  return spentMs;
}

globalThis.gc?.();
const before = process.memoryUsage();
sink.onHead(200, 0);
const fillMs = feed('ADDED', ROWS, 1000);
const end =
  `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${ROWS + 1000}",` +
  `"annotations":{"k8s.io/initial-events-end":"true"}}}}\n`;
sink.onData(Buffer.from(end), 0, end.length);
globalThis.gc?.();
const after = process.memoryUsage();
longestPauseMs = 0;
const changeMs = feed('MODIFIED', ROWS, ROWS + 2000);
// Collector pauses are reported in a later turn.
await new Promise((resolve) => setTimeout(resolve, 50));
const perSecond = (count: number, ms: number): string => `${Math.round(count / ms)} K/s`;
console.log(`rows ${informer.size}, upserts ${upserts}, synced ${informer.isSynced}`);
console.log(`initial events ${perSecond(ROWS, fillMs)}, changes ${perSecond(ROWS, changeMs)}`);
const heap = (after.heapUsed - before.heapUsed) / ROWS;
const buffers = (after.arrayBuffers - before.arrayBuffers) / ROWS;
console.log(`per row: heap ${heap.toFixed(1)} B, outside the heap ${buffers.toFixed(1)} B`);
console.log(`longest collector pause while changing: ${longestPauseMs.toFixed(1)} ms`);

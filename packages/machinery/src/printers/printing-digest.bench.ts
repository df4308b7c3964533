/** Table rows of pods: `node packages/machinery/src/printers/printing-digest.bench.ts`. */
import type { JsonObject } from '../json/json-value.ts';
import { podPrinter } from './printing-pods.ts';

const PODS = 10_000;
const RUNS = 5;

const pod = Buffer.from(
  JSON.stringify({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: 'res-1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [{ fieldsV1: Array.from({ length: 60 }, (_, i) => ({ [`f:${i}`]: {} })) }],
    },
    spec: {
      nodeName: 'node-1',
      containers: [{ name: 'c', image: 'i', env: [{ name: 'A', value: 'b' }] }],
      volumes: Array.from({ length: 5 }, (_, i) => ({ name: `v${i}`, emptyDir: {} })),
    },
    status: {
      phase: 'Running',
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
      podIPs: [{ ip: '10.0.0.1' }],
      containerStatuses: [{ name: 'c', ready: true, restartCount: 0, state: { running: {} } }],
    },
  }),
);

function median(work: () => JsonObject | undefined): number {
  const runs: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const before = process.cpuUsage();
    for (let i = 0; i < PODS; i++) podPrinter.row(work() ?? {}, 0);
    const used = process.cpuUsage(before);
    runs.push((used.user + used.system) / 1000);
  }
  return runs.sort((a, b) => a - b)[RUNS >> 1] ?? 0;
}

const whole = median(() => JSON.parse(pod.toString('utf8')) as JsonObject);
const digest = median(() => podPrinter.digest?.(pod, 0, pod.length));
process.stdout.write(
  `${PODS} rows of pods of ${pod.length} bytes: parsed whole ${whole.toFixed(0)} ms of CPU, ` +
    `from digests ${digest.toFixed(0)} ms, ratio ${(whole / digest).toFixed(1)}\n`,
);

/**
 * Label selectors on stored bytes:
 * `node packages/machinery/src/selectors/selectors-bytes.bench.ts`.
 */
import { parseLabelSelector } from './selectors.ts';
import { LabelProgram, LabelsRange, matchesLabelBytes } from './selectors-bytes.ts';

const OBJECTS = 100_000;
const RUNS = 5;

const pod = Buffer.from(
  JSON.stringify({
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: {
      name: 'res-1',
      namespace: 'default',
      uid: '3a014dd5-234a-4588-84e4-b39e277bbacc',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { app: 'x', tier: 'front' },
      managedFields: ['y'.repeat(2000)],
    },
    spec: { containers: Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, image: 'i' })) },
  }),
);
const parsed = parseLabelSelector('app=y,tier in (front,back)');
if ('error' in parsed) throw new Error(parsed.error);
const program = new LabelProgram(parsed.value);
const range = new LabelsRange();
let matching = 0;
const runs: number[] = [];
for (let run = 0; run < RUNS; run++) {
  const before = process.cpuUsage();
  for (let i = 0; i < OBJECTS; i++) {
    range.find(pod, 0, pod.length);
    if (matchesLabelBytes(program, pod, range.start, range.end)) matching++;
  }
  const used = process.cpuUsage(before);
  runs.push((used.user + used.system) / 1000);
}
const median = runs.sort((a, b) => a - b)[RUNS >> 1] ?? 0;
process.stdout.write(
  `label selector over ${OBJECTS} pods of ${pod.length} bytes: ${median.toFixed(1)} ms of CPU ` +
    `(${matching} matched)\n`,
);

/**
 * A scheduler that starts beside a cluster which is full of pods, and what it holds of it: an API
 * server with so many nodes, each with as many placed pods, and one pod that waits.
 *
 *     node bench/scheduler-restart.ts --nodes 1000000 --pods 1000000 --live 50000
 *
 * Times are from the start of the process until it is ready (`/readyz`), and until the waiting pod
 * has a node; then `--live` more pods are created while it places them. The longest pause is the
 * collector's, of the start and meanwhile.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { flagsOf, wholeNumbers } from './flags.ts';
import * as harness from './harness.ts';
import { judgeCreate, openClients, runLoad } from './load/requests.ts';
import { Pauses } from './load/pauses.ts';
import { Progress } from './scheduler-perf/progress.ts';
import { startApiServer, startScheduler } from './scheduler-perf/rig.ts';
import { NODES, PODS } from './scheduler-perf/templates.ts';

const values = flagsOf({
  nodes: { type: 'string', default: '100000' },
  pods: { type: 'string', default: '100000' },
  live: { type: 'string', default: '10000' },
  runs: { type: 'string', default: '1' },
  output: { type: 'string' },
});
const LEAST = { nodes: 1, pods: 1, live: 1, runs: 1 };
const { nodes: NODE_COUNT, pods: POD_COUNT, live, runs } = wholeNumbers(values, LEAST);

const CLIENTS = 4;
const IN_FLIGHT = 64;
const POLL_MS = 20;
const PATIENCE_SECONDS = 120;
const PLACED = 'placed';
const NODE_TEXT = JSON.stringify(NODES.plain.object);
const POD = PODS.plain.object as { readonly spec: object };
const POD_TEXT = JSON.stringify(POD);
const PLACED_TEXT = JSON.stringify({
  ...POD,
  spec: { ...POD.spec, nodeName: 'scheduler-perf-{node}' },
});

interface Figures {
  readonly readySeconds: number;
  readonly placedSeconds: number;
  /** Processor seconds until the waiting pod was placed. */
  readonly schedulerCpu: number;
  readonly serverCpu: number;
  readonly startPauseMs: number;
  readonly restMiB: number;
  readonly livePerSecond: number;
  readonly livePauseMs: number;
  readonly liveMiB: number;
}

/** Creates objects with the numbers from 0 on. */
function create(
  clients: readonly Client[],
  what: string,
  count: number,
  path: string,
  bodyOf: (index: number) => string,
): Promise<unknown> {
  return runLoad({
    ...{ clients, first: 0, count, rate: 0, patienceSeconds: PATIENCE_SECONDS, what },
    shot: (index) => ({ method: 'POST', path, body: bodyOf(index) }),
    judge: judgeCreate,
  });
}

function podsOf(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

async function fill(clients: readonly Client[]): Promise<void> {
  await create(clients, 'nodes', NODE_COUNT, '/api/v1/nodes', (index) =>
    NODE_TEXT.replaceAll('{i}', String(index)),
  );
  await space(clients, PLACED);
  await create(clients, 'placed pods', POD_COUNT, podsOf(PLACED), (index) =>
    PLACED_TEXT.replace('{i}', String(index)).replace('{node}', String(index % NODE_COUNT)),
  );
}

async function space(clients: readonly Client[], name: string): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await create(clients, 'namespace', 1, '/api/v1/namespaces', () => JSON.stringify(object));
}

async function ready(scheduler: harness.Server): Promise<void> {
  const url = /metrics (http:\/\/[^/]+)\/metrics/.exec(scheduler.listens)?.[1];
  if (url === undefined) throw new Error(`no address of metrics in: ${scheduler.listens}`);
  for (;;) {
    if ((await fetch(`${url}/readyz`)).ok) return;
    await sleep(POLL_MS);
  }
}

/** Creates pods in a namespace of their own; it tells when they have nodes. */
async function make(
  clients: readonly Client[],
  namespace: string,
  count: number,
): Promise<Progress> {
  await space(clients, namespace);
  const progress = new Progress(count);
  const [first] = clients;
  if (first !== undefined) await progress.open(first, namespace);
  await create(clients, 'pods', count, podsOf(namespace), (index) =>
    POD_TEXT.replace('{i}', String(index)),
  );
  return progress;
}

async function placed(progress: Progress): Promise<void> {
  const trouble = await progress.ended(PATIENCE_SECONDS * 1000);
  if (trouble !== null) throw new Error(trouble);
}

async function restart(
  dataDir: string,
  serverPid: number,
  clients: readonly Client[],
  run: number,
): Promise<Figures> {
  const pauses = new Pauses();
  const serverBefore = harness.cpuSecondsExact(serverPid);
  const waiting = await make(clients, `waiting-${run}`, 1);
  const startMs = performance.now();
  const scheduler = await startScheduler(dataDir, ['--trace-gc'], (line) => pauses.take(line));
  try {
    await ready(scheduler);
    const readyMs = performance.now();
    await placed(waiting);
    const { pid } = scheduler;
    const schedulerCpu = harness.cpuSecondsExact(pid);
    const serverCpu = harness.cpuSecondsExact(serverPid) - serverBefore;
    const [startPauseMs, restMiB] = [pauses.longestMs, harness.rssMib(pid)];
    pauses.clear();
    const living = await make(clients, `live-${run}`, live);
    await placed(living);
    return {
      readySeconds: (readyMs - startMs) / 1000,
      placedSeconds: (waiting.lastMs - startMs) / 1000,
      ...{ schedulerCpu, serverCpu, startPauseMs, restMiB },
      ...{ livePerSecond: living.perSecond, livePauseMs: pauses.longestMs },
      liveMiB: harness.rssMib(pid),
    };
  } finally {
    await scheduler.stop();
  }
}

const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
const server = await startApiServer(dataDir, []);
const clients = await openClients(join(dataDir, 'kubeconfig'), CLIENTS, IN_FLIGHT);
const found: Figures[] = [];
try {
  await fill(clients);
  for (let run = 0; run < runs; run++) {
    found.push(await restart(dataDir, server.pid, clients, run));
  }
} finally {
  for (const client of clients) client.close();
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
const middle = (read: (figures: Figures) => number): number => harness.median(found.map(read));
process.stdout.write(`${harness.machine()}\n`);
process.stdout.write(`${NODE_COUNT} nodes, ${POD_COUNT} placed pods, ${runs} runs\n\n`);
harness.printTable(
  ['what', 'measured', 'goal'],
  [
    ['ready', `${middle((one) => one.readySeconds).toFixed(1)} s`, '15 s'],
    ['the pod that waited has a node', `${middle((one) => one.placedSeconds).toFixed(1)} s`, '-'],
    ['processor time of the scheduler', `${middle((one) => one.schedulerCpu).toFixed(1)} s`, '-'],
    ['of the API server', `${middle((one) => one.serverCpu).toFixed(1)} s`, '-'],
    ['longest pause of the start', `${middle((one) => one.startPauseMs).toFixed(1)} ms`, '-'],
    ['resident then', `${middle((one) => one.restMiB).toFixed(0)} MiB`, '1229 MiB'],
    [`${live} more pods`, `${middle((one) => one.livePerSecond).toFixed(0)}/s`, '-'],
    ['longest pause meanwhile', `${middle((one) => one.livePauseMs).toFixed(1)} ms`, '20 ms'],
    ['resident then', `${middle((one) => one.liveMiB).toFixed(0)} MiB`, '1229 MiB'],
  ],
);
harness.writeResults(values.output, { results: found });
process.exit();

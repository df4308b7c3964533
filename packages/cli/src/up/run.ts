// shell: starts, watches and stops the processes of a cluster
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKubeClient } from '@megaplane/client/kube-client';
import { refusal } from './capacity.ts';
import { Child } from './children.ts';
import { assertReplaceable, mergeKubeconfig, publishKubeconfig } from './kubeconfig.ts';
import { childPlan, paths } from './plan.ts';
import type { Component, UpOptions } from './plan.ts';
import { progress } from './progress.ts';
import { scrape } from './scrape.ts';
import { jsonSummary, textSummary } from './summary.ts';
import type { Timings } from './summary.ts';
import { processUsage } from './usage.ts';
import { createPods } from './workload.ts';

const POLL_MS = 100;
const KUBELET_PORT = 10_250;

/** A cluster that is being brought up: its children, and what was reached when. */
interface Cluster {
  readonly options: UpOptions;
  readonly children: Map<Component, Child>;
  readonly timings: Timings;
  /** Resolves with the first signal. */
  readonly asked: Promise<void>;
  isAsked: boolean;
}

/** Brings a cluster up, and down again at the first signal. Resolves with the exit code. */
export async function runUp(asked: UpOptions): Promise<number> {
  const reason = refusal(asked.nodes, asked.pods, totalmem());
  if (reason !== undefined) throw new Error(`--nodes: ${reason}`);
  if (asked.kubeconfig !== undefined) assertReplaceable(asked.kubeconfig);
  const dataDir = asked.ephemeral
    ? makeDataDir(mkdtempSync(join(tmpdir(), 'megaplane-')))
    : makeDataDir(resolve(asked.dataDir));
  const options = { ...asked, dataDir };
  const { promise, resolve: onAsked } = Promise.withResolvers<void>();
  const cluster: Cluster = {
    options,
    children: new Map(),
    timings: { memory: [] },
    asked: promise,
    isAsked: false,
  };
  listenForSignals(cluster, onAsked);
  try {
    await bringUp(cluster);
    await stopAll(cluster);
    return 0;
  } catch (error) {
    await stopAll(cluster);
    throw error;
  } finally {
    if (asked.ephemeral) rmSync(dataDir, { recursive: true, force: true });
  }
}

function makeDataDir(dataDir: string): string {
  try {
    mkdirSync(join(dataDir, 'logs'), { recursive: true, mode: 0o700 });
    return dataDir;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new Error(
      `--data-dir: cannot write ${dataDir} (${code}); choose a directory that you own`,
    );
  }
}

function listenForSignals(cluster: Cluster, onAsked: () => void): void {
  const onSignal = (): void => {
    if (cluster.isAsked) process.exit(1);
    cluster.isAsked = true;
    onAsked();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
}

async function bringUp(cluster: Cluster): Promise<void> {
  const { options, timings } = cluster;
  await startChild(cluster, 'apiserver');
  timings.firstAnswerMs = performance.now();
  keepPort(cluster);
  const admin = join(options.dataDir, 'kubeconfig');
  const kubeconfig = publishKubeconfig(admin, options.kubeconfig);
  if (options.mergeKubeconfig) mergeKubeconfig(kubeconfig);
  const others = options.components.filter((component) => component !== 'apiserver');
  await Promise.all(others.map((component) => startChild(cluster, component)));
  keepKubeletPort(cluster);
  if (options.components.includes('nodes')) await followNodes(cluster);
  if (options.pods > 0 && !cluster.isAsked) await followPods(cluster);
  measure(cluster);
  const server = cluster.children.get('apiserver')?.listens ?? '';
  const text = options.output === 'json' ? jsonSummary : textSummary;
  process.stdout.write(text({ options, timings, kubeconfig, server }));
  if (options.exitWhen === undefined) await cluster.asked;
}

/** A free port was chosen once; after a restart everybody looks for the server where it was. */
function keepPort(cluster: Cluster): void {
  const server = cluster.children.get('apiserver');
  const securePort = Number(/^https:\/\/.*?:(\d+)(?:,|$)/.exec(server?.listens ?? '')?.[1]);
  if (securePort > 0) server?.replan(childPlan('apiserver', { ...cluster.options, securePort }));
}

/** Nodes tell the kubelets' port: after a restart of their process it must be the same. */
function keepKubeletPort(cluster: Cluster): void {
  const nodes = cluster.children.get('nodes');
  const kubeletPort = Number(/kubelets https:\/\/\S*:(\d+);/.exec(nodes?.listens ?? '')?.[1]);
  if (kubeletPort > 0) nodes?.replan(childPlan('nodes', { ...cluster.options, kubeletPort }));
}

/** The usual port of kubelets where it is free, any free one where it is not, or for free ones. */
export async function kubeletPortFor(securePort: number): Promise<number> {
  if (securePort === 0) return 0;
  const probe = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(KUBELET_PORT, '127.0.0.1', () => resolve(true));
  });
  if (isFree) await new Promise((resolve) => probe.close(resolve));
  return isFree ? KUBELET_PORT : 0;
}

async function startChild(cluster: Cluster, component: Component): Promise<void> {
  const logFile = join(paths(cluster.options.dataDir).logs, `${component}.log`);
  const child = new Child(childPlan(component, cluster.options), logFile, (text) => {
    process.stderr.write(`megaplane: ${text}; its log is ${logFile}\n`);
  });
  cluster.children.set(component, child);
  await child.start();
}

async function stopAll(cluster: Cluster): Promise<void> {
  const children = [...cluster.children.values()].toReversed();
  // The API server last, so that the others can still give their leases back.
  await Promise.all(children.filter(({ name }) => name !== 'apiserver').map((one) => one.stop()));
  await cluster.children.get('apiserver')?.stop();
}

async function followNodes(cluster: Cluster): Promise<void> {
  const { nodes } = cluster.options;
  await follow(cluster, 'nodes ready', nodes, 'megaplane_nodes_ready', (ms) => {
    cluster.timings.nodesReadyMs = ms;
  });
}

async function followPods(cluster: Cluster): Promise<void> {
  const { options, timings } = cluster;
  const startMs = performance.now();
  const client = await createKubeClient({ kubeconfig: join(options.dataDir, 'kubeconfig') });
  const creating = createPods(client, options.pods).then(() => {
    timings.podsCreatedMs = performance.now() - startMs;
    return client.close();
  });
  await follow(cluster, 'pods bound', options.pods, 'megaplane_pods_bound', (ms) => {
    timings.podsBoundMs = ms - startMs;
  });
  await follow(cluster, 'pods running', options.pods, 'megaplane_pods_running', (ms) => {
    timings.podsRunningMs = ms - startMs;
  });
  await creating;
}

/** Shows a gauge of the simulator on its way to `total`, and reports when it got there. */
async function follow(
  cluster: Cluster,
  label: string,
  total: number,
  gauge: string,
  onDone: (ms: number) => void,
): Promise<void> {
  const shown = progress(label, total);
  let value = 0;
  while (!cluster.isAsked) {
    const child = cluster.children.get('nodes');
    value = (await scrape(child?.listens ?? '', gauge)) ?? value;
    if (value >= total) break;
    shown.show(value);
    await Promise.race([sleep(POLL_MS), cluster.asked]);
  }
  if (value >= total) onDone(performance.now());
  shown.finish(value);
}

function measure(cluster: Cluster): void {
  const own = processUsage(process.pid);
  if (own !== undefined) cluster.timings.memory.push({ name: 'up', ...own });
  for (const child of cluster.children.values()) {
    const usage = child.pid === undefined ? undefined : processUsage(child.pid);
    if (usage !== undefined) cluster.timings.memory.push({ name: child.name, ...usage });
  }
}

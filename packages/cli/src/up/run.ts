// shell: starts, watches and stops the processes of a cluster
import { guarded } from '@megaplane/base/deferred';
import { accessSync, constants, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeDirectory } from '@megaplane/base/directory';
import { makePrivateDirectory, OpenDirectory } from '@megaplane/base/private-file';
import { createKubeClient } from '@megaplane/client/kube-client';
import { crowd, refusal } from './capacity.ts';
import { Child } from './children.ts';
import { awaitDefaultAccount } from './default-account.ts';
import {
  assertMergeable,
  assertReplaceable,
  mergeKubeconfig,
  publishKubeconfig,
} from './kubeconfig.ts';
import { dryRunJson, dryRunText } from './dry-run.ts';
import { childPlan, pagePlan, paths } from './plan.ts';
import type { Component, UpOptions } from './plan.ts';
import { writeProcesses } from './process-file.ts';
import { progress } from '../service/progress.ts';
import { scrape } from './scrape.ts';
import { jsonSummary, textSummary } from './summary.ts';
import type { Timings } from './summary.ts';
import { processUsage } from '../observe/process-usage.ts';
import { createPods, lacksPods } from './workload.ts';

const POLL_MS = 100;

/** A cluster that is being brought up: its children, and what was reached when. */
interface Cluster {
  readonly options: UpOptions;
  readonly children: Map<Component, Child>;
  /** The page that looks at it. */
  page: Child | undefined;
  readonly timings: Timings;
  /** Aborted by the first signal, and when the end has begun for another reason. */
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

/** Says what would be started. Resolves with the exit code; throws where it would be refused. */
export function runDry(asked: UpOptions): number {
  const memoryBytes = machineBytes();
  const reason = refusal(asked.nodes, asked.pods, memoryBytes);
  if (reason !== undefined) throw new Error(`--nodes: ${reason}`);
  const options = { ...asked, dataDir: resolve(asked.dataDir) };
  const hasData = !asked.ephemeral && existsSync(paths(options.dataDir).administrator);
  const text = asked.output === 'json' ? dryRunJson : dryRunText;
  process.stdout.write(text(options, { memoryBytes, hasData }));
  return 0;
}

/** Brings a cluster up, and down again at the first signal. Resolves with the exit code. */
export async function runUp(asked: UpOptions): Promise<number> {
  const reason = refusal(asked.nodes, asked.pods, machineBytes());
  if (reason !== undefined) throw new Error(`--nodes: ${reason}`);
  if (asked.kubeconfig !== undefined) assertReplaceable(asked.kubeconfig);
  if (asked.mergeKubeconfig) assertMergeable();
  const dataDir = asked.ephemeral
    ? makeDataDir(mkdtempSync(join(tmpdir(), 'megaplane-')))
    : makeDataDir(resolve(asked.dataDir));
  const options = { ...asked, dataDir };
  const end = new AbortController();
  const { promise: ended, resolve: onEnd } = Promise.withResolvers<void>();
  end.signal.addEventListener(
    'abort',
    guarded(() => onEnd()),
  );
  const cluster: Cluster = {
    options,
    children: new Map(),
    page: undefined,
    timings: { memory: [] },
    end,
    ended,
  };
  listenForSignals(end);
  try {
    if ((await bringUp(cluster)) || options.exitWhen === undefined) return 0;
    const state = options.exitWhen === 'ready' ? 'nodes were ready' : 'pods were bound and running';
    process.stderr.write(`megaplane: stopped before all ${state}\n`);
    return 1;
  } finally {
    end.abort();
    await stopAll(cluster);
    if (asked.ephemeral) remove(dataDir);
  }
}

/** What cannot be removed must not hide why the cluster ended. */
function remove(dataDir: string): void {
  try {
    rmSync(dataDir, { recursive: true, force: true });
  } catch (error) {
    process.stderr.write(`megaplane: cannot remove ${dataDir} (${String(error)})\n`);
  }
}

/** Memory that there is: of the machine, or of the container where that is less. */
function machineBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}

function makeDataDir(dataDir: string): string {
  try {
    makePrivateDirectory(dataDir);
    makeDirectory(join(dataDir, 'logs'));
    accessSync(join(dataDir, 'logs'), constants.W_OK);
    return dataDir;
  } catch (error) {
    if (error instanceof OpenDirectory)
      throw new Error(`--data-dir: ${error.message}`, { cause: error });
    const code = faultOf(dataDir) ?? (error as NodeJS.ErrnoException).code;
    throw new Error(
      `--data-dir: cannot write ${dataDir} (${code}); choose a directory that you own`,
    );
  }
}

/** Of a file system that is read-only Node says that the directory is not there. */
function faultOf(dir: string): string | undefined {
  let place = dir;
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  try {
    accessSync(place, constants.W_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

function listenForSignals(end: AbortController): void {
  let signals = 0;
  const onSignal = (): void => {
    if (++signals > 1) process.exit(1);
    end.abort();
  };
  process
    .on('SIGINT', guarded(onSignal))
    .on('SIGTERM', guarded(onSignal))
    .on('SIGHUP', guarded(onSignal));
}

/** Resolves when the cluster is to be stopped: true when all that was asked for was reached. */
async function bringUp(cluster: Cluster): Promise<boolean> {
  const { options, timings, end, ended } = cluster;
  await startChild(cluster, 'apiserver');
  if (end.signal.aborted) return false;
  timings.firstAnswerMs = performance.now();
  keepPort(cluster);
  const admin = paths(options.dataDir).administrator;
  const kubeconfig = publishKubeconfig(admin, options.kubeconfig);
  if (options.mergeKubeconfig) mergeKubeconfig(kubeconfig);
  const others = options.components.filter((component) => component !== 'apiserver');
  await Promise.all(others.map((component) => startChild(cluster, component)));
  if (end.signal.aborted) return false;
  keepKubeletPort(cluster);
  const page = startPage(cluster);
  if (options.components.includes('nodes')) await followNodes(cluster);
  if (options.components.includes('controllers')) await followAccount(cluster);
  if (options.pods > 0 && !end.signal.aborted) await followPods(cluster);
  await Promise.race([page, ended]);
  const isReached = !end.signal.aborted;
  measure(cluster);
  const server = cluster.children.get('apiserver')?.listens ?? '';
  const text = options.output === 'json' ? jsonSummary : textSummary;
  if (isReached || options.exitWhen !== undefined) {
    const page = cluster.page?.listens ?? '';
    process.stdout.write(text({ options, timings, kubeconfig, server, page }));
  }
  if (options.exitWhen === undefined) await ended;
  return isReached;
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

/** Resolves when the child is ready, or the end has begun. */
async function startChild(cluster: Cluster, component: Component): Promise<void> {
  const logFile = join(paths(cluster.options.dataDir).logs, `${component}.log`);
  const child = new Child(childPlan(component, cluster.options), logFile, (text) => {
    process.stderr.write(`megaplane: ${text}; its log is ${logFile}\n`);
  });
  if (cluster.end.signal.aborted) return;
  child.onReady = () => writeProcesses(cluster.options.dataDir, cluster.children);
  cluster.children.set(component, child);
  await Promise.race([child.start(), cluster.ended]);
}

/** The cluster stands also where its page does not. */
async function startPage(cluster: Cluster): Promise<void> {
  const { options, end } = cluster;
  const plan = pagePlan(options);
  if (plan === undefined || end.signal.aborted) return;
  const logFile = join(paths(options.dataDir).logs, 'page.log');
  const say = (text: string): void => void process.stderr.write(`megaplane: ${text}\n`);
  const child = new Child(plan, logFile, (text) => say(`${text}; its log is ${logFile}`));
  cluster.page = child;
  try {
    say(`the cluster as a page: ${await child.start()}`);
  } catch (error) {
    say((error as Error).message);
  }
}

async function stopAll(cluster: Cluster): Promise<void> {
  await cluster.page?.stop();
  const children = [...cluster.children.values()].toReversed();
  // The API server last, so that the others can still give their leases back.
  await Promise.all(children.filter(({ name }) => name !== 'apiserver').map((one) => one.stop()));
  await cluster.children.get('apiserver')?.stop();
}

async function followNodes(cluster: Cluster): Promise<void> {
  const { nodes } = cluster.options;
  await follow(cluster, 'nodes ready', nodes, 'megaplane_nodes_ready', 0, (ms) => {
    cluster.timings.nodesReadyMs = ms;
  });
}

async function followAccount({ options, end }: Cluster): Promise<void> {
  const client = await createKubeClient({ kubeconfig: paths(options.dataDir).administrator });
  try {
    const isThere = await awaitDefaultAccount(client, end.signal);
    if (isThere || end.signal.aborted) return;
    process.stderr.write('megaplane: no service account "default" yet: pods may be refused\n');
  } finally {
    client.close();
  }
}

async function followPods(cluster: Cluster): Promise<void> {
  const { options, timings, end, ended } = cluster;
  await judgeRoom(cluster);
  const startMs = performance.now();
  const client = await createKubeClient({ kubeconfig: paths(options.dataDir).administrator });
  const { promise: created, resolve: onCreated } = Promise.withResolvers<void>();
  const creating = createPods(client, options.pods, end.signal).then(() => {
    if (end.signal.aborted) return;
    timings.podsCreatedMs = performance.now() - startMs;
    onCreated();
  });
  // The simulator counts all pods, also those of others; that none of these lacks it is asked for.
  const isTrue = async (what: 'bound' | 'running'): Promise<boolean> => {
    await Promise.race([created, ended]);
    return !end.signal.aborted && !(await lacksPods(client, what));
  };
  const following = async (): Promise<void> => {
    const { pods } = options;
    const onBound = (ms: number): void => void (timings.podsBoundMs = ms - startMs);
    await follow(cluster, 'pods bound', pods, 'megaplane_pods_bound', startMs, onBound, () =>
      isTrue('bound'),
    );
    const onRunning = (ms: number): void => void (timings.podsRunningMs = ms - startMs);
    await follow(cluster, 'pods running', pods, 'megaplane_pods_running', startMs, onRunning, () =>
      isTrue('running'),
    );
  };
  try {
    await Promise.all([creating, following()]);
  } finally {
    client.close();
  }
}

/** Pods that no node has room for would be waited for for ever. */
async function judgeRoom({ options, children }: Cluster): Promise<void> {
  const nodes = (await scrape(children.get('nodes')?.listens ?? '', 'megaplane_nodes')) ?? 0;
  const text = crowd(options.pods, Math.max(nodes, options.nodes));
  if (text === undefined) return;
  if (options.exitWhen === 'bound') throw new Error(`--pods: ${text}`);
  process.stderr.write(`megaplane: --pods: ${text}\n`);
}

/** Shows a gauge of the simulator on its way to `total` since `startMs`; reports its arrival. */
async function follow(
  cluster: Cluster,
  label: string,
  total: number,
  gauge: string,
  startMs: number,
  onDone: (ms: number) => void,
  isTrue: () => Promise<boolean> = async () => true,
): Promise<void> {
  const { children, end, ended } = cluster;
  if (end.signal.aborted) return;
  const shown = progress(label, total, startMs);
  let value = 0;
  let isDone = false;
  while (!end.signal.aborted) {
    const found = await scrape(children.get('nodes')?.listens ?? '', gauge);
    value = Math.min(found ?? value, total);
    isDone = value >= total && (await isTrue());
    if (isDone) break;
    shown.show(value);
    await Promise.race([sleep(POLL_MS), ended]);
  }
  if (isDone) onDone(performance.now());
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

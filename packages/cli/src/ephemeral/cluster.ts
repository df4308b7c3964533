// shell: processes, a temporary directory and timers
/**
 * A cluster that lives as long as somebody needs it: the processes of `megaplane up` on free ports,
 * with a directory of their own, gone without a trace however their owner ends.
 */
import { guarded, pauseMs } from '@megaplane/base/deferred';
import { createKubeClient } from '@megaplane/client/kube-client';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Child } from '../up/children.ts';
import { awaitDefaultAccount } from '../up/default-account.ts';
import { childPlan, paths, type Component, type UpOptions } from '../up/plan.ts';
import { scrape } from '../up/scrape.ts';
import { startGuardian, type Guardian } from './guardian.ts';

const LOOK_MS = 20;

export interface EphemeralOptions {
  /** Simulated nodes; all are ready before the cluster is given out. */
  readonly nodes: number;
  /** The API server is always among them. */
  readonly components: readonly Component[];
  /** kwok's stage files or names of sets; none: what simulated kubelets do. */
  readonly stages: readonly string[];
  /** Gives the start up. */
  readonly signal: AbortSignal;
  /** Hears what becomes of its processes, for people. */
  readonly report: (text: string) => void;
}

export interface EphemeralCluster {
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** `https://127.0.0.1:PORT` */
  readonly server: string;
  /** Ends with this process, whatever ends it. */
  readonly guardian: Guardian;
  /** Ends all processes and removes all files; may be called more than once. */
  stop(): Promise<void>;
}

/**
 * Starts one and resolves when it can be used: the API server answers, nodes are ready, and where
 * controllers run, pods may be created in `default`. Rejects, with nothing left behind, where a
 * part does not come up or the signal is aborted.
 */
export async function startEphemeral(options: EphemeralOptions): Promise<EphemeralCluster> {
  options.signal.throwIfAborted();
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-'));
  const guardian = startGuardian(dataDir);
  const children: Child[] = [];
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= remove(dataDir, children, guardian));
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  aborted.catch(() => undefined);
  const onAbort = guarded(() => reject(options.signal.reason));
  options.signal.addEventListener('abort', onAbort);
  try {
    mkdirSync(paths(dataDir).logs, { mode: 0o700 });
    await Promise.race([bringUp(dataDir, options, children, guardian), aborted]);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    options.signal.removeEventListener('abort', onAbort);
  }
  const kubeconfig = paths(dataDir).administrator;
  return { kubeconfig, server: serverOf(kubeconfig), guardian, stop };
}

async function bringUp(
  dataDir: string,
  options: EphemeralOptions,
  children: Child[],
  guardian: Guardian,
): Promise<void> {
  const { components, report, nodes, signal } = options;
  const plan = planOf(dataDir, options);
  const start = async (component: Component): Promise<void> => {
    signal.throwIfAborted();
    const logFile = join(paths(dataDir).logs, `${component}.log`);
    const child = new Child(childPlan(component, plan), logFile, report);
    children.push(child);
    const ready = child.start();
    if (child.pid !== undefined) guardian.knowProcess(child.pid);
    await ready;
  };
  await start('apiserver');
  await Promise.all(components.filter((name) => name !== 'apiserver').map(start));
  const simulator = children.find(({ name }) => name === 'nodes');
  const looksAt = async (): Promise<boolean> => {
    const ready = await scrape(simulator?.listens ?? '', 'megaplane_nodes_ready');
    return (ready ?? 0) >= nodes;
  };
  if (simulator !== undefined) {
    while (!signal.aborted && !(await looksAt())) await pauseMs(LOOK_MS);
  }
  if (components.includes('controllers')) await awaitAccount(dataDir, signal);
}

async function awaitAccount(dataDir: string, signal: AbortSignal): Promise<void> {
  const client = await createKubeClient({ kubeconfig: paths(dataDir).administrator });
  try {
    await awaitDefaultAccount(client, signal);
  } finally {
    client.close();
  }
}

/** Nothing of it outlives a power cut, so nothing is written through to the disk. */
function planOf(dataDir: string, { nodes, components, stages }: EphemeralOptions): UpOptions {
  return {
    ...{ nodes, pods: 0, components, stages, dataDir, ephemeral: true, mergeKubeconfig: false },
    ...{ securePort: 0, kubeletPort: 0, kubeconfig: undefined, listenClientUrls: undefined },
    ...{ durability: 'none', etcdServers: undefined, exitWhen: undefined, output: 'text' },
    ...{ logLevel: 'info', logFormat: 'text' },
  };
}

function serverOf(kubeconfig: string): string {
  return /^\s*server: *"?(https:[^"\s]+)/m.exec(readFileSync(kubeconfig, 'utf8'))?.[1] ?? '';
}

async function remove(
  dataDir: string,
  children: readonly Child[],
  guardian: Guardian,
): Promise<void> {
  await Promise.all(children.map((child) => child.kill()));
  rmSync(dataDir, { recursive: true, force: true });
  await guardian.dismiss();
}

// shell: the environment and standard error of a test
/**
 * `megaplane/testing`: a cluster of one's own for tests, in any test runner.
 *
 *     import { startCluster } from 'megaplane/testing';
 *
 *     await using cluster = await startCluster({ nodes: 2 });
 *     const config = new KubeConfig();
 *     config.loadFromString(cluster.kubeconfigText);
 *
 * Each is a set of processes on free ports of 127.0.0.1 with a temporary directory; any number may
 * run side by side. It is gone when the block ends, and when this process ends, however it does.
 */
import { readFileSync } from 'node:fs';
import { startEphemeral } from './ephemeral/cluster.ts';
import { chosenComponents, COMPONENTS, type Component } from './up/plan.ts';

export type { Component } from './up/plan.ts';

export interface ClusterOptions {
  /** Simulated nodes, ready before the cluster is given out: 0 and more (1). */
  readonly nodes?: number;
  /** What runs beside the API server: all by default; `['apiserver']` is what envtest starts. */
  readonly components?: readonly Component[];
  /** kwok's stage files for the simulated nodes, or names of sets: `['fast', './stages.yaml']`. */
  readonly stages?: readonly string[];
  /** Gives the start up: the promise rejects with its reason, and nothing is left behind. */
  readonly signal?: AbortSignal;
  /** Hears one line when a process of the cluster dies; by default standard error does. */
  readonly report?: (line: string) => void;
}

export interface Cluster extends AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly server: string;
  /** The administrator's kubeconfig, as a path for `KUBECONFIG` and as text. */
  readonly kubeconfig: string;
  readonly kubeconfigText: string;
  /** This process's environment with `KUBECONFIG`, for programs that the test starts. */
  readonly env: NodeJS.ProcessEnv;
  /** Ends the processes and removes their files; a second call waits for the first. */
  stop(): Promise<void>;
}

/**
 * Starts a cluster. Rejects with an Error for people where an option is wrong or a process does not
 * come up, and leaves nothing behind then.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { nodes = 1, components = COMPONENTS, stages = [] } = options;
  if (!Number.isSafeInteger(nodes) || nodes < 0) {
    throw new Error(`nodes: ${nodes} is no number of nodes; 0 and more are`);
  }
  const chosen = chosenComponents(components);
  if (typeof chosen === 'string') throw new Error(`components: ${chosen}`);
  const cluster = await startEphemeral({
    ...{ nodes, components: chosen, stages },
    signal: options.signal ?? new AbortController().signal,
    report: options.report ?? ((line) => void process.stderr.write(`megaplane: ${line}\n`)),
  });
  const { kubeconfig, server } = cluster;
  const stop = (): Promise<void> => cluster.stop();
  return {
    ...{ server, kubeconfig, stop },
    kubeconfigText: readFileSync(kubeconfig, 'utf8'),
    env: { ...process.env, KUBECONFIG: kubeconfig },
    [Symbol.asyncDispose]: stop,
  };
}

/** An API server and a scheduler for one workload, each a process of its own, and their cost. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@megaplane/client/client';
import * as harness from '../harness.ts';
import { openClients } from '../load/requests.ts';
import { adopt } from '../children.ts';

export interface RigOptions {
  /** A kube-scheduler to run in place of ours; null: ours. */
  readonly foreign: string | null;
  /** Whether a foreign one looks at all nodes, as ours does, or at some. */
  readonly isExact: boolean;
  readonly clients: number;
  readonly inFlight: number;
  /** Files of processor profiles are written there. */
  readonly profiles: string | null;
}

export interface Rig {
  readonly clients: readonly Client[];
  readonly serverPid: number;
  readonly schedulerPid: number;
  stop(): Promise<void>;
}

const CORES = '0,1';
/** As kube-scheduler's performance tests run: its server admits what it would otherwise change. */
const ADMISSION = 'ServiceAccount,TaintNodesByCondition,Priority,StorageObjectInUseProtection';

/** Starts both. */
export async function startRig(options: RigOptions): Promise<Rig> {
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  const profile = options.profiles === null ? [] : profileFlags(options.profiles);
  const server = await startApiServer(dataDir, profile);
  const scheduler = await startEither(dataDir, options, profile);
  const { clients: count, inFlight } = options;
  const clients = await openClients(join(dataDir, 'kubeconfig'), count, inFlight);
  return {
    clients,
    serverPid: server.pid,
    schedulerPid: scheduler.pid,
    stop: async () => {
      for (const client of clients) client.close();
      await scheduler.stop();
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** An API server that admits what kube-scheduler's performance tests let theirs admit. */
export function startApiServer(
  dataDir: string,
  runtimeFlags: readonly string[],
): Promise<harness.Server> {
  const args = ['apiserver', '--data-dir', dataDir, '--secure-port', '0'];
  return harness.startMegaplane(
    [...args, '--disable-admission-plugins', ADMISSION],
    CORES,
    runtimeFlags,
  );
}

/** Our scheduler for the API server of that directory; `onLine` is told what it prints. */
export function startScheduler(
  dataDir: string,
  runtimeFlags: readonly string[],
  onLine?: (line: string) => void,
): Promise<harness.Server> {
  const config = configurationFile(dataDir, false);
  const args = ['scheduler', '--kubeconfig', schedulerKubeconfig(dataDir), '--config', config];
  return harness.startMegaplane(args, CORES, ['--max-semi-space-size=16', ...runtimeFlags], onLine);
}

function profileFlags(folder: string): string[] {
  return ['--cpu-prof', `--cpu-prof-dir=${folder}`];
}

interface Program {
  readonly pid: number;
  stop(): Promise<void>;
}

async function startEither(
  dataDir: string,
  { foreign, isExact }: RigOptions,
  profile: readonly string[],
): Promise<Program> {
  if (foreign === null) return startScheduler(dataDir, profile);
  const config = configurationFile(dataDir, isExact);
  const child = adopt(
    spawn(foreign, ['--config', config, '--secure-port', '0'], { stdio: 'ignore' }),
  );
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  return { pid: child.pid ?? 0, stop };
}

function schedulerKubeconfig(dataDir: string): string {
  return join(dataDir, 'scheduler.kubeconfig');
}

function configurationFile(dataDir: string, isExact: boolean): string {
  const file = join(dataDir, 'scheduler.yaml');
  writeFileSync(file, configuration(schedulerKubeconfig(dataDir), isExact));
  return file;
}

/** As in the performance tests: nobody to elect, 5,000 requests a second. */
function configuration(kubeconfig: string, isExact: boolean): string {
  const object = {
    ...{ apiVersion: 'kubescheduler.config.k8s.io/v1', kind: 'KubeSchedulerConfiguration' },
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: 5000, burst: 5000 },
    ...(isExact ? { percentageOfNodesToScore: 100 } : {}),
  };
  return JSON.stringify(object);
}

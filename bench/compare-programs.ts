/**
 * Schedulers and simulators of nodes on one API server (ours, whichever program is measured): what
 * each does per second of the clock and of its own processor.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@megaplane/client/client';
import { listAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import * as load from './apiserver-load.ts';
import { adopt } from './children.ts';
import * as harness from './harness.ts';

const PROGRAM_CORE = 0;
/** Of the API server and the load: what is measured has a core of its own. */
const SERVER_CORE = 1;
const NODES = 1000;
const HOLD_SECONDS = 20;
const LEASE_SECONDS = 40;
const RENEW_SECONDS = LEASE_SECONDS / 4;
const WAIT_MS_MAX = 300_000;
const LOOK_MS = 100;
const QPS = 100_000;

export type Rates = ReadonlyMap<string, number>;

interface Running {
  readonly pid: number;
  stop(): Promise<void>;
}

/** The API server of both, the load on it, and a directory for the program's files. */
interface Bed {
  readonly dir: string;
  readonly kubeconfig: string;
  readonly client: Client;
}

async function onBed<T>(work: (bed: Bed) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'megaplane-compare-'));
  const flags = ['apiserver', '--data-dir', join(dir, 'server'), '--secure-port', '0'];
  const server = await harness.startMegaplane(flags, SERVER_CORE);
  const kubeconfig = join(dir, 'server', 'kubeconfig');
  const [client] = await load.openClients(kubeconfig, 1, 4, 400);
  if (client === undefined) throw new Error('there is no client');
  try {
    await load.shoot([client], NODES, load.nodeShot);
    // new nodes are not ready, and no controller says otherwise here
    const ready = JSON.stringify({ spec: { taints: null } });
    await load.shoot([client], NODES, (index) => ({
      method: 'PATCH',
      path: `${load.NODES}/node-${index}`,
      type: 'application/merge-patch+json',
      body: ready,
    }));
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
    const path = '/api/v1/namespaces/default/serviceaccounts';
    await client.request({ method: 'POST', path, body: account });
    return await work({ dir, kubeconfig, client });
  } finally {
    client.close();
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function startForeign(program: string, flags: readonly string[]): Promise<Running> {
  const command = ['-c', String(PROGRAM_CORE), program, ...flags];
  const child = adopt(spawn('taskset', command, { stdio: ['ignore', 'ignore', 'pipe'] }));
  let complaint = '';
  child.stderr.on(
    'data',
    (bytes: Buffer) => (complaint = `${complaint}${String(bytes)}`.slice(-500)),
  );
  await once(child, 'spawn');
  // who refuses its flags ends at once
  await sleep(1000);
  if (child.exitCode !== null) throw new Error(`${program} ended: ${complaint}`);
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return { pid: child.pid ?? 0, stop };
}

/** Waits until no pod is left that `selector` finds. */
async function untilNone(client: Client, selector: string): Promise<void> {
  const path = `${load.PODS}?limit=1&fieldSelector=${encodeURIComponent(selector)}`;
  const endMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const answer = await client.request({ method: 'GET', path });
    if (!answer.ok) throw new Error(answer.status.message ?? path);
    if (listAt(answer.object, 'items').length === 0) return;
    if (performance.now() > endMs) throw new Error(`pods are left where ${selector}`);
    await sleep(LOOK_MS);
  }
}

function bodyOf(index: number, changes: JsonObject): JsonObject {
  const pod = JSON.parse(String(load.podShot(index).body)) as { readonly spec: JsonObject };
  return { ...pod, spec: { ...pod.spec, ...changes } };
}

/** `program` is kube-scheduler's file; undefined for ours. */
export async function schedulerRates(program: string | undefined, pods: number): Promise<Rates> {
  return onBed(async ({ dir, kubeconfig, client }) => {
    const flags = ['--kubeconfig', kubeconfig, '--leader-elect=false'];
    const running =
      program === undefined
        ? await harness.startMegaplane(['scheduler', ...flags], PROGRAM_CORE)
        : await startForeign(program, ['--config', schedulerConfig(dir, kubeconfig)]);
    try {
      // the first pod waits for caches, of either
      await load.shoot([client], 1, () => load.podShot(pods));
      await untilNone(client, 'spec.nodeName=');
      const rate = await load.rateOf([running.pid], pods, async () => {
        await load.shoot([client], pods, load.podShot);
        await untilNone(client, 'spec.nodeName=');
      });
      return new Map([
        ['pods bound, by the clock', rate.perSecond],
        ['pods bound, per processor second', rate.perCpuSecond],
      ]);
    } finally {
      await running.stop();
    }
  });
}

/** Without it kube-scheduler sends 50 requests a second. */
function schedulerConfig(dir: string, kubeconfig: string): string {
  const file = join(dir, 'scheduler.json');
  const config = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig, qps: QPS, burst: QPS },
    leaderElection: { leaderElect: false },
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** `program` is kwok's file; undefined for ours. */
export async function simulatorRates(program: string | undefined, pods: number): Promise<Rates> {
  return onBed(async ({ kubeconfig, client }) => {
    const lease = ['--node-lease-duration-seconds', String(LEASE_SECONDS)];
    const flags = ['--kubeconfig', kubeconfig, '--manage-all-nodes=true', ...lease];
    const running =
      program === undefined
        ? await harness.startMegaplane(
            ['nodes', ...flags, '--server-address', '127.0.0.1:0'],
            PROGRAM_CORE,
          )
        : await startForeign(program, flags);
    try {
      const shot = (index: number): load.Shot => {
        const changes = { nodeName: `node-${index % NODES}` };
        return { ...load.podShot(index), body: JSON.stringify(bodyOf(index, changes)) };
      };
      await load.shoot([client], 1, () => shot(pods));
      await untilNone(client, 'status.phase!=Running');
      const played = await load.rateOf([running.pid], pods, async () => {
        await load.shoot([client], pods, shot);
        await untilNone(client, 'status.phase!=Running');
      });
      const renewals = (NODES * HOLD_SECONDS) / RENEW_SECONDS;
      const held = await load.rateOf([running.pid], renewals, () => sleep(HOLD_SECONDS * 1000));
      return new Map([
        ['pods made to run, by the clock', played.perSecond],
        ['pods made to run, per processor second', played.perCpuSecond],
        ['leases held, renewals per processor second', held.perCpuSecond],
      ]);
    } finally {
      await running.stop();
    }
  });
}

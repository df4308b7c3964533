/** The real kube-apiserver on a real etcd, as the peer of a benchmark. */
import { spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@megaplane/base/free-port.sim';
import { createKubeClient } from '@megaplane/client/kube-client';
import type { Started } from './apiserver-load.ts';
import { adopt } from './children.ts';

const READY_MS_MAX = 120_000;
const TOKEN = 'bench';
/** etcd's own default is 2 GiB, which a large run fills. */
const QUOTA_BYTES = 2 ** 33;

/** Starts both on a core, over TLS, with what `dataDir` holds from an earlier start. */
export async function startKubeApiserver(
  binary: string,
  dataDir: string,
  core: number,
): Promise<Started> {
  const [clientPort, peerPort, port] = [await freePort(), await freePort(), await freePort()];
  const startMs = performance.now();
  const etcd = start(core, 'etcd', etcdFlags(join(dataDir, 'etcd'), clientPort, peerPort));
  const server = start(core, binary, serverFlags(join(dataDir, 'kube'), clientPort, port));
  const stop = async (): Promise<void> => {
    for (const { child } of [server, etcd]) await end(child);
  };
  const kubeconfig = join(dataDir, 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText(port));
  try {
    await ready(kubeconfig, [server, etcd]);
  } catch (error) {
    await stop();
    throw error;
  }
  const pids = [server.child.pid ?? 0, etcd.child.pid ?? 0];
  return { pids, kubeconfig, readyMs: performance.now() - startMs, stop };
}

interface Running {
  readonly name: string;
  readonly child: ChildProcess;
  /** The end of what it has written, for when it does not come up. */
  complaint: string;
}

function start(core: number, name: string, flags: readonly string[]): Running {
  const child = adopt(
    spawn('taskset', ['-c', String(core), name, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] }),
  );
  const running: Running = { name, child, complaint: '' };
  child.stderr.on('data', (bytes: Buffer) => {
    running.complaint = (running.complaint + String(bytes)).slice(-2000);
  });
  return running;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

function etcdFlags(dir: string, clientPort: number, peerPort: number): string[] {
  const url = `http://127.0.0.1:${clientPort}`;
  const peers = `http://127.0.0.1:${peerPort}`;
  return [
    ['--data-dir', dir],
    ['--listen-client-urls', url, '--advertise-client-urls', url],
    ['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
    ['--initial-cluster', `default=${peers}`, '--quota-backend-bytes', String(QUOTA_BYTES)],
  ].flat();
}

/** Tokens of service accounts are signed by a key that is made with the directory. */
function serverFlags(dir: string, etcdPort: number, port: number): string[] {
  const [tokens, key] = [join(dir, 'tokens'), join(dir, 'sa.key')];
  if (!existsSync(key)) {
    mkdirSync(dir);
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(key, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
    writeFileSync(tokens, `${TOKEN},admin,1,"system:masters"\n`);
  }
  return [
    ['--etcd-servers', `http://127.0.0.1:${etcdPort}`, '--cert-dir', dir],
    ['--bind-address', '127.0.0.1', '--secure-port', String(port), '--token-auth-file', tokens],
    ['--advertise-address', '192.0.2.1', '--endpoint-reconciler-type', 'none'],
    ['--service-account-key-file', key, '--service-account-signing-key-file', key],
    ['--service-account-issuer', 'https://127.0.0.1', '--authorization-mode', 'RBAC'],
  ].flat();
}

function kubeconfigText(port: number): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [
      {
        name: 'bench',
        cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true },
      },
    ],
    users: [{ name: 'bench', user: { token: TOKEN } }],
  });
}

/** Waits until it is ready and its namespaces are there. */
async function ready(kubeconfig: string, programs: readonly Running[]): Promise<void> {
  const client = await createKubeClient({ kubeconfig });
  const endMs = performance.now() + READY_MS_MAX;
  const has = async (path: string): Promise<boolean> => {
    const answer = await client.request({ method: 'GET', path }).catch(() => null);
    return answer?.ok === true;
  };
  const namespaces = '/api/v1/namespaces/';
  while (!(await has(`${namespaces}default`)) || !(await has(`${namespaces}kube-node-lease`))) {
    const ended = programs.find(({ child }) => child.exitCode !== null);
    if (ended !== undefined) throw new Error(`${ended.name} ended: ${ended.complaint}`);
    if (performance.now() > endMs) throw new Error(`the peer is not up: ${programs[0]?.complaint}`);
    await sleep(20);
  }
  client.close();
}

/**
 * What a kubelet feels while others push as hard as they can: the latency of a node's renewals of
 * its lease, alone and beside three hostile clients: one lists all pods in 16 loops, one opens ten
 * thousand watches at once and drops them again and again, one creates, conflicts and retries with
 * 256 requests in flight.
 *
 *     node bench/hostile.ts --pods 20000 --seconds 20
 *
 * The server has one core; the clients share the other, the hostile ones with lower priority, so
 * that what is measured is the server's doing. Nobody is of `system:masters`, who is exempt.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENT, type Client } from '@megaplane/client/client';
import { createKubeClient } from '@megaplane/client/kube-client';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { LEASE_PATH, leaseBody, microTime } from '@megaplane/nodes/lease-object';
import { flagsOf } from './flags.ts';
import * as harness from './harness.ts';

const values = flagsOf({
  pods: { type: 'string', default: '20000' },
  seconds: { type: 'string', default: '20' },
  output: { type: 'string' },
  role: { type: 'string', default: '' },
  kubeconfig: { type: 'string', default: '' },
});
const PODS = Number(values.pods);
const SECONDS = Number(values.seconds);
const NODE = 'node-0';
const UID = '5f0c3a8e-7d0b-4a60-9d39-0d5f5b0f8d11';
const ROLES = ['lister', 'watcher', 'looper'] as const;
const LISTS = 16;
const WATCHES = 10_000;
const WATCH_CONNECTIONS = 50;
const LOOPS = 256;
const RENEWAL_MS = 10;

async function clientOf(kubeconfig: string, token: string, connections: number): Promise<Client> {
  const admin = await createKubeClient({ kubeconfig });
  const { tls } = admin.endpoint;
  admin.close();
  const own = tls === null ? null : { ...tls, cert: undefined, key: undefined };
  const endpoint = { ...admin.endpoint, tls: own, token };
  const limits = { connections, inFlightMax: 1024, queueMax: 1024, retriesMax: 0 };
  return createKubeClient({ endpoint, limits });
}

/** What a hostile client has got. */
interface Tally {
  answered: number;
  refused: number;
}

/** Reads lists of all pods, several at a time, for ever. */
function listForEver(client: Client, tally: Tally): void {
  const again = (): void => {
    client.stream('/api/v1/pods', {
      onHead: (status) => {
        if (status === 429) tally.refused++;
        else if (status === 200) tally.answered++;
      },
      onData: () => {},
      onEnd: () => setImmediate(again),
    });
  };
  for (let index = 0; index < LISTS; index++) again();
}

/** Opens all watches, waits for their answers or a second, drops them, and begins again. */
async function watchForEver(clients: readonly Client[], tally: Tally): Promise<void> {
  for (;;) {
    const handles = Array.from({ length: WATCHES }, (_, index) => {
      const client = clients[index % clients.length];
      return client?.stream('/api/v1/configmaps?watch=true&resourceVersion=0', {
        onHead: (status) => {
          if (status === 429) tally.refused++;
          else if (status === 200) tally.answered++;
        },
        onData: () => {},
        onEnd: () => {},
      });
    });
    await sleep(1000);
    for (const handle of handles) handle?.cancel();
  }
}

/** Writes what conflicts, and repeats it at once. */
function loopForEver(client: Client, tally: Tally): void {
  const path = '/api/v1/namespaces/default/configmaps';
  const body = JSON.stringify({ metadata: { name: 'contended' }, data: { key: 'v'.repeat(1000) } });
  const again = (): void => {
    client.send('POST', path, CONTENT.json, body, (status) => {
      if (status === 429) tally.refused++;
      else tally.answered++;
      setImmediate(again);
    });
  };
  for (let index = 0; index < LOOPS; index++) again();
}

async function beHostile(role: string, kubeconfig: string): Promise<void> {
  setPriority(10);
  const tally: Tally = { answered: 0, refused: 0 };
  if (role === 'watcher') {
    const all = Array.from({ length: WATCH_CONNECTIONS }, () => clientOf(kubeconfig, role, 1));
    void watchForEver(await Promise.all(all), tally);
  } else if (role === 'lister') listForEver(await clientOf(kubeconfig, role, 4), tally);
  else loopForEver(await clientOf(kubeconfig, role, 4), tally);
  setInterval(() => process.send?.(tally), 500);
}

/** Renews one lease, one request at a time; returns the sorted latencies in ms. */
async function renew(client: Client, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  const path = `${LEASE_PATH}/${NODE}`;
  const endMs = performance.now() + seconds * 1000;
  let seen = await client.request({ method: 'GET', path });
  while (performance.now() < endMs) {
    const version = seen.ok ? Number(stringAt(seen.object, 'metadata', 'resourceVersion')) : 0;
    const body = leaseBody(NODE, UID, version, 40, microTime(Date.now()));
    const startMs = performance.now();
    seen = await client.request({ method: 'PUT', path, body });
    if (!seen.ok) throw new Error(`a renewal was answered ${seen.code}`);
    latencies.push(performance.now() - startMs);
    await sleep(RENEWAL_MS);
  }
  return latencies.sort((a, b) => a - b);
}

const pod = (index: number): JsonObject => ({
  metadata: { name: `pod-${index}`, namespace: 'default', labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'registry.example/web:1.2.3' }] },
});

/** Accounts, what they may do, pods and the lease. */
async function prepare(kubeconfig: string): Promise<void> {
  const admin = await createKubeClient({ kubeconfig });
  const make = async (path: string, body: JsonObject): Promise<void> => {
    const answer = await admin.request({ method: 'POST', path, body });
    if (!answer.ok) throw new Error(`${path}: ${answer.status.message}`);
  };
  await make('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'hostile' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: ROLES.map((name) => ({
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'User',
      name,
    })),
  });
  await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } }).catch(
    () => {},
  );
  const lease = leaseBody(NODE, UID, 0, 40, microTime(Date.now()));
  await admin.request({ method: 'POST', path: LEASE_PATH, body: lease });
  for (let index = 0; index < PODS; index += 500) {
    const some = Array.from({ length: Math.min(500, PODS - index) }, (_, at) => index + at);
    await Promise.all(some.map((at) => make('/api/v1/namespaces/default/pods', pod(at))));
  }
  admin.close();
}

function row(name: string, sorted: readonly number[]): string[] {
  const text = (part: number): string => harness.quantile(sorted, part).toFixed(1);
  return [name, String(sorted.length), text(0.5), text(0.99), text(1)];
}

async function measure(): Promise<void> {
  harness.pinSelf(1);
  const dataDir = mkdtempSync(join(tmpdir(), 'megaplane-bench-'));
  const tokens = join(dataDir, 'tokens.csv');
  const users = ROLES.map((role) => `${role},${role},${role}`);
  writeFileSync(tokens, `${users.join('\n')}\nnode,system:node:${NODE},node,system:nodes\n`);
  const server = await harness.startMegaplane(
    ['apiserver', '--data-dir', dataDir, '--secure-port', '0', '--token-auth-file', tokens],
    0,
  );
  const children: ChildProcess[] = [];
  try {
    const kubeconfig = join(dataDir, 'kubeconfig');
    await prepare(kubeconfig);
    const node = await clientOf(kubeconfig, 'node', 1);
    await renew(node, 2);
    const alone = await renew(node, SECONDS / 4);
    const tallies = new Map<string, Tally>();
    for (const role of ROLES) {
      const child = fork(import.meta.filename, ['--role', role, '--kubeconfig', kubeconfig]);
      child.on('message', (tally) => tallies.set(role, tally as Tally));
      children.push(child);
    }
    await sleep(5000);
    const beside = await renew(node, SECONDS);
    harness.printTable(
      ['renewals of a lease', 'count', 'p50 ms', 'p99 ms', 'max ms'],
      [row('alone', alone), row('beside three hostile clients', beside)],
    );
    const hostile = Object.fromEntries(tallies);
    for (const [role, tally] of tallies) {
      process.stdout.write(`${role}: ${tally.answered} answered, ${tally.refused} refused\n`);
    }
    harness.writeResults(values.output, { alone, beside, hostile });
    node.close();
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

if (values.role === '') await measure();
else await beHostile(values.role, values.kubeconfig);

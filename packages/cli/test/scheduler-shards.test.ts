// A scheduler with shards and relays as processes, all of whose pods are evaluated in full (a
// plugin of a user has a say). Shards are killed while it works.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createKubeClient, type KubeClient } from '@megaplane/client/kube-client';
import { type Cluster, ENTRY, eventually, startCluster } from './cluster.ts';

const skip = existsSync('/proc/self/stat') ? false : 'needs /proc';
const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
const NODES = 520;
/** Nodes that the plugin lets pods go to; each has room for three of them. */
const ALLOWED = IS_LONG ? 260 : 13;
const PODS_PER_NODE = 3;
const PODS = ALLOWED * PODS_PER_NODE;
const KILLS_MIN = IS_LONG ? 20 : 1;

const PLUGIN = `
  const allows = (name) => Number(/[0-9]+$/.exec(name)?.[0] ?? 0) % ${NODES / ALLOWED} === 0;
  export default {
    name: 'Tenth',
    points: ['filter', 'score'],
    create: () => ({
      name: 'Tenth',
      preFilter: () => ({
        kind: 'run',
        filter: {
          filter: ({ name }) =>
            allows(name) ? null : { code: 'unschedulable', reasons: ['not a tenth'] },
        },
      }),
      preScore: () => ({ kind: 'run', scorer: { score: ({ pods }) => 100 - pods.length } }),
    }),
  };
`;
const CONFIG = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Tenth, weight: 2}]
`;

interface Running {
  readonly process: ChildProcess;
  readonly ready: string;
  readonly errors: () => string;
}

const started: ChildProcess[] = [];
after(() => started.forEach((one) => one.kill('SIGKILL')));

/** Starts the program; resolves with its ready line, or with what it said before it ended. */
async function run(args: readonly string[]): Promise<Running> {
  const child = spawn(process.execPath, [ENTRY, 'scheduler', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const ready = await new Promise<string>((resolve) => {
    child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    child.once('exit', () => resolve(''));
  });
  return { process: child, ready, errors: () => errors };
}

function descendants({ pid }: ChildProcess): { pid: number; words: string }[] {
  const { stdout } = spawnSync('pgrep', ['-a', '-P', String(pid)], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => ({ pid: Number(line.split(' ')[0]), words: line }));
}

/** What it counts of its shards. */
async function page(ready: string): Promise<string> {
  const url = /(http:\S+\/metrics)/.exec(ready)?.[1] ?? '';
  const text = await (await fetch(url)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('megaplane_scheduler_'))
    .join('\n');
}

async function counted(ready: string, name: string): Promise<number> {
  const text = await page(ready);
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.split(' ')[1] ?? NaN);
}

async function create(client: KubeClient, index: number): Promise<void> {
  const requests = { cpu: '9' };
  const body = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `p${index}` } },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests } }] },
  };
  const path = '/api/v1/namespaces/default/pods';
  const answer = await client.request({ method: 'POST', path, body });
  assert.ok(answer.ok, JSON.stringify(answer));
}

interface PodList {
  readonly items: readonly { readonly spec: { readonly nodeName?: string } }[];
}

async function nodesOfPods(client: KubeClient): Promise<readonly string[]> {
  const path = '/api/v1/namespaces/default/pods';
  const answer = await client.request({ method: 'GET', path });
  assert.ok(answer.ok);
  return (answer.object as unknown as PodList).items.map(({ spec }) => spec.nodeName ?? '');
}

async function withCluster(run_: (cluster: Cluster, client: KubeClient) => Promise<void>) {
  const flags = ['--nodes', String(NODES), '--components', 'apiserver,controllers,nodes'];
  const cluster = await startCluster(flags);
  const client = await createKubeClient({ kubeconfig: cluster.kubeconfig, userAgent: 'test' });
  try {
    await run_(cluster, client);
  } finally {
    client.close();
    await cluster.remove();
  }
}

test(
  'shards that are killed lose nothing: each pod is bound once, where there is room',
  { skip },
  async () => {
    await withCluster(async (cluster, client) => {
      const plugin = join(cluster.dataDir, 'tenth.mjs');
      const config = join(cluster.dataDir, 'config.yaml');
      writeFileSync(plugin, PLUGIN);
      writeFileSync(config, CONFIG);
      const scheduler = await run([
        ...['--kubeconfig', join(cluster.dataDir, 'scheduler.kubeconfig'), '--leader-elect=false'],
        ...['--config', config, '--plugin', plugin, '--shards', '3', '--relay-fan-out', '2'],
      ]);
      assert.match(scheduler.ready, /shards join 127\.0\.0\.1:\d+/, scheduler.errors());
      const members = descendants(scheduler.process);
      assert.equal(members.filter(({ words }) => words.includes('scheduler relay')).length, 2);
      const found = 'megaplane_scheduler_shards_decisions_total{outcome="found"}';
      let made = 0;
      for (let kills = 0; made < PODS || kills < KILLS_MIN;) {
        const until = Math.min(PODS, made + 20);
        while (made < until) await create(client, made++);
        const before = await counted(scheduler.ready, found);
        const shards = descendants(scheduler.process);
        const shard = shards.find(({ words }) => words.includes('scheduler shard'));
        if (shard !== undefined && made > PODS / 2) {
          process.kill(shard.pid, 'SIGKILL');
          kills++;
        }
        await eventuallyAsync('pods have nodes', async () => {
          const bound = (await nodesOfPods(client)).filter((node) => node !== '');
          return bound.length >= made - 3;
        });
        assert.ok((await counted(scheduler.ready, found)) >= before);
      }
      await eventuallyAsync('all pods have nodes', async () =>
        (await nodesOfPods(client)).every((node) => node !== ''),
      );
      const perNode = new Map<string, number>();
      for (const node of await nodesOfPods(client)) {
        perNode.set(node, (perNode.get(node) ?? 0) + 1);
      }
      assert.equal(perNode.size, ALLOWED);
      for (const [node, pods] of perNode) assert.ok(pods <= PODS_PER_NODE, `${node}: ${pods}`);
      assert.ok((await counted(scheduler.ready, found)) > PODS / 8, await page(scheduler.ready));
      // a relay that dies comes again where its shards look for it
      const epoch = 'megaplane_scheduler_shards_epoch';
      const epochBefore = await counted(scheduler.ready, epoch);
      const relay = descendants(scheduler.process).find(({ words }) => words.includes('r relay'));
      process.kill(relay?.pid ?? NaN, 'SIGKILL');
      await eventuallyAsync('all shards are there again', async () => {
        const epochNow = await counted(scheduler.ready, epoch);
        const members = await counted(scheduler.ready, 'megaplane_scheduler_shards_members');
        return epochNow > epochBefore && members === 3;
      });
      // its shards and relays end with it, however it ends
      const left = descendants(scheduler.process);
      assert.ok(left.length >= 4, JSON.stringify(left));
      scheduler.process.kill('SIGKILL');
      for (const { pid } of left) await eventually(`the end of ${pid}`, () => isGone(pid));
      // one that leads gives its lease back when it is told to stop, and that is no failure
      const flags = ['--kubeconfig', join(cluster.dataDir, 'scheduler.kubeconfig')];
      const leader = await run([...flags, '--config', config, '--plugin', plugin]);
      await eventually('a leader', () => leader.errors().includes('became leader') || undefined);
      leader.process.kill('SIGTERM');
      const [code] = await once(leader.process, 'exit');
      assert.equal(code, 0, leader.errors());
    });
  },
);

function isGone(pid: number): true | undefined {
  try {
    process.kill(pid, 0);
    return undefined;
  } catch {
    return true;
  }
}

async function eventuallyAsync(what: string, look: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 90_000;
  while (!(await look())) {
    if (Date.now() > endMs) throw new Error(`not within 90 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

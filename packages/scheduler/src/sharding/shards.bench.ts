// Decisions of full evaluation with shards as processes and without, beside no API server.
//
//   node packages/scheduler/src/sharding/shards.bench.ts [NODES] [PODS] [SHARDS] [RELAYS] [KIND]
//
// Prints processor time a pod: of the root, of the busiest shard, of all, and of one process that
// does all of it; octets a pod and child; latencies. KIND: plugin (a plugin of a user scores every
// node), devices (each pod claims one of two kinds of devices, whichever there is).
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { nextTurn } from '@megaplane/base/deferred';
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { KubeObject, NodeObject } from '../api/objects.ts';
import { createProfile } from '../framework/runtime/profile.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import { openLiveRoot, type LiveRoot } from './live-root.ts';
import { runRelay, runShard } from './run-shard.ts';

const [first = '', ...words] = process.argv.slice(2);
const [nodes = 100_000, pods = 100, shards = 8, relays = 0] = [first, ...words].map(Number);
const kind = words[3] ?? 'plugin';
/** The root alone takes as long for one as all shards for many. */
const ALONE = 5;
const HOST = '127.0.0.1';
const TERMS = { version: 'bench', configHash: '' };
const TICKS_PER_SECOND = 100;
const POD_BYTES = 2048;

const OWN: UserPlugin = {
  name: 'Own',
  points: ['score'],
  create: () => ({
    name: 'Own',
    preScore: () => ({ kind: 'run', scorer: { score: (node) => 100 - node.pods.length } }),
  }),
};
const PROFILE =
  kind === 'plugin' ? { plugins: { multiPoint: { enabled: [{ name: 'Own', weight: 1 }] } } } : {};
const PLUGINS = kind === 'plugin' ? [OWN] : [];

function member(): Promise<{ stop(): Promise<void> }> {
  const [role = '', port = '', name = ''] = process.argv.slice(2);
  const onTrouble = (text: string): void => void process.stderr.write(`${name}: ${text}\n`);
  const common = {
    ...{ name, parents: [{ host: HOST, port: Number(port) }], version: TERMS.version },
    ...{ metricsAddress: `${HOST}:0`, joinMsMax: 30_000, onTrouble },
  };
  if (role === 'relay') return runRelay({ ...common, listen: { host: HOST, port: 0 } }).then(say);
  const isPlugin = process.argv[5] === 'plugin';
  const plugins = isPlugin ? [OWN] : [];
  const enabled = [{ name: 'Own', weight: 1 }];
  const profile = createProfile(
    isPlugin ? { plugins: { multiPoint: { enabled } } } : {},
    undefined,
    plugins,
  );
  const profiles = new Map([[profile.schedulerName, profile]]);
  return runShard({ ...common, profiles, terms: TERMS });
}

function say<Service extends { readonly address?: { readonly port: number } }>(one: Service) {
  process.stdout.write(`${one.address?.port ?? 0}\n`);
  return one;
}

function start(...args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [import.meta.filename, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function portOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) =>
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString().trim())),
  );
}

/** Processor seconds of a process so far. */
function secondsOf({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [utime = 0, stime = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(utime) + Number(stime)) / TICKS_PER_SECOND;
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function nodeObject(index: number): NodeObject {
  const name = `node-${index}`;
  const zone = `zone-${'abc'[index % 3]}`;
  const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': zone };
  const status = { allocatable: { cpu: '32', memory: '256Gi', pods: '110' } };
  return { metadata: { name, labels }, spec: {}, status };
}

/** Two devices of each node, of a kind that every other node has. */
function sliceOf(index: number): KubeObject {
  const model = index % 2 === 0 ? 'a' : 'b';
  const devices = [0, 1].map((one) => ({
    name: `d${one}`,
    attributes: { model: { string: model } },
  }));
  const pool = { name: `node-${index}`, generation: 1, resourceSliceCount: 1 };
  const spec = { driver: 'gpu.example.com', pool, nodeName: `node-${index}`, devices };
  return { metadata: { name: `slice-${index}`, resourceVersion: '1' }, spec } as KubeObject;
}

function claimOf(index: number): KubeObject {
  const request = (name: string, model: string): object => ({
    ...{ name, deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 },
    selectors: [
      { cel: { expression: `device.attributes["gpu.example.com"].model == "${model}"` } },
    ],
  });
  const firstAvailable = [request('a', 'a'), request('b', 'b')];
  const metadata = { name: `claim-${index}`, namespace: 'default', uid: `c${index}` };
  const spec = { devices: { requests: [{ name: 'gpu', firstAvailable }] } };
  return { metadata: { ...metadata, resourceVersion: '1' }, spec } as KubeObject;
}

function podBytes(index: number): Buffer {
  const uid = `${index.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
  const requests = { cpu: '100m', memory: '100Mi' };
  const value = 'x'.repeat(POD_BYTES - 400);
  const container = { name: 'c', image: 'i', resources: { requests }, env: [{ name: 'E', value }] };
  const claims = [{ name: 'gpu', resourceClaimName: `claim-${index}` }];
  const spec = {
    containers: [container],
    ...(kind === 'devices' ? { resourceClaims: claims } : {}),
  };
  const metadata = { name: `p${index}`, namespace: 'default', uid };
  return Buffer.from(JSON.stringify({ metadata, spec }));
}

async function decide(core: SchedulerCore, root: LiveRoot | null): Promise<void> {
  let attempt = core.attempt(1);
  while (core.question !== null) {
    const { question } = core;
    if (question.kind !== 'shards' || root === null) throw new Error('nobody is to be asked');
    attempt = core.answer(await root.host.ask(question.round), 1);
  }
  if (attempt?.kind !== 'bind') {
    const why = attempt?.kind === 'failed' ? attempt.failure.message : 'nothing to try';
    throw new Error(`a pod found no node: ${why}`);
  }
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

async function main(): Promise<void> {
  const core = new SchedulerCore({
    ...{ seed: 1, plugins: PLUGINS, profiles: [PROFILE], scatteredNodesMin: 1 },
    keyOf: (id) => `default/p${id}`,
  });
  for (let i = 0; i < nodes; i++) core.nodeSeen(nodeObject(i), 1);
  if (kind === 'devices') {
    core.objectSeen('DeviceClass', { metadata: { name: 'gpu' }, spec: {} } as KubeObject, 1);
    for (let i = 0; i < nodes; i++) core.objectSeen('ResourceSlice', sliceOf(i), 1);
  }
  let made = 0;
  const add = (): void => {
    const id = made++;
    if (kind === 'devices') core.objectSeen('ResourceClaim', claimOf(id), 1);
    const bytes = podBytes(id);
    core.podSeen(id, true, bytes, 0, bytes.length, 1);
  };
  // the first one makes the objects of all nodes
  add();
  await decide(core, null);
  const aloneFrom = ownSeconds();
  for (let i = 0; i < ALONE; i++) {
    add();
    await decide(core, null);
  }
  const alone = (ownSeconds() - aloneFrom) / ALONE;

  const options = { host: HOST, port: 0, terms: TERMS };
  const root = await openLiveRoot(options, core, () => true, console.error);
  const { port } = root.address;
  const passing = Array.from({ length: relays }, (_, i) => start('relay', `${port}`, `relay-${i}`));
  const ports = await Promise.all(passing.map((relay) => portOf(relay)));
  const looking = Array.from({ length: shards }, (_, i) => {
    return start('shard', ports[i % ports.length] ?? `${port}`, `shard-${i}`, kind);
  });
  const children = [...passing, ...looking];
  try {
    await root.joined(shards);
    const [toldFrom, toldSince] = [ownSeconds(), performance.now()];
    await root.host.ask(null);
    const told = { seconds: ownSeconds() - toldFrom, ms: performance.now() - toldSince };
    for (let i = 0; i < 20; i++) {
      add();
      await decide(core, root);
    }
    const before = children.map((child) => secondsOf(child));
    const sentFrom = root.host.traffic.sentBytes;
    const from = ownSeconds();
    const times: number[] = [];
    for (let i = 0; i < pods; i++) {
      add();
      const since = performance.now();
      await decide(core, root);
      times.push(performance.now() - since);
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
    const own = (ownSeconds() - from) / pods;
    const seconds = children.map((child, i) => (secondsOf(child) - (before[i] ?? 0)) / pods);
    const ofShards = seconds.slice(passing.length);
    const sent = root.host.traffic.sentBytes - sentFrom;
    const sorted = times.toSorted((one, other) => one - other);
    const ms = (value: number): number => Math.round(value * 1e6) / 1e3;
    const all = own + seconds.reduce((sum, one) => sum + one, 0);
    const busiest = Math.max(own, ...seconds);
    const figures = {
      ...{ nodes, pods, shards, relays, kind, outcomes: root.host.counts.outcomes },
      ...{ aloneMs: ms(alone), rootMs: ms(own), busiestShardMs: ms(Math.max(...ofShards)) },
      ...{ relayMs: ms(Math.max(0, ...seconds.slice(0, passing.length))), allMs: ms(all) },
      part: Math.round((busiest / alone) * 1000) / 1000,
      bytesPerPodAndChild: Math.round(sent / pods / (relays || shards)),
      ...{ p50Ms: ms(quantile(sorted, 0.5) / 1e3), p99Ms: ms(quantile(sorted, 0.99) / 1e3) },
      ...{ tellingMs: Math.round(told.ms), tellingRootMs: ms(told.seconds) },
    };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
  } finally {
    for (const child of children) child.kill();
    await root.close();
  }
}

if (first === 'shard' || first === 'relay') await member();
else {
  await main();
  process.exit(0);
}

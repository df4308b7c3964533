/**
 * What simulated nodes ask of an API server, by verb and resource, over simulated hours: the table
 * in docs/nodes.md. Each call of a real kubelet can be left out, and nothing else changes then.
 *
 *     MEGAPLANE_TABLE=1 node --test packages/cli/test/kubelet-traffic.sim.test.ts
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '@megaplane/client/client';
import { CALLS, type Call } from '@megaplane/nodes/fidelity/calls';
import { ClusterSimulation } from './cluster-simulation.ts';
import { simulatedWorld } from './simulated-world.ts';

const HOUR_MS = 3_600_000;
const TICK_MS = 400;
const MADE = Buffer.from('{"kind":"TokenRequest"}');

type Counts = Map<string, number>;

/** `PATCH nodes/status`: the verb, and the resource without its names. */
function labelOf(verb: string, path: string): string {
  const plain = path.split('?')[0] ?? '';
  const parts = plain.replace(/^\/(api\/[^/]+|apis\/[^/]+\/[^/]+)\//, '').split('/');
  const own = parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts;
  return `${verb} ${own[2] === undefined ? own[0] : `${own[0]}/${own[2]}`}`;
}

/** The client of a cluster, which tells what goes through it. */
function counting(cluster: ClusterSimulation, heard: (label: string) => void): Client {
  const count = (verb: string, path: string): void =>
    heard(labelOf(/[?&]watch=(true|1)/.test(path) ? 'WATCH' : verb, path));
  return {
    retryAfterSeconds: 0,
    timers: cluster.timers,
    metrics: { requestsInFlight: 0, requestsQueued: 0 } as Client['metrics'],
    send: (method, path, contentType, body, done, tag) => {
      count(method, path);
      if (!path.endsWith('/token')) {
        return cluster.send(method, path, contentType, body, done, tag);
      }
      // the server of the simulation signs no tokens
      cluster.timers.after(1, () => done(201, MADE, 0, MADE.length, tag ?? 0));
      return true;
    },
    request: (request) => {
      count(request.method, request.path);
      return cluster.request(request);
    },
    stream: (path, sink) => {
      count('GET', path);
      return cluster.stream(path, sink);
    },
    room: () => cluster.room(),
    onRoom: () => {},
    random: () => cluster.random(),
    close: () => {},
  };
}

interface Life {
  readonly fidelity: 'lean' | 'kubelet';
  readonly calls?: string;
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly hours: number;
}

/** What the nodes ask while pods start, afterwards at rest, and when pods are deleted. */
async function live({ fidelity, calls = '', nodes, podsPerNode, hours }: Life): Promise<{
  readonly start: Counts;
  readonly rest: Counts;
  readonly end: Counts;
}> {
  const cluster = new ClusterSimulation(5);
  const start: Counts = new Map();
  const rest: Counts = new Map();
  const end: Counts = new Map();
  let counts = start;
  const client = counting(cluster, (label) => counts.set(label, (counts.get(label) ?? 0) + 1));
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  const made: Promise<unknown>[] = ['default', 'kube-system', 'kube-node-lease'].map((name) =>
    cluster.ask('POST', '/api/v1/namespaces', { metadata: { name } }),
  );
  made.push(cluster.ask('POST', '/api/v1/namespaces/default/serviceaccounts', account));
  for (let id = 0; id < nodes; id++) {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: `node-${id}` } };
    made.push(cluster.ask('POST', '/api/v1/nodes', node));
  }
  await cluster.advance(1000);
  await Promise.all(made);
  const world = simulatedWorld(cluster, client, { fidelity, kubeletCalls: calls });
  await Promise.all([world.start(), cluster.advance(1000)]);
  const pass = async (durationMs: number): Promise<void> => {
    for (let passed = 0; passed < durationMs; passed += TICK_MS) {
      await cluster.advance(TICK_MS);
      world.tick();
    }
  };
  await pass(30_000);
  for (let id = 0; id < nodes * podsPerNode; id++) {
    const spec = { nodeName: `node-${id % nodes}`, containers: [{ name: 'c', image: 'i' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `p${id}` }, spec };
    void cluster.ask('POST', '/api/v1/namespaces/default/pods', pod);
  }
  await pass(60_000);
  counts = rest;
  await pass(hours * HOUR_MS);
  counts = end;
  for (let id = 0; id < nodes * podsPerNode; id++) {
    void cluster.ask('DELETE', `/api/v1/namespaces/default/pods/p${id}`);
  }
  await pass(30_000);
  world.stop();
  await cluster.settle();
  return { start, rest, end };
}

function perNodeHour(counts: Counts, label: string, { nodes, hours }: Life): number {
  return (counts.get(label) ?? 0) / nodes / hours;
}

function isAbout(found: number, wanted: number, label: string): void {
  assert.ok(Math.abs(found - wanted) <= wanted * 0.06 + 0.5, `${label}: ${found}, not ${wanted}`);
}

/** At rest, of one node in an hour. */
const WATCHES_AN_HOUR = 3600 / 450;
const AT_REST = {
  lean: { 'PUT leases': 353, 'PATCH nodes/status': 5.95 },
  kubelet: {
    'PUT leases': 353,
    'PATCH nodes/status': 11.9,
    'WATCH nodes': WATCHES_AN_HOUR,
    'WATCH pods': WATCHES_AN_HOUR,
    'WATCH services': WATCHES_AN_HOUR,
    'WATCH csidrivers': WATCHES_AN_HOUR,
    'WATCH runtimeclasses': WATCHES_AN_HOUR,
    'WATCH configmaps': 3600 / 2700,
    'POST serviceaccounts/token': 2.5,
  },
} as const;

for (const fidelity of ['lean', 'kubelet'] as const) {
  test(`what a node at rest asks for, ${fidelity}`, async () => {
    const life: Life = { fidelity, nodes: 10, podsPerNode: 2, hours: 1 };
    const { start, rest, end } = await live(life);
    if (process.env['MEGAPLANE_TABLE'] === '1') {
      const shown = (counts: Counts): object => Object.fromEntries(counts);
      const told = { life, start: shown(start), rest: shown(rest), end: shown(end) };
      process.stdout.write(`${fidelity} ${JSON.stringify(told)}\n`);
    }
    for (const [label, wanted] of Object.entries(AT_REST[fidelity])) {
      isAbout(perNodeHour(rest, label, life), wanted, label);
    }
    assert.equal(end.get('DELETE pods'), life.nodes * life.podsPerNode);
  });
}

/** Which requests there are fewer of when a call is left out. */
const REQUESTS_OF: Readonly<Record<Call, readonly string[]>> = {
  csinode: ['GET csinodes', 'POST csinodes'],
  // a part of the Node, and no request
  images: [],
  status: ['PATCH nodes/status'],
  // older kubelets, when it is asked for
  'status-get': [],
  'watch-node': ['WATCH nodes'],
  'watch-pods': ['WATCH pods'],
  'watch-services': ['WATCH services'],
  'watch-csidrivers': ['WATCH csidrivers'],
  'watch-runtimeclasses': ['WATCH runtimeclasses'],
  'watch-configs': ['WATCH configmaps'],
  'pod-get': ['GET pods'],
  'pod-creating': ['PATCH pods/status', 'GET pods'],
  'pod-final': ['PATCH pods/status', 'GET pods'],
  token: ['POST serviceaccounts/token'],
  events: ['POST events'],
};
/** Watches end after five to ten minutes, renewals come after 10 to 10.4 s. */
const BY_CHANCE_MAX = 4;

test('each call of a kubelet can be left out, and nothing else changes then', async () => {
  const life: Life = { fidelity: 'kubelet', nodes: 1, podsPerNode: 1, hours: 0.12 };
  const asked = async (calls: string): Promise<Counts> => {
    const sum: Counts = new Map();
    for (const counts of Object.values(await live({ ...life, calls }))) {
      for (const [label, count] of counts) sum.set(label, (sum.get(label) ?? 0) + count);
    }
    return sum;
  };
  const whole = await asked('');
  for (const call of CALLS) {
    const without = await asked(`-${call}`);
    for (const [label, count] of whole) {
      const fewer = count - (without.get(label) ?? 0);
      const isOwn = REQUESTS_OF[call].includes(label);
      const text = `${call} left out: ${fewer} fewer ${label} of ${count}`;
      if (isOwn) assert.ok(fewer > 0, text);
      else assert.ok(Math.abs(fewer) <= BY_CHANCE_MAX, text);
    }
  }
});

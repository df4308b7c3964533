/**
 * Simulators that share the nodes of a cluster (`--shard auto`) come, leave, are killed and stand
 * still: each lease goes on to be renewed in time, and by one of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client, ClientResponse, StreamSink } from '@megaplane/client/client';
import { PERIOD_MS, SILENT_MS, SPREAD_MS } from '@megaplane/nodes/membership';
import { PortConfig } from '@megaplane/nodes/port/port-config';
import { SimulatorMetrics } from '@megaplane/nodes/simulator-metrics';
import { Clusters } from '@megaplane/nodes/worlds';
import { ClusterSimulation } from './cluster-simulation.ts';
import { simulatedOptions } from './simulated-world.ts';

const NODES = 60;
const LEASE_SECONDS = 40;
const RENEW_MS: number = (LEASE_SECONDS * 1000) / 4;
const TICK_MS = 100;
const KWOK = '/apis/kwok.x-k8s.io/';
const JITTER_MS: number = RENEW_MS * 0.02 + 2 * TICK_MS;

const NOT_FOUND = { ok: false, code: 404, status: {} } as unknown as ClientResponse;

interface Renewal {
  readonly atMs: number;
  readonly node: string;
  readonly member: string;
  readonly status: number;
}

/** One process: it can be killed, and can stand still. */
class Member {
  readonly worlds: Clusters;
  state: 'runs' | 'stands' | 'dead' = 'runs';
  readonly #held: (() => void)[] = [];

  constructor(cluster: ClusterSimulation, identity: string, renewals: Renewal[]) {
    const client = this.#client(cluster, identity, renewals);
    const nowMs = (): number => cluster.timers.nowMs();
    const endpoint = { port: 10_250, hostname: '', nodeIp: '' };
    this.worlds = new Clusters({
      ...{ client, heartbeats: client, identity, endpoint },
      metrics: new SimulatorMetrics(),
      clock: { steadyMs: nowMs, wallMs: nowMs },
      config: new PortConfig({ nowMs, random: () => 0.5, startedContainers: () => 0 }),
      options: {
        ...simulatedOptions(endpoint),
        shard: 'auto',
        leaseDurationSeconds: LEASE_SECONDS,
      },
    });
  }

  /** What waits for the process happens when it runs on, or never. */
  #whenRunning(action: () => void): void {
    if (this.state === 'runs') action();
    else if (this.state === 'stands') this.#held.push(action);
  }

  #client(cluster: ClusterSimulation, member: string, renewals: Renewal[]): Client {
    const held = (sink: StreamSink): StreamSink => ({
      onHead: (status, after) => this.#whenRunning(() => sink.onHead(status, after)),
      onData: (bytes, start, end) => {
        const copy = Buffer.from(bytes.subarray(start, end));
        this.#whenRunning(() => sink.onData(copy, 0, copy.length));
      },
      onEnd: (error) => this.#whenRunning(() => sink.onEnd(error)),
    });
    return {
      retryAfterSeconds: 0,
      timers: {
        nowMs: () => cluster.timers.nowMs(),
        wallMs: () => cluster.timers.wallMs(),
        after: (delayMs, fire) => cluster.timers.after(delayMs, () => this.#whenRunning(fire)),
      },
      metrics: { requestsInFlight: 0, requestsQueued: 0 } as Client['metrics'],
      send: (method, path, contentType, body, done, tag) => {
        const node = /kube-node-lease\/leases\/(.*)$/.exec(path)?.[1];
        const answer: typeof done = (status, bytes, start, end, own) => {
          if (node !== undefined && method === 'PUT') {
            renewals.push({ atMs: cluster.timers.nowMs(), node, member, status });
          }
          this.#whenRunning(() => done(status, bytes, start, end, own));
        };
        return cluster.send(method, path, contentType, body, answer, tag);
      },
      request: (request) =>
        new Promise((resolve) => {
          // the server has none of kwok's kinds, and says so in plain text
          if (request.path.startsWith(KWOK)) return resolve(NOT_FOUND);
          void cluster.request(request).then((answer) => {
            this.#whenRunning(() => resolve(answer));
          });
        }),
      stream: (path, sink) => cluster.stream(path, held(sink)),
      room: () => cluster.room(),
      onRoom: () => {},
      random: () => cluster.random(),
      close: () => {},
    };
  }

  tick(): void {
    if (this.state === 'runs') this.worlds.tick();
  }

  runOn(): void {
    this.state = 'runs';
    this.worlds.tick();
    for (const action of this.#held.splice(0)) action();
  }
}

class Shared {
  readonly cluster = new ClusterSimulation(11);
  readonly renewals: Renewal[] = [];
  readonly members: Member[] = [];

  async begin(): Promise<void> {
    const made: Promise<unknown>[] = ['kube-system', 'kube-node-lease'].map((name) =>
      this.cluster.ask('POST', '/api/v1/namespaces', { metadata: { name } }),
    );
    for (let id = 0; id < NODES; id++) {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: `node-${id}` } };
      made.push(this.cluster.ask('POST', '/api/v1/nodes', node));
    }
    await this.cluster.advance(100);
    await Promise.all(made);
  }

  join(name: string): Member {
    const member = new Member(this.cluster, name, this.renewals);
    this.members.push(member);
    void member.worlds.start();
    return member;
  }

  /** Lets time pass; the longest pause of a lease and what conflicted meanwhile. */
  async pass(durationMs: number): Promise<{ readonly gapMs: number; readonly refused: number }> {
    const startMs = this.cluster.timers.nowMs();
    for (let passed = 0; passed < durationMs; passed += TICK_MS) {
      await this.cluster.advance(TICK_MS);
      for (const member of this.members) member.tick();
    }
    const lastMs = new Map<string, number>();
    let gapMs = 0;
    const endMs = this.cluster.timers.nowMs();
    for (const { atMs, node, status } of this.renewals) {
      if (status !== 200) continue;
      if (atMs >= startMs) gapMs = Math.max(gapMs, atMs - (lastMs.get(node) ?? startMs));
      lastMs.set(node, atMs);
    }
    for (const atMs of lastMs.values()) gapMs = Math.max(gapMs, endMs - atMs);
    assert.equal(lastMs.size, NODES);
    const own = this.renewals.filter(({ atMs }) => atMs >= startMs);
    return { gapMs, refused: own.filter(({ status }) => status !== 200).length };
  }

  /** How many members renewed anything in the last period, and how many nodes more than one. */
  lately(): { readonly members: number; readonly shared: number } {
    const sinceMs = this.cluster.timers.nowMs() - RENEW_MS;
    const own = this.renewals.filter(({ atMs }) => atMs > sinceMs);
    const of = new Map<string, Set<string>>();
    for (const { node, member } of own) of.set(node, (of.get(node) ?? new Set()).add(member));
    const shared = [...of.values()].filter(({ size }) => size > 1).length;
    return { members: new Set(own.map(({ member }) => member)).size, shared };
  }
}

test('members come, leave, die and stand still: each lease is renewed in time, by one', async () => {
  const shared = new Shared();
  await shared.begin();
  shared.join('a');
  await shared.pass(30_000);
  const usualMs = RENEW_MS + JITTER_MS;
  // those that come hear of all, and are heard of, before they take their part
  const handOverMs = usualMs + SPREAD_MS + PERIOD_MS + RENEW_MS / 4;
  const b = shared.join('b');
  let told = await shared.pass(40_000);
  assert.ok(told.gapMs <= handOverMs, `b came: ${told.gapMs}`);
  assert.equal(told.refused, 0);
  const c = shared.join('c');
  told = await shared.pass(40_000);
  assert.ok(told.gapMs <= handOverMs, `c came: ${told.gapMs}`);
  assert.equal(told.refused, 0);
  assert.deepEqual(shared.lately(), { members: 3, shared: 0 });
  c.state = 'dead';
  // last renewed a period before, silence and a look, and what is overdue does not wait its turn
  const deathMs = usualMs + SILENT_MS + PERIOD_MS + SPREAD_MS + RENEW_MS / 4;
  told = await shared.pass(60_000);
  assert.ok(told.gapMs <= deathMs && deathMs < LEASE_SECONDS * 1000, `c died: ${told.gapMs}`);
  assert.deepEqual(shared.lately(), { members: 2, shared: 0 });
  b.state = 'stands';
  told = await shared.pass(60_000);
  assert.ok(told.gapMs <= deathMs, `b stood: ${told.gapMs}`);
  assert.deepEqual(shared.lately(), { members: 1, shared: 0 });
  b.runOn();
  told = await shared.pass(60_000);
  assert.ok(told.gapMs <= handOverMs, `b came back: ${told.gapMs}`);
  // what b knows of its leases is old: each is looked at once
  assert.ok(told.refused <= NODES / 2 + 10, `b came back: ${told.refused} renewals refused`);
  assert.deepEqual(shared.lately(), { members: 2, shared: 0 });
  void b.worlds.stop();
  told = await shared.pass(60_000);
  assert.ok(told.gapMs <= handOverMs, `b left: ${told.gapMs}`);
  assert.equal(told.refused, 0);
  assert.deepEqual(shared.lately(), { members: 1, shared: 0 });
});

test('a server that was away for long makes no member take another for gone', async () => {
  const shared = new Shared();
  await shared.begin();
  shared.join('a');
  await shared.pass(30_000);
  shared.join('b');
  await shared.pass(40_000);
  shared.cluster.faultOf = () => 'unreachable';
  await shared.pass(30_000);
  shared.cluster.faultOf = () => 'none';
  const told = await shared.pass(40_000);
  assert.equal(told.refused, 0);
  assert.deepEqual(shared.lately(), { members: 2, shared: 0 });
});

// A live machine with a plugin of a user for every pod, so that every decision is one of full
// evaluation; shards make it, behind relays or not, and each is compared with the root's own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { SchedulerCore } from '../core/scheduler-core.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { COMPATIBILITY } from '../framework/compatibility.ts';
import type { UserPlugin } from '../framework/runtime/user-plugin.ts';
import type { Attempt } from '../queue/attempt.ts';
import { RandomWorkload, type Mix } from '../simulation/random-workload.sim.ts';
import { HandTree } from './hand-tree.sim.ts';
import { ShardHost } from './shard-host.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
const SEEDS = IS_LONG ? 400 : 10;
const DECISIONS = 80;
const NOTHING: Mix = { podAffinity: 0, spread: 0, ports: 0.1, strangers: 0, priorities: 0.3 };
const MIXES: readonly Mix[] = [
  NOTHING,
  { ...NOTHING, spread: 0.6 },
  { ...NOTHING, podAffinity: 0.4 },
  { ...NOTHING, volumes: 0.6, spread: 0.1, podAffinity: 0.1 },
  { podAffinity: 0.15, spread: 0.2, ports: 0.2, strangers: 0.05, priorities: 0.5, volumes: 0.2 },
];

/** Prefers nodes by their names, brought to 0..100 by the extremes of all. */
const OWN: UserPlugin = {
  name: 'Own',
  points: ['filter', 'score'],
  create: () => ({
    name: 'Own',
    preFilter: () => ({
      kind: 'run',
      filter: {
        filter: ({ name }) =>
          name.endsWith('7') ? { code: 'unschedulable', reasons: ['seven'] } : null,
      },
    }),
    preScore: () => ({
      kind: 'run',
      scorer: {
        score: ({ name, pods }) => name.charCodeAt(name.length - 1) + pods.length,
        normalize: (raw, range) => {
          const { min, max } = range ?? { min: Math.min(...raw), max: Math.max(...raw) };
          return raw.map((one) => (max === min ? 0 : ((one - min) * 100) / (max - min)));
        },
      },
    }),
  }),
};

class LiveCluster {
  readonly core: SchedulerCore;
  readonly host: ShardHost;
  readonly tree: HandTree;
  readonly draw: RandomWorkload;
  readonly random: Random;
  readonly keys: string[] = [];
  readonly placed = new Map<number, PodObject>();
  readonly pending = new Map<number, PodObject>();
  readonly troubles: string[] = [];
  nowMs = 1_000_000;
  #nodes = 0;
  #versions = 0;
  readonly #specs: readonly PodObject['spec'][];

  constructor(seed: number, mix: Mix) {
    this.random = new Random(seed);
    this.draw = new RandomWorkload(this.random, mix);
    this.core = new SchedulerCore({
      ...{ seed, plugins: [OWN], checkedEvery: 1, scatteredNodesMin: 1 },
      keyOf: (id) => this.keys[id] ?? '',
      profiles: [{ plugins: { multiPoint: { enabled: [{ name: 'Own', weight: 3 }] } } }],
      compatibility: COMPATIBILITY[seed % 2 === 0 ? '1.36' : '1.35'],
    });
    const { core } = this;
    const profiles = new Map([...core.profiles].map(([name, { profile }]) => [name, profile]));
    this.tree = new HandTree(
      profiles,
      (_link, run) => queueMicrotask(run),
      () => this.host.membersChanged(),
    );
    this.host = new ShardHost({
      gathering: this.tree.gathering,
      tables: core,
      clock: { nowMs: () => 0, after: () => () => {} },
      onTrouble: (text) => this.troubles.push(text),
    });
    core.placement.shards = this.host;
    this.#specs = Array.from({ length: 20 }, () => this.draw.spec());
    for (const object of this.draw.objects()) this.object(object);
    for (const name of ['b1', 'b2']) this.object(this.draw.budget(name));
    for (let i = 0; i < 12; i++) this.addNode();
  }

  object(drawn: KubeObject): void {
    const metadata = { ...drawn.metadata, resourceVersion: String(++this.#versions) };
    this.core.objectSeen(drawn.kind ?? '', { ...drawn, metadata }, this.nowMs);
  }

  addNode(): void {
    this.core.nodeSeen(this.draw.node(`n${this.#nodes++}`), this.nowMs);
  }

  addPod(): void {
    const id = this.keys.length;
    const { namespace = 'default', ...rest } = this.draw.metadata(`p${id}`);
    const pod = { metadata: { ...rest, namespace }, spec: this.draw.of(this.#specs) };
    this.keys.push(`${namespace}/${rest.name}`);
    this.pending.set(id, pod);
    this.#see(id, pod, true);
  }

  #see(id: number, pod: PodObject, isNew: boolean): void {
    const bytes = Buffer.from(JSON.stringify(pod));
    this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.nowMs);
  }

  /** Nodes, pods and shards come and go. */
  churn(): void {
    const { core, draw, random, tree, nowMs } = this;
    const node = `n${random.below(this.#nodes)}`;
    if (draw.chance(0.1)) core.nodeSeen(draw.node(node), nowMs);
    if (draw.chance(0.05)) core.nodeGone(node, nowMs);
    if (draw.chance(0.05)) this.addNode();
    if (draw.chance(0.1)) this.object(draw.budget('b1'));
    const [leaving] = this.placed.keys();
    if (leaving !== undefined && (this.placed.size > 40 || draw.chance(0.2))) {
      this.placed.delete(leaving);
      core.podGone(leaving, nowMs);
    }
    const [labelled] = [...this.placed].slice(-1);
    if (labelled !== undefined && draw.chance(0.2)) {
      const [id, pod] = labelled;
      const { namespace = 'default' } = pod.metadata;
      const labels = { app: draw.of(['a', 'b']) };
      const changed = { ...pod, metadata: { ...pod.metadata, namespace, labels } };
      this.placed.set(id, changed);
      this.#see(id, changed, false);
    }
    if (draw.chance(0.05)) tree.cut(draw.of(tree.shards));
    if (tree.shards.length < 2 || draw.chance(0.05)) {
      const relay = tree.relays.length > 0 && draw.chance(0.7) ? draw.of(tree.relays) : '';
      const name = `s${random.below(6)}`;
      if (!tree.shards.includes(name)) tree.addShard(name, relay);
    }
    if (draw.chance(0.02) && tree.relays.length > 0) tree.cutRelay(draw.of(tree.relays));
    if (tree.relays.length < 2 && draw.chance(0.1)) tree.addRelay(`r${random.below(1000)}`);
  }

  async decide(): Promise<Attempt | null> {
    const { core, host, nowMs } = this;
    let attempt = core.attempt(nowMs);
    while (core.question !== null) {
      const { question } = core;
      if (question.kind !== 'shards') throw new Error('nobody else is to be asked');
      attempt = core.answer(await host.ask(question.round), nowMs);
    }
    if (attempt?.kind === 'bind') this.#bind(attempt);
    return attempt;
  }

  #bind({ id, node }: Attempt & { kind: 'bind' }): void {
    const pod = this.pending.get(id);
    if (pod === undefined) return;
    this.pending.delete(id);
    const spec = { ...pod.spec, nodeName: this.core.nodes.nameOf(node) };
    const bound = { ...pod, spec, status: { phase: 'Running' } };
    this.placed.set(id, bound);
    this.#see(id, bound, false);
  }
}

test('shards that come and go decide as the root does by itself', async () => {
  const outcomes: Record<string, number> = {};
  let compared = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const cluster = new LiveCluster(seed, MIXES[seed % MIXES.length] ?? NOTHING);
    const { core, host, tree } = cluster;
    for (let i = 0; i < seed % 3; i++) tree.addRelay(`r${i}`);
    for (let i = 0; i < 1 + (seed % 5); i++) {
      tree.addShard(`s${i}`, seed % 3 === 0 ? '' : `r${i % (seed % 3)}`);
    }
    for (let step = 0; step < DECISIONS; step++) {
      cluster.churn();
      cluster.addPod();
      await cluster.decide();
      assert.equal(core.placement.mismatch, '', `seed ${seed}, step ${step}`);
      cluster.nowMs += 700;
      if (step % 10 === 0) core.tick(cluster.nowMs);
    }
    assert.equal(core.placement.metrics.mismatched, 0);
    compared += core.placement.metrics.checked;
    for (const [how, count] of Object.entries(host.counts.outcomes)) {
      outcomes[how] = (outcomes[how] ?? 0) + count;
    }
  }
  const { found = 0, failed = 0, refused = 0, unavailable = 0 } = outcomes;
  assert.equal(refused, 0);
  // what was not decided by shards would prove nothing
  assert.ok(found > (SEEDS * DECISIONS) / 3, JSON.stringify(outcomes));
  assert.ok(failed > 0 && compared >= found * 0.9, JSON.stringify({ ...outcomes, compared }));
  assert.ok(unavailable < found / 4, JSON.stringify(outcomes));
});

test('a shard that lies about a node is found out, and the root decides', async () => {
  const cluster = new LiveCluster(3, NOTHING);
  const { core, host, tree } = cluster;
  for (const name of ['s0', 's1', 's2']) tree.addShard(name);
  for (const name of tree.shards) {
    tree.lie(name, (reply) => {
      const { summary } = reply;
      if (summary === null || summary.passed === 0) return reply;
      // a node that there is, and that the plugin forbids
      const best = { total: 1e9, nodes: 1, name: 'n7', mark: 0 };
      return { ...reply, summary: { ...summary, first: 'n7', best } };
    });
  }
  for (let step = 0; step < 20; step++) {
    cluster.addPod();
    const attempt = await cluster.decide();
    if (attempt?.kind === 'bind') assert.notEqual(core.nodes.nameOf(attempt.node), 'n7');
  }
  assert.ok(host.counts.outcomes.refused > 0);
  assert.equal(host.counts.outcomes.found, 0);
  assert.ok(cluster.placed.size > 0);
});

test('without shards, and with some that never answer, pods are placed all the same', async () => {
  const cluster = new LiveCluster(5, NOTHING);
  for (let tries = 0; cluster.placed.size === 0 && tries < 50; tries++) {
    cluster.addPod();
    await cluster.decide();
  }
  assert.ok(cluster.placed.size > 0);
  cluster.tree.addShard('s0');
  cluster.tree.lie('s0', (reply) => ({ ...reply, trouble: 'a plugin broke' }));
  cluster.addPod();
  assert.notEqual(await cluster.decide(), null);
  assert.equal(cluster.host.counts.outcomes.found, 0);
});

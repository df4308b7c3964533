import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Cluster } from './cluster.ts';
import { Evaluator } from './evaluator.ts';
import type { KubeObject, PodObject } from './objects.ts';
import { PodInfo } from './pod-info.ts';
import { createProfile } from './profile.ts';
import { RandomWorkload, type Mix } from './random-workload.sim.ts';
import { SchedulerCore } from './scheduler-core.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
/** Decisions of each mix, from so many seeds. */
const DECISIONS = IS_LONG ? 100_000 : 1500;
const SEEDS = IS_LONG ? 200 : 6;

const MIXES: Readonly<Record<string, Mix>> = {
  'plain pods': { podAffinity: 0, spread: 0, ports: 0, strangers: 0.05 },
  'spread pods': { podAffinity: 0, spread: 0.4, ports: 0, strangers: 0 },
  'pods that want others near or far': { podAffinity: 0.4, spread: 0, ports: 0, strangers: 0 },
  'pods with all there is': { podAffinity: 0.15, spread: 0.2, ports: 0.2, strangers: 0.01 },
};

/** The machine and the evaluator side by side, fed the same changes on separate ways. */
class Pair {
  readonly random: Random;
  readonly draw: RandomWorkload;
  readonly core: SchedulerCore;
  readonly cluster = new Cluster(true);
  readonly evaluator = new Evaluator(100);
  readonly profile = createProfile();
  readonly keys = new Map<number, string>();
  readonly specs: readonly PodObject['spec'][];
  nowMs = 1_000_000;
  #pods = 0;
  #nodes = 0;
  readonly nodeNames: string[] = [];
  readonly placed: { id: number; pod: PodObject }[] = [];

  constructor(seed: number, mix: Mix) {
    this.random = new Random(seed);
    this.draw = new RandomWorkload(this.random, mix);
    // Half of the time classes are searched for before they get an index, as in large clusters.
    const searchedNodesMin = seed % 2 === 0 ? 1_000_000 : 0;
    const keyOf = (id: number): string => this.keys.get(id) ?? '';
    this.core = new SchedulerCore({ seed, keyOf, searchedNodesMin });
    this.specs = Array.from({ length: 30 }, () => this.draw.spec());
    for (const object of this.draw.objects()) this.object(object);
    for (let i = 0; i < 8; i++) this.addNode();
  }

  object(object: KubeObject): void {
    this.cluster.apply(object);
    this.core.objectSeen(object.kind ?? '', object, this.nowMs);
  }

  addNode(): void {
    const name = `n${this.#nodes++}`;
    this.nodeNames.push(name);
    this.#setNode(name);
  }

  #setNode(name: string): void {
    const node = this.draw.node(name);
    this.cluster.apply(node);
    this.core.nodeSeen(node, this.nowMs);
  }

  churn(): void {
    const { draw } = this;
    const roll = this.random.next();
    // Among more than a hundred candidates preemption does not look at all.
    if (roll < 0.04 && this.nodeNames.length < 30) this.addNode();
    else if (roll < 0.07 && this.nodeNames.length > 5) this.#removeNode();
    else if (roll < 0.15) this.#setNode(draw.of(this.nodeNames));
    else if (roll < 0.5 && this.placed.length > 0) this.#removePod();
    else if (roll < 0.6 && this.placed.length > 0) this.#changePod();
    else if (roll < 0.62) for (const object of draw.objects()) this.object(object);
  }

  #removeNode(): void {
    const [name = ''] = this.nodeNames.splice(this.random.below(this.nodeNames.length), 1);
    this.cluster.delete('Node', name);
    this.core.nodeGone(name, this.nowMs);
  }

  #removePod(): void {
    const [gone] = this.placed.splice(this.random.below(this.placed.length), 1);
    if (gone === undefined) return;
    this.cluster.delete('Pod', this.keys.get(gone.id) ?? '');
    this.core.podGone(gone.id, this.nowMs);
    this.keys.delete(gone.id);
  }

  /** A running pod gets other labels, or begins to leave. */
  #changePod(): void {
    const one = this.draw.of(this.placed);
    const { metadata } = one.pod;
    const { labels = {} } = this.draw.metadata('');
    const leaving = this.draw.chance(0.5) ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {};
    one.pod = { ...one.pod, metadata: { ...metadata, labels, ...leaving } };
    this.cluster.apply(one.pod);
    this.see(one.id, false, one.pod);
  }

  see(id: number, isNew: boolean, pod: PodObject): void {
    const bytes = Buffer.from(JSON.stringify(pod));
    assert.equal(this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.nowMs), true);
  }

  /** One pod: the machine's node must be among the best, its text that of the evaluator. */
  decideOne(): void {
    const { draw, core, cluster } = this;
    const id = this.#pods++;
    const metadata = draw.metadata(`p${id}`);
    const pod: PodObject = { kind: 'Pod', metadata, spec: draw.of(this.specs) };
    this.keys.set(id, `${metadata.namespace ?? ''}/p${id}`);
    this.see(id, true, pod);
    const attempt = core.attempt(this.nowMs);
    assert(attempt !== null && attempt.id === id);
    cluster.refresh();
    const nominations = { on: () => [] };
    const want = this.evaluator.decide(new PodInfo(pod), cluster, this.profile, nominations);
    const text = `${JSON.stringify(pod)}`;
    if (attempt.kind === 'bind') {
      assert.equal(want.kind, 'placed', text);
      const name = core.nodes.nameOf(attempt.node);
      assert((want as { best: readonly string[] }).best.includes(name), `${name} for ${text}`);
      // Different starts, so that no two victims are equally good.
      const startTime = new Date(1000 * (id + 1)).toISOString();
      const bound = { ...pod, spec: { ...pod.spec, nodeName: name }, status: { startTime } };
      cluster.apply(bound);
      this.see(id, false, bound);
      this.placed.push({ id, pod: bound });
      return;
    }
    assert(want.kind === 'failed', text);
    assert.equal(attempt.failure.message, want.message, text);
    assert.deepEqual([...attempt.failure.rejecters].toSorted(), [...want.rejecters].toSorted());
    const victims = attempt.failure.nomination?.victims.map((victim) => this.keys.get(victim));
    assert.deepEqual(
      victims,
      want.nomination?.victims.map(({ key }) => key),
    );
    core.podGone(id, this.nowMs);
    this.keys.delete(id);
  }
}

for (const [name, mix] of Object.entries(MIXES)) {
  test(`${name} get a best node of the evaluator, or fail in its words`, () => {
    let indexed = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const pair = new Pair(seed, mix);
      for (let step = 0; step < DECISIONS / SEEDS; step++) {
        pair.churn();
        pair.nowMs += 10;
        pair.decideOne();
      }
      const { metrics } = pair.core.placement;
      indexed += metrics.indexed + metrics.searched + metrics.scanned;
    }
    assert(indexed > DECISIONS / 4, `${indexed} of ${DECISIONS} were not evaluated in full`);
  });
}

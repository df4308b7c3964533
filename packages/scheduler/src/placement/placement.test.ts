import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Cluster } from '../framework/cluster.ts';
import { Evaluator, type Decision } from './evaluator.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile, type Profile } from '../framework/runtime/profile.ts';
import type { Reservation } from '../framework/reservation.ts';
import { RandomWorkload, type Mix } from '../simulation/random-workload.sim.ts';
import type { Attempt } from '../queue/attempt.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';
import { COMPATIBILITY } from '../framework/compatibility.ts';

const IS_LONG = process.env['MEGAPLANE_LONG'] !== undefined;
/** Decisions of each mix, from so many seeds. */
const DECISIONS = IS_LONG ? 100_000 : 20_000;
const SEEDS = IS_LONG ? 200 : 40;

/** Among more than a hundred candidates preemption does not look at all. */
const NODES_MAX = IS_LONG ? 30 : 18;
/** Pods leave from here on, so that nodes are full much of the time. */
const PODS_PER_NODE = 4;

const PLAIN: Mix = { podAffinity: 0, spread: 0, ports: 0, strangers: 0, priorities: 0.1 };
const MIXES: Readonly<Record<string, Mix>> = {
  'plain pods': { ...PLAIN, strangers: 0.05 },
  'important pods': { ...PLAIN, priorities: 0.7 },
  'spread pods': { ...PLAIN, spread: 0.4 },
  'pods that want others near or far': { ...PLAIN, podAffinity: 0.4 },
  'pods with volumes': { ...PLAIN, volumes: 0.6, spread: 0.1, podAffinity: 0.1 },
  'pods with all there is': {
    podAffinity: 0.15,
    spread: 0.2,
    ports: 0.2,
    strangers: 0.01,
    priorities: 0.3,
  },
};

/** The machine and the evaluator side by side, fed the same changes on separate ways. */
class Pair {
  readonly random: Random;
  readonly draw: RandomWorkload;
  readonly core: SchedulerCore;
  readonly cluster = new Cluster(true);
  readonly evaluator = new Evaluator(100);
  readonly profile: Profile;
  readonly keys = new Map<number, string>();
  readonly specs: readonly PodObject['spec'][];
  nowMs = 1_000_000;
  preempted = 0;
  #pods = 0;
  #nodes = 0;
  #versions = 0;
  readonly #hasVolumes: boolean;
  /** Decisions that the index made, and that ask for more than a binding. */
  reserved = 0;
  #evaluated = 0;
  readonly nodeNames: string[] = [];
  readonly placed: { id: number; pod: PodObject }[] = [];
  readonly pending = new Map<number, PodObject>();
  /** Pods that wait for a node to be freed. */
  readonly nominated = new Map<number, string>();

  constructor(seed: number, mix: Mix) {
    this.random = new Random(seed);
    this.draw = new RandomWorkload(this.random, mix);
    this.#hasVolumes = mix.volumes !== undefined;
    // Half of the time classes are searched for before they get an index, as in large clusters.
    const searchedNodesMin = seed % 2 === 0 ? 1_000_000 : 0;
    const keyOf = (id: number): string => this.keys.get(id) ?? '';
    // Scores of both versions, each with and without a search.
    const compatibility = COMPATIBILITY[seed % 4 < 2 ? '1.36' : '1.35'];
    this.profile = createProfile({}, compatibility);
    this.core = new SchedulerCore({ seed, keyOf, searchedNodesMin, compatibility });
    this.specs = Array.from({ length: 30 }, () => this.draw.spec());
    for (const object of this.draw.objects()) this.object(object);
    for (const name of ['b1', 'b2']) this.object(this.draw.budget(name));
    for (let i = 0; i < 8; i++) this.addNode();
  }

  object(drawn: KubeObject): void {
    const metadata = { ...drawn.metadata, resourceVersion: String(++this.#versions) };
    const object = { ...drawn, metadata };
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
    for (let i = 0; this.#hasVolumes && i < 4; i++) this.object(draw.claim());
    if (this.#hasVolumes && draw.chance(0.1)) this.object(draw.of(draw.making()));
    const roll = this.random.next();
    if (roll < 0.04 && this.nodeNames.length < NODES_MAX) this.addNode();
    else if (roll < 0.07 && this.nodeNames.length > 5) this.#removeNode();
    else if (roll < 0.15) this.#setNode(draw.of(this.nodeNames));
    else if (roll < 0.5 && this.placed.length > PODS_PER_NODE * this.nodeNames.length) {
      this.#removePod();
    } else if (roll < 0.6 && this.placed.length > 0) this.#changePod();
    else if (roll < 0.62) for (const object of draw.objects()) this.object(object);
    else if (roll < 0.65) this.object(draw.budget(draw.of(['b1', 'b2'])));
    else if (roll < 0.68) this.#removeNominated();
  }

  #removeNode(): void {
    const [name = ''] = this.nodeNames.splice(this.random.below(this.nodeNames.length), 1);
    this.cluster.delete('Node', name);
    this.core.nodeGone(name, this.nowMs);
  }

  #removePod(): void {
    const [gone] = this.placed.splice(this.random.below(this.placed.length), 1);
    if (gone !== undefined) this.#deletePlaced(gone.id);
  }

  #deletePlaced(id: number): void {
    this.cluster.delete('Pod', this.keys.get(id) ?? '');
    this.core.podGone(id, this.nowMs);
    this.keys.delete(id);
  }

  #removeNominated(): void {
    const [id] = this.nominated.keys();
    if (id !== undefined) this.#giveUp(id);
  }

  #giveUp(id: number): void {
    this.core.podGone(id, this.nowMs);
    this.pending.delete(id);
    this.nominated.delete(id);
    this.keys.delete(id);
  }

  /** A running pod gets other labels, or begins to leave. */
  #changePod(): void {
    const one = this.draw.of(this.placed);
    const { labels = {} } = this.draw.metadata('');
    const leaving = this.draw.chance(0.5) ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {};
    this.#update(one, { ...one.pod, metadata: { ...one.pod.metadata, labels, ...leaving } });
  }

  #update(one: { id: number; pod: PodObject }, pod: PodObject): void {
    one.pod = pod;
    this.cluster.apply(pod);
    this.see(one.id, false, pod);
  }

  /** A victim goes at once, or takes its time. */
  #evict(id: number): void {
    const index = this.placed.findIndex((one) => one.id === id);
    const one = this.placed[index];
    assert(one !== undefined);
    if (this.draw.chance(0.5)) {
      this.placed.splice(index, 1);
      return this.#deletePlaced(id);
    }
    const metadata = { ...one.pod.metadata, deletionTimestamp: '2030-01-01T00:00:00Z' };
    const type = 'DisruptionTarget';
    const conditions = [{ type, status: 'True', reason: 'PreemptionByScheduler' }];
    this.#update(one, { ...one.pod, metadata, status: { ...one.pod.status, conditions } });
  }

  see(id: number, isNew: boolean, pod: PodObject): void {
    const bytes = Buffer.from(JSON.stringify(pod));
    assert.equal(this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.nowMs), true);
  }

  addPod(): void {
    const { draw } = this;
    const id = this.#pods++;
    const metadata = draw.metadata(`p${id}`);
    const pod: PodObject = { kind: 'Pod', metadata, spec: draw.of(this.specs) };
    this.keys.set(id, `${metadata.namespace ?? ''}/p${id}`);
    this.pending.set(id, pod);
    this.see(id, true, pod);
  }

  /** All that wants to be tried; the number of tries. */
  decide(): number {
    this.core.tick(this.nowMs);
    for (let tries = 0; ; tries++) {
      this.#evaluated = this.core.placement.metrics.evaluated;
      const attempt = this.core.attempt(this.nowMs);
      if (attempt === null) return tries;
      this.#compare(attempt);
    }
  }

  #on(node: string): PodInfo[] {
    const ids = [...this.nominated].flatMap(([id, name]) => (name === node ? [id] : []));
    return ids.map((id) => new PodInfo(this.#pendingPod(id)));
  }

  #pendingPod(id: number): PodObject {
    const pod = this.pending.get(id);
    assert(pod !== undefined);
    const nominatedNodeName = this.nominated.get(id);
    return nominatedNodeName === undefined ? pod : { ...pod, status: { nominatedNodeName } };
  }

  /** The machine's node must be among the best, its text and its victims the evaluator's. */
  #compare(attempt: Attempt): void {
    const { cluster, core } = this;
    cluster.refresh();
    const { id } = attempt;
    const pod = this.#pendingPod(id);
    const nominations = { on: (node: string) => this.#on(node) };
    const want = this.evaluator.decide(new PodInfo(pod), cluster, this.profile, nominations);
    const text = (): string =>
      `${JSON.stringify(pod)} among ${JSON.stringify([...this.nominated])}`;
    if (attempt.kind === 'bind') {
      const name = core.nodes.nameOf(attempt.node);
      const isBest = want.kind === 'placed' && want.best.includes(name);
      if (!isBest) assert.fail(`${name} for ${text()} instead of ${JSON.stringify(want)}`);
      this.#reserve(attempt.reservations, want, name);
      return this.#bind(id, pod, name);
    }
    if (want.kind !== 'failed') assert.fail(text());
    const { message, rejecters, nomination } = attempt.failure;
    if (message !== want.message) assert.equal(message, want.message, text());
    assert.deepEqual(rejecters, want.rejecters);
    const victims = nomination?.victims.map((victim) => this.keys.get(victim)).join();
    const wanted = want.nomination?.victims.map(({ key }) => key).join();
    if (victims !== wanted) assert.equal(victims, wanted, text());
    for (const other of attempt.displaced) this.nominated.delete(other);
    const isKept = want.nomination === null && !want.clearsNomination && this.nominated.has(id);
    if (isKept) return;
    if (nomination !== null) this.preempted++;
    if (nomination === null || this.draw.chance(0.3)) return this.#giveUp(id);
    this.nominated.set(id, core.nodes.nameOf(nomination.node));
    for (const victim of nomination.victims) this.#evict(victim);
  }

  /** What is to be done first is the same, and is done. */
  #reserve(reservations: readonly Reservation[], want: Decision, name: string): void {
    assert(want.kind === 'placed');
    const node = this.cluster.node(name);
    const wanted = node === undefined ? [] : want.cycle.reserve(node);
    assert(Array.isArray(wanted));
    const known = ({ plugin, assumed, timeoutMs }: Reservation): object => {
      return { plugin, assumed, timeoutMs };
    };
    assert.deepEqual(reservations.map(known), wanted.map(known));
    const { evaluated } = this.core.placement.metrics;
    if (reservations.length > 0 && evaluated === this.#evaluated) this.reserved++;
    for (const object of reservations.flatMap(({ assumed }) => assumed)) this.object(object);
  }

  #bind(id: number, { metadata, spec }: PodObject, nodeName: string): void {
    // Different starts, so that no two victims are equally good.
    const startTime = new Date(1000 * (id + 1)).toISOString();
    const status = this.draw.running(startTime);
    const pod = { kind: 'Pod', metadata, spec: { ...spec, nodeName }, status };
    this.pending.delete(id);
    this.nominated.delete(id);
    this.cluster.apply(pod);
    this.see(id, false, pod);
    this.placed.push({ id, pod });
  }
}

for (const [name, mix] of Object.entries(MIXES)) {
  test(`${name} get a best node of the evaluator, or fail in its words`, () => {
    // Claims and volumes are much to look at for the evaluator.
    const decisions = mix.volumes === undefined ? DECISIONS : DECISIONS / 5;
    let indexed = 0;
    let preempted = 0;
    let reserved = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const pair = new Pair(seed, mix);
      for (let tries = 0; tries < decisions / SEEDS;) {
        pair.churn();
        pair.nowMs += 200;
        pair.addPod();
        tries += pair.decide();
      }
      const { metrics } = pair.core.placement;
      preempted += pair.preempted;
      reserved += pair.reserved;
      indexed += metrics.indexed + metrics.searched + metrics.scanned;
    }
    if (mix.priorities > 0.5) assert(preempted > decisions / 100, `${preempted} preempted`);
    if (mix.volumes !== undefined) assert(reserved > decisions / 20, `${reserved} reserved`);
    assert(indexed > decisions / 4, `${indexed} of ${decisions} were not evaluated in full`);
  });
}

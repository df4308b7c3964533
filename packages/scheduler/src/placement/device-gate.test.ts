import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { Attempt } from '../queue/attempt.ts';
import { Cluster } from '../framework/cluster.ts';
import { Evaluator } from './evaluator.ts';
import type { KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile } from '../framework/runtime/profile.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';

const SEEDS = 12;
const PODS = 60;
const NODES = 6;
const DRIVER = 'd.example';
const ATTRIBUTES = `device.attributes["${DRIVER}"]`;
const QUESTIONS = [
  `${ATTRIBUTES}.model == "a"`,
  `${ATTRIBUTES}.model != "b"`,
  // Fails at a device without a model.
  `${ATTRIBUTES}.model.startsWith("a")`,
];
const profile = createProfile();

/** The machine, and the evaluator over objects of its own, told the same. */
class Pair {
  readonly random: Random;
  readonly core: SchedulerCore;
  readonly cluster = new Cluster(true);
  readonly evaluator = new Evaluator(100);
  readonly names: string[] = [];
  /** Pods with a node, and what they were given. */
  readonly placed: { readonly id: number; readonly claims: readonly KubeObject[] }[] = [];
  nowMs = 1_000_000;
  bound = 0;
  readonly #left: KubeObject[] = [];
  #version = 1;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.core = new SchedulerCore({ seed, keyOf: (id) => `default/${this.names[id] ?? ''}` });
    this.see({ kind: 'DeviceClass', metadata: { name: 'any' }, spec: {} });
    const selectors = [{ cel: { expression: `device.driver == "${DRIVER}"` } }];
    this.see({ kind: 'DeviceClass', metadata: { name: 'own' }, spec: { selectors } });
    for (let node = 0; node < NODES; node++) {
      const metadata = { name: `n${node}`, labels: { zone: this.of(['a', 'b']) } };
      const allocatable = { pods: '20', cpu: '8', memory: '8Gi' };
      const object: NodeObject = { kind: 'Node', metadata, status: { allocatable } };
      this.cluster.apply(object);
      this.core.nodeSeen(object, this.nowMs);
      this.slice(node);
    }
  }

  of<T>(list: readonly T[]): T {
    return list[this.random.below(list.length)] as T;
  }

  chance(part: number): boolean {
    return this.random.next() < part;
  }

  see(object: object): void {
    const { metadata, ...rest } = object as KubeObject;
    const resourceVersion = String(this.#version++);
    const seen = { ...rest, metadata: { ...metadata, resourceVersion } };
    this.cluster.apply(seen);
    this.core.objectSeen(seen.kind ?? '', seen, this.nowMs);
  }

  /** What the driver of a node tells of it now. */
  slice(node: number): void {
    const devices = Array.from({ length: this.random.below(8) }, (_, index) => ({
      name: `d${index}`,
      attributes: this.chance(0.03) ? {} : { model: { string: this.of(['a', 'b', 'c']) } },
    }));
    const where = this.chance(0.02) ? { allNodes: true } : { nodeName: `n${node}` };
    const pool = { name: `p${node}`, generation: this.of([1, 1, 1, 2]), resourceSliceCount: 1 };
    const spec = { driver: this.of([DRIVER, DRIVER, 'e.example']), pool, devices, ...where };
    this.see({ kind: 'ResourceSlice', metadata: { name: `s${node}` }, spec });
  }

  claim(name: string): void {
    const demand = (): object => ({
      deviceClassName: this.of(['any', 'own']),
      ...(this.chance(0.2) ? { count: 2 } : {}),
      ...(this.chance(0.1) ? { allocationMode: 'All' } : {}),
      ...(this.chance(0.3) ? { selectors: [{ cel: { expression: this.of(QUESTIONS) } }] } : {}),
    });
    const request = (at: number): object =>
      this.chance(0.15)
        ? { name: `r${at}`, firstAvailable: [{ name: 's', ...demand() }] }
        : { name: `r${at}`, exactly: demand() };
    const requests = this.chance(0.2) ? [request(0), request(1)] : [request(0)];
    const alike = [{ matchAttribute: `${DRIVER}/model` }];
    const constraints = this.chance(0.1) ? { constraints: alike } : {};
    const metadata = { name, namespace: 'default', uid: name };
    this.see({ kind: 'ResourceClaim', metadata, spec: { devices: { requests, ...constraints } } });
  }

  pod(): void {
    const id = this.names.push(`p${this.names.length}`) - 1;
    const names = this.chance(0.15) ? [`c${id}`, `e${id}`] : [`c${id}`];
    for (const name of names) this.claim(name);
    if (this.chance(0.1) && id > 0) names.push(`c${this.random.below(id)}`);
    const requests = { cpu: this.of(['100m', '1']), memory: '64Mi' };
    const spec: PodObject['spec'] = {
      containers: [{ name: 'c', resources: { requests } }],
      resourceClaims: names.map((name) => ({ name, resourceClaimName: name })),
      ...(this.chance(0.2) ? { nodeSelector: { zone: 'a' } } : {}),
    };
    const metadata = {
      name: `p${id}`,
      namespace: 'default',
      uid: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
    };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec }));
    assert(this.core.podSeen(id, true, bytes, 0, bytes.length, this.nowMs));
    for (let attempt = this.attempt(); attempt !== null; attempt = this.attempt()) {
      if (attempt.id === id) this.#compare(attempt, { kind: 'Pod', metadata, spec });
      else if (attempt.kind === 'bind') this.core.bindFailed(this.core.pods.tagOf(attempt.id), 0);
      if (attempt.kind === 'failed') this.core.podGone(attempt.id, this.nowMs);
    }
  }

  attempt(): Attempt | null {
    return this.core.attempt(this.nowMs);
  }

  #compare(attempt: Attempt, pod: PodObject): void {
    const { core, cluster } = this;
    cluster.refresh();
    const want = this.evaluator.decide(new PodInfo(pod), cluster, profile, { on: () => [] });
    const seen = JSON.stringify({ pod, want: want.kind === 'placed' ? want.best : want.message });
    if (attempt.kind === 'failed') {
      assert.equal(attempt.failure.message, want.kind === 'failed' ? want.message : '', seen);
      return;
    }
    const nodeName = core.nodes.nameOf(attempt.node);
    assert(want.kind === 'placed' && want.best.includes(nodeName), `${nodeName}: ${seen}`);
    const node = cluster.node(nodeName);
    assert(node !== undefined);
    const wanted = want.cycle.reserve(node);
    assert(Array.isArray(wanted));
    const claims = attempt.reservations.flatMap(({ outcome }) => outcome);
    assert.deepEqual(
      claims,
      wanted.flatMap(({ outcome }) => outcome),
    );
    for (const claim of claims) this.see(claim);
    for (const one of attempt.reservations) core.reservations.written(one);
    const bound: PodObject = { ...pod, spec: { ...pod.spec, nodeName } };
    cluster.apply(bound);
    this.bound++;
    this.placed.push({ id: attempt.id, claims });
  }

  /** A pod ends; its claims are free a while later. */
  end(): void {
    const [gone] = this.placed.splice(this.random.below(this.placed.length), 1);
    if (gone === undefined) return;
    this.cluster.delete('Pod', `default/${this.names[gone.id]}`);
    this.core.podGone(gone.id, this.nowMs);
    this.#left.push(...gone.claims);
  }

  free(): void {
    const claim = this.#left.shift();
    if (claim !== undefined) this.see({ ...claim, status: {} });
  }
}

test('pods with claims get a best node and the devices that full evaluation finds', () => {
  let indexed = 0;
  let placed = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const pair = new Pair(seed);
    for (let pod = 0; pod < PODS; pod++) {
      pair.nowMs += 1000;
      if (pair.chance(0.1)) pair.slice(pair.random.below(NODES));
      if (pair.chance(0.6) && pair.placed.length > 0) pair.end();
      if (pair.chance(0.7)) pair.free();
      pair.pod();
    }
    indexed += pair.core.placement.metrics.indexed;
    placed += pair.bound;
  }
  assert(indexed > (SEEDS * PODS) / 3, `${indexed} by the index`);
  assert(placed > (SEEDS * PODS) / 4, `${placed} placed`);
});

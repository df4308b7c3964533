import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { NodeLifecycle, type LifecycleRules } from './node-lifecycle.ts';
import { NodeScan } from '../columns/node-scan.ts';
import { NodeTable } from '../columns/node-table.ts';

const RULES: LifecycleRules = {
  periodMs: 5_000,
  graceMs: 50_000,
  startupGraceMs: 60_000,
  evictionRate: 0.1,
  secondaryEvictionRate: 0.01,
  unhealthyThreshold: 0.55,
  largeClusterSize: 50,
};

interface Fake {
  ready: string;
  taints: { key: string; effect: string }[];
  beats: number;
  isBeating: boolean;
  zone: string;
}

/** A cluster under the machine: nodes that renew each period, a server that does as asked. */
class World {
  readonly table: NodeTable = new NodeTable(new Random(1));
  readonly nodes: Map<string, Fake> = new Map();
  readonly log: string[] = [];
  readonly met: string[] = [];
  readonly machine: NodeLifecycle;
  /** What `confirm` meets. */
  answer: 'prompt' | 'slow' | 'none' = 'prompt';
  nowMs = 0;
  readonly #scan = new NodeScan();
  readonly #pending: (() => void)[] = [];

  constructor() {
    this.machine = new NodeLifecycle(this.table, RULES, {
      confirm: (id) => this.#pending.push(() => this.#confirm(id)),
      syncNoSchedule: (id) => this.#pending.push(() => this.#noSchedule(id)),
      syncNoExecute: (id, taint) => this.#pending.push(() => this.#noExecute(id, taint)),
      syncLabels: () => {},
      registered: (id) => this.met.push(this.table.nameOf(id)),
      disruption: (isTotal) => this.log.push(isTotal ? 'all silent' : 'some back'),
    });
  }

  add(count: number, zone = 'z'): void {
    for (let i = 0; i < count; i++) {
      const name = `${zone}-${i}`;
      this.nodes.set(name, { ready: 'True', taints: [], beats: 0, isBeating: true, zone });
      this.show(name);
    }
  }

  #fake(id: number): Fake {
    const fake = this.nodes.get(this.table.nameOf(id));
    assert(fake !== undefined);
    return fake;
  }

  show(name: string): void {
    const fake = this.nodes.get(name);
    assert(fake !== undefined);
    const conditions =
      fake.ready === ''
        ? []
        : ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
            type,
            status: type === 'Ready' || fake.ready === 'Unknown' ? fake.ready : 'False',
          }));
    const bytes = Buffer.from(
      JSON.stringify({ metadata: { name }, spec: { taints: fake.taints }, status: { conditions } }),
    );
    assert(this.#scan.scan(bytes, 0, bytes.length));
    const key = Buffer.from(name);
    this.machine.upsert(this.table.rowOf(key, 0, key.length), this.#scan, fake.zone);
  }

  #confirm(id: number): void {
    const fake = this.#fake(id);
    if (this.answer === 'none') return this.machine.confirmFailed(id, 5000);
    const silentMs = this.answer === 'slow' ? 10_000 : 5;
    const heartbeat = fake.ready === '' ? 0 : 1;
    if (!this.machine.confirmed(id, heartbeat, fake.beats, silentMs)) return;
    fake.ready = 'Unknown';
    this.log.push(`${this.nowMs / 1000} unknown ${this.table.nameOf(id)}`);
    this.show(this.table.nameOf(id));
  }

  #noSchedule(id: number): void {
    const fake = this.#fake(id);
    fake.taints = fake.taints.filter((taint) => taint.effect !== 'NoSchedule');
    const key = fake.ready === 'Unknown' ? 'unreachable' : 'not-ready';
    if (fake.ready !== 'True') {
      fake.taints.push({ key: `node.kubernetes.io/${key}`, effect: 'NoSchedule' });
    }
    this.machine.tainted(id);
    this.show(this.table.nameOf(id));
  }

  #noExecute(id: number, taint: string): void {
    const fake = this.#fake(id);
    fake.taints = fake.taints.filter((one) => one.effect !== 'NoExecute');
    if (taint !== 'none') {
      fake.taints.push({ key: `node.kubernetes.io/${taint}`, effect: 'NoExecute' });
    }
    this.log.push(`${this.nowMs / 1000} ${taint} ${this.table.nameOf(id)}`);
    this.machine.tainted(id);
    this.show(this.table.nameOf(id));
  }

  /** Renewals, a pass, and what follows; `stepMs` after the last one. */
  step(stepMs: number = RULES.periodMs): void {
    this.nowMs += stepMs;
    for (const [name, fake] of this.nodes) {
      if (!fake.isBeating) continue;
      fake.beats++;
      const id = this.table.find(name);
      this.machine.renewed(id, fake.beats);
      if (fake.ready === 'Unknown') {
        fake.ready = 'True';
        this.show(name);
      }
    }
    this.pass();
  }

  pass(): void {
    this.machine.pass(this.nowMs);
    this.machine.drain(this.nowMs);
    for (let job = this.#pending.shift(); job !== undefined; job = this.#pending.shift()) job();
    this.machine.drain(this.nowMs);
  }

  steps(count: number): void {
    for (let i = 0; i < count; i++) this.step();
  }

  silence(...names: string[]): void {
    for (const name of names) {
      const fake = this.nodes.get(name);
      if (fake !== undefined) fake.isBeating = false;
    }
  }

  evicted(): number {
    return this.log.filter((line) => / (unreachable|not-ready) /.test(line)).length;
  }
}

test('a silent node is Unknown after the grace, then tainted, and freed when it returns', () => {
  const world = new World();
  world.add(3);
  world.steps(2);
  world.silence('z-1');
  world.steps(14);
  const fake = world.nodes.get('z-1');
  assert.deepEqual(world.log, ['65 unknown z-1', '70 unreachable z-1']);
  assert.equal(fake?.taints.length, 2);
  fake.isBeating = true;
  world.steps(4);
  assert.deepEqual(world.log.slice(2), ['85 none z-1']);
  assert.deepEqual(fake.taints, []);
});

test('who is known by silence alone is judged by the reading before', () => {
  const world = new World();
  world.add(3);
  for (const fake of world.nodes.values()) fake.isBeating = false;
  const [, silent] = [...world.nodes.values()];
  let seenMs = world.machine.seenMs;
  for (let reading = 0; reading < 12; reading++) {
    for (const [name, fake] of world.nodes) {
      const id = world.table.find(name);
      const isStill = fake === silent && reading > 2;
      if (!isStill) fake.beats++;
      // what a still lease says was never told before
      if (isStill) world.machine.stoodStill(id, fake.beats);
      else world.machine.moved(id, seenMs);
    }
    seenMs = world.machine.seenMs;
    world.step();
    world.step();
  }
  // the reading at 20 s was the last that found it moved
  assert.deepEqual(world.log, ['70 unknown z-1', '75 unreachable z-1']);
});

test('nodes of one zone are tainted one every ten seconds', () => {
  const world = new World();
  world.add(20);
  world.steps(2);
  world.silence('z-0', 'z-1', 'z-2');
  world.steps(18);
  const times = world.log.filter((line) => line.includes('unreachable')).map(Number.parseFloat);
  assert.deepEqual(times, [70, 80, 90]);
});

test('a zone that is mostly down stops if it is small and crawls if it is large', () => {
  const small = new World();
  small.add(10);
  small.add(10, 'y');
  small.steps(2);
  small.silence(...Array.from({ length: 6 }, (_, i) => `z-${i}`));
  small.steps(60);
  assert.equal(small.evicted(), 0);
  const large = new World();
  large.add(60);
  large.add(60, 'y');
  large.steps(2);
  large.silence(...Array.from({ length: 40 }, (_, i) => `z-${i}`));
  large.steps(12 + 60);
  assert(large.evicted() >= 2 && large.evicted() <= 5, `${large.evicted()} in five minutes`);
});

test('when all nodes fall silent none is evicted, and taints set before go away', () => {
  const world = new World();
  world.add(5);
  world.add(5, 'y');
  world.steps(2);
  world.silence('z-0');
  world.steps(14);
  assert.equal(world.evicted(), 1);
  world.silence(...world.nodes.keys());
  world.steps(60);
  assert.equal(world.evicted(), 1);
  assert(world.log.includes('all silent'));
  assert.equal(
    world.nodes.get('z-0')?.taints.filter((one) => one.effect === 'NoExecute').length,
    0,
  );
  for (const fake of world.nodes.values()) fake.isBeating = true;
  world.steps(6);
  assert(world.log.includes('some back'));
  assert([...world.nodes.values()].every((fake) => fake.ready === 'True'));
});

test('a stall of this program costs no node anything', () => {
  const world = new World();
  world.add(100);
  world.steps(4);
  world.nowMs += 600_000;
  world.pass();
  assert.deepEqual(world.log, []);
  world.steps(20);
  assert.deepEqual(world.log, []);
  assert.equal(world.machine.stalls, 1);
});

test('a stall of the server that holds leases and answers back marks nobody', () => {
  for (const answer of ['slow', 'none'] as const) {
    const world = new World();
    world.add(100);
    world.steps(4);
    world.silence(...world.nodes.keys());
    world.answer = answer;
    world.steps(20);
    assert.deepEqual(world.log, [], answer);
    for (const fake of world.nodes.values()) fake.isBeating = true;
    world.answer = 'prompt';
    world.steps(20);
    assert.deepEqual(world.log, [], answer);
  }
});

test('after a stall of the server each node has its whole grace to be heard from', () => {
  for (const answer of ['slow', 'none'] as const) {
    const world = new World();
    world.add(30);
    world.steps(4);
    world.silence(...world.nodes.keys());
    world.answer = answer;
    world.steps(120);
    world.answer = 'prompt';
    // Kubelets that waited for longer and longer come back one by one.
    for (const fake of world.nodes.values()) {
      if (world.log.length > 0) break;
      fake.isBeating = true;
      world.step(1_000);
    }
    assert.deepEqual(world.log, [], answer);
    world.silence('z-1');
    world.steps(12);
    assert.match(world.log.join(), /unknown z-1,.*unreachable z-1$/, 'who stays silent is told');
  }
});

test('a stall of the server that ends before the grace is no silence of the nodes', () => {
  const world = new World();
  world.add(30);
  world.steps(4);
  world.silence(...world.nodes.keys());
  world.answer = 'none';
  world.steps(9);
  world.answer = 'prompt';
  world.steps(2);
  for (const fake of world.nodes.values()) fake.isBeating = true;
  world.steps(20);
  assert.deepEqual(world.log, []);
});

test('a watch that lost its events marks nobody, because the server is asked', () => {
  const world = new World();
  world.add(10);
  world.steps(4);
  for (let i = 0; i < 40; i++) {
    for (const fake of world.nodes.values()) fake.beats++;
    world.nowMs += RULES.periodMs;
    world.pass();
  }
  assert.deepEqual(world.log, []);
});

test('while the view is cut off nothing is judged, and the grace starts anew afterwards', () => {
  const world = new World();
  world.add(10);
  world.steps(4);
  world.silence('z-1');
  world.machine.distrust();
  world.steps(100);
  assert.deepEqual(world.log, []);
  world.machine.trust();
  world.steps(10);
  assert.deepEqual(world.log, []);
  world.steps(1);
  assert.deepEqual(world.log, ['575 unknown z-1']);
});

test('a node whose kubelet never posted is Unknown after the start-up grace', () => {
  const world = new World();
  world.add(2);
  world.nodes.set('dead', { ready: '', taints: [], beats: 0, isBeating: false, zone: 'z' });
  world.show('dead');
  world.steps(14);
  assert.deepEqual(world.log, []);
  world.steps(1);
  assert.deepEqual(world.log, ['75 unknown dead']);
});

test('a node that comes with a taint NoExecute loses it at its first pass', () => {
  for (const [ready, state] of [
    ['False', 'not-ready'],
    ['Unknown', 'unreachable'],
    ['True', undefined],
  ] as const) {
    const world = new World();
    world.add(2);
    world.steps(2);
    const taints = [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }];
    if (state !== undefined) {
      taints.push({ key: `node.kubernetes.io/${state}`, effect: 'NoSchedule' });
    }
    world.nodes.set('new', { ready, taints, beats: 0, isBeating: false, zone: 'y' });
    world.show('new');
    assert.deepEqual(world.log, [], 'nothing before a pass');
    world.step();
    assert.deepEqual(world.log, ['15 none new'], ready);
    // by then it waits for its zone's turn, and what is asked for is done behind the next pass
    world.step();
    assert.deepEqual(world.log.slice(1), state === undefined ? [] : [`20 ${state} new`]);
  }
});

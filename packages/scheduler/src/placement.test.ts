import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import { Cluster } from './cluster.ts';
import { Evaluator } from './evaluator.ts';
import type { KubeObject, NodeObject, PodObject } from './objects.ts';
import { PodInfo } from './pod-info.ts';
import { createProfile } from './profile.ts';
import { SchedulerCore } from './scheduler-core.ts';

const DECISIONS = process.env['MEGAPLANE_LONG'] === undefined ? 1500 : 100_000;

/** Draws from small pools, so that ties, shortages and repeated classes are frequent. */
class Draw {
  readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  of<T>(list: readonly T[]): T {
    const value = list[this.random.below(list.length)];
    if (value === undefined) throw new Error('nothing to draw from');
    return value;
  }

  chance(part: number): boolean {
    return this.random.next() < part;
  }
}

function drawNode(draw: Draw, name: string): NodeObject {
  const taints = [
    { key: 'soft', value: 'a', effect: 'PreferNoSchedule' },
    { key: 'soft', value: 'b', effect: 'PreferNoSchedule' },
    { key: 'hard', effect: 'NoSchedule' },
    { key: 'out', effect: 'NoExecute' },
  ].filter(() => draw.chance(0.15));
  const labels: Record<string, string> = {
    'kubernetes.io/hostname': draw.chance(0.95) ? name : 'elsewhere',
  };
  if (draw.chance(0.9)) labels['topology.kubernetes.io/zone'] = draw.of(['za', 'zb', 'zc']);
  if (draw.chance(0.5)) labels['disk'] = draw.of(['ssd', 'hdd']);
  const allocatable: Record<string, string> = {
    cpu: draw.of(['4', '8', '3900m']),
    memory: draw.of(['8Gi', '16Gi', '7.5G']),
    pods: draw.of(['4', '10', '110']),
  };
  if (draw.chance(0.2)) allocatable['example.com/gpu'] = '2';
  if (draw.chance(0.3)) allocatable['ephemeral-storage'] = '10Gi';
  const images = draw.chance(0.2)
    ? [{ names: [draw.of(['app:1', 'app:2'])], sizeBytes: 800_000_000 }]
    : [];
  return {
    kind: 'Node',
    metadata: { name, labels },
    spec: { ...(draw.chance(0.1) ? { unschedulable: true } : {}), taints },
    status: { allocatable, images },
  };
}

function drawRequests(draw: Draw): Record<string, string> {
  const requests: Record<string, string> = {};
  if (draw.chance(0.7)) requests['cpu'] = draw.of(['100m', '500m', '1', '2500m', '9']);
  if (draw.chance(0.6)) requests['memory'] = draw.of(['64Mi', '1Gi', '3G', '5Gi']);
  if (draw.chance(0.1)) requests['example.com/gpu'] = '1';
  if (draw.chance(0.1)) requests['ephemeral-storage'] = '4Gi';
  return requests;
}

function drawSpec(draw: Draw): PodObject['spec'] {
  const spec: Record<string, unknown> = {
    priority: draw.of([0, 0, 0, 10]),
    containers: [
      {
        name: 'c',
        image: draw.of(['app:1', 'app:2', 'other']),
        resources: { requests: drawRequests(draw) },
      },
    ],
    preemptionPolicy: draw.of(['Never', 'PreemptLowerPriority']),
  };
  if (draw.chance(0.4)) {
    spec['tolerations'] = [
      {
        operator: 'Exists',
        ...(draw.chance(0.5) ? { key: draw.of(['hard', 'soft', 'out']) } : {}),
      },
    ];
  }
  if (draw.chance(0.2)) spec['nodeSelector'] = { disk: draw.of(['ssd', 'hdd']) };
  const zoneTerm = {
    matchExpressions: [
      { key: 'topology.kubernetes.io/zone', operator: draw.of(['In', 'NotIn']), values: ['za'] },
    ],
  };
  const affinity: Record<string, unknown> = {};
  if (draw.chance(0.3)) {
    affinity['nodeAffinity'] = {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: draw.of([1, 7, 30]), preference: zoneTerm },
        { weight: 5, preference: { matchExpressions: [{ key: 'disk', operator: 'Exists' }] } },
      ],
    };
  } else if (draw.chance(0.1)) {
    affinity['nodeAffinity'] = {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [zoneTerm] },
    };
  }
  if (draw.chance(0.04)) {
    affinity['podAntiAffinity'] = {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'a' } } },
      ],
    };
  }
  if (Object.keys(affinity).length > 0) spec['affinity'] = affinity;
  if (draw.chance(0.03)) {
    spec['topologySpreadConstraints'] = [
      {
        maxSkew: 1,
        topologyKey: 'topology.kubernetes.io/zone',
        whenUnsatisfiable: draw.of(['DoNotSchedule', 'ScheduleAnyway']),
        labelSelector: { matchLabels: { app: 'b' } },
      },
    ];
  }
  return spec;
}

/** The machine and the evaluator side by side, fed the same changes on separate ways. */
const OTHER_SERVICE = {
  metadata: { name: 't', namespace: 'default' },
  spec: { selector: { app: 'd' } },
};

class Pair {
  readonly draw: Draw;
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

  constructor(seed: number) {
    this.draw = new Draw(seed);
    // Half of the time classes are searched for before they get an index, as in large clusters.
    const searchedNodesMin = seed % 2 === 0 ? 1_000_000 : 0;
    const keyOf = (id: number): string => this.keys.get(id) ?? '';
    this.core = new SchedulerCore({ seed, keyOf, searchedNodesMin });
    this.specs = Array.from({ length: 30 }, () => drawSpec(this.draw));
    this.object({ kind: 'Namespace', metadata: { name: 'default' } });
    const service = {
      kind: 'Service',
      metadata: { name: 's', namespace: 'default' },
      spec: { selector: { app: 'c' } },
    };
    this.object(service);
    this.object({ ...service, ...OTHER_SERVICE });
    for (let i = 0; i < 12; i++) this.addNode();
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
    const node = drawNode(this.draw, name);
    this.cluster.apply(node);
    this.core.nodeSeen(node, this.nowMs);
  }

  churn(): void {
    const { draw } = this;
    const roll = draw.random.next();
    // Among more than a hundred candidates preemption does not look at all.
    if (roll < 0.04 && this.nodeNames.length < 60) this.addNode();
    else if (roll < 0.07 && this.nodeNames.length > 5) this.#removeNode();
    else if (roll < 0.2) this.#setNode(draw.of(this.nodeNames));
    else if (roll < 0.6 && this.placed.length > 0) this.#removePod();
  }

  #removeNode(): void {
    const [name = ''] = this.nodeNames.splice(this.draw.random.below(this.nodeNames.length), 1);
    this.cluster.delete('Node', name);
    this.core.nodeGone(name, this.nowMs);
  }

  #removePod(): void {
    const [gone] = this.placed.splice(this.draw.random.below(this.placed.length), 1);
    if (gone === undefined) return;
    this.cluster.delete('Pod', this.keys.get(gone.id) ?? '');
    this.core.podGone(gone.id, this.nowMs);
    this.keys.delete(gone.id);
  }

  see(id: number, isNew: boolean, pod: PodObject): void {
    const bytes = Buffer.from(JSON.stringify(pod));
    assert.equal(this.core.podSeen(id, isNew, bytes, 0, bytes.length, this.nowMs), true);
  }

  /** One pod: the machine's node must be among the best, its text that of the evaluator. */
  decideOne(): void {
    const { draw, core, cluster } = this;
    const id = this.#pods++;
    const pod: PodObject = {
      kind: 'Pod',
      metadata: {
        name: `p${id}`,
        namespace: 'default',
        labels: { app: draw.of(['a', 'b', 'c', 'd']) },
      },
      spec: draw.of(this.specs),
    };
    this.keys.set(id, `default/p${id}`);
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
    const victims = attempt.failure.nomination?.victims.map((victim) => this.keys.get(victim));
    assert.deepEqual(
      victims,
      want.nomination?.victims.map(({ key }) => key),
    );
    core.podGone(id, this.nowMs);
    this.keys.delete(id);
  }
}

test('the machine finds a best node of the evaluator, or fails in its words', () => {
  const metrics = { indexed: 0, evaluated: 0 };
  for (let seed = 1; seed <= 3; seed++) {
    const pair = new Pair(seed);
    for (let step = 0; step < DECISIONS / 3; step++) {
      pair.churn();
      pair.nowMs += 10;
      pair.decideOne();
    }
    metrics.indexed += pair.core.placement.metrics.indexed;
    metrics.evaluated += pair.core.placement.metrics.evaluated;
  }
  assert(metrics.indexed > DECISIONS / 4, `${metrics.indexed} of ${DECISIONS} by the index`);
  assert(metrics.evaluated > DECISIONS / 50, `${metrics.evaluated} by full evaluation`);
});

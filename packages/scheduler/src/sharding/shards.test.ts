import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { explainScenario, explainSharded } from '../explain/explain.ts';
import type { Change, Scenario, Step } from '../explain/explain.ts';
import { COMPATIBILITY } from '../framework/compatibility.ts';
import { RandomWorkload, type Mix } from '../simulation/random-workload.sim.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 40 : 4000;
const STEPS = 6;
const NODES = 10;

const NOTHING: Mix = { podAffinity: 0, spread: 0, ports: 0.1, strangers: 0, priorities: 0.5 };
const MIXES: readonly Mix[] = [
  { ...NOTHING, spread: 0.6 },
  { ...NOTHING, podAffinity: 0.4 },
  { ...NOTHING, volumes: 0.6, spread: 0.1, podAffinity: 0.1 },
  { podAffinity: 0.15, spread: 0.2, ports: 0.2, strangers: 0.05, priorities: 0.5, volumes: 0.2 },
];

/** A cluster with pods on it, and pods that come one after another while it changes. */
function scenarioOf(seed: number): Scenario {
  const random = new Random(seed);
  const draw = new RandomWorkload(random, MIXES[seed % MIXES.length] ?? NOTHING);
  const specs = Array.from({ length: 12 }, () => draw.spec());
  let pods = 0;
  const podOf = (nodeName: string): PodObject => {
    const spec = draw.of(specs);
    return {
      kind: 'Pod',
      metadata: draw.metadata(`p${pods++}`),
      spec: nodeName === '' ? spec : { ...spec, nodeName },
      ...(nodeName === '' ? {} : { status: draw.running('2030-01-01T00:00:00Z') }),
    };
  };
  const nodes = Array.from({ length: NODES }, (_, i) => `n${i}`);
  const objects: KubeObject[] = [...draw.objects(), draw.budget('b1'), draw.budget('b2')];
  for (const name of nodes) objects.push(draw.node(name));
  for (let i = 0; i < NODES * 9; i++) objects.push(podOf(draw.of(nodes)));
  const change = (): Change => {
    if (draw.chance(0.3)) return { apply: draw.node(draw.of(nodes)) };
    if (draw.chance(0.2)) return { delete: { kind: 'Node', name: draw.of(nodes) } };
    const gone = `p${random.below(pods)}`;
    if (draw.chance(0.5)) {
      return { delete: { kind: 'Pod', namespace: draw.of(['n1', 'n2']), name: gone } };
    }
    return { apply: draw.chance(0.5) ? podOf(draw.of(nodes)) : draw.budget('b1') };
  };
  const steps = Array.from({ length: STEPS }, (): Step => {
    const before = draw.chance(0.5) ? [change(), change()] : [];
    return { before, pod: podOf('') };
  });
  const percentageOfNodesToScore = draw.of([100, 100, 100, 0, 30]);
  return { name: `seed ${seed}`, config: { percentageOfNodesToScore }, objects, steps };
}

test('shards and relays decide about random clusters as one process does', async () => {
  let failed = 0;
  let evicting = 0;
  for (let seed = 0; seed < RUNS; seed++) {
    const scenario = scenarioOf(seed);
    const compatibility = COMPATIBILITY[seed % 2 === 0 ? '1.36' : '1.35'];
    const tree = { shards: 1 + (seed % 17), relayLevels: seed % 4, fanOut: 2 + (seed % 3) };
    const alone = explainScenario(scenario, compatibility);
    const sharded = await explainSharded(scenario, compatibility, tree);
    assert.deepEqual(sharded, alone, `seed ${seed} with ${JSON.stringify(tree)}`);
    failed += alone.steps.filter(({ failed: one }) => one !== null).length;
    evicting += alone.steps.filter(({ failed: one }) => (one?.victims.length ?? 0) > 0).length;
  }
  // a cluster in which all goes well would prove little
  assert.ok(failed > RUNS / 4, `${failed}`);
  assert.ok(evicting > RUNS / 20, `${evicting}`);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cluster } from '../framework/cluster.ts';
import { Evaluator } from '../placement/evaluator.ts';
import type { KubeObject, PodObject } from '../api/objects.ts';
import { PodInfo } from '../framework/pod-info.ts';
import { createProfile } from '../framework/runtime/profile.ts';
import { COMPATIBILITY } from '../framework/compatibility.ts';

const RESOURCE = 'example.com/dev';

function named(kind: string, name: string, rest: object): KubeObject {
  return { kind, metadata: { name }, ...rest };
}

function slice(node: string, count: number): KubeObject {
  const devices = Array.from({ length: count }, (_, index) => ({ name: `d${index}` }));
  const pool = { name: node, generation: 1, resourceSliceCount: 1 };
  return named('ResourceSlice', node, {
    spec: { driver: 'd.example.com', nodeName: node, pool, devices },
  });
}

function holding(node: string, device: string): KubeObject {
  const results = [{ request: 'r', driver: 'd.example.com', pool: node, device }];
  const metadata = { name: `${node}-${device}`, namespace: 'default' };
  const status = { allocation: { devices: { results } } };
  return { kind: 'ResourceClaim', metadata, status } as KubeObject;
}

/** What a plugin gives each node for a pod that asks for one device. */
function scoresOf(plugin: string, args: object): Record<string, number> {
  const cluster = new Cluster(true);
  const expression = 'device.driver == "d.example.com"';
  const spec = { extendedResourceName: RESOURCE, selectors: [{ cel: { expression } }] };
  const allocatable = { cpu: '4', memory: '8Gi', pods: '10' };
  const objects = [
    named('DeviceClass', 'c', { spec }),
    ...['free', 'used'].flatMap((name) => [
      named('Node', name, { status: { allocatable } }),
      slice(name, 4),
    ]),
    // Its own ones, which no class has a say about.
    named('Node', 'own', { status: { allocatable: { ...allocatable, [RESOURCE]: '10' } } }),
    slice('own', 2),
    holding('used', 'd0'),
    holding('used', 'd1'),
  ];
  for (const object of objects) cluster.apply(object);
  cluster.refresh();
  const requests = { cpu: '1', memory: '2Gi', [RESOURCE]: '1' };
  const pod: PodObject = {
    metadata: { name: 'p', namespace: 'default', uid: 'u' },
    spec: { containers: [{ name: 'c', resources: { requests } }] },
  };
  const profile = createProfile({ pluginConfig: [{ name: plugin, args }] }, COMPATIBILITY['1.36']);
  const decision = new Evaluator().decide(new PodInfo(pod), cluster, profile, { on: () => [] });
  assert(decision.kind === 'placed' && decision.scores !== null);
  const scores = decision.scores.map(({ plugins }) => plugins.get(plugin) ?? 0);
  return Object.fromEntries(decision.feasible.map(({ name }, index) => [name, scores[index] ?? 0]));
}

test('an extended resource that devices give is scored by how many of them are taken', () => {
  const strategy = (type: string): object => ({
    scoringStrategy: { type, resources: [{ name: RESOURCE, weight: 1 }] },
  });
  const least = scoresOf('NodeResourcesFit', strategy('LeastAllocated'));
  assert.deepEqual(least, { free: 75, used: 25, own: 90 });
  const most = scoresOf('NodeResourcesFit', strategy('MostAllocated'));
  assert.deepEqual(most, { free: 25, used: 75, own: 10 });
});

test('devices count for the balance of a node', () => {
  // 1/4 of each of CPU and memory; of devices 1/4, 3/4 and 1/10.
  const resources = ['cpu', 'memory', RESOURCE].map((name) => ({ name, weight: 1 }));
  const scores = scoresOf('NodeResourcesBalancedAllocation', { resources });
  assert.deepEqual(scores, { free: 75, used: 75, own: 71 });
});

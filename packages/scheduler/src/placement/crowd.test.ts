import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject, OwnerObject } from '../api/objects.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';

const NODES = 90;

/** Deployments on nodes of three zones, each decision compared with full evaluation. */
class Bench {
  readonly core = new SchedulerCore({
    seed: 1,
    checkedEvery: 1,
    keyOf: (id) => `default/p${id}`,
  });
  #rows = 0;

  constructor(apps: readonly string[]) {
    for (let index = 0; index < NODES; index++) {
      const name = `n${index}`;
      const zone = `z${index % 3}`;
      const labels = { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': zone };
      const allocatable = { cpu: '64', memory: '64Gi', pods: '500' };
      const node: NodeObject = { metadata: { name, labels }, spec: {}, status: { allocatable } };
      this.core.nodeSeen(node, 0);
    }
    for (const app of apps) {
      const spec = { selector: { matchLabels: { app } } };
      const replicaSet: OwnerObject = { metadata: { name: app, namespace: 'default' }, spec };
      this.core.objectSeen('ReplicaSet', replicaSet, 0);
    }
  }

  /** Places so many pods of a Deployment; returns their rows. */
  place(app: string, count: number): number[] {
    return Array.from({ length: count }, () => {
      const id = this.#rows++;
      const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, controller: true };
      const metadata = { name: `p${id}`, namespace: 'default', labels: { app } };
      const containers = [{ name: 'c', resources: { requests: { cpu: '100m' } } }];
      const spec = { schedulerName: 'default-scheduler', containers };
      const pod = { metadata: { ...metadata, ownerReferences: [owner] }, spec };
      const bytes = Buffer.from(JSON.stringify(pod));
      assert(this.core.podSeen(id, true, bytes, 0, bytes.length, 0));
      assert.equal(this.core.attempt(0)?.kind, 'bind');
      return id;
    });
  }
}

test('a crowd that missed more changes than it has nodes sees those that matter to it', () => {
  const bench = new Bench(['few', 'many']);
  const first = bench.place('few', 30);
  // Pods of the crowd go, and come elsewhere: more changes than are worth a look at each.
  for (const id of first.slice(0, 10)) bench.core.podGone(id, 0);
  bench.place('many', 300);
  // The nodes that were left are taken again before any gets a second pod.
  bench.place('few', 80);
  bench.place('many', 500);
  bench.place('few', 40);
  const { metrics } = bench.core.placement;
  assert.deepEqual([metrics.checked, metrics.mismatched], [950, 0]);
  assert.equal(metrics.evaluated, 0);
});

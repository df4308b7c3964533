import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject } from '../api/objects.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';

function node(index: number): NodeObject {
  const taints = [{ key: 'k', value: 'v', effect: 'PreferNoSchedule' }];
  const resources = { cpu: `${4 + (index % 3)}`, memory: '8Gi', pods: index % 7 === 0 ? '1' : '9' };
  return {
    metadata: { name: `n${index}`, labels: { disk: index % 2 === 0 ? 'ssd' : 'hdd' } },
    spec: {
      ...(index % 5 === 0 ? { taints } : {}),
      ...(index % 11 === 0 ? { unschedulable: true } : {}),
    },
    status: { allocatable: resources },
  };
}

test('an index that is made after searches ranks nodes as full evaluation does', () => {
  const keyOf = (id: number): string => `default/p${id}`;
  const core = new SchedulerCore({ seed: 1, keyOf, searchedNodesMin: 0, checkedEvery: 1 });
  for (let index = 0; index < 90; index++) core.nodeSeen(node(index), 0);
  core.nodeGone('n4', 0);
  for (let id = 0; id < 400; id++) {
    const requests = { cpu: ['250m', '500m', '1'][id % 3] ?? '', memory: '256Mi' };
    const spec = {
      schedulerName: 'default-scheduler',
      containers: [{ name: 'c', resources: { requests } }],
      ...(id % 3 === 0 ? { nodeSelector: { disk: 'ssd' } } : {}),
    };
    const metadata = { name: `p${id}`, namespace: 'default' };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec }));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
    core.attempt(0);
  }
  const { searched, indexed, checked, mismatched } = core.placement.metrics;
  assert(searched > 0 && indexed > 0, `${searched} searched, ${indexed} indexed`);
  assert.equal(checked, searched + indexed);
  assert.equal(core.placement.mismatch, '');
  assert.equal(mismatched, 0);
});

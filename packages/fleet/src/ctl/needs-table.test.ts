import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { NodeSelectorRequirement_Operator as Operator } from '../contract/tables/capacity.ts';
import { InspectNeedsResponseSchema, UnmetReason } from '../contract/tables/shardread.ts';
import type { InspectNeedsResponse } from '../contract/tables/shardread.ts';
import { needsTable } from './needs-table.ts';

function frames(cycle: bigint): InspectNeedsResponse[] {
  const requirements = [{ key: 'zone', operator: Operator.IN, values: ['a', 'b'] }];
  const aggregateResources = { cpu: '8' };
  const met = {
    ...{ clusterId: 'c1', satisfied: true, claimedMachineCount: 2 },
    need: { aggregateResources, priority: 5, requirements },
  };
  const unmet = {
    ...{ clusterId: 'c\u001b[2J', claimedMachineCount: 1, ageCyclesUnmet: 7 },
    need: { aggregateResources, priority: -1 },
    residualDeficit: { resources: { cpu: '4' } },
    unmetReason: UnmetReason.PREEMPTION_EXHAUSTED,
    preemption: { victimsFound: 3 },
  };
  return [
    create(InspectNeedsResponseSchema, { frame: { case: 'header', value: { cycle } } }),
    create(InspectNeedsResponseSchema, { frame: { case: 'need', value: met } }),
    create(InspectNeedsResponseSchema, { frame: { case: 'need', value: unmet } }),
  ];
}

test('each row says what it wants, what it lacks and why', () => {
  const lines = needsTable(frames(1n), false).split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(/ {2,}/)),
    [
      ['CLUSTER', 'PRIORITY', 'WANTS', 'LACKS', 'MACHINES', 'REASON', 'AGE', 'REQUIRES'],
      ['c1', '5', 'cpu=8', '-', '2', '-', '-', 'zone:In(a,b)'],
      ['c\\x1b[2J', '-1', 'cpu=8', 'cpu=4', '1', 'PREEMPTION_EXHAUSTED (3 drain)', '7', '-'],
    ],
  );
  assert.equal(needsTable(frames(1n), true).split('\n').length, 2);
});

test('a shard that has decided nothing shows no empty table', () => {
  assert.match(needsTable(frames(0n), false), /has not decided anything yet/);
  assert.match(needsTable([], false), /has not decided anything yet/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainScenario, type StepAnswer } from '../../explain/explain.ts';
import { fastProfileOf } from '../../placement/topology/fast-profile.ts';
import { createProfile, type ProfileConfiguration } from './profile.ts';
import { COMPATIBILITY } from '../compatibility.ts';

function decide(profile: ProfileConfiguration): StepAnswer | undefined {
  const node = (name: string, cpu: string): object => ({
    kind: 'Node',
    metadata: { name },
    status: { allocatable: { cpu, memory: '8Gi', pods: '10' } },
  });
  const scenario = {
    config: { profiles: [profile] },
    objects: [node('n1', '2'), node('n2', '4')],
    steps: [{ pod: { metadata: { name: 'p' }, spec: { containers: [{ name: 'c' }] } } }],
  };
  return explainScenario(scenario as Parameters<typeof explainScenario>[0]).steps[0];
}

test('a plugin that filters or scores without its preparation ends the try with an error', () => {
  const name = 'PodTopologySpread';
  const off = { multiPoint: { disabled: [{ name }] } };
  const filters = decide({ plugins: { ...off, filter: { enabled: [{ name }] } } });
  const state = 'from cycleState: not found';
  assert.equal(filters?.failed?.reason, 'SchedulerError');
  assert.equal(
    filters.failed.message,
    `running "${name}" filter plugin: reading "PreFilter${name}" ${state}`,
  );
  const scores = decide({ plugins: { ...off, score: { enabled: [{ name }] } } });
  assert.equal(
    scores?.failed?.message,
    `running Score plugins: plugin "${name}" failed with: error reading "PreScore${name}" ${state}`,
  );
});

test('balance is scored for pods that ask for nothing where nobody left them out', () => {
  const name = 'NodeResourcesBalancedAllocation';
  const of = (plugins: NonNullable<ProfileConfiguration['plugins']>): number | undefined =>
    decide({ plugins })?.scores?.['n1']?.[name];
  const disabled = [{ name }];
  assert.equal(of({}), undefined);
  assert.equal(of({ multiPoint: { disabled }, score: { enabled: [{ name }] } }), 100);
});

test('no index decides for a profile whose plugins are not prepared', () => {
  const fast = (plugins: NonNullable<ProfileConfiguration['plugins']>): boolean =>
    fastProfileOf(createProfile({ plugins }), { plugins }, COMPATIBILITY['1.36']) !== null;
  assert.ok(fast({}));
  assert.ok(!fast({ preScore: { disabled: [{ name: 'TaintToleration' }] } }));
  assert.ok(!fast({ preFilter: { disabled: [{ name: 'NodeAffinity' }] } }));
});

test('after an error the next try begins with the node that ended the one before', () => {
  const name = 'PodTopologySpread';
  const off = { multiPoint: { disabled: [{ name }] }, filter: { enabled: [{ name }] } };
  const node = (index: number): object => ({
    kind: 'Node',
    metadata: { name: `n${index}` },
    spec: { unschedulable: index === 1 },
    status: { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } },
  });
  const pod = (spec: object): object => ({
    pod: { metadata: { name: 'p' }, spec: { containers: [{ name: 'c' }], ...spec } },
  });
  const tolerations = [{ operator: 'Exists' }];
  const scenario = {
    config: { profiles: [{ plugins: off }, { schedulerName: 'second' }] },
    objects: [node(1), node(2), node(3)],
    steps: [pod({}), pod({ schedulerName: 'second', tolerations })],
  };
  const { steps } = explainScenario(scenario as Parameters<typeof explainScenario>[0]);
  assert.equal(steps[0]?.failed?.reason, 'SchedulerError');
  assert.deepEqual(steps[1]?.feasible, ['n2', 'n3', 'n1']);
});

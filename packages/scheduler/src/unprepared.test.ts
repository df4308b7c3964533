import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainScenario, type StepAnswer } from './explain.ts';
import { fastProfileOf } from './fast-profile.ts';
import { COMPATIBILITY, createProfile, type ProfileConfiguration } from './profile.ts';

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

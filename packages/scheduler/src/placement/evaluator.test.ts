import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explainScenario, type Scenario, type StepAnswer } from '../explain/explain.ts';
import type { KubeObject, NodeObject, PodObject } from '../api/objects.ts';
import { SchedulerCore } from '../core/scheduler-core.ts';

const NODE: NodeObject = {
  kind: 'Node',
  metadata: { name: 'n' },
  status: { allocatable: { cpu: '1', pods: '9' } },
};

/** The answer about a pod that waits for a node already. */
function answerFor(scenario: Partial<Scenario>, spec: object): StepAnswer {
  const metadata = { name: 'p', namespace: 'default' };
  const pod = { kind: 'Pod', metadata, spec, status: { nominatedNodeName: 'n' } };
  const { objects = [], config = null } = scenario;
  const steps = [{ retry: 'default/p' }];
  const all = [...objects, pod as PodObject];
  const [answer] = explainScenario({ objects: all, config, steps }).steps;
  assert(answer !== undefined);
  return answer;
}

const ONE_CPU = [{ name: 'c', resources: { requests: { cpu: '1' } } }];
const LARGE = { containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] };

test('a pod waits for its node no more when there are no nodes', () => {
  assert.equal(answerFor({}, LARGE).failed?.nominated, null);
});

test('a pod waits for its node no more when nobody is asked whom to evict', () => {
  const spec = { ...LARGE, preemptionPolicy: 'Never' };
  assert.equal(answerFor({ objects: [NODE] }, spec).failed?.nominated, 'n');
  const postFilter = { disabled: [{ name: '*' }] };
  const config = { profiles: [{ plugins: { postFilter } }] };
  assert.equal(answerFor({ objects: [NODE], config }, spec).failed?.nominated, null);
});

test('a pod waits for its node no more when it is at fault itself', () => {
  const preference = { matchExpressions: [{ key: 'k', operator: 'Gt', values: ['-4'] }] };
  const preferred = [{ weight: 1, preference }];
  const affinity = {
    nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred },
  };
  const other = { ...NODE, metadata: { name: 'm' } };
  const selected = { nodeSelector: { 'kubernetes.io/os': 'x' } };
  const labels = { 'kubernetes.io/os': 'x' };
  const objects = ['a', 'b'].map((name) => ({ ...other, metadata: { name, labels } }));
  const answer = answerFor({ objects: [NODE, ...objects] }, { affinity, ...selected });
  assert.equal(answer.failed?.reason, 'SchedulerError');
  assert.equal(answer.failed.nominated, null);
});

test('a pod that is held back takes no room on the node that it is to wait for', () => {
  const pods = [{ schedulingGates: [{ name: 'x/y' }] }, {}].map((spec, index) => ({
    kind: 'Pod',
    metadata: { name: `p${index}`, namespace: 'default' },
    spec: { ...spec, priority: 10 * (1 - index), containers: ONE_CPU },
    status: index === 0 ? { nominatedNodeName: 'n' } : {},
  }));
  const objects = [NODE, ...pods] as KubeObject[];
  const [answer] = explainScenario({ objects, steps: [{ retry: 'default/p1' }] }).steps;
  assert.equal(answer?.chosen, 'n');
  const core = new SchedulerCore({ seed: 1, keyOf: (id) => `default/p${id}` });
  core.nodeSeen(NODE, 0);
  for (const [id, pod] of pods.entries()) {
    const bytes = Buffer.from(JSON.stringify(pod));
    core.podSeen(id, true, bytes, 0, bytes.length, 0);
  }
  assert.equal(core.attempt(0)?.kind, 'bind');
});

test('a pod that names its nodes is rejected by what they say and by the naming', () => {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['n'] }];
  const required = { nodeSelectorTerms: [{ matchFields }] };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
  // Terms about pods are evaluated in full, the naming alone is not.
  const near = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'a' } } };
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [near] };
  for (const affinity of [{ nodeAffinity }, { nodeAffinity, podAntiAffinity }]) {
    const core = new SchedulerCore({ seed: 1, keyOf: () => 'default/p' });
    core.nodeSeen(NODE, 0);
    const metadata = { name: 'p', namespace: 'default' };
    const bytes = Buffer.from(JSON.stringify({ metadata, spec: { ...LARGE, affinity } }));
    core.podSeen(0, true, bytes, 0, bytes.length, 0);
    const attempt = core.attempt(0);
    assert(attempt?.kind === 'failed');
    const rejecters = [...attempt.failure.rejecters].toSorted();
    assert.deepEqual(rejecters, ['NodeAffinity', 'NodeResourcesFit']);
  }
});

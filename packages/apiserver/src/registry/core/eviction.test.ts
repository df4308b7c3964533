import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  admittingModel,
  messageOf,
  podOf,
  type AdmittingModel,
} from '../../testing/admitting.sim.ts';
import { charged } from './disruption-budgets.ts';

const PODS = '/api/v1/namespaces/n/pods';
const BUDGETS = '/apis/policy/v1/namespaces/n/poddisruptionbudgets';
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

function budgetOf(status: object): Parameters<typeof charged>[0] {
  return { metadata: { name: 'b', generation: 1 }, status: { observedGeneration: 1, ...status } };
}

function refusalOf(status: object): string {
  const after = charged(budgetOf(status), 'p', NOW_MS);
  assert.ok('refusal' in after);
  return after.refusal.details?.causes?.[0]?.message ?? after.refusal.message ?? '';
}

test('a budget that is used up says what is known of the reason', () => {
  const used = { disruptionsAllowed: 0, desiredHealthy: 2 };
  const condition = { type: 'DisruptionAllowed', status: 'False', reason: 'R', message: 'why' };
  const failed = { ...condition, reason: 'SyncFailed' };
  const head = 'The disruption budget b';
  assert.equal(
    refusalOf({ ...used, currentHealthy: 2 }),
    `${head} needs 2 healthy pods and has 2 currently`,
  );
  assert.equal(
    refusalOf({ ...used, currentHealthy: 3 }),
    `${head} does not allow evicting pods currently`,
  );
  assert.equal(
    refusalOf({ ...used, currentHealthy: 3, conditions: [condition] }),
    `${head} does not allow evicting pods currently (R): why`,
  );
  assert.equal(
    refusalOf({ ...used, conditions: [failed] }),
    `${head} does not allow evicting pods currently because it failed sync: why`,
  );
});

test('a budget forbids beyond what it remembers, and its last disruption is a condition', () => {
  const disruptedPods = Object.fromEntries(
    Array.from({ length: 2001 }, (_, index) => [`p${index}`, '2026-01-01T00:00:00Z']),
  );
  assert.match(
    refusalOf({ disruptionsAllowed: 1, disruptedPods }),
    /^poddisruptionbudget\.policy "b" is forbidden: DisruptedPods map too big/,
  );
  const after = charged(budgetOf({ disruptionsAllowed: 1 }), 'p', NOW_MS);
  assert.ok('budget' in after);
  assert.deepEqual(after.budget['status'], {
    observedGeneration: 1,
    disruptionsAllowed: 0,
    disruptedPods: { p: '2026-01-02T03:04:05Z' },
    conditions: [
      {
        type: 'DisruptionAllowed',
        status: 'False',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-02T03:04:05Z',
        reason: 'InsufficientPods',
        message: '',
      },
    ],
  });
});

function runningPod({ expect }: AdmittingModel, name: string): void {
  const metadata = { name, labels: { a: 'b' } };
  expect(201, 'POST', PODS, { ...podOf(name, {}, { nodeName: 'x' }), metadata });
  const conditions = [{ type: 'Ready', status: 'True' }];
  expect(200, 'PATCH', `${PODS}/${name}/status`, { status: { phase: 'Running', conditions } });
}

function budget({ expect }: AdmittingModel, disruptionsAllowed: number): void {
  const spec = { selector: { matchLabels: { a: 'b' } } };
  expect(201, 'POST', BUDGETS, { metadata: { name: 'b' }, spec });
  const status = { observedGeneration: 1, disruptionsAllowed, currentHealthy: 9 };
  expect(200, 'PATCH', `${BUDGETS}/b/status`, { status });
}

function eviction(name: string, deleteOptions: object): object {
  return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, deleteOptions };
}

test('wrong options are refused after the budget was charged and the pod was marked', () => {
  const model = admittingModel();
  runningPod(model, 'p');
  budget(model, 5);
  const wrong = eviction('p', { propagationPolicy: 'X' });
  const refused = model.expect(422, 'POST', `${PODS}/p/eviction`, wrong);
  assert.match(messageOf(refused), /^DeleteOptions\.meta\.k8s\.io "" is invalid/);
  const charges = JSON.parse(model.ask('GET', `${BUDGETS}/b`).text) as {
    status: { disruptionsAllowed: number };
  };
  assert.equal(charges.status.disruptionsAllowed, 4);
  assert.match(model.ask('GET', `${PODS}/p`).text, /"DisruptionTarget"/);
});

test('a precondition on the version holds for the pod as it was before its condition', () => {
  const model = admittingModel();
  runningPod(model, 'p');
  const pod = JSON.parse(model.ask('GET', `${PODS}/p`).text) as {
    metadata: { resourceVersion: string };
  };
  const { resourceVersion } = pod.metadata;
  const stale = eviction('p', { preconditions: { resourceVersion: '1' } });
  model.expect(409, 'POST', `${PODS}/p/eviction`, stale);
  const right = eviction('p', { preconditions: { resourceVersion } });
  model.expect(201, 'POST', `${PODS}/p/eviction`, right);
});

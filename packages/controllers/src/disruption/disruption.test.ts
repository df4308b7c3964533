import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import {
  budgetStatus,
  desiredHealthy,
  failedStatus,
  needsScale,
  stillEvicted,
  unmanagedText,
} from './disruption.ts';

const NOW = '2026-01-01T00:00:00Z';
const NOW_MS = Date.parse(NOW);

function budget(spec: JsonObject, status: JsonObject = {}): JsonObject {
  return { metadata: { name: 'b', generation: 3 }, spec, status };
}

test('percentages are rounded up, of the scale', () => {
  const cases: readonly (readonly [
    spec: JsonObject,
    scale: number,
    desired: number | undefined,
  ])[] = [
    [{ minAvailable: 2 }, 5, 2],
    [{ minAvailable: '50%' }, 3, 2],
    [{ maxUnavailable: '50%' }, 3, 1],
    [{ maxUnavailable: 1 }, 0, 0],
    [{ maxUnavailable: 7 }, 3, 0],
    [{ maxUnavailable: 'x' }, 3, undefined],
    [{}, 3, 0],
  ];
  for (const [spec, scale, desired] of cases) {
    assert.equal(desiredHealthy(budget(spec), scale), desired, JSON.stringify(spec));
  }
  assert.deepEqual(
    [{ minAvailable: 1 }, { minAvailable: '1%' }, { maxUnavailable: 1 }].map((spec) =>
      needsScale(budget(spec)),
    ),
    [false, true, true],
  );
});

test('the status says what may be evicted, and nothing new where nothing changed', () => {
  const counts = { expected: 3, healthy: 3, desired: 2, evicted: {} };
  const one = budgetStatus(budget({}), counts, NOW);
  assert.equal(one?.['disruptionsAllowed'], 1);
  assert.equal(budgetStatus(budget({}, one), counts, '2026-01-01T00:01:00Z'), undefined);
  const none = budgetStatus(budget({}, one), { ...counts, healthy: 2 }, '2026-01-01T00:01:00Z');
  assert(none);
  const [condition] = none['conditions'] as JsonObject[];
  assert.deepEqual(
    [condition?.['status'], condition?.['reason'], condition?.['lastTransitionTime']],
    ['False', 'InsufficientPods', '2026-01-01T00:01:00Z'],
  );
  const failed = failedStatus(budget({}, one), 'no scale', NOW);
  assert.equal(failed['disruptionsAllowed'], 0);
});

test('a failure tells of the generation that was last worked out, or of none', () => {
  const counts = { expected: 3, healthy: 3, desired: 2, evicted: {} };
  const worked = budgetStatus(budget({}), counts, NOW);
  const generations = [undefined, worked].map((status) => {
    const changed = { ...budget({}, status), metadata: { generation: 5 } };
    const failed = failedStatus(changed, 'no scale', NOW);
    const [condition] = failed['conditions'] as JsonObject[];
    return condition?.['observedGeneration'];
  });
  assert.deepEqual(generations, [undefined, worked?.['observedGeneration']]);
});

test('an evicted pod counts for two minutes', () => {
  const status = {
    disruptedPods: { a: '2025-12-31T23:59:00Z', b: '2025-12-31T23:50:00Z', c: NOW },
  };
  const found = stillEvicted(budget({}, status), (name) => name !== 'c', NOW_MS);
  assert.deepEqual(found, {
    evicted: { a: '2025-12-31T23:59:00Z' },
    late: ['b'],
    nextMs: NOW_MS + 60_000,
  });
});

test('pods that nobody controls are told of with the selector as Go prints it', () => {
  const expression = { key: 'tier', operator: 'In', values: ['a', 'b'] };
  const selector = { matchLabels: { b: '2', a: '1' }, matchExpressions: [expression] };
  const text = unmanagedText({ spec: { selector } });
  const requirement = 'LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],}';
  const labels = 'MatchLabels:map[string]string{a: 1,b: 2,}';
  const expressions = `MatchExpressions:[]LabelSelectorRequirement{${requirement},}`;
  const shown = `&LabelSelector{${labels},${expressions},}`;
  assert(text.includes(`(selector: ${shown}) were found to be unmanaged.`), text);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { admittingModel, messageOf } from '../testing/admitting.sim.ts';

const OLD = '/apis/autoscaling/v1/namespaces/n/horizontalpodautoscalers';
const NEW = '/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers';
const PREFIX = 'autoscaling.alpha.kubernetes.io/';
const SPEC = {
  scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
  maxReplicas: 3,
};

function objectIn(answer: { readonly text: string }): JsonObject {
  return JSON.parse(answer.text) as JsonObject;
}

function annotationsOf(object: JsonObject): JsonObject | undefined {
  return (object['metadata'] as JsonObject)['annotations'] as JsonObject | undefined;
}

test('what v1 says in annotations are metrics and behavior in v2', () => {
  const model = admittingModel();
  const annotations = {
    [`${PREFIX}metrics`]:
      '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1000m"}}]',
    [`${PREFIX}behavior`]:
      '{"ScaleUp":{"Policies":[{"Type":"Pods","Value":2,"PeriodSeconds":60}]}}',
    [`${PREFIX}conditions`]: 'no list',
    own: 'kept',
  };
  const spec = { ...SPEC, targetCPUUtilizationPercentage: 50 };
  const body = { metadata: { name: 'a', annotations }, spec };
  const made = objectIn(model.expect(201, 'POST', OLD, body));
  assert.equal(
    annotationsOf(made)?.[`${PREFIX}metrics`],
    '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1"}}]',
  );
  const shown = objectIn(model.expect(200, 'GET', `${NEW}/a`));
  assert.deepEqual(annotationsOf(shown), { own: 'kept' });
  // in the form of v2, which leaves zeros out that v1 has
  assert.deepEqual(shown['status'], { desiredReplicas: 0, currentMetrics: null });
  const { metrics, behavior } = shown['spec'] as { metrics: object; behavior: JsonObject };
  assert.deepEqual(metrics, [
    {
      type: 'Pods',
      pods: { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue: '1' } },
    },
    {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
    },
  ]);
  const { policies } = behavior['scaleUp'] as JsonObject;
  assert.deepEqual(policies, [{ type: 'Pods', value: 2, periodSeconds: 60 }]);
});

test('v1 that says nothing of metrics means 80 % of CPU, and is judged as v2', () => {
  const model = admittingModel();
  const made = objectIn(model.expect(201, 'POST', OLD, { metadata: { name: 'a' }, spec: SPEC }));
  assert.equal((made['spec'] as JsonObject)['targetCPUUtilizationPercentage'], 80);
  const wrong = { ...SPEC, targetCPUUtilizationPercentage: -1 };
  const refused = model.expect(422, 'POST', OLD, { metadata: { name: 'b' }, spec: wrong });
  assert.match(
    messageOf(refused),
    /spec.metrics\[0\].resource.target.averageUtilization: Invalid value: -1: must be greater/,
  );
});

test('what v2 says beyond v1 is in annotations of v1, as Go writes it', () => {
  const model = admittingModel();
  const metrics = [
    {
      type: 'External',
      external: {
        metric: { name: 'a&b', selector: { matchLabels: { a: 'b' } } },
        target: { type: 'Value', value: '2' },
      },
    },
  ];
  const body = { metadata: { name: 'a' }, spec: { ...SPEC, metrics } };
  model.expect(201, 'POST', NEW, body);
  const current = { averageUtilization: 7, averageValue: '70m' };
  const currentMetrics = [{ type: 'Resource', resource: { name: 'cpu', current } }];
  const conditions = [
    {
      type: 'AbleToScale',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'r',
    },
  ];
  const status = { currentReplicas: 1, desiredReplicas: 2, currentMetrics, conditions };
  model.expect(200, 'PUT', `${NEW}/a/status`, { ...body, status });
  const shown = objectIn(model.expect(200, 'GET', `${OLD}/a`));
  assert.deepEqual(annotationsOf(shown), {
    [`${PREFIX}metrics`]:
      '[{"type":"External","external":{"metricName":"a\\u0026b",' +
      '"metricSelector":{"matchLabels":{"a":"b"}},"targetValue":"2"}}]',
    [`${PREFIX}current-metrics`]:
      '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7,' +
      '"currentAverageValue":"70m"}}]',
    [`${PREFIX}conditions`]:
      '[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z",' +
      '"reason":"r"}]',
  });
  assert.deepEqual(shown['status'], {
    currentReplicas: 1,
    desiredReplicas: 2,
    currentCPUUtilizationPercentage: 7,
  });
  // and back again, without a loss
  model.expect(200, 'PUT', `${OLD}/a`, shown);
  const again = objectIn(model.expect(200, 'GET', `${NEW}/a`));
  assert.deepEqual((again['spec'] as JsonObject)['metrics'], metrics);
  assert.deepEqual(again['status'], status);
});

test('tables of v1 tell of metrics that v1 has no field for', () => {
  const { ask, expect } = admittingModel();
  const metric = { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue: '5' } };
  const spec = { ...SPEC, metrics: [{ type: 'Pods', pods: metric }] };
  expect(201, 'POST', NEW, { metadata: { name: 'a' }, spec });
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  for (const path of [OLD, `${OLD}/a`, NEW]) {
    const table = JSON.parse(ask('GET', path, undefined, { accept }).text) as {
      rows: { cells: unknown[] }[];
    };
    assert.equal(table.rows[0]?.cells[2], '<unknown>/5', path);
  }
});

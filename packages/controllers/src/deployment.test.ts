import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { numberAt } from '@megaplane/machinery/json';
import { planDeployment } from './deployment.ts';

const TEMPLATES = ['img:1', 'img:2'].map((image) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
}));

function set(at: number, replicas: number, available: number): JsonObject {
  return {
    metadata: {
      name: `web-${at}`,
      uid: `set-${at}`,
      creationTimestamp: `2026-01-01T00:00:0${at}Z`,
      annotations: {
        'deployment.kubernetes.io/revision': String(at + 1),
        'deployment.kubernetes.io/desired-replicas': '5',
        'deployment.kubernetes.io/max-replicas': '8',
      },
    },
    spec: { replicas, template: TEMPLATES[at] ?? {} },
    status: { replicas, availableReplicas: available },
  };
}

test('pods that a smaller set is about to lose are not spent a second time', () => {
  const deployment: JsonObject = {
    metadata: { name: 'web', uid: 'u', generation: 3 },
    spec: {
      replicas: 5,
      selector: { matchLabels: { app: 'web' } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } },
      template: TEMPLATES[1] ?? {},
    },
    status: { observedGeneration: 3, replicas: 13 },
  };
  // The old set was 8 a moment ago, and its status still says so.
  const view = {
    deployment,
    sets: [set(0, 5, 8), set(1, 3, 0)],
    hasPods: () => true,
    untold: undefined,
  };
  const effects = planDeployment(view, Date.parse('2026-01-01T00:01:00Z'));
  const sizes = effects
    .filter((one) => one.kind === 'change')
    .map((one) => [one.name, numberAt(one.patch, 'spec', 'replicas')]);
  assert.deepEqual(sizes, [['web-0', 3]]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { planDeployment, type DeploymentEffect } from './deployment.ts';

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

test('a rollback by annotation goes to the revision asked for, and the annotation goes', () => {
  const asked = (revision: string): JsonObject => ({
    metadata: {
      name: 'web',
      annotations: { 'deprecated.deployment.rollback.to': revision, note: 'new', own: '2' },
    },
    spec: { replicas: 5, selector: { matchLabels: { app: 'web' } }, template: TEMPLATES[1] ?? {} },
  });
  const old = set(0, 0, 0);
  const metadata = { ...(old['metadata'] as JsonObject) };
  metadata['annotations'] = { ...(metadata['annotations'] as JsonObject), note: 'old' };
  const sets = [{ ...old, metadata }, set(1, 5, 5)];
  const after = (revision: string): Extract<DeploymentEffect, { kind: 'rollback' }>[] =>
    planDeployment(
      {
        deployment: asked(revision),
        sets: structuredClone(sets),
        hasPods: () => true,
        untold: undefined,
      },
      Date.parse('2026-01-01T00:01:00Z'),
    ).filter((one) => one.kind === 'rollback');
  for (const [revision, reason, image, annotations] of [
    ['1', 'DeploymentRollback', 'img:1', { note: 'old' }],
    ['0', 'DeploymentRollback', 'img:1', { note: 'old' }],
    ['2', 'DeploymentRollbackTemplateUnchanged', 'img:2', { note: 'new', own: '2' }],
    ['7', 'DeploymentRollbackRevisionNotFound', 'img:2', { note: 'new', own: '2' }],
  ] as const) {
    const [effect] = after(revision);
    assert(effect);
    assert.equal(effect.reason, reason);
    const made = effect.deployment;
    assert.deepEqual(objectAt(made, 'metadata', 'annotations'), annotations);
    const [container] = listAt(made, 'spec', 'template', 'spec', 'containers');
    assert.equal(stringAt(container, 'image'), image);
  }
  assert.deepEqual(after('x'), []);
});

test('a revision is of 64 bits: the one behind an adopted high one keeps its digits', () => {
  const old = set(0, 5, 5);
  Object.assign(objectAt(old, 'metadata', 'annotations') ?? {}, {
    'deployment.kubernetes.io/revision': '3546343826724305832',
  });
  const deployment: JsonObject = {
    metadata: { name: 'web', uid: 'u', generation: 1 },
    spec: { replicas: 5, selector: { matchLabels: { app: 'web' } }, template: TEMPLATES[1] ?? {} },
    status: { observedGeneration: 1, replicas: 5 },
  };
  const view = { deployment, sets: [old], hasPods: () => true, untold: undefined };
  const effects = planDeployment(view, Date.parse('2026-01-01T00:01:00Z'));
  const made = effects.find((one) => one.kind === 'create');
  assert.ok(made?.kind === 'create');
  const annotations = objectAt(made.set, 'metadata', 'annotations') ?? {};
  assert.equal(annotations['deployment.kubernetes.io/revision'], '3546343826724305833');
});

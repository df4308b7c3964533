import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateUpdate } from '../validation.ts';

function textsOf(group: string, plural: string, next: JsonObject, before: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert.ok(resource !== undefined);
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const [after, previous] = [next, before].map((status) => ({ metadata, status }));
  return validateUpdate(resource, after ?? {}, previous ?? {}, 'status').map(fieldErrorText);
}

test('counts of a workload fit each other, and collisions are not taken back', () => {
  const next = { replicas: -1, readyReplicas: 1, availableReplicas: 2, collisionCount: 1 };
  assert.deepEqual(textsOf('apps', 'deployments', next, { collisionCount: 2 }), [
    'status.replicas: Invalid value: -1: must be greater than or equal to 0',
    'status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas',
    'status.readyReplicas: Invalid value: 1: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas',
    'status.collisionCount: Invalid value: 1: cannot be decremented',
  ]);
  assert.deepEqual(textsOf('apps', 'statefulsets', { replicas: 1, availableReplicas: 1 }, {}), [
    'status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas',
  ]);
  assert.deepEqual(textsOf('apps', 'daemonsets', { numberReady: 3 }, {}), []);
});

test('budgets report whole conditions, autoscalers no negative counts', () => {
  const conditions = [{ type: 'x', status: 'True', reason: 'r' }];
  assert.deepEqual(textsOf('policy', 'poddisruptionbudgets', { conditions }, {}), [
    'status.conditions[0].lastTransitionTime: Required value',
  ]);
  assert.deepEqual(
    textsOf('autoscaling', 'horizontalpodautoscalers', { desiredReplicas: -1 }, {}),
    ['status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0'],
  );
});

test('only load balancers are reached at addresses of their own', () => {
  const resource = findResource('', 'v1', 'services');
  assert.ok(resource !== undefined);
  const service = (type: string, ingress: JsonObject[]): JsonObject => ({
    metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' },
    spec: { type },
    status: { loadBalancer: { ingress } },
  });
  const texts = (type: string, ...ingress: JsonObject[]): string[] =>
    validateUpdate(resource, service(type, ingress), service(type, []), 'status').map(
      fieldErrorText,
    );
  const path = 'status.loadBalancer.ingress';
  assert.deepEqual(texts('ClusterIP', { ip: '1.2.3.4' }), [
    `${path}: Forbidden: may only be used when \`spec.type\` is 'LoadBalancer'`,
  ]);
  assert.deepEqual(
    texts('LoadBalancer', { ip: '1.2.3.4' }, { ipMode: 'VIP', hostname: '1.2.3.4' }),
    [
      `${path}[0].ipMode: Required value: must be specified when \`ip\` is set`,
      `${path}[1].ipMode: Forbidden: may not be specified when \`ip\` is not set`,
      `${path}[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
    ],
  );
});

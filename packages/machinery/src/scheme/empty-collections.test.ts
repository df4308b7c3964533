import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../json/json-value.ts';
import { decodeJsonBody } from '../codec/request-body.ts';
import { validateCreate } from '../validation/validation.ts';
import { findKind } from './kinds.ts';
import { isSame } from '../validation/field/validation-rules.ts';
import { wireForm, keepsEmptyCollections, storageForm } from './empty-collections.ts';

function decoded(apiVersion: string, kind: string, fields: JsonObject): JsonObject {
  const bytes = Buffer.from(JSON.stringify({ apiVersion, kind, ...fields }));
  const body = decodeJsonBody(bytes, 0, bytes.length, { apiVersion, kind }, false, true);
  assert(body.ok, body.ok ? '' : body.message);
  return body.object;
}

const POLICY = { podSelector: { matchLabels: {} }, egress: [{ to: [] }], policyTypes: [] };

test('empty lists and maps are seen by rules, in part by encoders, and not by storage', () => {
  const head = { kind: 'NetworkPolicy', apiVersion: 'networking.k8s.io/v1' };
  const policy = decoded(head.apiVersion, head.kind, {
    metadata: { labels: {}, finalizers: [] },
    spec: POLICY,
  });
  assert.deepEqual(policy['spec'], POLICY);
  const written = { ...head, metadata: {}, spec: { podSelector: {}, egress: [{}] } };
  assert.deepEqual(JSON.parse(JSON.stringify(wireForm(policy))), written);
  assert.deepEqual(JSON.parse(JSON.stringify(storageForm(policy))), written);
  const meta = { kind: 'Role', apiVersion: 'rbac.authorization.k8s.io/v1', metadata: {} };
  const role = decoded(meta.apiVersion, 'Role', { rules: [] });
  // a copy is looked through, too
  assert.deepEqual(JSON.parse(JSON.stringify(wireForm({ ...role }))), { ...meta, rules: [] });
  assert.deepEqual(JSON.parse(JSON.stringify(storageForm({ ...role }))), { ...meta, rules: null });
});

test('objects without empty lists and maps are not copied', () => {
  const role = decoded('rbac.authorization.k8s.io/v1', 'Role', { rules: [{ verbs: ['get'] }] });
  assert.equal(keepsEmptyCollections(role), false);
  assert.equal(wireForm(role), role);
  assert.equal(storageForm(role), role);
});

test('an empty list that is set is told from none', () => {
  const rules = { scaleUp: { policies: [], stabilizationWindowSeconds: 3 } };
  const scaler = decoded('autoscaling/v2', 'HorizontalPodAutoscaler', {
    metadata: { name: 'x', namespace: 'n' },
    spec: { scaleTargetRef: { kind: 'D', name: 'd' }, maxReplicas: 3, behavior: rules },
  });
  const resource = findKind('autoscaling/v2', 'HorizontalPodAutoscaler');
  assert(resource);
  const faults = validateCreate(resource, scaler).map(({ field }) => field);
  assert.ok(faults.includes('spec.behavior.scaleUp.policies'), faults.join());
});

test('empty maps are as good as none where values are compared, empty structs are not', () => {
  const { spec } = decoded('v1', 'Pod', {
    spec: { nodeSelector: {}, tolerations: [], affinity: {} },
  }) as { spec: JsonObject };
  assert.ok(isSame(spec, { affinity: {} }));
  assert.ok(!isSame(spec, {}));
});

test('empty lists within schemas are gone at all levels, and `items: []` is no schema', () => {
  const head = { kind: 'CustomResourceDefinition', apiVersion: 'apiextensions.k8s.io/v1' };
  const within = { type: 'array', required: [], items: { type: 'string', enum: [] } };
  const openAPIV3Schema = { type: 'object', additionalProperties: within, items: [] };
  const versions = [{ name: 'v1', schema: { openAPIV3Schema } }];
  const definition = decoded(head.apiVersion, head.kind, { spec: { versions } });
  const { spec } = storageForm(definition) as { spec: { versions: JsonObject[] } };
  assert.deepEqual(JSON.parse(JSON.stringify(spec.versions[0]?.['schema'])), {
    openAPIV3Schema: {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string' } },
    },
  });
});

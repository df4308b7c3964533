// Recorded from kube-apiserver v1.36.1 with the gate GenericWorkload.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findKind } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';

function resourceOf(kind: string) {
  const found = findKind('scheduling.k8s.io/v1alpha2', kind);
  assert(found !== undefined);
  return found;
}

function object(spec: JsonObject): JsonObject {
  return { metadata: { name: 'a', namespace: 'default' }, spec };
}

function faults(kind: string, spec: JsonObject): string[] {
  return validateCreate(resourceOf(kind), object(spec)).map(fieldErrorText);
}

function faultsOfChange(kind: string, before: JsonObject, after: JsonObject): string[] {
  const [next, previous] = [after, before].map(object) as [JsonObject, JsonObject];
  return validateUpdate(resourceOf(kind), next, previous, '').map(fieldErrorText);
}

const POLICY = 'spec.schedulingPolicy';
const BASIC = { schedulingPolicy: { basic: {} } };

test('a group is of one policy, and a gang has a least count', () => {
  const of = (policy: JsonObject): string =>
    faults('PodGroup', { schedulingPolicy: policy }).join();
  const one = 'must specify one of: `basic`, `gang`';
  assert.equal(of({}), `${POLICY}: Invalid value: "": ${one}`);
  const exactly = 'must specify exactly one of: `basic`, `gang`';
  const both = `${POLICY}: Invalid value: "{basic, gang}": ${exactly}`;
  assert.equal(of({ basic: {}, gang: { minCount: 2 } }), both);
  assert.equal(of({ gang: {} }), `${POLICY}.gang.minCount: Required value`);
  const least = 'must be greater than or equal to 1';
  assert.equal(
    of({ gang: { minCount: -1 } }),
    `${POLICY}.gang.minCount: Invalid value: -1: ${least}`,
  );
  assert.equal(of({ gang: { minCount: 2 } }), '');
});

test('a group may name the template that it is of, for good', () => {
  const of = (podGroupTemplateRef: JsonObject): string[] =>
    faults('PodGroup', { ...BASIC, podGroupTemplateRef });
  const path = 'spec.podGroupTemplateRef';
  assert.deepEqual(of({}), [`${path}: Invalid value: "": must specify one of: \`workload\``]);
  assert.deepEqual(of({ workload: {} }), [
    `${path}.workload.workloadName: Required value`,
    `${path}.workload.podGroupTemplateName: Required value`,
  ]);
  const named = { workload: { workloadName: 'w.x', podGroupTemplateName: 't' } };
  assert.deepEqual(of(named), []);
  const kept = [`${path}: Invalid value: null: field is immutable`];
  const before = { ...BASIC, podGroupTemplateRef: named };
  assert.deepEqual(faultsOfChange('PodGroup', before, BASIC), kept);
});

test('templates of a workload are there, few, different and kept', () => {
  const of = (podGroupTemplates: JsonObject[]): string[] =>
    faults('Workload', { podGroupTemplates });
  const path = 'spec.podGroupTemplates';
  assert.deepEqual(of([]), [`${path}: Required value`]);
  const many = Array.from({ length: 9 }, (_, at) => ({ name: `t${at}`, ...BASIC }));
  assert.deepEqual(of(many), [`${path}: Too many: 9: must have at most 8 items`]);
  const twice = { name: 'a', schedulingPolicy: { gang: { minCount: 0 } } };
  const shown = JSON.stringify({ ...twice, schedulingConstraints: null });
  assert.deepEqual(of([{ name: 'a', ...BASIC }, twice]), [
    `${path}[1]: Duplicate value: ${shown}`,
    `${path}[1].schedulingPolicy.gang.minCount: Required value`,
  ]);
  const spec = { podGroupTemplates: [{ name: 'a', ...BASIC }] };
  const other = { podGroupTemplates: [{ name: 'b', ...BASIC }] };
  assert.deepEqual(faultsOfChange('Workload', spec, other), [
    `${path}: Invalid value: null: field is immutable`,
  ]);
});

test('a workload names its controller, once', () => {
  const templates = { podGroupTemplates: [{ name: 'a', ...BASIC }] };
  const of = (controllerRef: JsonObject): string[] =>
    faults('Workload', { ...templates, controllerRef });
  const path = 'spec.controllerRef';
  assert.deepEqual(of({}), [`${path}.kind: Required value`, `${path}.name: Required value`]);
  assert.deepEqual(of({ kind: 'a/b', name: 'c' }), [
    `${path}.kind: Invalid value: "a/b": may not contain '/'`,
  ]);
  const job = { ...templates, controllerRef: { apiGroup: 'batch', kind: 'Job', name: 'j' } };
  assert.deepEqual(faultsOfChange('Workload', templates, job), []);
  assert.deepEqual(faultsOfChange('Workload', job, templates), [
    `${path}: Invalid value: null: field is immutable`,
  ]);
});

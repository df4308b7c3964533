import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { classPenalties } from './class-penalties.ts';
import { projectPod, projectSpec } from './projection.ts';

const NONE = classPenalties(undefined);
const CLASSES = classPenalties({
  high: { interruptionPenalty: 256, reclamationPenalty: '512' },
  half: { interruptionPenalty: '16' },
  none: {},
  null: null,
});
const EXISTS = [{ key: 'node.kubernetes.io/instance-type', operator: 'Exists' }];

function pod(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: 'web-0', namespace: 'shop', uid: 'u1', ...metadata }, spec };
}

function box(cpu: string, more: JsonObject = {}): JsonObject {
  return { name: 'c', resources: { requests: { cpu } }, ...more };
}

test('a request belongs to its pod, and is found by its UID', () => {
  assert.deepEqual(projectPod(pod({ containers: [box('1')], priority: -10 }), NONE), {
    apiVersion: 'bigfleet.lucy.sh/v1alpha1',
    kind: 'CapacityRequest',
    metadata: {
      generateName: 'cr-pod-web-0-',
      namespace: 'shop',
      labels: { 'bigfleet.lucy.sh/owned-by-pod': 'u1' },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'u1', controller: true },
      ],
    },
    spec: { priority: -10, requirements: EXISTS, resources: { cpu: '1' } },
  });
});

test('a pod that has ended wants nothing, any other does', () => {
  for (const phase of ['Pending', 'Running', 'Unknown', '']) {
    assert.notEqual(projectPod({ ...pod({}), status: { phase } }, NONE), undefined, phase);
  }
  for (const phase of ['Succeeded', 'Failed']) {
    assert.equal(projectPod({ ...pod({}), status: { phase } }, NONE), undefined, phase);
  }
});

test('requirements come from the first term of affinity and from the selector, sorted', () => {
  const required = (...terms: JsonObject[]): JsonObject => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  });
  const z = { key: 'z', operator: 'Gt', values: ['8'] };
  const a = { key: 'a', operator: 'Exists' };
  const of = (spec: JsonObject): unknown => projectSpec(pod(spec), NONE)['requirements'];
  assert.deepEqual(of({}), EXISTS);
  assert.deepEqual(of({ nodeSelector: {} }), EXISTS);
  assert.deepEqual(of({ affinity: { nodeAffinity: {} } }), EXISTS);
  assert.equal(of({ affinity: required() }), undefined);
  assert.equal(of({ affinity: required({ matchFields: [z] }) }), undefined);
  const both = { affinity: required({ matchExpressions: [z, a] }, { matchExpressions: [a] }) };
  assert.deepEqual(of({ ...both, nodeSelector: { m: '', b: '2' } }), [
    z,
    a,
    { key: 'b', operator: 'In', values: ['2'] },
    { key: 'm', operator: 'In', values: [''] },
  ]);
});

test('resources are what the scheduler counts', () => {
  const of = (spec: JsonObject): unknown => projectSpec(pod(spec), NONE)['resources'];
  const sidecar = (cpu: string): JsonObject => box(cpu, { restartPolicy: 'Always' });
  assert.deepEqual(of({ containers: [{ resources: { limits: { cpu: '9' } } }] }), {});
  assert.deepEqual(of({ containers: [box('0'), box('250m')] }), { cpu: '250m' });
  assert.deepEqual(of({ containers: [box('1')], initContainers: [box('4'), box('2')] }), {
    cpu: '4',
  });
  const around = [sidecar('500m'), box('3'), sidecar('700m')];
  assert.deepEqual(of({ containers: [box('1')], initContainers: around }), { cpu: '3500m' });
  assert.deepEqual(of({ containers: [box('3')], initContainers: around }), { cpu: '4200m' });
  const overhead = { cpu: '1', 'example.com/x': '2' };
  assert.deepEqual(of({ containers: [box('1')], initContainers: [box('4')], overhead }), {
    cpu: '5',
    'example.com/x': '2',
  });
});

test('penalties: the annotation, else the class, each for itself', () => {
  const of = (annotations: JsonObject, priorityClassName: string): unknown[] => {
    const spec = projectSpec(pod({ priorityClassName }, { annotations }), CLASSES);
    return [spec['interruptionPenalty'], spec['reclamationPenalty']];
  };
  const interruption = 'bigfleet.lucy.sh/interruption-penalty';
  const reclamation = 'bigfleet.lucy.sh/reclamation-penalty';
  assert.deepEqual(of({}, ''), [undefined, undefined]);
  assert.deepEqual(of({}, 'high'), ['256', '512']);
  assert.deepEqual(of({}, 'half'), ['16', undefined]);
  assert.deepEqual(of({}, 'none'), [undefined, undefined]);
  assert.deepEqual(of({}, 'constructor'), [undefined, undefined]);
  assert.deepEqual(of({ [reclamation]: '-3' }, 'high'), ['256', '-3']);
  assert.deepEqual(of({ [interruption]: 'lots', [reclamation]: '' }, 'high'), ['256', '512']);
  assert.deepEqual(of({ [interruption]: '1000m' }, ''), ['1', undefined]);
});

test('hard spread is copied in its order, and the first required pod affinity', () => {
  const hard = { topologyKey: 'zone', maxSkew: 2, whenUnsatisfiable: 'DoNotSchedule' };
  const soft = { ...hard, whenUnsatisfiable: 'ScheduleAnyway' };
  const selector = { matchLabels: { app: 'db' } };
  const spec = projectSpec(
    pod({
      topologySpreadConstraints: [soft, { ...hard, labelSelector: selector, minDomains: 3 }],
      affinity: {
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{}],
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'rack', labelSelector: selector, namespaces: ['x'] },
            { topologyKey: 'zone' },
          ],
        },
      },
    }),
    NONE,
  );
  assert.deepEqual(spec['topologySpread'], [hard]);
  assert.deepEqual(spec['coLocation'], { topologyKey: 'rack', labelSelector: selector });
});

test('a file of penalties that is wrong is refused with what is wrong', () => {
  assert.throws(() => classPenalties([]), /an object by names of classes/);
  assert.throws(() => classPenalties({ high: 7 }), /class high: an object of amounts/);
  assert.throws(() => classPenalties({ high: { penalty: '1' } }), /penalty is none of/);
  assert.throws(() => classPenalties({ high: { interruptionPenalty: 'x' } }), /x is no quantity/);
});

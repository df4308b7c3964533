import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorText } from '../../meta/fielderrors.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { findResource } from '../../scheme/kinds.ts';
import { validateCreate, validateUpdate } from '../validation.ts';

function textsOf(group: string, plural: string, rest: JsonObject): string[] {
  const resource = findResource(group, 'v1', plural);
  assert.ok(resource !== undefined);
  const namespace = resource.namespaced ? { namespace: 'n' } : {};
  return validateCreate(resource, { metadata: { name: 'a', ...namespace }, ...rest }).map(
    fieldErrorText,
  );
}

test('limit ranges bound what there is, and ratios that their bounds allow', () => {
  const limits = [
    {
      type: 'Container',
      max: { cpu: '2', storage: '1' },
      min: { cpu: '1500m' },
      maxLimitRequestRatio: { cpu: '4' },
    },
    { type: 'PersistentVolumeClaim', max: { storage: '2Gi', 'a.b/c': '1' } },
  ];
  assert.deepEqual(textsOf('', 'limitranges', { spec: { limits } }), [
    'spec.limits[0].max[storage]: Invalid value: "storage": must be a standard resource for ' +
      'containers',
    'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "4": ratio 4 is greater than ' +
      'max/min = 1.333333',
  ]);
});

test('nodes and runtime classes name resources as containers and quotas do', () => {
  assert.deepEqual(
    textsOf('', 'nodes', {
      spec: { podCIDRs: ['10.0.0.0/24', 'x'] },
      status: { capacity: { pods: '1m', 'example.com/gpu': '-1', cpu: '1m' } },
    }).filter((text) => !text.includes('podCIDRs[1]')),
    [
      'status.capacity.pods: Invalid value: "1m": must be an integer',
      'status.capacity.example.com/gpu: Invalid value: "-1": must be greater than or equal to 0',
      'spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with ' +
        'error:invalid CIDR[1]: <nil> (invalid CIDR address: x)',
      'spec.podCIDRs: Invalid value: ["10.0.0.0/24","x"]: may specify no more than one CIDR for ' +
        'each IP family',
    ],
  );
  const podFixed = { pods: '1' };
  assert.deepEqual(
    textsOf('node.k8s.io', 'runtimeclasses', { handler: 'h', overhead: { podFixed } }),
    ['overhead.limits[pods]: Invalid value: "pods": must be a standard resource for containers'],
  );
});

test('an endpoint that is a domain has two labels or more', () => {
  const endpoints = [{ addresses: ['a.b.', 'a', 'A_'] }];
  const found = textsOf('discovery.k8s.io', 'endpointslices', { addressType: 'FQDN', endpoints });
  assert.equal(found.length, 2);
  assert.equal(
    found[0],
    'endpoints[0].addresses[1]: Invalid value: "a": should be a domain with at least two ' +
      'segments separated by dots',
  );
});

test('terms of topologies without expressions repeat what upstream begins with', () => {
  const storageClass = { provisioner: 'a.b/c', volumeBindingMode: 'Immediate', reclaimPolicy: '' };
  const allowedTopologies = [{}, { matchLabelExpressions: [{ key: 'a', values: ['x'] }] }];
  const path = 'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""';
  assert.deepEqual(
    textsOf('storage.k8s.io', 'storageclasses', { ...storageClass, allowedTopologies }),
    [path, path],
  );
});

test('nothing of a suspended job may change before it is known to be suspended', () => {
  const resource = findResource('batch', 'v1', 'jobs');
  assert.ok(resource !== undefined);
  const job = (cpu: string, conditions: JsonObject[], affinity?: JsonObject): JsonObject => ({
    metadata: { name: 'j', namespace: 'n', uid: 'u', resourceVersion: '1' },
    spec: {
      suspend: true,
      manualSelector: true,
      selector: { matchLabels: { a: 'b' } },
      template: {
        metadata: { labels: { a: 'b' } },
        spec: {
          containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }],
          restartPolicy: 'Never',
          ...(affinity === undefined ? {} : { affinity }),
        },
      },
    },
    status: { conditions },
  });
  const frozen = (conditions: JsonObject[]): string[] =>
    validateUpdate(resource, job('2', conditions), job('1', conditions), '')
      .map(fieldErrorText)
      .filter((text) => /^spec\.template(\.spec)?: /.test(text));
  assert.equal(frozen([]).length, 1);
  assert.match(frozen([])[0] ?? '', /^spec.template: Invalid value: {"labels":{"a":"b"},"Spec":{/);
  const held = [{ type: 'Suspended', status: 'True' }];
  assert.deepEqual(frozen(held), []);
  const directed = (affinity: JsonObject, before?: JsonObject): number =>
    validateUpdate(resource, job('1', held, affinity), job('1', held, before), '')
      .map(fieldErrorText)
      .filter((text) => /^spec\.template(\.spec)?: /.test(text)).length;
  const terms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }];
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const nodes = { nodeAffinity: required };
  assert.equal(directed(nodes), 0);
  assert.equal(directed({}, nodes), 0);
  assert.equal(directed({ ...nodes, podAntiAffinity: {} }), 1);
});

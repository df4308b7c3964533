import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../testing/admitting.sim.ts';

interface Owner {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly time?: string;
  readonly fieldsV1: Readonly<Record<string, object>>;
}

function ownersIn(text: string): readonly Owner[] {
  const { metadata } = JSON.parse(text) as { metadata: { managedFields: Owner[] } };
  return metadata.managedFields;
}

test('the status of a definition is the server’s own', () => {
  const { expect, ask } = admittingModel();
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const schema = { openAPIV3Schema: { type: 'object' } };
  const versions = [{ name: 'v1', served: true, storage: true, schema }];
  const names = { plural: 'bees', kind: 'Bee' };
  const spec = { group: 'x.example.com', names, scope: 'Cluster', versions };
  expect(201, 'POST', path, { metadata: { name: 'bees.x.example.com' }, spec });
  const owners = ownersIn(ask('GET', `${path}/bees.x.example.com`).text);
  const own = owners.find(({ manager }) => manager === 'kube-apiserver');
  assert.equal(own?.operation, 'Update');
  assert.equal(own.subresource, 'status');
  assert.deepEqual(Object.keys(own.fieldsV1), ['f:status']);
  assert.equal(owners.length, 2);
});

test('the condition of a flow schema is what the server applied', async () => {
  const { expect, ask } = admittingModel();
  const path = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas';
  const rule = {
    subjects: [{ kind: 'User', user: { name: 'nobody' } }],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
  };
  const spec = { priorityLevelConfiguration: { name: 'exempt' }, rules: [rule] };
  expect(201, 'POST', path, { metadata: { name: 'f' }, spec });
  await new Promise((done) => void setImmediate(done));
  const owners = ownersIn(ask('GET', `${path}/f`).text);
  const own = owners.find(({ operation }) => operation === 'Apply');
  assert.equal(own?.manager, 'api-priority-and-fairness-config-consumer-v1');
  assert.equal(own.subresource, 'status');
  assert.match(own.time ?? '', /^2026-/);
  const fields = JSON.stringify(own.fieldsV1);
  assert.match(fields, /^\{"f:status":\{"f:conditions":\{"k:\{\\"type\\":\\"Dangling\\"\}":/);
});

test('what is mirrored into a claim is nobody’s', () => {
  const { expect, ask } = admittingModel();
  const path = '/api/v1/namespaces/n/persistentvolumeclaims';
  const spec = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    dataSource: { kind: 'PersistentVolumeClaim', name: 'other' },
  };
  expect(201, 'POST', path, { metadata: { name: 'c' }, spec });
  const text = ask('GET', `${path}/c`).text;
  assert.match(text, /"dataSourceRef":\{"apiGroup":null,"kind":"PersistentVolumeClaim",/);
  assert.doesNotMatch(JSON.stringify(ownersIn(text)), /dataSourceRef/);
});

test('an update of a status leaves the metadata that its kind keeps', () => {
  const { expect, ask } = admittingModel();
  const rule = {
    subjects: [{ kind: 'User', user: { name: 'nobody' } }],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
  };
  const flow = { priorityLevelConfiguration: { name: 'exempt' }, rules: [rule] };
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  };
  const rollout = { selector: { matchLabels: { a: 'b' } }, template };
  const flows = '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas';
  const sets = '/apis/apps/v1/namespaces/n/deployments';
  const seen = ([path, spec]: readonly [string, object]): unknown => {
    expect(201, 'POST', path, { metadata: { name: 'm', labels: { a: 'b' } }, spec });
    const metadata = { labels: { a: 'c' }, annotations: { x: 'y' } };
    expect(200, 'PATCH', `${path}/m/status`, { metadata });
    const read = JSON.parse(ask('GET', `${path}/m`).text) as { metadata: Record<string, unknown> };
    return [read.metadata['labels'], read.metadata['annotations']];
  };
  assert.deepEqual(seen([flows, flow]), [{ a: 'b' }, undefined]);
  assert.deepEqual(seen([sets, rollout]), [{ a: 'b' }, { x: 'y' }]);
});

test('that dependents stay is told where a collection is deleted, too', () => {
  const { ask } = admittingModel();
  const jobs = '/apis/batch/v1/namespaces/n/jobs';
  const told = (query: string): boolean => {
    const { headers } = ask('DELETE', jobs + query);
    return headers.some((one) => one.includes('child pods are preserved by default'));
  };
  assert.equal(told(''), true);
  assert.equal(told('?propagationPolicy=Background'), false);
});

test('nobody owns anything of a custom resource whose part that is left out does not fit', () => {
  const { expect, ask } = admittingModel();
  const part = { type: 'object', properties: { n: { type: 'integer' } } };
  const openAPIV3Schema = { type: 'object', properties: { spec: part, status: part } };
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } };
  const spec = {
    group: 'x.example.com',
    names: { plural: 'bees', kind: 'Bee' },
    scope: 'Cluster',
    versions: [{ ...version, subresources: { status: {} } }],
  };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect(201, 'POST', definitions, { metadata: { name: 'bees.x.example.com' }, spec });
  const path = '/apis/x.example.com/v1/bees';
  const bee = { apiVersion: 'x.example.com/v1', kind: 'Bee' };
  const isOwned = (name: string): boolean => ask('GET', `${path}/${name}`).text.includes('f:n');
  for (const [name, n] of [
    ['fits', 1],
    ['other', 'x'],
  ] as const) {
    expect(201, 'POST', path, { ...bee, metadata: { name }, spec: { n: 1 }, status: { n } });
    assert.equal(isOwned(name), name === 'fits');
  }
  expect(200, 'PATCH', `${path}/fits/status`, { status: { n: 2 }, spec: { n: 'x' } });
  assert.equal(isOwned('fits'), false);
});

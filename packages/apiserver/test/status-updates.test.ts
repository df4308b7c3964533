import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../src/testing/admitting.sim.ts';

const CORE = '/api/v1';

interface Made {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly status: Readonly<Record<string, string>>;
}

/** What is answered to an update of the status, after `make` made the object. */
function updated(path: string, make: object, status: object | undefined): Made {
  const { expect } = admittingModel();
  const name = 'x';
  const object = { metadata: { name }, ...make };
  expect(201, 'POST', path, object);
  const put = expect(200, 'PUT', `${path}/${name}/status`, { ...object, status });
  return JSON.parse(put.text) as Made;
}

test('claims, volumes and namespaces have a first phase where a status comes without', () => {
  const size = { storage: '1Gi' };
  const accessModes = ['ReadWriteOnce'];
  const claim = { spec: { accessModes, resources: { requests: size } } };
  for (const status of [undefined, {}]) {
    const made = updated(`${CORE}/namespaces/n/persistentvolumeclaims`, claim, status);
    assert.deepEqual(made.status, { phase: 'Pending' });
  }
  const volume = { spec: { accessModes, capacity: size, hostPath: { path: '/a' } } };
  const kept = updated(`${CORE}/persistentvolumes`, volume, undefined);
  assert.equal(kept.status['phase'], 'Pending');
  assert.ok(kept.status['lastPhaseTransitionTime']);
  const space = updated(`${CORE}/namespaces`, {}, undefined);
  assert.equal(space.metadata.labels?.['kubernetes.io/metadata.name'], 'x');
});

test('a pod keeps its quality of service where a status comes without one', () => {
  const pod = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  const made = updated(`${CORE}/namespaces/n/pods`, pod, { phase: 'Running' });
  assert.deepEqual(made.status, { phase: 'Running', qosClass: 'BestEffort' });
});

test('a daemon set keeps the generation of its template where a status comes without it', () => {
  const { expect } = admittingModel();
  const path = '/apis/apps/v1/namespaces/n/daemonsets';
  const labels = { a: 'b' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const set = { metadata: { name: 'x' }, spec: { selector: { matchLabels: labels }, template } };
  expect(201, 'POST', path, set);
  const { text } = expect(200, 'PUT', `${path}/x/status`, { ...set, status: {} });
  const { metadata } = JSON.parse(text) as { metadata: { annotations?: object } };
  const generation = 'deprecated.daemonset.template.generation';
  assert.deepEqual(metadata.annotations, { [generation]: '1' });
});

test('a new node may tell an address twice, and its status may not', () => {
  const { expect } = admittingModel();
  const address = { type: 'InternalIP', address: '1.2.3.4' };
  const node = { metadata: { name: 'x' }, status: { addresses: [address, address] } };
  expect(201, 'POST', `${CORE}/nodes`, node);
  const { text } = expect(422, 'PUT', `${CORE}/nodes/x/status`, node);
  const shown = '{"Type":"InternalIP","Address":"1.2.3.4"}';
  const { message } = JSON.parse(text) as { message: string };
  assert.equal(message, `Node "x" is invalid: status.addresses[1]: Duplicate value: ${shown}`);
});

test('of an object whose status does not fit its schema nobody owns anything', () => {
  const { expect } = admittingModel();
  const path = '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations';
  const limited = { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } };
  const level = { metadata: { name: 'x' }, spec: { type: 'Limited', limited } };
  const status = { conditions: [{}] };
  const ownersIn = (text: string): unknown =>
    (JSON.parse(text) as { metadata: { managedFields?: unknown } }).metadata.managedFields;
  assert.ok(ownersIn(expect(201, 'POST', path, level).text));
  const put = expect(200, 'PUT', `${path}/x`, { ...level, status });
  assert.equal(ownersIn(put.text), undefined);
  const other = { ...level, metadata: { name: 'y' }, status };
  assert.equal(ownersIn(expect(201, 'POST', path, other).text), undefined);
});

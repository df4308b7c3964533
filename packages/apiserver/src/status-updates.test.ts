import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from './admission/admitting.sim.ts';

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

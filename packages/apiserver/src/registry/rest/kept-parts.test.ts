/** What admission makes of an object stays within what the write may change. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel, podOf, type AdmittingModel } from '../../testing/admitting.sim.ts';

const POLICIES = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings';
const PODS = '/api/v1/namespaces/n/pods';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/n/deployments';
const DEPLOYMENT = {
  metadata: { name: 'd' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { a: 'b' } },
    template: {
      metadata: { labels: { a: 'b' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  },
};

interface Stored {
  readonly metadata: { readonly labels?: object };
  readonly spec: { readonly replicas?: number; readonly activeDeadlineSeconds?: number };
  readonly status: { readonly phase?: string; readonly replicas?: number };
}

/** A policy that puts values at paths of what is created or changed. */
function mutate(
  { expect }: AdmittingModel,
  group: string,
  resource: string,
  values: Readonly<Record<string, string>>,
): void {
  const operations = Object.entries(values).map(
    ([path, value]) => `JSONPatch{op: "add", path: "${path}", value: ${value}}`,
  );
  const rule = { apiGroups: [group], apiVersions: ['*'], resources: [resource] };
  const spec = {
    matchConstraints: { resourceRules: [{ ...rule, operations: ['CREATE', 'UPDATE'] }] },
    reinvocationPolicy: 'Never',
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: `[${operations.join(',')}]` } }],
  };
  expect(201, 'POST', POLICIES, { metadata: { name: 'p' }, spec });
  expect(201, 'POST', BINDINGS, { metadata: { name: 'p' }, spec: { policyName: 'p' } });
}

function stored({ expect }: AdmittingModel, path: string): Stored {
  return JSON.parse(expect(200, 'GET', path).text) as Stored;
}

test('writes of an object leave its status alone, whatever admission says', () => {
  const model = admittingModel();
  mutate(model, 'apps', 'deployments', { '/status': '{"replicas": 7}' });
  model.expect(201, 'POST', DEPLOYMENTS, DEPLOYMENT);
  model.expect(200, 'PATCH', `${DEPLOYMENTS}/d`, { spec: { replicas: 2 } });
  const { spec, status } = stored(model, `${DEPLOYMENTS}/d`);
  assert.deepEqual([spec.replicas, status], [2, {}]);
});

test('a new pod waits, whatever admission says', () => {
  const model = admittingModel();
  mutate(model, '', 'pods', { '/status': '{"phase": "Failed"}' });
  model.expect(201, 'POST', PODS, podOf('p'));
  assert.equal(stored(model, `${PODS}/p`).status.phase, 'Pending');
});

test('writes of a status leave the spec alone, whatever admission says', () => {
  const model = admittingModel();
  const values = { '/spec/activeDeadlineSeconds': '9', '/metadata/labels': '{"x": "y"}' };
  mutate(model, '', 'pods/status', values);
  model.expect(201, 'POST', PODS, podOf('p'));
  model.expect(200, 'PATCH', `${PODS}/p/status`, { status: { phase: 'Running' } });
  const { metadata, spec, status } = stored(model, `${PODS}/p`);
  assert.deepEqual([status.phase, spec.activeDeadlineSeconds], ['Running', undefined]);
  assert.deepEqual(metadata.labels, { x: 'y' });
});

test('writes of a part leave all else alone, whatever admission says', () => {
  const model = admittingModel();
  const values = { '/spec/activeDeadlineSeconds': '9', '/metadata/labels': '{"x": "y"}' };
  mutate(model, '', 'pods/ephemeralcontainers', values);
  model.expect(201, 'POST', PODS, podOf('p'));
  const added = { spec: { ephemeralContainers: [{ name: 'e', image: 'i' }] } };
  model.expect(200, 'PATCH', `${PODS}/p/ephemeralcontainers`, added);
  const { metadata, spec } = stored(model, `${PODS}/p`);
  assert.deepEqual([metadata.labels, spec.activeDeadlineSeconds], [undefined, undefined]);
});

test('a new object that admission gave a revision is refused', () => {
  const model = admittingModel();
  mutate(model, 'apps', 'deployments', { '/metadata/resourceVersion': '"1"' });
  const { text } = model.expect(500, 'POST', DEPLOYMENTS, DEPLOYMENT);
  assert.match(text, /resourceVersion should not be set on objects to be created/);
});

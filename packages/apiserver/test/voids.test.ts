import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../src/testing/admitting.sim.ts';

const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/n/deployments';

interface Shown {
  readonly metadata: {
    readonly generation?: number;
    readonly labels?: object;
    readonly finalizers?: unknown;
    readonly managedFields?: readonly { readonly fieldsV1: object }[];
  };
  readonly rules?: unknown;
  readonly spec?: unknown;
}

test('a list that must be written is owned when it is empty, and null when it is read back', () => {
  const { expect } = admittingModel();
  const made = expect(201, 'POST', ROLES, { metadata: { name: 'r', finalizers: [] }, rules: [] });
  for (const { text } of [made, expect(200, 'GET', `${ROLES}/r`)]) {
    const role = JSON.parse(text) as Shown;
    assert.equal(role.rules, null);
    assert.equal(role.metadata.finalizers, undefined);
    assert.deepEqual(role.metadata.managedFields?.[0]?.fieldsV1, { 'f:rules': {} });
  }
});

test('empty lists and maps in an update change nothing, and are not stored', () => {
  const { expect } = admittingModel();
  const spec = {
    selector: { matchLabels: { app: 'x' } },
    template: {
      metadata: { labels: { app: 'x' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  };
  const before = expect(201, 'POST', DEPLOYMENTS, { metadata: { name: 'd' }, spec }).text;
  const { containers } = spec.template.spec;
  const voids = { containers, nodeSelector: {}, tolerations: [], volumes: [] };
  const template = { ...spec.template, spec: voids };
  for (const [method, body] of [
    ['PUT', { metadata: { name: 'd' }, spec: { ...spec, template } }],
    ['PATCH', { metadata: { labels: {} }, spec: { template: { spec: voids } } }],
  ] as const) {
    const after = expect(200, method, `${DEPLOYMENTS}/d`, body).text;
    assert.deepEqual(JSON.parse(after), JSON.parse(before));
  }
});

test('families of a service that are empty are chosen as if there were none', () => {
  const { expect } = admittingModel();
  const spec = { ipFamilies: [], ports: [{ port: 80 }], externalIPs: [] };
  const made = expect(201, 'POST', '/api/v1/namespaces/n/services', {
    metadata: { name: 's' },
    spec,
  });
  const service = JSON.parse(made.text) as { spec: Record<string, unknown> };
  assert.deepEqual(service.spec['ipFamilies'], ['IPv4']);
  assert.equal(service.spec['externalIPs'], undefined);
});

test('a limit range that nobody named is called by a uid', () => {
  const { expect } = admittingModel();
  const made = expect(201, 'POST', '/api/v1/namespaces/n/limitranges', { spec: { limits: [] } });
  const { metadata } = JSON.parse(made.text) as { metadata: { name: string } };
  assert.match(metadata.name, /^[0-9a-f-]{36}$/);
});

test('texts that are set to nothing are judged where they may be left out', () => {
  const { expect } = admittingModel();
  const pod = {
    metadata: { name: 'p' },
    spec: { preemptionPolicy: '', containers: [{ name: 'c', image: 'i' }] },
  };
  const refused = expect(403, 'POST', '/api/v1/namespaces/n/pods', pod).text;
  assert.match(refused, /the string value of PreemptionPolicy \(\) must not be provided/);
  for (const [path, object, fault] of [
    [
      '/apis/scheduling.k8s.io/v1/priorityclasses',
      { value: 1, preemptionPolicy: '' },
      /preemptionPolicy: Required value/,
    ],
    [
      '/apis/storage.k8s.io/v1/csidrivers',
      { spec: { fsGroupPolicy: '' } },
      /spec.fsGroupPolicy: Unsupported value/,
    ],
    [
      '/apis/storage.k8s.io/v1/storageclasses',
      { provisioner: 'p', volumeBindingMode: '' },
      /volumeBindingMode: Unsupported value/,
    ],
  ] as const) {
    assert.match(expect(422, 'POST', path, { metadata: { name: 'x' }, ...object }).text, fault);
  }
});

test('a reference without a name is owned under its default', () => {
  const { expect } = admittingModel();
  const spec = { containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{}] };
  const made = expect(201, 'POST', '/api/v1/namespaces/n/pods', { metadata: { name: 'p' }, spec });
  assert.ok(made.text.includes('"f:imagePullSecrets":{".":{},"k:{\\"name\\":\\"\\"}":{}}'));
});

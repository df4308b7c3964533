import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from '../../testing/admitting.sim.ts';

const SETS = '/apis/apps/v1/namespaces/n/daemonsets';
const GENERATION = 'deprecated.daemonset.template.generation';

test('a daemon set counts its templates from the number that it is made with, or from one', () => {
  const { expect } = admittingModel();
  const labels = { a: 'b' };
  const set = (name: string, sent: string | null, image: string): object => ({
    metadata: { name, annotations: sent === null ? {} : { [GENERATION]: sent } },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image }] } },
    },
  });
  const counted = (text: string): string | undefined => {
    const { metadata } = JSON.parse(text) as { metadata: { annotations: Record<string, string> } };
    return metadata.annotations[GENERATION];
  };
  const made = (name: string, sent: string | null): string | undefined =>
    counted(expect(201, 'POST', SETS, set(name, sent, 'i')).text);
  assert.equal(made('x', '5'), '5');
  assert.equal(made('y', '0'), '1');
  assert.equal(made('z', null), '1');
  assert.equal(counted(expect(200, 'PUT', `${SETS}/x`, set('x', '9', 'i')).text), '5');
  assert.equal(counted(expect(200, 'PUT', `${SETS}/x`, set('x', null, 'j')).text), '6');
});

interface Shown {
  readonly metadata: { readonly generation: number; readonly selfLink?: string };
  readonly spec: Record<string, unknown>;
}

const shown = (text: string): Shown => JSON.parse(text) as Shown;

test('fields of features that are off are dropped from pods and templates, and stay owned', () => {
  const { expect } = admittingModel();
  const labels = { a: 'b' };
  const sources = [{ clusterTrustBundle: { path: 'p' } }, { podCertificate: { keyType: 'x' } }];
  const spec = {
    containers: [{ name: 'c', image: 'i', lifecycle: { stopSignal: '' } }],
    volumes: [{ name: 'v', projected: { sources } }],
    schedulingGroup: { podGroupName: 'g' },
  };
  const pod = expect(201, 'POST', '/api/v1/namespaces/n/pods', { metadata: { name: 'p' }, spec });
  assert.doesNotMatch(pod.text, /"(?:clusterTrustBundle|podCertificate|lifecycle)":/);
  assert.match(pod.text, /"sources":\[\{\},\{\}\]/);
  assert.doesNotMatch(pod.text, /"schedulingGroup":/);
  assert.match(pod.text, /"f:schedulingGroup":\{"\.":\{\},"f:podGroupName":\{\}\}/);
  const set = (more: object): object => ({
    metadata: { name: 's' },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'c', image: 'i' }], ...more },
      },
      updateStrategy: { rollingUpdate: { maxUnavailable: 1 } },
    },
  });
  const sets = '/apis/apps/v1/namespaces/n/statefulsets';
  expect(201, 'POST', sets, set({}));
  const next = expect(200, 'PUT', `${sets}/s`, set({ schedulingGroup: {} }));
  assert.doesNotMatch(next.text, /"(?:schedulingGroup|maxUnavailable)":/);
  assert.match(next.text, /"f:maxUnavailable":/);
  assert.equal(shown(next.text).metadata.generation, 1);
});

test('a generation counts empty lists and dropped fields where upstream compares before', () => {
  const { expect } = admittingModel();
  const counted = (path: string, object: object, more: object): number => {
    expect(201, 'POST', path, { metadata: { name: 'x' }, ...object });
    return shown(expect(200, 'PATCH', `${path}/x`, more).text).metadata.generation;
  };
  const apis = '/apis/networking.k8s.io/v1';
  const policy = { spec: { podSelector: {} } };
  const egress = { spec: { egress: [] } };
  assert.equal(counted(`${apis}/namespaces/n/networkpolicies`, policy, egress), 2);
  const slices = '/apis/discovery.k8s.io/v1/namespaces/n/endpointslices';
  const endpoint = { addresses: ['10.0.0.1'] };
  const slice = { addressType: 'IPv4', endpoints: [endpoint] };
  const topology = { endpoints: [{ ...endpoint, deprecatedTopology: { a: 'b' } }] };
  assert.equal(counted(slices, slice, topology), 2);
  const backend = { service: { name: 's', port: { number: 1 } } };
  const ingress = { spec: { defaultBackend: backend } };
  assert.equal(counted(`${apis}/namespaces/n/ingresses`, ingress, { spec: { tls: [] } }), 1);
});

test('nobody owns an object with items that have no key', () => {
  const { expect } = admittingModel();
  const accounts = '/api/v1/namespaces/n/serviceaccounts';
  const account = (name: string, secrets: object[]) => ({ metadata: { name }, secrets });
  const made = expect(201, 'POST', accounts, account('a', [{ kind: 'x' }]));
  assert.doesNotMatch(made.text, /"managedFields":/);
  assert.match(
    expect(201, 'POST', accounts, account('b', [{ name: 's' }])).text,
    /"managedFields"/,
  );
  const next = expect(200, 'PUT', `${accounts}/b`, account('b', [{ name: 's' }, {}]));
  assert.doesNotMatch(next.text, /"managedFields":/);
});

test('a link that an update writes stays, a source of configuration of a node does not', () => {
  const { expect } = admittingModel();
  const configSource = { configMap: { name: 'a', namespace: 'n', kubeletConfigKey: 'k' } };
  const metadata = { name: 'x', selfLink: '/a' };
  const made = expect(201, 'POST', '/api/v1/nodes', { metadata });
  assert.equal(shown(made.text).metadata.selfLink, undefined);
  const put = expect(200, 'PUT', '/api/v1/nodes/x', { metadata, spec: { configSource } });
  assert.equal(shown(put.text).metadata.selfLink, '/a');
  assert.equal(shown(put.text).spec['configSource'], undefined);
});

test('who updates a daemon set owns the number of its templates, sent or not', () => {
  const { expect } = admittingModel();
  const labels = { a: 'b' };
  const set = (more: object): object => ({
    metadata: { name: 's' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      ...more,
    },
  });
  expect(201, 'POST', `${SETS}?fieldManager=one`, set({}));
  const { text } = expect(200, 'PUT', `${SETS}/s?fieldManager=two`, set({ minReadySeconds: 5 }));
  const { metadata } = JSON.parse(text) as {
    metadata: { managedFields: { manager: string; fieldsV1: Record<string, unknown> }[] };
  };
  const two = metadata.managedFields.find(({ manager }) => manager === 'two');
  assert.deepEqual(two?.fieldsV1['f:metadata'], { 'f:annotations': { [`f:${GENERATION}`]: {} } });
  const sent = {
    selector: { matchLabels: labels, matchExpressions: [{ key: 'a', operator: 'X' }] },
  };
  const refused = expect(422, 'PUT', `${SETS}/s`, set(sent)).text;
  assert.match(
    refused,
    /is invalid: \[spec\.selector: .*field is immutable, spec\.selector\.match/,
  );
});

test('drivers of volumes count changes from the generation that they were sent with', () => {
  const { expect } = admittingModel();
  const path = '/apis/storage.k8s.io/v1/csidrivers';
  const driver = { metadata: { name: 'd', generation: 600 }, spec: {} };
  const made = JSON.parse(expect(201, 'POST', path, driver).text) as typeof driver;
  assert.equal(made.metadata.generation, 600);
  const next = { ...made, spec: { podInfoOnMount: true } };
  assert.equal(shown(expect(200, 'PUT', `${path}/d`, next).text).metadata.generation, 601);
  expect(422, 'POST', path, { metadata: { name: 'e', generation: -1 }, spec: {} });
});

test('a budget is asked for its name when all else is right', () => {
  const { expect } = admittingModel();
  const path = '/apis/policy/v1/namespaces/n/poddisruptionbudgets';
  const text = (spec: object): string => expect(422, 'POST', path, { spec }).text;
  assert.match(text({ minAvailable: 1 }), /metadata\.name: Required value/);
  assert.doesNotMatch(text({ minAvailable: 1, maxUnavailable: 1 }), /metadata\.name/);
});

test('a secret that is frozen takes texts that say nothing', () => {
  const { expect } = admittingModel();
  const path = '/api/v1/namespaces/n/secrets';
  const secret = { metadata: { name: 's' }, type: 'Opaque', immutable: true };
  expect(201, 'POST', path, secret);
  expect(200, 'PUT', `${path}/s`, { ...secret, stringData: {} });
  expect(422, 'PUT', `${path}/s`, { ...secret, stringData: { a: 'b' } });
});

test('a report of a pod does not tell what runs of volumes made of images', () => {
  const { expect } = admittingModel();
  const path = '/api/v1/namespaces/n/pods';
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  expect(201, 'POST', path, { metadata: { name: 'p' }, spec });
  const mount = { name: 'v', mountPath: '/v', volumeStatus: { image: { imageRef: 'x' } } };
  const status = {
    containerStatuses: [{ name: 'c', image: '', imageID: '', volumeMounts: [mount] }],
  };
  const { text } = expect(200, 'PUT', `${path}/p/status`, {
    metadata: { name: 'p' },
    spec,
    status,
  });
  assert.match(text, /"mountPath":"\/v"/);
  assert.doesNotMatch(text, /"volumeStatus":/);
});

test('the empty namespace of a source stays, and the elder field has none', () => {
  const { expect } = admittingModel();
  const path = '/api/v1/namespaces/n/persistentvolumeclaims';
  const source = { apiGroup: 'x.y', kind: 'K', name: 'k' };
  const { text } = expect(201, 'POST', path, {
    metadata: { name: 'c' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1' } },
      dataSourceRef: { ...source, namespace: '' },
    },
  });
  const { spec } = shown(text);
  assert.deepEqual(spec['dataSource'], source);
  assert.deepEqual(spec['dataSourceRef'], { ...source, namespace: '' });
});

test('ways that there are not are not found by any method', () => {
  const { expect } = admittingModel();
  assert.equal(expect(404, 'POST', '/apis/nope/v1').text, '404 page not found\n');
  expect(404, 'DELETE', '/api/v2');
  expect(405, 'DELETE', '/api/v1');
  expect(404, 'OPTIONS', `${SETS}/s/nope`);
  expect(404, 'OPTIONS', '/apis/apps/v1/daemonsets/s/status');
  expect(405, 'OPTIONS', `${SETS}/s/status`);
  expect(405, 'OPTIONS', `${SETS}/s`);
});

test('classes of the system are spared where they are named', () => {
  const { expect } = admittingModel();
  const path = '/apis/scheduling.k8s.io/v1/priorityclasses';
  const name = 'system-node-critical';
  expect(201, 'POST', path, { metadata: { name }, value: 2000001000 });
  expect(403, 'DELETE', `${path}/${name}`);
  expect(200, 'DELETE', path);
  expect(404, 'GET', `${path}/${name}`);
});

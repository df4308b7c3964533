import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admittingModel } from './admission/admitting.sim.ts';

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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '@megaplane/base/random';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { FakeApi } from '../../test/fake-api.ts';
import { Manager } from './manager.ts';
import { chosenControllers } from '../framework/options.ts';

interface Cluster {
  readonly api: FakeApi;
  readonly manager: Manager;
}

async function cluster(): Promise<Cluster> {
  const api = new FakeApi();
  for (const name of ['default', 'kube-node-lease']) await make(api, '/api/v1/namespaces', name);
  const chosen = chosenControllers(['*']);
  assert(typeof chosen !== 'string');
  const trouble = (level: string, text: string): void => {
    assert.notEqual(level, 'error', text);
  };
  const manager = new Manager({
    client: api,
    chosen,
    options: { kubeconfig: '', log: trouble },
    rootCa: 'PEM',
    random: new Random(1),
    monotonicMs: () => api.timers.nowMs(),
    log: trouble,
  });
  manager.start();
  await api.advance(1_000);
  return { api, manager };
}

const KINDS: Readonly<Record<string, string>> = {
  namespaces: 'Namespace',
  configmaps: 'ConfigMap',
  pods: 'Pod',
  nodes: 'Node',
  leases: 'Lease',
  secrets: 'Secret',
  serviceaccounts: 'ServiceAccount',
};

async function make(
  api: FakeApi,
  path: string,
  name: string,
  more: JsonObject = {},
  metadata: JsonObject = {},
): Promise<JsonObject> {
  const kind = KINDS[path.split('/').at(-1) ?? ''] ?? '';
  const apiVersion = kind === 'Lease' ? 'coordination.k8s.io/v1' : 'v1';
  const body = { apiVersion, kind, metadata: { name, ...metadata }, ...more };
  const made = await api.request({ method: 'POST', path, body });
  assert(made.ok, made.ok ? '' : (made.status.message ?? ''));
  return made.object;
}

const MAPS = '/api/v1/namespaces/default/configmaps';

async function owned(
  api: FakeApi,
  name: string,
  owners: readonly JsonObject[],
  metadata: JsonObject = {},
): Promise<JsonObject> {
  const ownerReferences = owners.map((owner) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: stringAt(owner, 'metadata', 'name'),
    uid: stringAt(owner, 'metadata', 'uid'),
    blockOwnerDeletion: true,
  }));
  return make(api, MAPS, name, {}, { ownerReferences, ...metadata });
}

function has(api: FakeApi, name: string): boolean {
  return api.objects.has(`/api/v1/configmaps default/${name}`);
}

test('a chain of owners falls when its first link goes', async () => {
  const { api, manager } = await cluster();
  const a = await make(api, MAPS, 'a');
  const b = await owned(api, 'b', [a]);
  await owned(api, 'c', [b]);
  const other = await make(api, MAPS, 'other');
  await owned(api, 'kept', [a, other]);
  await api.advance(1_000);
  assert(has(api, 'c'));
  await api.request({ method: 'DELETE', path: `${MAPS}/a` });
  await api.advance(1_000);
  assert.deepEqual(
    ['a', 'b', 'c', 'other', 'kept'].map((name) => has(api, name)),
    [false, false, false, true, true],
  );
  const kept = api.objects.get('/api/v1/configmaps default/kept');
  assert.equal(listAt(kept, 'metadata', 'ownerReferences').length, 1);
  manager.stop();
});

test('in the foreground an owner waits for its dependents, and orphans are set free', async () => {
  const { api, manager } = await cluster();
  const a = await make(api, MAPS, 'a');
  await owned(api, 'held', [a], { finalizers: ['example.com/hold'] });
  await api.advance(100);
  const foreground = { propagationPolicy: 'Foreground' };
  await api.request({ method: 'DELETE', path: `${MAPS}/a`, body: foreground });
  await api.advance(5_000);
  assert(has(api, 'a') && has(api, 'held'));
  const contentType = 'application/merge-patch+json';
  const body = { metadata: { finalizers: null } };
  await api.request({ method: 'PATCH', path: `${MAPS}/held`, contentType, body });
  await api.advance(1_000);
  assert(!has(api, 'a') && !has(api, 'held'));
  const b = await make(api, MAPS, 'b');
  await owned(api, 'orphan', [b]);
  await api.advance(100);
  const orphan = { propagationPolicy: 'Orphan' };
  await api.request({ method: 'DELETE', path: `${MAPS}/b`, body: orphan });
  await api.advance(1_000);
  assert(!has(api, 'b') && has(api, 'orphan'));
  manager.stop();
});

test('a dependent is deleted as its finalizers say', async () => {
  const { api, manager } = await cluster();
  const a = await make(api, MAPS, 'a');
  const one = await owned(api, 'one', [a], { finalizers: ['orphan'] });
  const two = await owned(api, 'two', [a], { finalizers: ['foregroundDeletion'] });
  await owned(api, 'free', [one]);
  const finalizers = ['example.com/hold'];
  await owned(api, 'held', [two], { finalizers });
  await api.advance(1_000);
  await api.request({ method: 'DELETE', path: `${MAPS}/a` });
  await api.advance(1_000);
  const left = ['one', 'two', 'free', 'held'].map((name) => has(api, name));
  assert.deepEqual(left, [false, true, true, true]);
  manager.stop();
});

test('what names an owner of a kind that nobody knows is left alone', async () => {
  const { api, manager } = await cluster();
  const ownerReferences = [{ apiVersion: 'x.io/v1', kind: 'Widget', name: 'w', uid: 'u' }];
  await make(api, MAPS, 'a', {}, { ownerReferences });
  const unserved = [{ apiVersion: 'v9', kind: 'ConfigMap', name: 'w', uid: 'u2' }];
  await make(api, MAPS, 'b', {}, { ownerReferences: unserved });
  const served = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'w', uid: 'u3' }];
  await make(api, MAPS, 'c', {}, { ownerReferences: served });
  await api.advance(120_000);
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => has(api, name)),
    [true, true, false],
  );
  manager.stop();
});

test('an owner in another namespace is there for those beside it', async () => {
  const { api, manager } = await cluster();
  await make(api, '/api/v1/namespaces', 'far');
  const far = '/api/v1/namespaces/far/configmaps';
  const a = await make(api, MAPS, 'a');
  const metadata = objectAt(await owned(api, 'mine', [a]), 'metadata');
  const ownerReferences = [...listAt(metadata, 'ownerReferences')];
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  await make(api, roles, 'role', { kind: 'ClusterRole' }, { ownerReferences });
  for (const name of ['x', 'y', 'z']) {
    await make(api, far, name, {}, { ownerReferences });
    await api.advance(100);
  }
  await api.advance(5_000);
  assert(![...api.objects.keys()].some((key) => /configmaps far\/[xyz]$/.test(key)));
  assert(api.objects.has(`${roles} /role`));
  const told = api.events.filter((text) => text.startsWith('OwnerRefInvalidNamespace'));
  assert.equal(told.length, 4, 'each of them, once');
  await api.advance(120_000);
  assert.equal(api.events.filter((text) => text.startsWith('OwnerRefInvalid')).length, 4);
  // One more owner that goes has the references looked at again.
  const b = await make(api, MAPS, 'b');
  await owned(api, 'both', [a, b]);
  await api.advance(100);
  await api.request({ method: 'DELETE', path: `${MAPS}/b` });
  await api.advance(5_000);
  assert(has(api, 'a') && has(api, 'mine') && has(api, 'both'));
  manager.stop();
});

test('every namespace has its service account and root CA, again and again', async () => {
  const { api, manager } = await cluster();
  await make(api, '/api/v1/namespaces', 'new');
  await api.advance(500);
  const account = '/api/v1/serviceaccounts new/default';
  assert(api.objects.has(account));
  const map = '/api/v1/configmaps new/kube-root-ca.crt';
  assert.equal(stringAt(api.objects.get(map), 'data', 'ca.crt'), 'PEM');
  const path = '/api/v1/namespaces/new/serviceaccounts/default';
  await api.request({ method: 'DELETE', path });
  const contentType = 'application/merge-patch+json';
  const wrong = { data: { 'ca.crt': 'other' } };
  const mapPath = '/api/v1/namespaces/new/configmaps/kube-root-ca.crt';
  await api.request({ method: 'PATCH', path: mapPath, contentType, body: wrong });
  await api.advance(500);
  assert(api.objects.has(account));
  assert.equal(stringAt(api.objects.get(map), 'data', 'ca.crt'), 'PEM');
  manager.stop();
});

test('a token secret is filled, and goes with its service account', async () => {
  const { api, manager } = await cluster();
  const path = '/api/v1/namespaces/default';
  await make(api, `${path}/serviceaccounts`, 'robot');
  const annotations = { 'kubernetes.io/service-account.name': 'robot' };
  const type = 'kubernetes.io/service-account-token';
  await make(api, `${path}/secrets`, 't', { type }, { annotations });
  await make(api, `${path}/secrets`, 'other', { type: 'Opaque' }, { annotations });
  await api.advance(500);
  const secret = api.objects.get('/api/v1/secrets default/t');
  const text = (field: string): string =>
    Buffer.from(stringAt(secret, 'data', field), 'base64').toString();
  assert.deepEqual(['token', 'ca.crt', 'namespace'].map(text), [
    'token of robot',
    'PEM',
    'default',
  ]);
  await api.request({ method: 'DELETE', path: `${path}/serviceaccounts/robot` });
  await api.advance(500);
  assert(!api.objects.has('/api/v1/secrets default/t'));
  assert(api.objects.has('/api/v1/secrets default/other'));
  manager.stop();
});

test('a token secret that goes is no longer listed by its service account', async () => {
  const { api, manager } = await cluster();
  const path = '/api/v1/namespaces/default';
  const secrets = [{ name: 't' }, { name: 'other' }];
  await make(api, `${path}/serviceaccounts`, 'robot', { secrets });
  const annotations = { 'kubernetes.io/service-account.name': 'robot' };
  const type = 'kubernetes.io/service-account-token';
  await make(api, `${path}/secrets`, 't', { type }, { annotations });
  await make(api, `${path}/secrets`, 'other', { type: 'Opaque' }, { annotations });
  await api.advance(500);
  for (const name of ['t', 'other']) {
    await api.request({ method: 'DELETE', path: `${path}/secrets/${name}` });
  }
  await api.advance(2_000);
  const account = api.objects.get('/api/v1/serviceaccounts default/robot');
  assert.deepEqual(listAt(account, 'secrets'), [{ name: 'other' }]);
  manager.stop();
});

test('a namespace goes when it is empty, its pods before the rest', async () => {
  const { api, manager } = await cluster();
  await make(api, '/api/v1/namespaces', 'gone');
  const metadata = { finalizers: ['example.com/hold'] };
  await make(api, '/api/v1/namespaces/gone/pods', 'p', {}, metadata);
  await make(api, '/api/v1/namespaces/gone/configmaps', 'm');
  await api.advance(500);
  await api.request({ method: 'DELETE', path: '/api/v1/namespaces/gone' });
  await api.advance(2_000);
  const namespace = api.objects.get('/api/v1/namespaces /gone');
  const messages = listAt(namespace, 'status', 'conditions').map((one) => stringAt(one, 'message'));
  assert(messages.includes('Some resources are remaining: pods. has 1 resource instances'));
  assert(
    messages.includes(
      'Some content in the namespace has finalizers remaining: ' +
        'example.com/hold in 1 resource instances',
    ),
  );
  assert(api.objects.has('/api/v1/configmaps gone/m'));
  const contentType = 'application/merge-patch+json';
  const body = { metadata: { finalizers: null } };
  const path = '/api/v1/namespaces/gone/pods/p';
  await api.request({ method: 'PATCH', path, contentType, body });
  await api.advance(3_000);
  assert.deepEqual(
    [...api.objects.keys()].filter((key) => key.includes('gone')),
    [],
  );
  manager.stop();
});

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

async function addNodes(api: FakeApi, names: readonly string[]): Promise<void> {
  const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
    type,
    status: type === 'Ready' ? 'True' : 'False',
  }));
  for (const name of names) {
    await make(api, '/api/v1/nodes', name, { spec: {}, status: { conditions } });
    await make(api, LEASES, name, { spec: {} });
  }
}

async function beat(api: FakeApi, names: readonly string[], seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 10) {
    for (const name of names) {
      const renewTime = new Date(api.timers.nowMs()).toISOString().replace('Z', '000Z');
      const contentType = 'application/merge-patch+json';
      const body = { spec: { renewTime } };
      if (!api.isDown) {
        await api.request({ method: 'PATCH', path: `${LEASES}/${name}`, contentType, body });
      }
    }
    await api.advance(10_000);
  }
}

function nodeState(api: FakeApi, name: string): string[] {
  const node = api.objects.get(`/api/v1/nodes /${name}`);
  const ready = listAt(node, 'status', 'conditions')[0];
  const taints = listAt(node, 'spec', 'taints');
  return [
    stringAt(ready, 'status'),
    ...taints.map((one) => `${stringAt(one, 'key').split('/')[1]}:${stringAt(one, 'effect')}`),
  ];
}

test('a silent node is tainted and its pods driven out; it returns and all is well', async () => {
  const { api, manager } = await cluster();
  await addNodes(api, ['n1', 'n2', 'n3']);
  const pods = '/api/v1/namespaces/default/pods';
  const spec = { nodeName: 'n2' };
  const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
  await make(api, pods, 'leaves', { spec, status: ready });
  const tolerations = [{ operator: 'Exists' }];
  await make(api, pods, 'stays', { spec: { ...spec, tolerations }, status: ready });
  await beat(api, ['n1', 'n2', 'n3'], 60);
  assert.deepEqual(nodeState(api, 'n2'), ['True']);
  await beat(api, ['n1', 'n3'], 90);
  const bad = ['Unknown', 'unreachable:NoSchedule', 'unreachable:NoExecute'];
  assert.deepEqual(nodeState(api, 'n2'), bad);
  assert.deepEqual(nodeState(api, 'n1'), ['True']);
  assert(!api.objects.has('/api/v1/pods default/leaves'));
  const stays = api.objects.get('/api/v1/pods default/stays');
  assert.equal(stringAt(listAt(stays, 'status', 'conditions')[0], 'status'), 'False');
  for (const text of [
    'NodeNotReady: Node n2 status is now: NodeNotReady',
    'NodeNotReady: Node is not ready',
    'TaintManagerEviction: Marking for deletion Pod default/leaves',
  ]) {
    assert(api.events.includes(text), text);
  }
  const contentType = 'application/strategic-merge-patch+json';
  const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  await api.request({ method: 'PATCH', path: '/api/v1/nodes/n2/status', contentType, body });
  await beat(api, ['n1', 'n2', 'n3'], 20);
  assert.deepEqual(nodeState(api, 'n2'), ['True']);
  manager.stop();
});

test('a server that does not answer for minutes costs no node anything', async () => {
  const { api, manager } = await cluster();
  const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
  await addNodes(api, names);
  await beat(api, names, 60);
  const before = api.log.length;
  api.isDown = true;
  await api.advance(300_000);
  api.isDown = false;
  await beat(api, names, 60);
  const writes = api.log.slice(before).filter((line) => line.includes('/nodes/'));
  assert.deepEqual(writes, []);
  manager.stop();
});

test('a node that comes and goes is told of', async () => {
  const { api, manager } = await cluster();
  await addNodes(api, ['n1', 'n2']);
  await beat(api, ['n1', 'n2'], 10);
  const told = (): string[] => api.events.filter((text) => /^(Registered|Removing)/.test(text));
  const come = ['n1', 'n2'].map(
    (name) => `RegisteredNode: Node ${name} event: Registered Node ${name} in Controller`,
  );
  assert.deepEqual(told(), come);
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/n2' });
  await beat(api, ['n1'], 10);
  assert.deepEqual(told().slice(2), [
    'RemovingNode: Node n2 event: Removing Node n2 from Controller',
  ]);
  manager.stop();
});

test('nodes tell for how long to keep things, as many as they are', async () => {
  const { api, manager } = await cluster();
  const names = Array.from({ length: 101 }, (_, index) => `n${index}`);
  await addNodes(api, names);
  await api.advance(1_000);
  const told = (): string[] =>
    names.map((name) => {
      const { annotations } = objectAt(api.objects.get(`/api/v1/nodes /${name}`), 'metadata') ?? {};
      return stringAt({ annotations }, 'annotations', 'node.alpha.kubernetes.io/ttl');
    });
  assert.deepEqual(new Set(told()), new Set(['0', '15']), 'those that came first are not yet told');
  await beat(api, names, 60);
  assert.deepEqual(new Set(told()), new Set(['15']));
  await api.request({
    method: 'PATCH',
    path: '/api/v1/nodes/n7',
    contentType: 'application/merge-patch+json',
    body: { metadata: { annotations: { 'node.alpha.kubernetes.io/ttl': '17' } } },
  });
  await api.advance(1_000);
  assert.equal(told()[7], '15', 'what somebody edits is put right at once');
  manager.stop();
});

test('a cluster in which nothing happens wakes the controllers seldom', async () => {
  const { api, manager } = await cluster();
  await addNodes(api, ['n1', 'n2']);
  await beat(api, ['n1', 'n2'], 30);
  const { wakes } = api;
  await api.advance(30_000);
  assert(api.wakes - wakes <= 60, `${api.wakes - wakes} times in half a minute`);
  manager.stop();
});

test('pods of a node that is gone are collected', async () => {
  const { api, manager } = await cluster();
  const pods = '/api/v1/namespaces/default/pods';
  await make(api, pods, 'p', { spec: { nodeName: 'never' }, status: { phase: 'Running' } });
  await api.advance(59_000);
  assert(api.objects.has('/api/v1/pods default/p'));
  await api.advance(30_000);
  assert(!api.objects.has('/api/v1/pods default/p'));
  manager.stop();
});

test('the list of controllers is read as kube-controller-manager reads it', () => {
  const all = chosenControllers(['*', '-nodelifecycle']);
  assert(typeof all !== 'string');
  assert(!all.has('node-lifecycle-controller') && all.has('namespace-controller'));
  const one = chosenControllers(['garbage-collector-controller', 'service-lb-controller']);
  assert(typeof one !== 'string' && one.size === 1);
  const wrong = chosenControllers(['*', '!x']);
  assert(typeof wrong === 'string');
  assert.match(wrong, /not in the list of known controllers/);
});

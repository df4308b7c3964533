import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageModel } from '../../storage/storage-model.sim.ts';
import {
  admittingModel,
  messageOf,
  podOf,
  type AdmittingModel,
} from '../../testing/admitting.sim.ts';

const PODS = '/api/v1/namespaces/n/pods';
const QUOTAS = '/api/v1/namespaces/n/resourcequotas';

function setQuota({ expect }: AdmittingModel, name: string, hard: object, more: object = {}): void {
  expect(201, 'POST', QUOTAS, { metadata: { name }, spec: { hard, ...more } });
  const used = Object.fromEntries(Object.keys(hard).map((key) => [key, '0']));
  expect(200, 'PATCH', `${QUOTAS}/${name}/status`, { status: { hard, used } });
}

function usedOf({ ask }: AdmittingModel, name: string): unknown {
  const quota = JSON.parse(ask('GET', `${QUOTAS}/${name}`).text) as { status: { used: unknown } };
  return quota.status.used;
}

test('what is created is counted in all its resources, and what is too much is refused', () => {
  const model = admittingModel();
  const hard = { 'requests.cpu': '1', 'limits.memory': '1Gi', pods: '3', 'count/secrets': '1' };
  setQuota(model, 'q', hard);
  const resources = { requests: { cpu: '600m' }, limits: { memory: '512Mi' } };
  model.expect(201, 'POST', PODS, podOf('a', resources));
  assert.deepEqual(usedOf(model, 'q'), {
    'count/secrets': '0',
    'limits.memory': '512Mi',
    pods: '1',
    'requests.cpu': '600m',
  });
  const refused = model.expect(403, 'POST', PODS, podOf('b', resources));
  assert.equal(
    messageOf(refused),
    'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=600m, ' +
      'used: requests.cpu=600m, limited: requests.cpu=1',
  );
  const silent = model.expect(403, 'POST', PODS, podOf('c'));
  assert.equal(
    messageOf(silent),
    'pods "c" is forbidden: failed quota: q: must specify limits.memory for: c; ' +
      'requests.cpu for: c',
  );
  const empty = { ...podOf('d'), spec: { containers: [{ name: 'c', image: 'i' }], resources: {} } };
  assert.match(messageOf(model.expect(403, 'POST', PODS, empty)), /must specify limits.memory for/);
  const matchExpressions = ['BestEffort', 'NotBestEffort'].map((scopeName) => ({
    scopeName,
    operator: 'Exists',
  }));
  const torn = { metadata: { name: 't' }, spec: { hard: {}, scopeSelector: { matchExpressions } } };
  assert.match(
    messageOf(model.expect(422, 'POST', QUOTAS, torn)),
    /matchExpressions: Invalid value: null: conflicting scopes$/,
  );
  const secrets = '/api/v1/namespaces/n/secrets';
  model.expect(201, 'POST', secrets, { metadata: { name: 's' } });
  const second = model.expect(403, 'POST', secrets, { metadata: { name: 't' } });
  assert.match(messageOf(second), /exceeded quota: q, requested: count\/secrets=1/);
});

test('a name that is taken and a dry run are not charged', () => {
  const model = admittingModel();
  setQuota(model, 'q', { pods: '5' });
  model.expect(201, 'POST', PODS, podOf('a'));
  model.expect(409, 'POST', PODS, podOf('a'));
  model.expect(201, 'POST', `${PODS}?dryRun=All`, podOf('b'));
  assert.deepEqual(usedOf(model, 'q'), { pods: '1' });
});

test('services and claims are charged for what a change adds', () => {
  const model = admittingModel();
  setQuota(model, 'q', { 'services.nodeports': '1', 'requests.storage': '10Gi', services: '4' });
  const services = '/api/v1/namespaces/n/services';
  const service = (name: string, type: string): object => ({
    metadata: { name },
    spec: { type, ports: [{ port: 80 }] },
  });
  model.expect(201, 'POST', services, service('a', 'NodePort'));
  model.expect(201, 'POST', services, service('b', 'ClusterIP'));
  const grown = model.expect(403, 'PATCH', `${services}/b`, { spec: { type: 'NodePort' } });
  assert.match(messageOf(grown), /exceeded quota: q, requested: services.nodeports=1/);
  const claims = '/api/v1/namespaces/n/persistentvolumeclaims';
  const storage = { resources: { requests: { storage: '8Gi' } }, accessModes: ['ReadWriteOnce'] };
  model.expect(201, 'POST', claims, { metadata: { name: 'a' }, spec: storage });
  const second = model.expect(403, 'POST', claims, { metadata: { name: 'b' }, spec: storage });
  assert.match(messageOf(second), /requested: requests.storage=8Gi, used: requests.storage=8Gi/);
});

test('scopes say which pods a quota is for', () => {
  const model = admittingModel();
  setQuota(model, 'best', { pods: '1' }, { scopes: ['BestEffort'] });
  setQuota(model, 'ending', { pods: '0' }, { scopes: ['Terminating'] });
  model.expect(201, 'POST', PODS, podOf('a'));
  assert.match(messageOf(model.expect(403, 'POST', PODS, podOf('b'))), /exceeded quota: best/);
  const burst = { requests: { cpu: '1' } };
  model.expect(201, 'POST', PODS, podOf('c', burst));
  const ending = podOf('d', burst, { activeDeadlineSeconds: 5 });
  assert.match(messageOf(model.expect(403, 'POST', PODS, ending)), /exceeded quota: ending/);
});

test('a pod that comes under a scope by a change is charged whole', () => {
  const model = admittingModel();
  setQuota(model, 'ending', { pods: '1' }, { scopes: ['Terminating'] });
  model.expect(201, 'POST', PODS, podOf('a'));
  const deadline = { spec: { activeDeadlineSeconds: 5 } };
  model.expect(200, 'PATCH', `${PODS}/a`, deadline);
  assert.deepEqual(usedOf(model, 'ending'), { pods: '1' });
  model.expect(201, 'POST', PODS, podOf('b'));
  model.expect(403, 'PATCH', `${PODS}/b`, deadline);
});

test('a change gives nothing back, and events are not counted', () => {
  const model = admittingModel();
  setQuota(model, 'q', { 'services.nodeports': '5', 'count/events': '0' });
  const services = '/api/v1/namespaces/n/services';
  const spec = { type: 'NodePort', ports: [{ port: 80 }] };
  model.expect(201, 'POST', services, { metadata: { name: 'a' }, spec });
  model.expect(200, 'PATCH', `${services}/a`, { spec: { type: 'ClusterIP' } });
  assert.deepEqual(usedOf(model, 'q'), { 'count/events': '0', 'services.nodeports': '1' });
  const event = { metadata: { name: 'e' }, involvedObject: { namespace: 'n' } };
  model.expect(201, 'POST', '/api/v1/namespaces/n/events', event);
});

test('a quota that is full speaks before a name that is taken, and names all it misses', () => {
  const model = admittingModel();
  setQuota(model, 'q', { pods: '1' });
  model.expect(201, 'POST', PODS, podOf('a'));
  assert.match(messageOf(model.expect(403, 'POST', PODS, podOf('a'))), /exceeded quota: q/);
  model.expect(200, 'DELETE', `${QUOTAS}/q`);
  const hard = { pods: '1', 'requests.cpu': '1' };
  model.expect(201, 'POST', QUOTAS, { metadata: { name: 'r' }, spec: { hard } });
  const status = { hard, used: { pods: '0' } };
  model.expect(200, 'PATCH', `${QUOTAS}/r/status`, { status });
  const pod = podOf('b', { requests: { cpu: '1' } });
  assert.match(
    messageOf(model.expect(403, 'POST', PODS, pod)),
    /status unknown for quota: r, resources: pods,requests.cpu$/,
  );
  const negative = { status: { used: { pods: '-1' } } };
  model.expect(422, 'PATCH', `${QUOTAS}/r/status`, negative);
});

test('what a limit range sets counts for the class of a pod and for its defaults', () => {
  const { expect } = admittingModel();
  const limits = [{ type: 'Container', default: { cpu: '1', memory: '1Gi' } }];
  const ranges = '/api/v1/namespaces/n/limitranges';
  expect(201, 'POST', ranges, { metadata: { name: 'l' }, spec: { limits } });
  const made = JSON.parse(expect(201, 'POST', PODS, podOf('a')).text) as {
    status: { qosClass: string };
  };
  assert.equal(made.status.qosClass, 'Guaranteed');
  const uneven = [{ ...limits[0], max: { cpu: '4' }, min: { cpu: '1' } }].map((limit) => ({
    ...limit,
    maxLimitRequestRatio: { cpu: '5' },
  }));
  const refused = expect(422, 'POST', ranges, {
    metadata: { name: 'm' },
    spec: { limits: uneven },
  });
  assert.match(messageOf(refused), /ratio 5 is greater than max\/min = 4\.000000/);
});

test('a claim that is on its way out is not measured again', () => {
  const { expect } = admittingModel();
  const claims = '/api/v1/namespaces/n/persistentvolumeclaims';
  const spec = { resources: { requests: { storage: '1Gi' } }, accessModes: ['ReadWriteOnce'] };
  expect(201, 'POST', claims, { metadata: { name: 'a' }, spec });
  const limits = [{ type: 'PersistentVolumeClaim', min: { storage: '2Gi' } }];
  const range = { metadata: { name: 'l' }, spec: { limits } };
  expect(201, 'POST', '/api/v1/namespaces/n/limitranges', range);
  const change = { metadata: { labels: { a: 'b' } } };
  expect(403, 'PATCH', `${claims}/a`, change);
  expect(200, 'DELETE', `${claims}/a`);
  expect(200, 'PATCH', `${claims}/a`, change);
});

test('a limit range fills in what is missing, and bounds what is asked for', () => {
  const { expect } = admittingModel();
  const limits = [
    {
      type: 'Container',
      default: { memory: '1Gi' },
      defaultRequest: { cpu: '100m', memory: '1Gi' },
      max: { memory: '2Gi' },
      maxLimitRequestRatio: { memory: '2' },
    },
    { type: 'Pod', min: { cpu: '50m' } },
  ];
  expect(201, 'POST', '/api/v1/namespaces/n/limitranges', {
    metadata: { name: 'l' },
    spec: { limits },
  });
  const made = JSON.parse(
    expect(201, 'POST', PODS, podOf('a', { requests: { memory: '1Gi' } })).text,
  ) as {
    metadata: { annotations: Record<string, string> };
    spec: { containers: { resources: unknown }[] };
  };
  assert.equal(
    made.metadata.annotations['kubernetes.io/limit-ranger'],
    'LimitRanger plugin set: cpu request for container c; memory limit for container c',
  );
  assert.deepEqual(made.spec.containers[0]?.resources, {
    limits: { memory: '1Gi' },
    requests: { cpu: '100m', memory: '1Gi' },
  });
  const wide = podOf('b', { requests: { memory: '1Gi', cpu: '10m' }, limits: { memory: '3Gi' } });
  assert.equal(
    messageOf(expect(403, 'POST', PODS, wide)),
    'pods "b" is forbidden: [maximum memory usage per Container is 2Gi, but limit is 3Gi, ' +
      'memory max limit to request ratio per Container is 2, but provided ratio is 3.000000, ' +
      'minimum cpu usage per Pod is 50m, but request is 10m]',
  );
});

test('many writes that are alike never pass a limit together', () => {
  const model = admittingModel();
  for (let i = 0; i < 5; i++) model.expect(201, 'POST', PODS, podOf(`before-${i}`));
  setQuota(model, 'q', { pods: '20', 'requests.cpu': '1' });
  const resources = { requests: { cpu: '30m' } };
  let made = 0;
  for (let i = 0; i < 40; i++) {
    if (model.ask('POST', PODS, podOf(`p-${i}`, resources)).status === 201) made++;
  }
  assert.equal(made, 20);
  assert.deepEqual(usedOf(model, 'q'), { pods: '20', 'requests.cpu': '600m' });
});

test('writes that start together are charged one by one where storage answers later', async () => {
  const storage = new StorageModel();
  const later = { isOn: false };
  const put = storage.put.bind(storage);
  storage.put = (key, value, expected, done) => {
    if (later.isOn) setImmediate(() => put(key, value, expected, done));
    else put(key, value, expected, done);
  };
  const model = admittingModel({ storage });
  setQuota(model, 'q', { pods: '20' });
  later.isOn = true;
  const answers = Array.from({ length: 60 }, (_, i) => model.ask('POST', PODS, podOf(`p-${i}`)));
  for (let i = 0; i < 300; i++) await new Promise((resolve) => setImmediate(resolve));
  const codes = answers.map(({ status }) => status);
  assert.equal(codes.filter((code) => code === 201).length, 20);
  assert.equal(codes.filter((code) => code === 403).length, 40);
  assert.deepEqual(usedOf(model, 'q'), { pods: '20' });
});

test('claims of devices count by the class, and by the resource that it stands for', () => {
  const model = admittingModel();
  const group = '/apis/resource.k8s.io/v1';
  const gpu = { metadata: { name: 'gpu' }, spec: { extendedResourceName: 'example.com/gpu' } };
  model.expect(201, 'POST', `${group}/deviceclasses`, gpu);
  const [devices, byClass] = ['deviceclass.resource.k8s.io/devices', 'deviceclass.resource'];
  const implied = `requests.${byClass}.kubernetes.io/gpu`;
  const hard = { [`gpu.${devices}`]: '9', [`b.${devices}`]: '99', [implied]: '9' };
  setQuota(model, 'q', { ...hard, 'requests.example.com/gpu': '9' });
  const claims = `${group}/namespaces/n/resourceclaims`;
  const claim = (name: string, requests: readonly object[]): object => ({
    metadata: { name },
    spec: { devices: { requests } },
  });
  const firstAvailable = [
    { name: 'x', deviceClassName: 'gpu', count: 3 },
    { name: 'y', deviceClassName: 'b', allocationMode: 'All' },
    { name: 'z', deviceClassName: 'gpu', count: 1 },
  ];
  const two = { name: 'r', exactly: { deviceClassName: 'gpu', count: 2 } };
  model.expect(201, 'POST', claims, claim('a', [two, { name: 's', firstAvailable }]));
  const resources = { limits: { [`${byClass}.kubernetes.io/gpu`]: '1' } };
  model.expect(201, 'POST', PODS, podOf('p', resources));
  assert.deepEqual(usedOf(model, 'q'), {
    [`b.${devices}`]: '32',
    [`gpu.${devices}`]: '5',
    [implied]: '6',
    'requests.example.com/gpu': '5',
  });
  const all = { name: 'r', exactly: { deviceClassName: 'gpu', allocationMode: 'All' } };
  const refused = model.expect(403, 'POST', claims, claim('b', [all]));
  assert.match(messageOf(refused), /requested: gpu\.deviceclass\.resource\.k8s\.io\/devices=32,/);
});

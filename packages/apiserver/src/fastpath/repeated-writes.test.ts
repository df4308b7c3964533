import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { encodeProtobuf } from '@megaplane/machinery/protobuf';
import { createApiServer } from '../server/assembly.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const PODS = '/api/v1/namespaces/default/pods';
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };

/** A server whose uids and letters follow from nothing but their number. */
function server(repeatedWrites: boolean) {
  const storage = new StorageModel();
  let uuids = 0;
  let draws = 0;
  let nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  const edge = {
    nowMs: () => nowMs,
    below: (n: number) => draws++ % n,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const api = createApiServer({ storage, edge, address: '127.0.0.1:6443', repeatedWrites });
  const ask = (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): ExchangeModel => {
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    return exchange;
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  ask('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
  const pass = (ms: number): void => void (nowMs += ms);
  return { ask, pass, repeated: api.parts.repeated };
}

function pod(name: string, more: object = {}): object {
  const metadata = { name, labels: { app: 'web' } };
  const spec = { containers: [{ name: 'main', image: 'img:1', ...more }] };
  return { kind: 'Pod', apiVersion: 'v1', metadata, spec };
}

/** Both servers draw from their own, and one of them more often. */
function withoutDrawn(text: string): string {
  return text
    .replaceAll(/00000000-0000-4000-8000-\d{12}/g, 'uid')
    .replaceAll(/(kube-api-access|web)-[b-z2-9]{5}\b/g, '$1-drawn');
}

/** Two servers that are asked the same; each answer must be the same. */
function pair() {
  const fast = server(true);
  const slow = server(false);
  const both = (...request: Parameters<typeof fast.ask>): ExchangeModel => {
    const answer = fast.ask(...request);
    const ordinary = slow.ask(...request);
    assert.equal(withoutDrawn(answer.text), withoutDrawn(ordinary.text));
    assert.equal(answer.status, ordinary.status);
    return answer;
  };
  const pass = (ms: number): void => {
    fast.pass(ms);
    slow.pass(ms);
  };
  return { both, pass, uses: () => fast.repeated?.uses ?? 0 };
}

/** What a kubelet says of a pod. */
function running(ip: string, at: string): object {
  const condition = { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: at };
  const state = { running: { startedAt: at } };
  const containerID = `containerd://${at.charAt(18).repeat(64)}`;
  const about = { image: 'img:1', imageID: '', ready: true, restartCount: 0, state };
  return {
    status: {
      phase: 'Running',
      conditions: [condition],
      containerStatuses: [{ name: 'main', ...about, containerID }],
      podIP: ip,
      podIPs: [{ ip }],
      startTime: at,
    },
  };
}

test('pods of one make are made from a template, and are what the ordinary way makes', () => {
  const { both, pass, uses } = pair();
  for (let index = 0; index < 6; index++) {
    assert.equal(both('POST', PODS, pod(`web-${index}`)).status, 201);
    pass(700);
  }
  assert.equal(uses(), 4);
  // a name that is taken, and one that is none
  assert.equal(both('POST', PODS, pod('web-3')).status, 409);
  assert.equal(both('POST', PODS, pod('Web_3')).status, 422);
  assert.equal(both('POST', PODS, pod('web.dotted')).status, 201);
  assert.equal(both('POST', PODS, pod('web-9', { image: '' })).status, 422);
  assert.equal(both('POST', PODS, pod(`w${'x'.repeat(260)}`)).status, 422);
});

test('pods that come in protobuf are made from templates as those in JSON are', () => {
  const { both, pass, uses } = pair();
  const PROTOBUF = 'application/vnd.kubernetes.protobuf';
  const types = { 'content-type': PROTOBUF, accept: `${PROTOBUF},application/json` };
  const wide = {
    resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1.50' } },
    livenessProbe: { httpGet: { port: 8080, path: '/"x"' }, periodSeconds: 5 },
    readinessProbe: { tcpSocket: { port: 'web' } },
    envFrom: [{ configMapRef: { name: 'settings' } }],
    args: ['-c', 'echo "hello"\n'],
  };
  const send = (name: string, more: object, headers = types): ExchangeModel => {
    const body = encodeProtobuf(pod(name, more) as JsonObject);
    const answer = both('POST', PODS, body, headers);
    both('GET', `${PODS}/${name}`);
    return answer;
  };
  for (let index = 0; index < 6; index++) {
    assert.equal(send(`web-${index}`, wide).status, 201);
    assert.equal(send(`app-${index}`, {}, { ...types, accept: 'application/json' }).status, 201);
    assert.equal(both('POST', PODS, pod(`text-${index}`, wide)).status, 201);
    pass(700);
  }
  assert.equal(uses(), 12);
  assert.equal(send('web-3', wide).status, 409);
  assert.equal(send('Web_3', wide).status, 422);
  assert.equal(send('web-9', { ...wide, image: '' }).status, 422);
  assert.equal(send('web-10', { args: ['ünïcode'] }).status, 201);
  const cut = encodeProtobuf(pod('web-11', wide) as JsonObject);
  assert.equal(both('POST', PODS, cut?.subarray(0, 60), types).status, 400);
  const binding = { kind: 'Binding', apiVersion: 'v1', metadata: { name: 'web-12' } };
  assert.equal(both('POST', PODS, encodeProtobuf(binding), types).status, 400);
  assert.equal(uses(), 12);
});

test('generated names are drawn anew for each object', () => {
  const { both, uses } = pair();
  const names = new Set<string>();
  for (let index = 0; index < 5; index++) {
    const { kind, apiVersion, spec } = pod('') as Record<string, unknown>;
    const sent = { kind, apiVersion, metadata: { generateName: 'web-' }, spec };
    const made = JSON.parse(both('POST', PODS, sent).text) as { metadata: { name: string } };
    names.add(made.metadata.name);
  }
  assert.equal(names.size, 5);
  assert.equal(uses(), 3);
});

test('a name that stands elsewhere in the object is carried there, or ends the likeness', () => {
  const { both, uses } = pair();
  for (const name of ['main', 'app', 'default', 'web', 'img', 'a', 'b', 'c', 'd']) {
    const labels = { app: name, [name]: 'x', other: `${name}-1` };
    const { spec } = pod(name) as { spec: object };
    const sent = { kind: 'Pod', apiVersion: 'v1', metadata: { name, labels }, spec };
    both('POST', PODS, sent);
  }
  assert.equal(uses(), 0);
  for (const name of ['main', 'app', 'default', 'e', 'f', 'g', 'i', 'j', 'k', 'h'.repeat(63)]) {
    const { spec } = pod(name, { env: [{ name: 'SELF', value: name }] }) as { spec: object };
    const metadata = { name: `${name}`, labels: { self: name } };
    both('POST', `${PODS}`, { kind: 'Pod', apiVersion: 'v1', metadata, spec });
  }
  assert(uses() > 0);
});

test('statuses of one make keep the rest of the object, times and addresses apart', () => {
  const { both, pass, uses } = pair();
  const names = Array.from({ length: 8 }, (_, index) => `web-${index}`);
  for (const name of names) both('POST', PODS, pod(name));
  const before = uses();
  pass(5000);
  for (const [index, name] of names.entries()) {
    pass(400);
    const patch = running(`10.0.${index}.7`, `2026-01-02T03:04:1${index}Z`);
    const path = `${PODS}/${name}/status`;
    assert.equal(both('PATCH', path, patch, STRATEGIC).status, 200);
    both('GET', `${PODS}/${name}`);
  }
  assert(uses() - before >= 5, `${uses() - before}`);
  assert.match(both('GET', `${PODS}/web-7`).text, /"containerID":"containerd:.+7{9}"/);
  // the same again changes nothing, whatever the clock says
  pass(60_000);
  for (const [index, name] of names.entries()) {
    const patch = running(`10.0.${index}.7`, `2026-01-02T03:04:1${index}Z`);
    assert.equal(both('PATCH', `${PODS}/${name}/status`, patch, STRATEGIC).status, 200);
  }
  // times the other way round are of another shape
  for (const [index, name] of names.entries()) {
    const patch = running(`10.0.${index}.7`, '2025-12-31T23:59:59Z');
    assert.equal(both('PATCH', `${PODS}/${name}/status`, patch, STRATEGIC).status, 200);
  }
  // a second address of one family is refused, though its shape was fine before
  const second = running('10.9.9.9', '2025-12-31T23:59:59Z');
  assert.equal(both('PATCH', `${PODS}/web-0/status`, second, STRATEGIC).status, 422);
  assert.equal(
    both('PATCH', `${PODS}/nobody/status`, running('10.0.0.1', ''), STRATEGIC).status,
    404,
  );
});

test('what a status may say by the spec of its pod is not learnt from another spec', () => {
  const { both, uses } = pair();
  const ended = { terminated: { exitCode: 1, startedAt: null, finishedAt: null } };
  const statusOf = (state: object) => ({
    status: {
      containerStatuses: [{ name: 'main', image: 'i', imageID: '', restartCount: 0, state }],
    },
  });
  const make = (name: string, more: object): void => {
    const { spec, ...rest } = pod(name) as { spec: object };
    assert.equal(both('POST', PODS, { ...rest, spec: { ...spec, ...more } }).status, 201);
  };
  const patch = (name: string, body: object): number =>
    both('PATCH', `${PODS}/${name}/status`, body, STRATEGIC).status;
  for (let index = 0; index < 6; index++) {
    make(`web-${index}`, { restartPolicy: 'Always' });
    assert.equal(patch(`web-${index}`, statusOf({ ...ended })), 200);
  }
  const before = uses();
  for (let index = 0; index < 6; index++) {
    assert.equal(patch(`web-${index}`, statusOf({ terminated: null, waiting: {} })), 200);
  }
  assert(uses() > before);
  make('web-7', { restartPolicy: 'Never' });
  assert.equal(patch('web-7', statusOf({ ...ended })), 200);
  assert.equal(patch('web-7', statusOf({ terminated: null, waiting: {} })), 422);
  // a node is named for pods that have none
  const nominated = { status: { nominatedNodeName: 'node-1' } };
  for (let index = 0; index < 4; index++) {
    make(`free-${index}`, {});
    assert.equal(patch(`free-${index}`, nominated), 200);
  }
  make('free-5', { nodeName: 'node-1' });
  assert.equal(patch('free-5', nominated), 422);
});

test('pods of a DaemonSet differ in the node that they must go to', () => {
  const { both, uses } = pair();
  const send = (name: string, node: string, field = 'metadata.name'): number => {
    const { spec, ...rest } = pod(name) as { spec: object };
    const matchFields = [{ key: field, operator: 'In', values: [node] }];
    const required = { nodeSelectorTerms: [{ matchFields }] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
    return both('POST', PODS, { ...rest, spec: { ...spec, affinity: { nodeAffinity } } }).status;
  };
  const nodes = ['node-1', '10.0.0.7', 'ip-10-0-0-7.internal', 'web-3', 'n5', 'n6'];
  for (const [index, node] of nodes.entries()) assert.equal(send(`web-${index}`, node), 201);
  assert.equal(uses(), nodes.length - 2);
  for (const [index, node] of ['', 'Node_1', 'a..b', '-a', 'x y'].entries()) {
    assert.equal(send(`odd-${index}`, node), 422);
  }
  assert.equal(send('web-8', 'node-1', 'metadata.namespace'), 422);
});

test('pods of StatefulSets and Jobs differ in claims, host names and numbers', () => {
  const { both, uses } = pair();
  const numbered = (set: string, index: number, more: object, label: string): object => ({
    ...{ kind: 'Pod', apiVersion: 'v1' },
    metadata: {
      name: `${set}-${index}`,
      labels: { app: set, [label]: String(index) },
      annotations: { 'batch.kubernetes.io/job-completion-index': String(index) },
    },
    spec: {
      containers: [{ name: 'main', image: 'img:1' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `data-${set}-${index}` } }],
      ...more,
    },
  });
  const ordinal = 'apps.kubernetes.io/pod-index';
  for (let index = 0; index < 12; index++) {
    const host = { hostname: `db-${index}`, subdomain: 'db' };
    assert.equal(both('POST', PODS, numbered('db', index, host, ordinal)).status, 201);
    const other = { hostname: `worker-${index}` };
    const label = 'batch.kubernetes.io/job-completion-index';
    assert.equal(both('POST', PODS, numbered('job', index, other, label)).status, 201);
    both('GET', `${PODS}/db-${index}`);
  }
  assert.equal(uses(), 20);
  const dotted = { hostname: 'db.x', subdomain: 'db' };
  assert.equal(both('POST', PODS, numbered('db', 20, dotted, ordinal)).status, 422);
  const long = { hostname: 'h'.repeat(64), subdomain: 'db' };
  assert.equal(both('POST', PODS, numbered('db', 21, long, ordinal)).status, 422);
  const claim = { persistentVolumeClaim: { claimName: '' } };
  const odd = { hostname: 'db-22', subdomain: 'db', volumes: [{ name: 'data', ...claim }] };
  assert.equal(both('POST', PODS, numbered('db', 22, odd, ordinal)).status, 422);
  assert.equal(uses(), 20);
});

test('claims and their volumes differ in each other, volumes in their disks', () => {
  const { both, uses } = pair();
  const volumes = '/api/v1/persistentvolumes';
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const accessModes = ['ReadWriteOnce'];
  const volume = (index: number, more: object): object => ({
    metadata: { name: `pv-${index}` },
    spec: {
      ...{ accessModes, capacity: { storage: '1Gi' } },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: `data-${index}` },
      csi: { driver: 'x.example.com', volumeHandle: `disk ${index}` },
      ...more,
    },
  });
  const claim = (index: number, more: object): object => ({
    metadata: { name: `data-${index}` },
    spec: { accessModes, resources: { requests: { storage: '1Gi' } }, ...more },
  });
  for (let index = 0; index < 6; index++) {
    assert.equal(both('POST', volumes, volume(index, {})).status, 201);
    assert.equal(both('POST', claims, claim(index, { volumeName: `pv-${index}` })).status, 201);
    both('GET', `${volumes}/pv-${index}`);
    both('GET', `${claims}/data-${index}`);
  }
  assert.equal(uses(), 8);
  const none = { csi: { driver: 'x.example.com', volumeHandle: '' } };
  assert.equal(both('POST', volumes, volume(7, none)).status, 422);
  assert.equal(both('POST', claims, claim(3, { volumeName: 'pv-3' })).status, 409);
  assert.equal(both('POST', claims, claim(8, { volumeName: '' })).status, 201);
  // a default class ends what was learned without one
  const fast = {
    metadata: {
      name: 'fast',
      annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
    },
    provisioner: 'x.example.com',
  };
  both('POST', '/apis/storage.k8s.io/v1/storageclasses', fast);
  const later = both('POST', claims, claim(9, { volumeName: 'pv-9' }));
  assert.match(later.text, /"storageClassName":"fast"/);
  assert.equal(uses(), 8);
});

test('messages and drawn volumes differ within a shape', () => {
  const { both, uses } = pair();
  const messages = [
    '',
    'x',
    'y'.repeat(5000),
    'a <b> & c',
    'ünïcode',
    'say "x"',
    'a\\b',
    'z\n',
    'ok',
    'fine',
  ];
  for (const [index] of messages.entries()) both('POST', PODS, pod(`web-${index}`));
  const before = uses();
  for (const [index, message] of messages.entries()) {
    const path = `${PODS}/web-${index}`;
    const whole = JSON.parse(both('GET', path).text) as { metadata: object; spec: object };
    const { status } = running('10.0.0.1', '2026-01-02T03:05:00Z') as { status: object };
    both('PUT', `${path}/status`, { ...whole, status: { ...status, message } });
    both('GET', path);
  }
  assert(uses() > before);
});

test('statuses say on which node a pod is, which changes nothing', () => {
  const { both, uses } = pair();
  const nodes = ['node-1', '10.0.0.7', 'ip-10-0-0-7.internal', 'web-3', 'n5', 'n6', 'n7'];
  const odd = ['', 'Node_1', 'a..b', '-a', 'n'.repeat(64), 'ü', 7];
  const put = (index: number, nodeName: unknown, labels: object): ExchangeModel => {
    const { kind, apiVersion, spec } = pod('') as {
      kind: string;
      apiVersion: string;
      spec: object;
    };
    const metadata = { name: `web-${index}`, labels };
    const { status } = running('10.0.0.1', '2026-01-02T03:05:00Z') as { status: object };
    const body = { kind, apiVersion, metadata, spec: { ...spec, nodeName }, status };
    const answer = both('PUT', `${PODS}/web-${index}/status`, body);
    both('GET', `${PODS}/web-${index}`);
    return answer;
  };
  for (const index of [...nodes, ...odd].keys()) both('POST', PODS, pod(`web-${index}`));
  const before = uses();
  for (const [index, node] of nodes.entries()) {
    assert.doesNotMatch(put(index, node, { app: 'web' }).text, /"nodeName"/);
  }
  assert.equal(uses() - before, nodes.length - 2);
  for (const [index, node] of odd.entries()) put(nodes.length + index, node, { app: 'web' });
  // the same key elsewhere is no node, and may be refused
  for (const [index, nodeName] of [...nodes, ...odd].entries()) {
    put(index, nodeName, { app: 'web', nodeName });
  }
});

test('a status that names another uid or an old revision is refused as ever', () => {
  const { both } = pair();
  for (let index = 0; index < 5; index++) {
    const made = both('POST', PODS, pod(`web-${index}`));
    const object = JSON.parse(made.text) as { metadata: Record<string, string> };
    const path = `${PODS}/web-${index}/status`;
    const { uid = '', resourceVersion = '' } = object.metadata;
    const status = running('10.0.0.1', '2026-01-02T03:05:00Z');
    assert.equal(both('PUT', path, { ...object, ...status }).status, 200);
    assert.equal(both('PUT', path, { ...object, ...status }).status, 409);
    const foreign = { metadata: { uid: uid.replace(/^0/, '1') }, ...status };
    both('PATCH', path, foreign, STRATEGIC);
    const old = { metadata: { resourceVersion }, ...status };
    assert.equal(both('PATCH', path, old, STRATEGIC).status, 409);
  }
});

test('what a write depends on beside itself ends its template', () => {
  const { both, uses } = pair();
  for (let index = 0; index < 4; index++) both('POST', PODS, pod(`web-${index}`));
  assert.equal(uses(), 2);
  const limits = [{ type: 'Container', defaultRequest: { cpu: '100m' } }];
  const range = { metadata: { name: 'cpu' }, spec: { limits } };
  both('POST', '/api/v1/namespaces/default/limitranges', range);
  const limited = both('POST', PODS, pod('web-4')).text;
  assert.match(limited, /"requests":\{"cpu":"100m"/);
  const quota = { metadata: { name: 'few' }, spec: { hard: { pods: '1' } } };
  both('POST', '/api/v1/namespaces/default/resourcequotas', quota);
  const used = uses();
  for (let index = 5; index < 9; index++) both('POST', PODS, pod(`web-${index}`));
  assert.equal(uses(), used);
});

test('who writes, and by which program, is part of a shape', () => {
  const { both, uses } = pair();
  let count = 0;
  for (const agent of ['kubectl/v1', 'kubectl/v1', 'kubectl/v1', 'scheduler/v1', 'kubectl/v1']) {
    both('POST', PODS, pod(`web-${count++}`), { 'user-agent': agent });
  }
  assert.equal(uses(), 2);
});

test('leases of one make differ in the microseconds of their times', () => {
  const { both, uses, pass } = pair();
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const times = [
    ...['01:02:03.000001Z', '01:02:03.699000Z', '01:02:03.699000Z', '23:59:59.999999Z'],
    ...['01:02:03.12345Z', '01:02:03.1234567Z', '01:02:61.123456Z', '01:02:03.123456z'],
    ...['01:02:03.1234x6Z', '01:02:03,123456Z', '01:02:03.654321Z'],
  ];
  const codes = times.map((time, index) => {
    pass(300);
    const renewTime = `2026-01-02T${time}`;
    const acquireTime = index === 3 ? '2026-01-02T00:00:00.000000Z' : undefined;
    const holderIdentity = `node-${index}`;
    const spec = { holderIdentity, leaseDurationSeconds: 40, acquireTime, renewTime };
    return both('POST', path, { metadata: { name: `node-${index}` }, spec }).status;
  });
  assert.deepEqual(codes, [201, 201, 201, 201, 400, 400, 400, 400, 400, 201, 201]);
  assert.equal(uses(), 2);
});

test('patches of whole nodes are made from a template, too', () => {
  const { both, uses, pass } = pair();
  const taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
  for (let index = 0; index < 6; index++) {
    const metadata = { name: `node-${index}`, labels: { zone: 'a' } };
    both('POST', '/api/v1/nodes', { metadata, spec: { taints: [taint] } });
  }
  const before = uses();
  for (let index = 0; index < 6; index++) {
    pass(10);
    const path = `/api/v1/nodes/node-${index}`;
    const { metadata } = JSON.parse(both('GET', path).text) as { metadata: { uid: string } };
    const patch = {
      metadata: { uid: metadata.uid, annotations: { ttl: '0' } },
      spec: { taints: null },
    };
    assert.equal(both('PATCH', path, patch, STRATEGIC).status, 200);
    assert.doesNotMatch(both('GET', path).text, /not-ready/);
    assert.equal(both('PATCH', path, { metadata: { name: 'other' } }, STRATEGIC).status, 400);
  }
  assert(uses() - before >= 3);
});

test('each pod made from a template is counted against the quotas of its namespace', () => {
  const { both, uses } = pair();
  const quotas = '/api/v1/namespaces/default/resourcequotas';
  const hard = { pods: '6', 'requests.cpu': '1' };
  const ask = { resources: { requests: { cpu: '150m' } } };
  const merge = { 'content-type': 'application/merge-patch+json' };
  const setUsed = (used: object): void => {
    both('PATCH', `${quotas}/q/status`, { status: { hard, used } }, merge);
  };
  for (let index = 0; index < 3; index++) both('POST', PODS, pod(`early-${index}`, ask));
  assert.equal(uses(), 1);
  both('POST', quotas, { metadata: { name: 'q' }, spec: { hard } });
  setUsed({ pods: '0', 'requests.cpu': '100m' });
  const codes: number[] = [];
  const usedNow = (): unknown => {
    const quota = JSON.parse(both('GET', `${quotas}/q`).text) as { status: { used: unknown } };
    return quota.status.used;
  };
  for (let index = 0; index < 8; index++) {
    codes.push(both('POST', PODS, pod(`web-${index}`, ask)).status);
  }
  // the template outlives the quota and its counts, and ends where there is no room
  assert.deepEqual(codes, [201, 201, 201, 201, 201, 201, 403, 403]);
  assert.deepEqual(usedNow(), { pods: '6', 'requests.cpu': '1' });
  assert.equal(uses(), 7);
  setUsed({ pods: '3', 'requests.cpu': '100m' });
  // a name that is taken is not counted
  assert.equal(both('POST', PODS, pod('web-1', ask)).status, 409);
  assert.equal(both('POST', PODS, pod('web-9', ask)).status, 201);
  assert.deepEqual(usedNow(), { pods: '4', 'requests.cpu': '250m' });
  assert.equal(uses(), 8);
});

test('claims made from a template are counted by number and by storage', () => {
  const { both, uses } = pair();
  const quotas = '/api/v1/namespaces/default/resourcequotas';
  const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
  const merge = { 'content-type': 'application/merge-patch+json' };
  const hard = { persistentvolumeclaims: '9', 'requests.storage': '5Gi' };
  both('POST', quotas, { metadata: { name: 'q' }, spec: { hard } });
  const none = { persistentvolumeclaims: '0', 'requests.storage': '0' };
  both('PATCH', `${quotas}/q/status`, { status: { hard, used: none } }, merge);
  const codes: number[] = [];
  for (let index = 0; index < 7; index++) {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    const claim = {
      metadata: { name: `data-${index}` },
      spec: { ...spec, volumeName: `v-${index}` },
    };
    codes.push(both('POST', claims, claim).status);
  }
  assert.deepEqual(codes, [201, 201, 201, 201, 201, 403, 403]);
  assert.equal(uses(), 3);
  const quota = JSON.parse(both('GET', `${quotas}/q`).text) as { status: { used: unknown } };
  assert.deepEqual(quota.status.used, { persistentvolumeclaims: '5', 'requests.storage': '5Gi' });
});

test('a template is learned under a quota that has no room for another one', () => {
  const { both, uses } = pair();
  const quotas = '/api/v1/namespaces/default/resourcequotas';
  const merge = { 'content-type': 'application/merge-patch+json' };
  both('POST', quotas, { metadata: { name: 'q' }, spec: { hard: { pods: '2' } } });
  const setUsed = (pods: string): void => {
    const status = { hard: { pods: '2' }, used: { pods } };
    both('PATCH', `${quotas}/q/status`, { status }, merge);
  };
  setUsed('0');
  const codes = ['a', 'b', 'c'].map((name) => both('POST', PODS, pod(name)).status);
  assert.deepEqual(codes, [201, 201, 403]);
  setUsed('1');
  assert.equal(both('POST', PODS, pod('d')).status, 201);
  assert.equal(uses(), 1);
});

test('templates outlive changes of workloads, and not those of accounts', () => {
  const { both, uses } = pair();
  const make = (name: string): number => both('POST', PODS, pod(name)).status;
  const apps = '/apis/apps/v1/namespaces/default';
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const spec = { selector: { matchLabels: labels }, template };
  for (const name of ['a', 'b', 'c']) assert.equal(make(name), 201);
  assert.equal(uses(), 1);
  assert.equal(both('POST', `${apps}/replicasets`, { metadata: { name: 'r' }, spec }).status, 201);
  make('d');
  assert.equal(uses(), 2);
  both('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'other' } });
  make('e');
  assert.equal(uses(), 2);
});

import { test } from 'node:test';
import assert from 'node:assert/strict';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt } from '@megaplane/machinery/json';
import { createApiServer } from '../server/assembly.ts';
import { publishProxyAuthority } from '../aggregator/proxy-authority.ts';
import { bootstrap } from './bootstrap.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { findServed, keyOf } from '../storage/served.ts';
import { EXPECT_ANY } from '../storage/storage.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import { upkeepSelf } from './self-upkeep.ts';

const FACTS = {
  serviceAddress: '10.96.0.1',
  address: '127.0.0.1',
  port: 6443,
  serviceRanges: ['10.96.0.0/16'],
  clientAuthority: 'PEM',
  frontProxy: { 'requestheader-username-headers': ['X-Remote-User'] },
  startedAt: '2026-01-31T10:00:00Z',
};
const SELF = { id: 'apiserver-abc', holder: 'apiserver-abc_1', hostname: 'here' };

function cluster() {
  const time = { nowMs: Date.UTC(2026, 0, 31, 10) };
  let uids = 0;
  const edge = {
    nowMs: () => time.nowMs,
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uids).padStart(12, '0')}`,
    defer: (work: () => void) => work(),
    deferPiece: (work: () => void) => work(),
  };
  const api = createApiServer({ storage: new StorageModel(), edge, address: '' });
  const ask = (method: string, path: string): JsonObject => {
    const exchange = new ExchangeModel(method, path);
    api.handle(exchange);
    return JSON.parse(exchange.text) as JsonObject;
  };
  bootstrap(api.parts.world, FACTS);
  return { world: api.parts.world, ask, time };
}

test('the network of services comes back when it was deleted', () => {
  const { world, ask, time } = cluster();
  const path = '/apis/networking.k8s.io/v1/servicecidrs/kubernetes';
  const served = findServed('networking.k8s.io', 'v1', 'servicecidrs');
  assert.ok(served !== undefined);
  world.storage.delete(keyOf(served, '', 'kubernetes'), EXPECT_ANY, () => {});
  assert.equal(ask('GET', path)['kind'], 'Status');
  time.nowMs += 5000;
  upkeepSelf(world, FACTS, SELF);
  const cidr = ask('GET', path);
  assert.deepEqual(cidr['spec'], { cidrs: ['10.96.0.0/16'] });
  assert.match(JSON.stringify(cidr['status']), /"lastTransitionTime":"2026-01-31T10:00:05Z"/);
});

test('what a server tells of itself comes back, and follows it when it moves', () => {
  const { world, ask } = cluster();
  const paths = [
    '/api/v1/namespaces/default/services/kubernetes',
    '/api/v1/namespaces/default/endpoints/kubernetes',
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  ];
  for (const path of paths) assert.notEqual(ask('DELETE', path)['kind'], undefined);
  upkeepSelf(world, FACTS, SELF);
  for (const path of paths) assert.notEqual(ask('GET', path)['kind'], 'Status', path);
  const owned = paths.map((path) => objectAt(ask('GET', path), 'metadata')?.['managedFields']);
  assert.match(JSON.stringify(owned[0]), /"f:clusterIP":{}.*"f:ipFamilyPolicy":{}/);
  assert.doesNotMatch(JSON.stringify(owned[0]), /f:clusterIPs|f:ipFamilies/);
  assert.deepEqual(owned.slice(1), [undefined, undefined]);
  upkeepSelf(world, { ...FACTS, port: 7443 }, SELF);
  const endpoints = ask('GET', paths[1] ?? '');
  assert.deepEqual(endpoints['subsets'], [
    { addresses: [{ ip: '127.0.0.1' }], ports: [{ name: 'https', port: 7443, protocol: 'TCP' }] },
  ]);
  const { resourceVersion } = objectAt(endpoints, 'metadata') ?? {};
  upkeepSelf(world, { ...FACTS, port: 7443 }, SELF);
  const again = objectAt(ask('GET', paths[1] ?? ''), 'metadata') ?? {};
  assert.equal(again['resourceVersion'], resourceVersion, 'nothing was to do');
});

test('a server that lives has a lease, one that is gone loses it', () => {
  const { world, ask, time } = cluster();
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
  upkeepSelf(world, FACTS, { ...SELF, id: 'apiserver-old', holder: 'apiserver-old_1' });
  time.nowMs += 3_599_000;
  upkeepSelf(world, FACTS, SELF);
  const names = (): unknown[] =>
    (ask('GET', path)['items'] as JsonObject[]).map((one) => objectAt(one, 'metadata')?.['name']);
  assert.deepEqual(names(), ['apiserver-abc', 'apiserver-old']);
  time.nowMs += 10_000;
  upkeepSelf(world, FACTS, SELF);
  assert.deepEqual(names(), ['apiserver-abc']);
  const lease = ask('GET', `${path}/apiserver-abc`);
  assert.deepEqual(objectAt(lease, 'metadata', 'labels'), {
    'apiserver.kubernetes.io/identity': 'kube-apiserver',
    'kubernetes.io/hostname': 'here',
  });
  assert.equal(objectAt(lease, 'spec')?.['renewTime'], '2026-01-31T11:00:09.000000Z');
});

test('other programs find whom this server believes, and which addresses services have', () => {
  const { world, ask } = cluster();
  publishProxyAuthority(world, { clientCa: 'PEM', proxyCa: 'PROXIES', names: ['front'] });
  const map = ask(
    'GET',
    '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
  );
  assert.deepEqual(map['data'], {
    'client-ca-file': 'PEM',
    'requestheader-allowed-names': '["front"]',
    'requestheader-client-ca-file': 'PROXIES',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  });
  const cidr = ask('GET', '/apis/networking.k8s.io/v1/servicecidrs/kubernetes');
  assert.deepEqual(cidr['spec'], { cidrs: ['10.96.0.0/16'] });
});

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { EtcdClient } from '@megaplane/etcd/client/client';
import { parseEndpoints } from '@megaplane/etcd/client/endpoints';
import { listAt, objectAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { RealEtcd, withoutEtcd } from '../storage/etcd3/real-etcd.sim.ts';
import { startServer, until, type TestServer } from '../testing/servers.sim.ts';
import { masterLeaseKey } from '../storage/master-leases.ts';
import { emptyRow } from '../storage/storage.ts';
import { shownEndpoint } from './advertised-address.ts';
import { EndpointLeases, withAddresses } from './endpoint-leases.ts';
import { endpointPorts, endpointsOf, sliceOf } from './server-objects.ts';

const ENDPOINTS = '/api/v1/namespaces/default/endpoints/kubernetes';
const SLICE = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';
const [A, B] = ['192.0.2.10', '192.0.2.9'];

const etcd = new RealEtcd();
if (withoutEtcd === false) await etcd.start();
after(() => etcd.remove());

function leasesOf(server: TestServer, address: string, logged: string[] = []): EndpointLeases {
  return new EndpointLeases(server.api.parts.world, { address, port: 6443 }, (message) =>
    logged.push(message),
  );
}

async function shown(server: TestServer): Promise<{ endpoints: JsonObject; slice: JsonObject }> {
  const [endpoints, slice] = await Promise.all([
    server.ask('GET', ENDPOINTS),
    server.ask('GET', SLICE),
  ]);
  return {
    endpoints: JSON.parse(endpoints.text) as JsonObject,
    slice: JSON.parse(slice.text) as JsonObject,
  };
}

async function assertShown(server: TestServer, addresses: readonly string[]): Promise<void> {
  const { endpoints, slice } = await shown(server);
  const wanted = endpointsOf(addresses, 6443);
  assert.deepEqual(endpoints['subsets'], addresses.length === 0 ? undefined : wanted['subsets']);
  assert.deepEqual(listAt(slice, 'endpoints'), listAt(sliceOf(wanted), 'endpoints'));
  const labels = [objectAt(endpoints, 'metadata', 'labels'), objectAt(slice, 'metadata', 'labels')];
  assert.deepEqual(labels, [
    { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    { 'kubernetes.io/service-name': 'kubernetes' },
  ]);
}

test('the Service leads to all servers that live', { skip: withoutEtcd }, async () => {
  const flags = { etcdServers: etcd.url, etcdPrefix: '/alive' };
  const more = { masterLeaseSeconds: 3 };
  const left = await startServer(flags, null, [], more);
  const right = await startServer(flags, null, [], more);
  const [ofLeft, ofRight] = [leasesOf(left, A), leasesOf(right, B)];
  await ofLeft.look();
  await assertShown(left, [A]);
  await ofRight.look();
  // on a slow machine the steps take longer than the leases last
  const renewing = [ofLeft, ofRight].map((one) => setInterval(() => void one.look(), 200));
  await assertShown(right, [A, B]);
  await ofLeft.look();
  await assertShown(left, [A, B]);

  // nothing is written where nothing has changed
  const before = await shown(left);
  await ofLeft.look();
  assert.deepEqual(await shown(left), before);

  // the right one is gone without a word
  clearInterval(renewing[1]);
  await right.stop();
  const row = emptyRow();
  await until('the lease to end', () => !left.storage.get(masterLeaseKey(B), row));
  await ofLeft.look();
  await assertShown(left, [A]);

  // another comes and goes with one
  const next = await startServer(flags, null, [], more);
  const ofNext = leasesOf(next, B);
  await ofNext.look();
  await ofLeft.look();
  await assertShown(left, [A, B]);
  await ofNext.leave();
  await assertShown(left, [A]);
  await ofNext.look();
  await assertShown(left, [A]);
  clearInterval(renewing[0]);
  await ofLeft.leave();
  await assertShown(next, []);
  await Promise.all([left.stop(), next.stop()]);
});

test('a lease is kept as upstream keeps it', { skip: withoutEtcd }, async () => {
  const server = await startServer({ etcdServers: etcd.url, etcdPrefix: '/form' });
  const leases = leasesOf(server, A);
  await leases.look();
  await leases.look();
  const endpoints = parseEndpoints('--etcd-servers', etcd.url);
  const client = new EtcdClient({ endpoints, tls: () => null, log: () => {} });
  const found = await client.range({ key: Buffer.from(`/form/masterleases/${A}`) });
  assert(found.ok);
  const value = found.value.kvs[0]?.value;
  // as kube-apiserver 1.36.1: metadata with a generation of 2 and no time, then the address
  const metadata = '0a100a0012001a0022002a00320038024200';
  const subset = `12100a0e0a0a${Buffer.from(A, 'latin1').toString('hex')}1a001a00`;
  const head = Buffer.from('k8s\0\n\x0f\n\x02v1\x12\tEndpoints\x12$', 'latin1').toString('hex');
  assert.equal(value?.toString('hex'), `${head}${metadata}${subset}2200`);
  client.close();
  await server.stop();
});

test('addresses are not erased where no server has a lease', { skip: withoutEtcd }, async () => {
  const server = await startServer({ etcdServers: etcd.url, etcdPrefix: '/none' });
  await server.bootstrap();
  const before = await shown(server);
  const { storage } = server;
  const logged: string[] = [];
  const leases = leasesOf(server, A, logged);
  const page = storage.page.bind(storage);
  storage.page = () => 'end';
  await leases.look();
  storage.page = page;
  assert.match(logged.join('\n'), /no server has a lease/);
  assert.deepEqual(await shown(server), before);
  await server.stop();
});

test('what others wrote of the Service is kept as far as it can be', () => {
  const ports = endpointPorts(6443);
  const subsetsOf = (from: JsonObject, addresses: string[], judges = false): unknown =>
    withAddresses(from, addresses, ports, judges)['subsets'];
  const other = endpointsOf([A], 7443);
  assert.deepEqual(subsetsOf(other, [A, B]), endpointsOf([A, B], 7443)['subsets']);
  assert.deepEqual(subsetsOf(other, [A, B], true), endpointsOf([A, B], 6443)['subsets']);
  assert.deepEqual(subsetsOf(other, [B, A, B]), endpointsOf([A, B], 7443)['subsets']);
  const unsorted = endpointsOf([B, A], 6443);
  assert.deepEqual(withAddresses(unsorted, [A, B], ports, true), unsorted);
  const two = { ...other, subsets: [...listAt(other, 'subsets'), { addresses: [{ ip: B }] }] };
  assert.deepEqual(subsetsOf(two, [A]), endpointsOf([A], 6443)['subsets']);
  assert.equal(subsetsOf(other, []), undefined);
  const bare = { ...other, metadata: { name: 'kubernetes', labels: { a: 'b' } } };
  assert.deepEqual(objectAt(withAddresses(bare, [A], ports, false), 'metadata', 'labels'), {
    a: 'b',
    'endpointslice.kubernetes.io/skip-mirror': 'true',
  });
  const mixed = sliceOf(endpointsOf(['2001:db8::1', A], 6443));
  assert.equal(mixed['addressType'], 'IPv4');
  assert.deepEqual(
    listAt(mixed, 'endpoints').map((one) => listAt(one, 'addresses')),
    [[A]],
  );
  assert.equal(sliceOf(endpointsOf(['2001:db8::1'], 6443))['addressType'], 'IPv6');
});

test('the flags say where a server is reached, and who tells of it', () => {
  const own = { address: '127.0.0.1', isLeased: false, leavesEndpoints: false };
  assert.deepEqual(shownEndpoint({}, '127.0.0.1', false), own);
  assert.deepEqual(shownEndpoint({}, '0.0.0.0', false), own);
  const leased = { address: A, isLeased: true, leavesEndpoints: true };
  assert.deepEqual(shownEndpoint({}, A, true), leased);
  assert.deepEqual(shownEndpoint({ advertiseAddress: A }, '0.0.0.0', true), leased);
  const none = { advertiseAddress: A, endpointReconcilerType: 'none' };
  assert.deepEqual(shownEndpoint(none, '0.0.0.0', true), { ...leased, isLeased: false });
  assert.deepEqual(shownEndpoint({ advertiseAddress: '127.0.0.1' }, A, true), own);
  assert.throws(() => shownEndpoint({ advertiseAddress: 'here' }, A, true), /--advertise-address/);
  const wrong = { endpointReconcilerType: 'master-count' };
  assert.throws(() => shownEndpoint(wrong, A, true), /"master-count" is not lease or none/);
});

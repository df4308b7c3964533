import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import { holdsAddress, isCovered, overlap } from './service-networks.ts';

const ROOT = '/apis/networking.k8s.io/v1';
const LABELS = { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };

test('a network holds its addresses but for the first, and the last of IPv4', () => {
  for (const [network, address, isIn] of [
    ['10.0.0.0/24', '10.0.0.7', true],
    ['10.0.0.0/24', '10.0.0.0', false],
    ['10.0.0.0/24', '10.0.0.255', false],
    ['10.0.0.0/24', '10.0.1.7', false],
    ['10.0.0.8/29', '10.0.0.15', false],
    ['10.0.0.8/29', '10.0.0.14', true],
    ['fd00::/112', 'fd00::1', true],
    ['fd00::/112', 'fd00::ffff', true],
    ['fd00::/112', 'fd00::', false],
    ['fd00::/112', '10.0.0.7', false],
  ] as const) {
    assert.equal(holdsAddress([network], address), isIn, `${network} ${address}`);
  }
});

test('networks overlap where one is part of the other, and are covered by wider ones', () => {
  assert(overlap(['10.0.0.0/24'], ['10.0.0.128/25']));
  assert(!overlap(['10.0.0.0/25'], ['10.0.0.128/25']));
  assert(!overlap(['10.0.0.0/8'], ['fd00::/8']));
  assert(isCovered(['10.0.0.128/25'], [['10.0.0.0/24']]));
  assert(!isCovered(['10.0.0.0/24'], [['10.0.0.128/25']]));
  assert(!isCovered(['10.0.0.0/24', 'fd00::/112'], [['10.0.0.0/24']]));
});

async function add(api: WorkloadApi, kind: string, name: string, more: JsonObject): Promise<void> {
  const path = `${ROOT}/${kind.toLowerCase()}${kind.endsWith('s') ? 'es' : 's'}`;
  const apiVersion = 'networking.k8s.io/v1';
  const { labels = {}, ...rest } = more;
  const body = { apiVersion, kind, metadata: { name, labels }, ...rest };
  assert((await api.request({ method: 'POST', path, body })).ok);
  await api.advance(100);
}

function cidr(api: WorkloadApi, name: string): [finalizers: number, ready: string] | undefined {
  const object = api.objects.get(`${ROOT}/servicecidrs /${name}`);
  if (object === undefined) return undefined;
  const ready = listAt(object, 'status', 'conditions')[0];
  return [
    listAt(object, 'metadata', 'finalizers').length,
    `${stringAt(ready, 'status')} ${stringAt(ready, 'reason')}`.trim(),
  ];
}

async function remove(api: WorkloadApi, path: string): Promise<void> {
  await api.request({ method: 'DELETE', path: `${ROOT}/${path}`, body: {} });
  await api.advance(1_000);
}

test('a service network goes when no address needs it, ten seconds later', async () => {
  const api = new WorkloadApi();
  startManager(api, ['service-cidr-controller']);
  await api.advance(100);
  await add(api, 'ServiceCIDR', 'one', { spec: { cidrs: ['10.0.0.0/24'] } });
  assert.deepEqual(cidr(api, 'one'), [1, 'True']);
  await add(api, 'IPAddress', '10.0.0.7', { labels: LABELS });
  await add(api, 'IPAddress', '10.0.0.8', {});
  await remove(api, 'servicecidrs/one');
  await api.advance(60_000);
  assert.deepEqual(cidr(api, 'one'), [1, 'False Terminating']);
  const writes = api.log.length;
  await api.advance(600_000);
  assert.equal(api.log.length, writes, 'nothing more is written');
  await remove(api, 'ipaddresses/10.0.0.7');
  assert.equal(cidr(api, 'one'), undefined);
});

test('a wider network that comes lets a narrower one go', async () => {
  const api = new WorkloadApi();
  startManager(api, ['service-cidr-controller']);
  await api.advance(100);
  await add(api, 'ServiceCIDR', 'one', { spec: { cidrs: ['10.0.0.0/24'] } });
  await add(api, 'IPAddress', '10.0.0.7', { labels: LABELS });
  await remove(api, 'servicecidrs/one');
  assert.deepEqual(cidr(api, 'one'), [1, 'False Terminating']);
  await add(api, 'ServiceCIDR', 'wide', { spec: { cidrs: ['10.0.0.0/16'] } });
  assert.deepEqual(cidr(api, 'one')?.[0], 1, 'API servers are given time');
  await api.advance(10_000);
  assert.equal(cidr(api, 'one'), undefined);
  assert.deepEqual(cidr(api, 'wide'), [1, 'True']);
});

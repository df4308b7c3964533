/** Addresses of Services come from every network that there is, and from no other. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { AccessModel } from '../../testing/access.sim.ts';
import { freeAddressIn, networkOf } from './service-networks.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const NETWORKS = '/apis/networking.k8s.io/v1/servicecidrs';
const MISMATCH = 'the provided network does not match the current range';

function server(): AccessModel {
  const model = new AccessModel({});
  model.ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return model;
}

/** The address that a new Service has, or why it has none. */
function addressOf(model: AccessModel, name: string, clusterIP?: string): string {
  const spec = { ports: [{ port: 80 }], ...(clusterIP === undefined ? {} : { clusterIP }) };
  const { text } = model.ask('POST', SERVICES, { metadata: { name }, spec });
  const answer = JSON.parse(text) as JsonObject;
  return stringAt(answer, 'spec', 'clusterIP') || stringAt(answer, 'message').replace(/.*: /, '');
}

function add(model: AccessModel, name: string, cidr: string): void {
  model.ask('POST', NETWORKS, { metadata: { name }, spec: { cidrs: [cidr] } });
}

test('an address of an added network is given, its ends and those of others are not', () => {
  const model = server();
  assert.equal(addressOf(model, 'a', '10.200.0.9'), MISMATCH);
  assert.equal(addressOf(model, 'b', '10.96.0.9'), '10.96.0.9', 'the network of the flag');
  add(model, 'kubernetes', '10.96.0.0/16');
  add(model, 'more', '10.200.0.0/24');
  assert.equal(addressOf(model, 'a', '10.200.0.9'), '10.200.0.9');
  assert.equal(addressOf(model, 'c', '10.200.0.9'), 'provided IP is already allocated');
  for (const address of ['10.200.0.0', '10.200.0.255', '10.200.1.1', '10.96.0.0']) {
    assert.equal(addressOf(model, 'c', address), MISMATCH, address);
  }
  model.ask('DELETE', `${NETWORKS}/more`);
  assert.equal(addressOf(model, 'c', '10.200.0.10'), MISMATCH, 'the network has gone');
});

test('a network’s first addresses are given last, and each one once', () => {
  const network = networkOf('10.0.0.0/26');
  assert(network !== null);
  const taken = new Set<string>();
  const give = (): string => {
    const address = freeAddressIn(
      network,
      (one) => !taken.has(one),
      (n) => n >> 1,
    );
    taken.add(address);
    return address;
  };
  const found = Array.from({ length: 62 }, give).map((one) => Number(one.split('.')[3]));
  assert.deepEqual(
    found.toSorted((a, b) => a - b),
    Array.from({ length: 62 }, (_, at) => at + 1),
  );
  assert(
    found.slice(0, 46).every((last) => last > 16),
    '16 are kept for those who name one',
  );
  assert.equal(give(), '');
});

test('a Service of two families has an address of each until it wants one only', () => {
  const model = server();
  model.serviceRanges = ['10.96.0.0/16', 'fd00:96::/112'];
  const meta = { metadata: { name: 'a' } };
  const spec = { ports: [{ port: 80 }], ipFamilyPolicy: 'PreferDualStack' };
  const addresses = (answer: { readonly text: string }): string[] => {
    return (JSON.parse(answer.text) as { spec: { clusterIPs: string[] } }).spec.clusterIPs;
  };
  const both = addresses(model.ask('POST', SERVICES, { ...meta, spec }));
  assert.match(both.join(' '), /^10\.96\.\d+\.\d+ fd00:96::[0-9a-f]+$/);
  const owned = (address = ''): number =>
    model.ask('GET', `/apis/networking.k8s.io/v1/ipaddresses/${address}`).status;
  assert.deepEqual(both.map(owned), [200, 200]);
  const type = { 'content-type': 'application/merge-patch+json' };
  const patch = (change: JsonObject): { readonly text: string } => {
    return model.ask('PATCH', `${SERVICES}/a`, Buffer.from(JSON.stringify(change)), '', type);
  };
  assert.deepEqual(addresses(patch({ spec: { ipFamilyPolicy: 'SingleStack' } })), [both[0]]);
  assert.deepEqual(both.map(owned), [200, 404]);
  const again = addresses(patch({ spec: { ipFamilyPolicy: 'RequireDualStack' } }));
  assert.equal(again[0], both[0]);
  assert.match(again[1] ?? '', /^fd00:96::/);
  // what was given stays, also when its network has gone
  model.serviceRanges = ['10.97.0.0/16', 'fd00:97::/112'];
  assert.deepEqual(addresses(patch({ metadata: { labels: { a: 'b' } } })), again);
  model.ask('DELETE', `${SERVICES}/a`);
  assert.deepEqual(again.map(owned), [404, 404]);
});

test('the next network is used when one is full or not ready', () => {
  const model = server();
  add(model, 'kubernetes', '10.96.0.0/30');
  add(model, 'more', '10.200.0.0/24');
  const found = ['a', 'b', 'c', 'd'].map((name) => addressOf(model, name));
  assert.deepEqual(
    found.map((address) => address.split('.').slice(0, 2).join('.')).toSorted(),
    ['10.200', '10.200', '10.96', '10.96'].toSorted(),
  );
  const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'x' }] };
  const patch = JSON.stringify({ status });
  const type = { 'content-type': 'application/merge-patch+json' };
  model.ask('PATCH', `${NETWORKS}/more/status`, Buffer.from(patch), '', type);
  assert.match(addressOf(model, 'e'), /range is full/);
});

test('/metrics tells what is taken and what is left of each network, and of the ports', () => {
  const model = server();
  const told = (): string[] => {
    const { text } = model.ask('GET', '/metrics');
    return text.split('\n').filter((line) => line.startsWith('kube_apiserver_'));
  };
  const spec = { type: 'NodePort', ports: [{ port: 80 }] };
  model.ask('POST', SERVICES, { metadata: { name: 'a' }, spec });
  const ips = 'kube_apiserver_clusterip_allocator';
  const ports = 'kube_apiserver_nodeport_allocator';
  const refused = { ...spec, ports: [{ port: 80, nodePort: 30000 }] };
  assert.equal(model.ask('POST', SERVICES, { metadata: { name: 'x' }, spec: refused }).status, 422);
  assert.deepEqual(told(), [
    `${ips}_allocation_total{cidr="10.96.0.0/16",scope="dynamic"} 2`,
    `${ports}_allocation_total{scope="dynamic"} 1`,
    `${ports}_allocation_errors_total{scope="static"} 1`,
    `${ips}_allocated_ips{cidr="10.96.0.0/16"} 1`,
    `${ips}_available_ips{cidr="10.96.0.0/16"} 65533`,
    `${ports}_allocated_ports 1`,
    `${ports}_available_ports 2767`,
  ]);
  add(model, 'kubernetes', '10.96.0.0/16');
  add(model, 'more', '10.200.0.0/24');
  assert.equal(addressOf(model, 'b', '10.200.0.9'), '10.200.0.9');
  assert.deepEqual(told().slice(0, 8), [
    `${ips}_allocation_total{cidr="10.96.0.0/16",scope="dynamic"} 2`,
    `${ips}_allocation_total{cidr="10.200.0.0/24",scope="static"} 1`,
    `${ports}_allocation_total{scope="dynamic"} 1`,
    `${ports}_allocation_errors_total{scope="static"} 1`,
    `${ips}_allocated_ips{cidr="10.96.0.0/16"} 1`,
    `${ips}_allocated_ips{cidr="10.200.0.0/24"} 1`,
    `${ips}_available_ips{cidr="10.96.0.0/16"} 65533`,
    `${ips}_available_ips{cidr="10.200.0.0/24"} 253`,
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeInfo } from '../framework/node-info.ts';
import { allocatedBy } from '../devices/allocated-devices.ts';
import { DeviceAllocator, type Allocation } from './device-allocator.ts';
import type { Device, DeviceClassObject, ResourceClaimObject } from '../devices/device-objects.ts';
import { SliceIndex, type Slice } from '../devices/device-pools.ts';

const node = new NodeInfo({ metadata: { name: 'n', labels: { zone: 'a' } } });
const GPU: DeviceClassObject = {
  metadata: { name: 'gpu' },
  spec: { selectors: [{ cel: { expression: 'device.driver == "d.example"' } }] },
};

function slice(devices: readonly Device[], change: Partial<Slice> = {}): Slice {
  const pool = { name: 'p', generation: 1, resourceSliceCount: 1 };
  return { driver: 'd.example', nodeName: 'n', pool, devices, ...change };
}

function claim(name: string, devices: object): ResourceClaimObject {
  return { metadata: { name, namespace: 'default', uid: name }, spec: { devices } };
}

function want(name: string, demand: object = {}): object {
  return { name, exactly: { deviceClassName: 'gpu', ...demand } };
}

function allocate(
  slices: readonly Slice[],
  claims: readonly ResourceClaimObject[],
  held: readonly ResourceClaimObject[] = [],
): Allocation {
  const classOf = (name: string): DeviceClassObject | undefined =>
    name === 'gpu' ? GPU : undefined;
  return new DeviceAllocator(claims, new SliceIndex(slices), classOf, allocatedBy(held)).allocate(
    node,
  );
}

/** `request=device` of each claim, or how it ended. */
function shown(allocation: Allocation): string {
  if (allocation.kind === 'error') return allocation.text;
  if (allocation.kind !== 'found') return allocation.kind;
  const claims = allocation.results.map(({ devices }) =>
    devices.results.map(({ request, device }) => `${request}=${device}`).join(' '),
  );
  return claims.join('; ');
}

const plain = (name: string, attributes: Device['attributes'] = {}): Device => ({
  name,
  attributes,
});

test('devices are given out one by one, in the order of the slice', () => {
  const slices = [slice([plain('a'), plain('b')])];
  const one = claim('c1', { requests: [want('r')] });
  const two = claim('c2', { requests: [want('r', { count: 2 })] });
  assert.equal(shown(allocate(slices, [one])), 'r=a');
  assert.equal(shown(allocate(slices, [two])), 'r=a r=b');
  assert.equal(shown(allocate(slices, [one, two])), 'none');
});

test('what a claim holds is nobody else’s, but for administrators', () => {
  const slices = [slice([plain('a')])];
  const result = { request: 'r', driver: 'd.example', pool: 'p', device: 'a' };
  const holder: ResourceClaimObject = {
    ...claim('h', {}),
    status: { allocation: { devices: { results: [result] } } },
  };
  const open = claim('c', { requests: [want('r')] });
  assert.equal(shown(allocate(slices, [open], [holder])), 'none');
  const admin = claim('c', { requests: [want('r', { adminAccess: true })] });
  const allocation = allocate(slices, [admin], [holder]);
  assert.equal(shown(allocation), 'r=a');
  assert(allocation.kind === 'found');
  assert.equal(allocation.results[0]?.devices.results[0]?.adminAccess, true);
});

test('the search goes back when a constraint cannot be met with its first choice', () => {
  const attributes = (numa: number): Device['attributes'] => ({ numa: { int: numa } });
  const slices = [
    slice([plain('a', attributes(0)), plain('b', attributes(1)), plain('c', attributes(1))]),
  ];
  const constraints = [{ matchAttribute: 'd.example/numa' }];
  const pair = claim('c', { requests: [want('r', { count: 2 })], constraints });
  assert.equal(shown(allocate(slices, [pair])), 'r=b r=c');
  const apart = claim('c', {
    requests: [want('r', { count: 2 })],
    constraints: [{ distinctAttribute: 'd.example/numa' }],
  });
  assert.equal(shown(allocate(slices, [apart])), 'r=a r=b');
});

test('alternatives are tried in their order, and classes and claims bring their parameters', () => {
  const slices = [slice([plain('a', { size: { string: 'small' } })])];
  const sized = (size: string): object => ({
    name: size,
    deviceClassName: 'gpu',
    selectors: [{ cel: { expression: `device.attributes["d.example"].size == "${size}"` } }],
  });
  const config = [
    { requests: ['r/large'], opaque: { driver: 'x' } },
    { requests: ['r'], opaque: { driver: 'y' } },
  ];
  const requests = [{ name: 'r', firstAvailable: [sized('large'), sized('small')] }];
  const allocation = allocate(slices, [claim('c', { requests, config })]);
  assert.equal(shown(allocation), 'r/small=a');
  assert(allocation.kind === 'found');
  assert.deepEqual(allocation.results[0]?.devices.config, [
    { source: 'FromClaim', requests: ['r'], opaque: { driver: 'y' } },
  ]);
});

test('all devices means all of them, of pools that are whole', () => {
  const slices = [slice([plain('a'), plain('b')])];
  const all = claim('c', { requests: [want('r', { allocationMode: 'All' })] });
  assert.equal(shown(allocate(slices, [all])), 'r=a r=b');
  assert.equal(shown(allocate([slice([])], [all])), 'none');
  const pool = { name: 'p', generation: 1, resourceSliceCount: 2 };
  assert.equal(
    shown(allocate([slice([plain('a')], { pool })], [all])),
    'claim default/c, request r: asks for all devices, but resource pool d.example/p is ' +
      'currently being updated',
  );
});

test('a newer generation of a pool replaces the older one', () => {
  const newer = { name: 'p', generation: 2, resourceSliceCount: 1 };
  const slices = [slice([plain('old')]), slice([plain('new')], { pool: newer })];
  const one = claim('c', { requests: [want('r')] });
  assert.equal(shown(allocate(slices, [one])), 'r=new');
  // Where the node has all slices of the older one, nobody looks for a newer one elsewhere.
  const elsewhere = slice([plain('new')], { pool: newer, nodeName: 'm' });
  assert.equal(shown(allocate([slice([plain('old')]), elsewhere], [one])), 'r=old');
  const pool = { name: 'p', generation: 1, resourceSliceCount: 2 };
  assert.equal(shown(allocate([slice([plain('old')], { pool }), elsewhere], [one])), 'none');
});

test('tainted devices are for those who tolerate it', () => {
  const tainted: Device = { name: 'a', taints: [{ key: 'broken', effect: 'NoSchedule' }] };
  const one = claim('c', { requests: [want('r')] });
  assert.equal(shown(allocate([slice([tainted])], [one])), 'none');
  const tolerations = [{ key: 'broken', operator: 'Exists' }];
  const calm = claim('c', { requests: [want('r', { tolerations })] });
  assert.equal(shown(allocate([slice([tainted])], [calm])), 'r=a');
});

test('partitions use up the counters that they share', () => {
  const pool = { name: 'p', generation: 1, resourceSliceCount: 2 };
  const part = (name: string, memory: string): Device => ({
    name,
    consumesCounters: [{ counterSet: 's', counters: { memory: { value: memory } } }],
  });
  const sharedCounters = [{ name: 's', counters: { memory: { value: '40Gi' } } }];
  const slices: Slice[] = [
    { driver: 'd.example', pool, nodeName: 'n', sharedCounters },
    slice([part('whole', '40Gi'), part('half-1', '20Gi'), part('half-2', '20Gi')], { pool }),
  ];
  const two = claim('c', { requests: [want('r', { count: 2 })] });
  assert.equal(shown(allocate(slices, [two])), 'r=half-1 r=half-2');
  const three = claim('c', { requests: [want('r', { count: 3 })] });
  assert.equal(shown(allocate(slices, [three])), 'none');
  const lacking = slice([part('x', '1Gi')]);
  assert.equal(shown(allocate([lacking], [claim('c', { requests: [want('r')] })])), 'invalid');
});

test('claims share the capacity of a device that allows it', () => {
  const shared: Device = {
    name: 'nic',
    allowMultipleAllocations: true,
    capacity: { bandwidth: { value: '10G', requestPolicy: { default: '1G' } } },
  };
  const part = (name: string, bandwidth?: string): ResourceClaimObject => {
    const capacity = bandwidth === undefined ? {} : { capacity: { requests: { bandwidth } } };
    return claim(name, { requests: [want('r', capacity)] });
  };
  const slices = [slice([shared])];
  const allocation = allocate(slices, [part('a', '6G'), part('b')]);
  assert(allocation.kind === 'found');
  const [first, second] = allocation.results.map(({ devices }) => devices.results[0]);
  assert.deepEqual(first?.consumedCapacity, { bandwidth: '6G' });
  assert.deepEqual(second?.consumedCapacity, { bandwidth: '1G' });
  assert.notEqual(first?.shareID, second?.shareID);
  assert.equal(shown(allocate(slices, [part('a', '6G'), part('b', '5G')])), 'none');
});

test('faults of expressions, classes and sizes end the search with a text', () => {
  const slices = [slice([plain('a')])];
  const selectors = [{ cel: { expression: 'device.attributes["d.example"].nope == 1' } }];
  assert.equal(
    shown(allocate(slices, [claim('c', { requests: [want('r', { selectors })] })])),
    'claim default/c: selector #0: CEL runtime error: no such key: nope',
  );
  const text = [{ cel: { expression: '"text"' } }];
  assert.match(
    shown(allocate(slices, [claim('c', { requests: [want('r', { selectors: text })] })])),
    /must evaluate to bool or the unknown type, not string/,
  );
  const many = claim('c', { requests: [want('r', { count: 33 })] });
  assert.match(shown(allocate(slices, [many])), /33 exceeds the claim limit of 32/);
  const missing = claim('c', { requests: [want('r', { deviceClassName: 'tpu' })] });
  assert.match(shown(allocate(slices, [missing])), /could not retrieve device class tpu/);
});

test('slices for a node keep their order among those for any, and others are not looked at', () => {
  const where = (name: string, at: object): Slice => {
    return { driver: 'd', pool: { name, generation: 1, resourceSliceCount: 1 }, ...at };
  };
  const slices = [
    where('any', { allNodes: true }),
    where('own', { nodeName: 'n' }),
    where('other', { nodeName: 'm' }),
    where('chosen', { nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [] }] } }),
    where('last', { allNodes: true }),
    where('counted', { nodeName: 'm', sharedCounters: [{ name: 's', counters: {} }] }),
  ];
  const found = new SliceIndex(slices).targeting(node);
  assert.deepEqual(
    found.map(({ pool }) => pool.name),
    ['any', 'own', 'last', 'counted'],
  );
});

test('pools and slices are gone through by name, pools with binding conditions last', () => {
  const named = (driver: string, pool: string, device: Device, count = 1): Slice =>
    slice([device], { driver, pool: { name: pool, generation: 1, resourceSliceCount: count } });
  const index = new SliceIndex();
  index.set('s5', named('d.example', 'a', { name: 'bound', bindingConditions: ['ready'] }));
  index.set('s4', named('d.example', 'b', plain('third'), 2));
  index.set('s3', named('d.example', 'b', plain('second'), 2));
  index.set('s2', named('c.example', 'z', plain('first')));
  const demand = { deviceClassName: 'any', count: 4 };
  const own = claim('c', { requests: [{ name: 'r', exactly: demand }] });
  const any: DeviceClassObject = { metadata: { name: 'any' } };
  const allocator = new DeviceAllocator([own], index, () => any, allocatedBy([]));
  assert.equal(shown(allocator.allocate(node)), 'r=first r=second r=third r=bound');
});

test('a counter that is overdrawn leaves nothing of its pool that uses counters', () => {
  const counters = (value: string): object => ({ m: { value } });
  const using = (name: string, counterSet: string, value: string): Device =>
    ({ name, consumesCounters: [{ counterSet, counters: counters(value) }] }) as Device;
  const pool = { name: 'p', generation: 1, resourceSliceCount: 2 };
  const sharedCounters = [
    { name: 'one', counters: counters('4') },
    { name: 'two', counters: counters('4') },
  ] as NonNullable<Slice['sharedCounters']>;
  const devices = [using('a', 'one', '5'), using('b', 'two', '1'), plain('c')];
  const slices = [slice(devices, { pool }), slice([], { pool, sharedCounters })];
  const result = { request: 'r', driver: 'd.example', pool: 'p', device: 'a' };
  const holder: ResourceClaimObject = {
    ...claim('h', {}),
    status: { allocation: { devices: { results: [result] } } },
  };
  assert.equal(shown(allocate(slices, [claim('c', { requests: [want('r')] })])), 'r=b');
  assert.equal(shown(allocate(slices, [claim('c', { requests: [want('r')] })], [holder])), 'r=c');
});

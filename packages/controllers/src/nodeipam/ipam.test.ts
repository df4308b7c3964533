import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAt, stringAt } from '@megaplane/machinery/json';
import fc from 'fast-check';
import { startManager } from '../../test/manager.ts';
import { WorkloadApi } from '../../test/workload-api.ts';
import type { ControllersOptions } from '../framework/options.ts';
import { blockText, CidrPool, parseBlock } from './cidr-pool.ts';
import { poolsOf } from './controller.ts';

function block(text: string): Exclude<ReturnType<typeof parseBlock>, undefined> {
  const parsed = parseBlock(text);
  assert(parsed !== undefined, text);
  return parsed;
}

test('blocks are read and written in one form, and nonsense is refused', () => {
  const cases = [
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['fd00:0:0::/48', 'fd00::/48'],
    ['2001:db8:0:1:0:0:0:0/64', '2001:db8:0:1::/64'],
    ['1:0:0:2:0:0:0:0/64', '1:0:0:2::/64'],
    ['::/0', '::/0'],
    ['::ffff:10.0.0.0/104', '::ffff:a00:0/104'],
  ] as const;
  for (const [text, shown] of cases) assert.equal(blockText(block(text)), shown);
  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0.1/8',
    '10.0.0.0/33',
    'fd00::/129',
    'x/8',
    '1.2.3/8',
  ]) {
    assert.equal(parseBlock(text), undefined, text);
  }
});

test('pieces are given one after the other, around and around', () => {
  const pool = new CidrPool(block('10.0.0.0/22'), 24);
  const next = (): string => {
    const piece = pool.allocate();
    return piece === undefined ? '' : blockText(piece);
  };
  assert.deepEqual([next(), next()], ['10.0.0.0/24', '10.0.1.0/24']);
  pool.release(block('10.0.0.0/24'));
  assert.deepEqual(
    [next(), next(), next(), next()],
    ['10.0.2.0/24', '10.0.3.0/24', '10.0.0.0/24', ''],
  );
  assert(!pool.occupy(block('10.1.0.0/24')) && !pool.occupy(block('fd00::/64')));
  pool.release(block('10.0.0.0/16'));
  assert.equal(pool.count, 0);
  assert(pool.occupy(block('10.0.1.128/25')) && pool.occupy(block('10.0.2.0/23')));
  assert.deepEqual([next(), next()], ['10.0.0.0/24', '']);
  assert.throws(() => new CidrPool(block('10.0.0.0/8'), 28), /more than 2\^16 pieces/);
});

test('no two hold the same piece, whatever is taken, given back and occupied', () => {
  const step = fc.record({
    kind: fc.integer({ min: 0, max: 2 }),
    at: fc.integer({ min: 0, max: 15 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const pool = new CidrPool(block('fd00::/60'), 64);
      const held = new Set<string>();
      for (const { kind, at } of steps) {
        const text = at === 0 ? 'fd00::/64' : `fd00:0:0:${at.toString(16)}::/64`;
        if (kind === 0) {
          const piece = pool.allocate();
          assert.equal(piece === undefined, held.size === 16);
          if (piece === undefined) continue;
          assert(!held.has(blockText(piece)));
          held.add(blockText(piece));
        } else if (kind === 1) {
          pool.release(block(text));
          held.delete(text);
        } else {
          pool.occupy(block(text));
          held.add(text);
        }
        assert.equal(pool.count, held.size);
      }
    }),
  );
});

const FLAGS: Partial<ControllersOptions> = {
  allocateNodeCidrs: true,
  clusterCidr: ['10.0.0.0/22', 'fd00::/62'],
  serviceClusterIpRange: ['10.0.0.0/24'],
};

async function addNode(api: WorkloadApi, name: string, podCIDRs: string[] = []): Promise<void> {
  const spec = podCIDRs.length === 0 ? {} : { podCIDR: podCIDRs[0] ?? '', podCIDRs };
  const body = { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec };
  await api.request({ method: 'POST', path: '/api/v1/nodes', body });
  await api.advance(100);
}

function cidrsOf(api: WorkloadApi, name: string): string {
  const node = api.objects.get(`/api/v1/nodes /${name}`);
  const all = [stringAt(node, 'spec', 'podCIDR'), ...listAt(node, 'spec', 'podCIDRs')];
  return all.map(String).join(' ');
}

test('every node has a block of each family, or waits for another node to go', async () => {
  const api = new WorkloadApi();
  await addNode(api, 'old', ['10.0.2.0/24', 'fd00:0:0:2::/64']);
  startManager(api, ['node-ipam-controller'], FLAGS);
  await api.advance(1_000);
  for (const name of ['a', 'b', 'c']) await addNode(api, name);
  assert.equal(cidrsOf(api, 'a'), '10.0.1.0/24 10.0.1.0/24 fd00::/64');
  assert.equal(cidrsOf(api, 'b'), '10.0.3.0/24 10.0.3.0/24 fd00:0:0:1::/64');
  assert.equal(cidrsOf(api, 'c').trim(), '');
  assert(api.events.includes('CIDRNotAvailable: Node c status is now: CIDRNotAvailable'));
  const before = api.events.length;
  await api.advance(600_000);
  assert.equal(api.events.length, before, 'told once');
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/old', body: {} });
  await api.advance(1_000);
  assert.equal(cidrsOf(api, 'c').split(' ')[0], '10.0.2.0/24');
});

test('a node that waits for a block of one family takes no turns of the other', async () => {
  const api = new WorkloadApi();
  await addNode(api, 'old', ['10.0.2.0/24', 'fd00:0:0:2::/64']);
  const clusterCidr = ['10.0.0.0/22', 'fd00::/61'];
  startManager(api, ['node-ipam-controller'], { ...FLAGS, clusterCidr });
  await api.advance(1_000);
  for (const name of ['a', 'b', 'c']) await addNode(api, name);
  await api.advance(600_000);
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/old', body: {} });
  await api.advance(1_000);
  assert.equal(cidrsOf(api, 'c'), '10.0.2.0/24 10.0.2.0/24 fd00:0:0:2::/64');
});

test('under lost answers and refusals nodes end with blocks of their own', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const api = new WorkloadApi();
    let count = seed;
    const faults = ['lost', 'refused', 'none', 'lost', 'none', 'refused', 'none'] as const;
    api.faultOf = ({ path }) =>
      path.startsWith('/api/v1/nodes/') && count < 40 ? (faults[count++ % 7] ?? 'none') : 'none';
    startManager(api, ['node-ipam-controller'], { ...FLAGS, serviceClusterIpRange: [] });
    await api.advance(1_000);
    for (const name of ['a', 'b', 'c', 'd']) await addNode(api, name);
    await api.advance(200_000);
    const all = ['a', 'b', 'c', 'd'].map((name) => cidrsOf(api, name));
    assert.equal(new Set(all).size, 4, `seed ${seed}: ${all.join(', ')}`);
    assert(all.every((one) => one.startsWith('10.0.')));
  }
});

test('wrong flags are refused in words', () => {
  const told = (more: Partial<ControllersOptions>): string | number => {
    const pools = poolsOf({ kubeconfig: '', log: () => {}, allocateNodeCidrs: true, ...more });
    return typeof pools === 'string' ? pools : pools.length;
  };
  assert.equal(told({ allocateNodeCidrs: false }), 0);
  assert.equal(told({}), '--allocate-node-cidrs needs --cluster-cidr');
  assert.equal(told({ clusterCidr: ['x'] }), '--cluster-cidr: "x" is no block of addresses');
  const two = ['10.0.0.0/16', '10.1.0.0/16'];
  assert.match(String(told({ clusterCidr: two })), /different families/);
  const wide = { clusterCidr: ['10.0.0.0/8'], nodeCidrMaskSizeIpv4: 26 };
  assert.match(String(told(wide)), /more than 2\^16 pieces/);
  const both = ['10.0.0.0/16', 'fd00::/56'];
  const masks: readonly (readonly [Partial<ControllersOptions>, RegExp | number])[] = [
    [{ clusterCidr: both, nodeCidrMaskSize: 24 }, /-mask-size is not allowed with dual-stack/],
    [{ clusterCidr: both, nodeCidrMaskSizeIpv4: 26, nodeCidrMaskSizeIpv6: 64 }, 2],
    [{ clusterCidr: ['10.0.0.0/16'], nodeCidrMaskSizeIpv6: 64 }, /-ipv6 .* single-stack IPv4/],
    [{ clusterCidr: ['fd00::/56'], nodeCidrMaskSizeIpv4: 24 }, /-ipv4 .* single-stack IPv6/],
    [{ clusterCidr: ['10.0.0.0/8'], nodeCidrMaskSize: 26 }, /more than 2\^16 pieces/],
    [
      { clusterCidr: ['10.0.0.0/16'], nodeCidrMaskSize: 24, nodeCidrMaskSizeIpv4: 24 },
      /not allowed if --node-cidr-mask-size is set/,
    ],
  ];
  for (const [flags, wanted] of masks) {
    if (typeof wanted === 'number') assert.equal(told(flags), wanted);
    else assert.match(String(told(flags)), wanted);
  }
});

test('blocks that are given, found and freed are counted', async () => {
  const api = new WorkloadApi();
  const flags = { ...FLAGS, clusterCidr: ['10.0.0.0/22'], serviceClusterIpRange: [] };
  const manager = startManager(api, ['node-ipam-controller'], flags);
  await api.advance(1_000);
  await addNode(api, 'a', ['10.0.0.0/24']);
  await addNode(api, 'foreign', ['10.9.0.0/24']);
  await addNode(api, 'b');
  await addNode(api, 'c');
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/b' });
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/foreign' });
  await api.advance(1_000);
  const values = manager
    .metricsText()
    .split('\n')
    .filter((line) => line.startsWith('node_ipam') && !line.includes('_bucket'))
    .map((line) => line.replace('node_ipam_controller_', '').replace(/\{.*\}/, ''));
  assert.deepEqual(values, [
    'cidrset_allocation_tries_per_request_sum 1',
    'cidrset_allocation_tries_per_request_count 2',
    'cidrset_cidrs_allocations_total 3',
    'cidrset_cidrs_releases_total 1',
    'cidrset_usage_cidrs 0.5',
    'cirdset_max_cidrs 4',
  ]);
  manager.stop();
});

test('by a plan a node has the block of its number, of more than 65,536 nodes', async () => {
  const api = new WorkloadApi();
  const clusterCidr = ['fd00:10::/72'];
  startManager(api, ['node-ipam-controller'], {
    ...FLAGS,
    ...{ clusterCidr, nodeCidrAllocator: 'plan', serviceClusterIpRange: [] },
  });
  await api.advance(1_000);
  for (const name of ['worker-1', 'node-16777215', 'other1', 'x-01', 'plain', 'node-16777216']) {
    await addNode(api, name);
  }
  const annotations = { 'megaplane.dev/node-number': '7' };
  const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'far', annotations }, spec: {} };
  await api.request({ method: 'POST', path: '/api/v1/nodes', body });
  await api.advance(1_000);
  const of = (name: string): string => cidrsOf(api, name).split(' ')[0] ?? '';
  assert.equal(of('worker-1'), 'fd00:10::1:0:0/96');
  assert.equal(of('node-16777215'), 'fd00:10::ff:ffff:0:0/96');
  assert.equal(of('far'), 'fd00:10::7:0:0/96');
  // another has the block, or there is none of that number
  for (const name of ['other1', 'x-01', 'plain', 'node-16777216']) assert.equal(of(name), '', name);
  assert(api.events.includes('CIDRNotAvailable: Node other1 status is now: CIDRNotAvailable'));
  // the number is free when its node has gone
  await api.request({ method: 'DELETE', path: '/api/v1/nodes/worker-1', body: {} });
  await api.advance(60_000);
  assert.equal(of('other1'), 'fd00:10::1:0:0/96');
});

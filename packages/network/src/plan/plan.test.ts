import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { bitsFor, gatewayOf, makePlan, nodeOf, NODES_MAX, podPrefix, type Plan } from './plan.ts';
import { planPicture } from './plan-picture.ts';
import { lookUp, planJson, planLines, plannedNode, planText } from './plan-text.ts';
import { overlaps, parseAddress, parsePrefix, pieceOf, prefixText, sizeOf } from './prefix.ts';
import { PROVIDERS, SHARED } from './providers.ts';

function planned(base: string, nodes: number, more: object = {}): Plan {
  const plan = makePlan({ base, nodes, provider: SHARED, ...more });
  assert('base' in plan, 'a plan that can be');
  return plan;
}

test('the prefix of a node is the base plus its number', () => {
  const plan = planned('fd00:10::/76', 1_000_000);
  const of = (index: number): string => prefixText(podPrefix(plan, index));
  assert.deepEqual(
    [of(0), of(1), of(65_536), of(999_999)],
    ['fd00:10::/96', 'fd00:10::1:0:0/96', 'fd00:10:0:0:1::/96', 'fd00:10::f:423f:0:0/96'],
  );
  assert.equal(gatewayOf(podPrefix(plan, 1)), 'fd00:10::1:0:1');
  assert.deepEqual([plan.indexBits, plan.nodesMax], [20, 1_048_576]);
});

test('the bits for a number of nodes are the least, for every size up to 16 million', () => {
  for (let nodes = 1; nodes <= NODES_MAX; nodes++) {
    const bits = bitsFor(nodes);
    if (2 ** bits >= nodes && (bits === 0 || 2 ** (bits - 1) < nodes)) continue;
    assert.fail(`${nodes} nodes: ${bits} bits`);
  }
});

test('prefixes of nodes never overlap, lie in the base, and tell their number by a shift', () => {
  const sizes = fc.integer({ min: 1, max: NODES_MAX });
  const lengths = fc.integer({ min: 24, max: 124 });
  const parts = fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), {
    minLength: 3,
    maxLength: 3,
  });
  fc.assert(
    fc.property(
      sizes,
      lengths,
      fc.bigInt({ min: 0n, max: 2n ** 96n }),
      parts,
      (nodes, nodeLength, seed, [a = 0, b = 0, c = 0]) => {
        const length = nodeLength - bitsFor(nodes);
        if (length < 8) return;
        const whole = (0x20n << 120n) | seed;
        const base = (whole >> BigInt(128 - length)) << BigInt(128 - length);
        const text = prefixText({ base, length, bits: 128 });
        const plan = planned(text, nodes, { nodeLength, services: 'fd00:64:ff::/108' });
        const [left, right] = [a, b].map((part) => Math.floor(part * nodes)) as [number, number];
        const [first, second] = [podPrefix(plan, left), podPrefix(plan, right)];
        assert.equal(overlaps(first, second), left === right);
        assert.ok(overlaps(plan.base, first) && first.length >= plan.base.length);
        const inside = first.base + (BigInt(Math.floor(c * 2 ** 20)) % sizeOf(first));
        assert.equal(nodeOf(plan, inside), left);
        const last = podPrefix(plan, nodes - 1);
        assert.equal(nodeOf(plan, last.base + sizeOf(last)), -1);
        assert.equal(nodeOf(plan, plan.base.base - 1n), -1);
      },
    ),
  );
});

test('what cannot be is refused, all of it at once, with what would do', () => {
  const faults = (request: object): string => {
    const found = makePlan({ base: 'fd00::/64', nodes: 10, provider: SHARED, ...request });
    return Array.isArray(found) ? found.join('; ') : '';
  };
  assert.match(faults({ base: 'fd00::/80', nodes: 1_000_000 }), /too small.*a \/76 or larger/);
  assert.match(faults({ base: 'fd00::1/64' }), /bits beyond its length: fd00::\/64 is meant/);
  assert.match(faults({ base: '10.0.0.0/8' }), /one of IPv6/);
  assert.match(faults({ base: 'x', services: 'y', nodes: 0 }), /--base.*--services.*--nodes/);
  assert.match(faults({ nodeLength: 126 }), /no room for pods/);
  assert.match(faults({ services: 'fd00::/108' }), /overlap/);
  assert.match(faults({ services: 'fd01::/48' }), /from \/64 to \/124/);
  assert.match(faults({ services: '10.96.0.0/16' }), /a range of it is needed/);
  const aws = PROVIDERS.get('aws');
  const found = faults({ base: '2600::/64', nodes: 100_000, provider: aws });
  assert.match(found, /65536 prefixes of \/80: 100000 nodes need 2 subnets, so a base of \/63/);
  assert.match(
    faults({ base: '2600::/60', nodes: 16, nodeLength: 64, provider: aws }),
    /gets a \/80/,
  );
  assert.equal(faults({ base: '2600::/60', nodes: 1_000_000, provider: aws }), '');
});

test('a plan is shown as a table, as JSON, and node by node', () => {
  const plan = planned('2600:1f00::/76', 3);
  assert.match(planText(plan), /^2 +2600:1f00::2:0:0\/96 +2600:1f00::2:0:1$/m);
  const parsed = JSON.parse(planJson(plan)) as { podsPerNode: string; last: object };
  assert.equal(parsed.podsPerNode, '4294967294');
  assert.deepEqual(parsed.last, {
    index: 2,
    podCIDR: '2600:1f00::2:0:0/96',
    gateway: '2600:1f00::2:0:1',
  });
  assert.equal([...planLines(plan)].join('').split('\n').length, 4);
  for (const [base, nodeLength] of [
    ['fd00:10::/76', 96],
    ['2001:db8::/44', 64],
    ['fd00:1:2:3::/64', 87],
  ] as const) {
    const large = planned(base, 70_000, { nodeLength });
    const lines = [...planLines(large)].join('').trim().split('\n');
    for (const index of [0, 1, 255, 256, 4095, 4096, 65_535, 65_536, 69_999]) {
      const { podCIDR, gateway } = plannedNode(large, index);
      assert.equal(lines[index], `${index} ${podCIDR} ${gateway}`);
    }
  }
  assert.equal(lookUp(plan, '2600:1f00::2:0:99').line, '2 2600:1f00::2:0:0/96\n');
  assert.match(lookUp(plan, '2600:1f00::3:0:0').why ?? '', /no pod's of this plan/);
  assert.match(lookUp(plan, '10.0.0.1').why ?? '', /no pod's of this plan/);
  assert.match(lookUp(plan, 'x').why ?? '', /no address/);
});

test('prefixes and addresses are read and written', () => {
  for (const text of ['::/0', 'fd00::/8', '2001:db8:0:1::/64', '10.0.0.0/8', '192.168.1.0/24']) {
    const prefix = parsePrefix(text);
    assert(typeof prefix !== 'string');
    assert.equal(prefixText(prefix), text);
  }
  assert.equal(parseAddress('10.0.0.1')?.value, 0x0a000001n);
  assert.equal(parseAddress('::1')?.value, 1n);
  const prefix = parsePrefix('10.0.0.0/16');
  assert(typeof prefix !== 'string');
  assert.equal(prefixText(pieceOf(prefix, 24, 3)), '10.0.3.0/24');
});

test('the plan is drawn, for sizes of all kinds, and the picture of the docs is that one', () => {
  const root = join(import.meta.dirname, '..', '..', '..', '..');
  const shown = join(root, 'docs/network-plan.svg');
  const plan = planned('fd00:10::/76', 1_000_000, { services: 'fd00:64:ff::/108' });
  assert.equal(planPicture(plan), readFileSync(shown, 'utf8'), 'network plan --svg makes it anew');
  for (const [base, nodes] of [
    ['fd00::/96', 1],
    ['fd00::/95', 2],
    ['fd00::/94', 4],
    ['fd00::/72', NODES_MAX],
  ] as const) {
    const picture = planPicture(planned(base, nodes));
    assert.ok(picture.includes(plannedNode(planned(base, nodes), nodes - 1).podCIDR), base);
    assert.equal(picture.split('<text').length, picture.split('</text>').length);
    const numbers = [...picture.matchAll(/ (?:x|y|width|height)="(-?[\d.]+)"/g)];
    assert.ok(numbers.every(([, value]) => Number(value) >= 0 && Number(value) <= 860));
  }
});

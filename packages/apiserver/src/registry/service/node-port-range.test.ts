import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyNodePortRange, decodePorts, encodePorts, NODE_PORTS } from './node-port-range.ts';

function decoded(bytes: Buffer): number[] {
  const row = { bytes, start: 0, end: bytes.length } as Parameters<typeof decodePorts>[0];
  return [...decodePorts(row)].toSorted((a, b) => a - b);
}

test('a range of ports is read as upstream reads it', () => {
  try {
    applyNodePortRange('20000-20100');
    assert.deepEqual(NODE_PORTS, { first: 20_000, last: 20_100 });
    applyNodePortRange('65000+5000');
    assert.deepEqual(NODE_PORTS, { first: 65_000, last: 65_535 });
    applyNodePortRange('8080');
    assert.deepEqual(NODE_PORTS, { first: 8080, last: 8080 });
    for (const text of ['5-4', '0-10', '1-70000', 'a-b', '-5']) {
      assert.throws(() => applyNodePortRange(text), /--service-node-port-range: .* is no range/);
    }
  } finally {
    applyNodePortRange('');
  }
  assert.deepEqual(NODE_PORTS, { first: 30_000, last: 32_767 });
});

test('ports that were taken under another range stay what they are', () => {
  const before = encodePorts(new Set([30_000, 30_009, 32_767]));
  try {
    applyNodePortRange('30005-30100');
    assert.deepEqual(decoded(before), [30_000, 30_009, 32_767]);
    assert.deepEqual(decoded(encodePorts(new Set([30_005, 30_100, 32_767]))), [30_005, 30_100]);
  } finally {
    applyNodePortRange('');
  }
});

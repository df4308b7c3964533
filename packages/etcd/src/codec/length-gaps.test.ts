import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Fields, encode } from '../testing/peer.sim.ts';
import { LengthGaps } from './length-gaps.ts';

/** A message of messages, the innermost holding bytes. */
type Tree = number | readonly Tree[];

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'large' },
    fc.constantFrom(0, 1, 60, 127, 128, 17_000),
    fc.array(tie('tree'), { maxLength: 4 }),
  ),
}));

function fieldsOf(node: Tree): Fields {
  if (typeof node === 'number') return [[1, 'x'.repeat(node)]];
  return node.map((child) => [2, fieldsOf(child)] as const);
}

function write(gaps: LengthGaps, out: Buffer, start: number, node: Tree): number {
  if (typeof node === 'number') {
    const content = encode(fieldsOf(node));
    return start + content.copy(out, start);
  }
  let at = start;
  for (const child of node) {
    at = write(gaps, out, gaps.open(out, at, 2), child);
    gaps.close(at);
  }
  return at;
}

test('messages whose lengths come last are those whose lengths were known', () => {
  const gaps = new LengthGaps();
  fc.assert(
    fc.property(tree, (node) => {
      const expected = encode(fieldsOf(node));
      const out = Buffer.alloc(expected.length * 6 + 16);
      const end = gaps.join(out, write(gaps, out, 3, node));
      assert.equal(out.toString('hex', 3, end), expected.toString('hex'));
    }),
    { numRuns: 300 },
  );
});

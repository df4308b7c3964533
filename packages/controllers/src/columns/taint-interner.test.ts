import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NO_TAINTS, TaintInterner, UNKNOWN_TAINTS } from './taint-interner.ts';

test('a text is kept as long as a node has it', () => {
  const nodes = fc.array(fc.record({ node: fc.nat(5), text: fc.constantFrom('', 'a', 'b', 'c') }));
  fc.assert(
    fc.property(nodes, (steps) => {
      const texts = new TaintInterner();
      const held = new Map<number, { index: number; text: string }>();
      for (const { node, text } of steps) {
        const before = held.get(node);
        held.set(node, { index: texts.hold(text), text });
        if (before !== undefined) texts.release(before.index);
        for (const one of held.values()) assert.equal(texts.textOf(one.index), one.text);
        const different = new Set([...held.values()].map((one) => one.text));
        different.delete('');
        assert.equal(texts.size, different.size);
      }
    }),
  );
});

test('texts beyond the limit are not kept, until there is room again', () => {
  const texts = new TaintInterner();
  const first = texts.hold('first');
  while (texts.hold(`another ${texts.size}`) !== UNKNOWN_TAINTS);
  assert.equal(texts.textOf(texts.hold('late')), undefined);
  assert.equal(texts.hold(''), NO_TAINTS);
  texts.release(UNKNOWN_TAINTS);
  texts.release(first);
  assert.equal(texts.textOf(texts.hold('late')), 'late');
});

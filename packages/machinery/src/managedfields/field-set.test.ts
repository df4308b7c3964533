import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeFields, encodeFields } from './field-set-codec.ts';
import { FieldSet, type FieldPath } from './field-set.ts';
import { fillText, HOLE, holedFields } from './field-placeholders.ts';
import { compareSteps, printPath } from './path-element.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 500 : 50_000;

const step = fc.constantFrom(
  'f:a',
  'f:b.c/d',
  'f:é"',
  'k:{"name":"x"}',
  'k:{"port":80,"protocol":"TCP"}',
  'k:{"port":443,"protocol":"TCP"}',
  'k:{"uid":"u-1"}',
  'v:"x/y"',
  'v:7',
  'i:3',
  'i:12',
);
const path = fc.array(step, { minLength: 1, maxLength: 3 });
const paths = fc.array(path, { maxLength: 8 });

/** The same set without any cleverness. */
function naive(list: readonly FieldPath[]): Set<string> {
  return new Set(list.map((one) => one.join('\n')));
}

function texts(set: FieldSet): string[] {
  return [...naive(set.paths())].sort();
}

test('set operations do what they do to plain sets of paths', () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const [one, other] = [FieldSet.of(...left), FieldSet.of(...right)];
      const [a, b] = [naive(left), naive(right)];
      const isBelow = (text: string): boolean =>
        [...b].some((top) => `${text}\n`.startsWith(`${top}\n`));
      assert.deepEqual(texts(one), [...a].sort());
      assert.equal(one.size, a.size);
      assert.deepEqual(texts(one.union(other)), [...a.union(b)].sort());
      assert.deepEqual(texts(one.intersection(other)), [...a.intersection(b)].sort());
      assert.deepEqual(texts(one.difference(other)), [...a.difference(b)].sort());
      const kept = [...a].filter((text) => !isBelow(text)).sort();
      assert.deepEqual(texts(one.recursiveDifference(other)), kept);
      assert.equal(one.equals(other), a.symmetricDifference(b).size === 0);
      for (const each of right) assert.equal(one.has(each), a.has(each.join('\n')));
    }),
    { numRuns: RUNS },
  );
});

test('operations that change nothing give the set itself', () => {
  fc.assert(
    fc.property(paths, (list) => {
      const set = FieldSet.of(...list);
      const part = FieldSet.of(...list.slice(0, 2));
      assert.equal(set.union(part), set);
      assert.equal(set.difference(FieldSet.of(['f:none'], ['f:none', 'f:a'])), set);
      assert.equal(set.recursiveDifference(FieldSet.of(['f:none', 'f:a'])), set);
    }),
    { numRuns: RUNS },
  );
});

test('a set is what its FieldsV1 says, and the other way round', () => {
  fc.assert(
    fc.property(paths, (list) => {
      const set = FieldSet.of(...list);
      const text = encodeFields(set);
      const read = decodeFields(JSON.parse(text));
      assert.ok(read !== null && read.equals(set));
      assert.equal(encodeFields(read), text);
      const { text: holed, fills } = holedFields(set);
      let at = 0;
      assert.equal(
        holed.replaceAll(HOLE, () => fillText(fills[at++] ?? '')),
        text,
      );
      assert.equal(at, fills.length);
    }),
    { numRuns: RUNS },
  );
});

test('the order of steps is total', () => {
  fc.assert(
    fc.property(step, step, step, (a, b, c) => {
      assert.equal(compareSteps(a, b) < 0, compareSteps(b, a) > 0);
      assert.equal(compareSteps(a, b) === 0, a === b);
      if (compareSteps(a, b) < 0 && compareSteps(b, c) < 0) assert.ok(compareSteps(a, c) < 0);
    }),
    { numRuns: RUNS },
  );
});

test('FieldsV1 is written as structured-merge-diff writes it', () => {
  const set = FieldSet.of(
    ['f:spec', 'f:containers', 'k:{"name":"c"}'],
    ['f:spec', 'f:containers', 'k:{"name":"c"}', 'f:image'],
    ['f:spec', 'f:ports', 'k:{"port":443}'],
    ['f:spec', 'f:ports', 'k:{"port":80}'],
    ['f:metadata', 'f:finalizers'],
    ['f:metadata', 'f:finalizers', 'v:"e/a"'],
  );
  assert.equal(
    encodeFields(set),
    '{"f:metadata":{"f:finalizers":{".":{},"v:\\"e/a\\"":{}}},"f:spec":{"f:containers":' +
      '{"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{}}},"f:ports":{"k:{\\"port\\":80}":{},' +
      '"k:{\\"port\\":443}":{}}}}',
  );
  assert.equal(
    printPath(['f:spec', 'f:ports', 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', 'i:2']),
    '.spec.ports[port=80,protocol="TCP"][="x"][2]',
  );
});

test('what is no set of fields is told from one', () => {
  for (const bad of [
    'x',
    1,
    [],
    { 'f:a': 1 },
    { a: {} },
    { 'k:[]': {} },
    { 'k:{': {} },
    { 'i:x': {} },
  ]) {
    assert.equal(decodeFields(bad), null);
  }
  assert.ok(decodeFields(null)?.isEmpty);
  // kinds of steps that nobody knows yet are dropped, keys are brought into order
  const read = decodeFields({ 'x:y': {}, 'k:{"b":1, "a":2}': {}, 'f:a': { 'z:q': {} } });
  assert.equal(encodeFields(read ?? new FieldSet()), '{"f:a":{},"k:{\\"a\\":2,\\"b\\":1}":{}}');
});

/** What is printed for people is never a thousand times what is stored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import fc from 'fast-check';
import { INDENTS_BYTES_MAX, indentedJson, yamlItem, yamlText } from './printed-text.ts';
import { HELD_BYTES_MAX } from '../serializer/printed-encoder.ts';
import { Rig } from '../testing/rig.sim.ts';
import { parseYaml } from './yaml/yaml-body.ts';
import { printYaml } from './yaml-text.ts';

const MAPS = '/api/v1/namespaces/a/configmaps';
const DEPTH = 900;
const LEAVES = 400_000;

/** `leaf` stands that deep, in a list as long as a request may be. */
function deep(leaf: JsonValue): JsonValue {
  let value = leaf;
  for (let depth = 0; depth < DEPTH; depth++) value = [value];
  return value;
}

const wide: readonly (readonly [string, JsonValue])[] = [
  ['numbers', deep(Array.from({ length: LEAVES }, () => 1))],
  ['lines', deep('a\n'.repeat(LEAVES))],
  ['words', deep('a '.repeat(LEAVES))],
];

for (const [name, value] of wide) {
  test(`deep ${name} are printed compact`, () => {
    const bytesMax = INDENTS_BYTES_MAX + 4 * JSON.stringify(value).length;
    for (const text of [yamlText(value), yamlItem(value)]) {
      assert(text.length < bytesMax, `${text.length} letters`);
      const lone = text.startsWith('- ') ? JSON.parse(text.slice(2)) : JSON.parse(text);
      assert(JSON.stringify(lone) === JSON.stringify(value));
    }
    const json = indentedJson(value, 4);
    assert(json.length < bytesMax, `${json.length} letters`);
    assert(JSON.stringify(JSON.parse(json)) === JSON.stringify(value));
  });
}

test('whatever is printed compact is read as the same from YAML', () => {
  const odd = '\x7f\x85\u2028\ufeff\uffff: # "\'{}[],& *x';
  const value = { [odd]: deep(['a\n'.repeat(6000), odd]) };
  const text = yamlText(value);
  assert.equal(text.split('\n').length, 2);
  assert(!/[\x7f-\x9f\u2028\ufeff\uffff]/.test(text));
  assert.deepEqual(JSON.parse(text), value);
  assert.deepEqual(parseYaml(`{"a":["b",{"c":1}]}\n`), { value: { a: ['b', { c: 1 }] } });
});

test('a long list of metadata for people is passed on as it is, and read the same', () => {
  const rig = new Rig();
  const annotations = { a: 'x y\n'.repeat(50_000) };
  for (let index = 0; index < 16; index++) {
    const made = rig.ask('POST', MAPS, { metadata: { name: `m-${index}`, annotations } });
    assert.equal(made.status, 201, made.text);
  }
  const as = ';as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
  const plain = rig.ask('GET', MAPS, undefined, { accept: `application/json${as}` });
  assert(plain.text.length > HELD_BYTES_MAX);
  for (const type of ['application/yaml', 'application/json']) {
    const answer = rig.ask('GET', `${MAPS}?pretty=1`, undefined, { accept: `${type}${as}` });
    assert.equal(answer.status, 200);
    assert.deepEqual(JSON.parse(answer.text), JSON.parse(plain.text), type);
  }
});

test('keys of YAML stand in the order that they always had', () => {
  const piece = fc.constantFrom('a', 'B', 'é', '1', '02', '10', '-', '_', '😀', '𐐷', '.');
  const key = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(''));
  const keys = fc.uniqueArray(key, { minLength: 2, maxLength: 8 });
  const order = (names: readonly string[]): string[] => {
    const object: JsonObject = Object.fromEntries(names.map((name) => [`k${name}`, 1]));
    const lines = printYaml(object).trimEnd().split('\n');
    const plain = lines.map((line) => line.slice(0, -': 1'.length).replaceAll(/^"|"$/g, ''));
    return plain.map((line) =>
      line.replaceAll(/\\U(.{8})/g, (_, hex: string) => String.fromCodePoint(parseInt(hex, 16))),
    );
  };
  fc.assert(
    fc.property(keys, (names) => {
      const expected = names.map((name) => `k${name}`).sort(slowly);
      assert.deepEqual(order(names), expected);
    }),
    { seed: 7, numRuns: 300 },
  );
});

/** Letter by letter, as go-yaml's keyList goes about it. */
function slowly(left: string, right: string): number {
  const [a, b] = [Array.from(left), Array.from(right)];
  for (let at = 0; at < a.length && at < b.length; at++) {
    const [one = '', other = ''] = [a[at], b[at]];
    if (one === other) continue;
    const isLetter = /\p{L}/u.test(one);
    if (isLetter !== /\p{L}/u.test(other)) return isLetter ? 1 : -1;
    const digits = (of: string[]): number => Number(/^\d*/.exec(of.slice(at).join(''))?.[0] || 0);
    const numbers = isLetter ? 0 : digits(a) - digits(b);
    return numbers === 0 ? (one < other ? -1 : 1) : numbers;
  }
  return a.length - b.length;
}

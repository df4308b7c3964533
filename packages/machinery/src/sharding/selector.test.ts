import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { ShardHash } from './hash.ts';
import { parseShardSelector, selectsHash, shardOf, type ShardSelector } from './selector.ts';

const HEX = fc.bigInt({ min: 0n, max: 2n ** 64n });
const PRIME = 0x100000001b3n;

function hashOf(text: string): bigint {
  const hash = new ShardHash();
  const bytes = Buffer.from(text);
  hash.of(bytes, 0, bytes.length);
  return (BigInt(hash.high) << 32n) | BigInt(hash.low);
}

function selects(selector: ShardSelector, hash: bigint): boolean {
  return selectsHash(selector, Number(hash >> 32n), Number(hash & 0xffffffffn));
}

function selectorOf(text: string): ShardSelector {
  const parsed = parseShardSelector(text);
  assert(parsed.ok, text);
  return parsed.selector;
}

test('what kube-apiserver says to selectors of every shape is said here', () => {
  const file = join(import.meta.dirname, 'recorded-selectors.json');
  for (const [text, said] of JSON.parse(readFileSync(file, 'utf8')) as [string, string][]) {
    const parsed = parseShardSelector(text);
    assert.equal(parsed.ok ? parsed.selector.text : `! ${parsed.error}`, said, text);
  }
});

test('any text is read or refused, and a selector’s own text reads back as itself', () => {
  const words = fc.constantFrom('shardRange(', ')', "'0x", '||', 'object.', 'uid', ',', '!', '[');
  const part = fc.oneof(words, fc.string({ unit: 'binary', maxLength: 6 }));
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const parsed = parseShardSelector(parts.join(''));
      if (!parsed.ok) assert.notEqual(parsed.error, '');
      else assert.deepEqual(selectorOf(parsed.selector.text), parsed.selector);
    }),
    { numRuns: 300 },
  );
});

test('a selector of a hundred thousand terms or brackets is answered', () => {
  assert(!parseShardSelector('x||'.repeat(100_000) + 'x').ok);
  assert(!parseShardSelector('('.repeat(100_000)).ok);
  assert(!parseShardSelector(`shardRange(${'a.'.repeat(100_000)}b, '', '')`).ok);
  assert(!parseShardSelector('-'.repeat(100_000)).ok);
});

test('hashes are those of the published vectors', () => {
  const vectors: readonly (readonly [string, string])[] = [
    ['', 'cbf29ce484222325'],
    ['a', 'af63dc4c8601ec8c'],
    ['default', 'ebada5168620c5fe'],
    ['kube-system', 'df65c7bc1d82b35e'],
    ['11111111-1111-4111-8111-111111111111', '0dfcf121ed9d6923'],
    ['ef4d9943-841b-49cc-9fc2-a5faab77e63f', 'feb297663aa296fb'],
    ['kube-node-lease', '021fb6dd71b80174'],
  ];
  for (const [text, hex] of vectors) assert.equal(hashOf(text).toString(16).padStart(16, '0'), hex);
});

test('hashes are those of the plain definition', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      let hash = 0xcbf29ce484222325n;
      for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * PRIME) % 2n ** 64n;
      assert.equal(hashOf(text), hash);
    }),
    { numRuns: 200 },
  );
});

test('a hash is selected exactly where a written range holds it', () => {
  const range: fc.Arbitrary<[bigint, bigint]> = fc
    .tuple(HEX, HEX)
    .filter(([one, other]) => one !== other)
    .map(([one, other]) => (one < other ? [one, other] : [other, one]));
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 5 }), HEX, (ranges, near) => {
      const hex = (bound: bigint): string => `'0x${bound.toString(16).padStart(16, '0')}'`;
      const terms = ranges.map(
        ([start, end]) => `shardRange(object.metadata.uid, ${hex(start)}, ${hex(end)})`,
      );
      const selector = selectorOf(terms.join('||'));
      for (const hash of [near, ...ranges.flat(), ...ranges.map(([start]) => start - 1n)]) {
        if (hash < 0n || hash >= 2n ** 64n) continue;
        const isWanted = ranges.some(([start, end]) => hash >= start && hash < end);
        assert.equal(selects(selector, hash), isWanted, `${terms.join('||')} ${hash}`);
      }
    }),
    { numRuns: 200 },
  );
});

test('equal parts hold each hash once, whatever their number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), HEX, (count, hash) => {
      const parts = Array.from({ length: count }, (_, index) => selectorOf(shardOf(index, count)));
      const inside = hash === 2n ** 64n ? hash - 1n : hash;
      assert.equal(parts.filter((part) => selects(part, inside)).length, 1);
    }),
    { numRuns: 100 },
  );
});

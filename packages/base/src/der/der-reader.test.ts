import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as der from './der.ts';
import { derAt, derChildren, isDer, objectIdAt } from './der-reader.ts';

test('what was written is read again, whatever its length', () => {
  const lengths = [0, 1, 127, 128, 255, 256, 65_535, 65_536];
  for (const length of lengths) {
    const value = der.sequence(der.octets(new Uint8Array(length)), der.truth());
    assert(isDer(value));
    const top = derAt(value, 0, value.length);
    assert(top !== undefined);
    const [first, second] = derChildren(value, top) ?? [];
    assert.equal((first?.end ?? 0) - (first?.start ?? 0), length);
    assert.equal(second?.tag, 0x01);
  }
});

test('object identifiers are read as they were written', () => {
  for (const dotted of ['2.5.4.3', '1.2.840.10045.4.3.2', '2.5.29.17', '1.3.101.112']) {
    const bytes = der.objectId(dotted);
    const value = derAt(bytes, 0, bytes.length);
    assert(value !== undefined);
    assert.equal(objectIdAt(bytes, value), dotted);
  }
});

test('cut, changed and made up bytes are refused or read, and never beyond their end', () => {
  const good = der.sequence(der.sequence(der.utf8('a')), der.unsigned(Uint8Array.of(1, 2)));
  for (let end = 0; end < good.length; end++) assert(!isDer(good.subarray(0, end)));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const value = derAt(bytes, 0, bytes.length);
      if (value !== undefined) assert(value.end <= bytes.length);
      isDer(bytes);
    }),
  );
  const deep = Array.from({ length: 100 }).reduce<Uint8Array>(
    (inner) => der.sequence(inner),
    der.truth(),
  );
  assert(!isDer(deep));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { crc32c } from './crc32c.ts';

function whole(bytes: Uint8Array): number {
  return crc32c(0, bytes, 0, bytes.length);
}

test('checksums are those of RFC 3720, appendix B.4', () => {
  assert.equal(whole(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(whole(new Uint8Array(32).fill(255)), 0x62a8ab43);
  const rising = Uint8Array.from({ length: 32 }, (_, i) => i);
  assert.equal(whole(rising), 0x46dd794e);
  assert.equal(whole(rising.toReversed()), 0x113fdb5c);
  assert.equal(whole(Buffer.from('123456789')), 0xe3069283);
  assert.equal(whole(new Uint8Array(0)), 0);
});

test('a checksum goes on over any cut, and any flipped bit changes it', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 100 }),
      fc.nat(),
      fc.nat(),
      (bytes, a, b) => {
        const cut = a % (bytes.length + 1);
        const sum = whole(bytes);
        assert.equal(crc32c(crc32c(0, bytes, 0, cut), bytes, cut, bytes.length), sum);
        const flipped = Uint8Array.from(bytes);
        const at = b % bytes.length;
        flipped[at] = (flipped[at] ?? 0) ^ (1 << (a % 8));
        assert.notEqual(whole(flipped), sum);
      },
    ),
  );
});
